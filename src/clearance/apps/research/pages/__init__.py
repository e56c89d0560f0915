"""The pages of research runs: the list, and of each run its way, its plan, its gates and its files."""

from fastapi import APIRouter


def routers() -> list[APIRouter]:
    """Return the routes of the pages; they need what `routes_shared.with_research` hands on."""
    from clearance.apps.research.pages import deciding, files, following, listing, showing

    return [listing.router, showing.router, deciding.router, files.router, following.router]
