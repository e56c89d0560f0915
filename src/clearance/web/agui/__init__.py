"""AG-UI 1.0 at `POST /agui`: one run of an agent as events, for front ends that speak that protocol."""

from clearance.web.agui.running import router

__all__ = ["router"]
