"""Where the pages of research runs are, and where their templates lie."""

from urllib.parse import quote, urlencode

from clearance.apps.research.research_request import ResearchRequest

HERE = "/pipeline"
TEMPLATES = "clearance.apps.research.pages"


def address(run_id: str) -> str:
    """Return where a run is shown."""
    return f"{HERE}/{quote(run_id, safe='')}"


def again(request: ResearchRequest, *, symbol: str) -> str:
    """Return the list with its form filled in for another run like this one, about this symbol."""
    said = {"symbol": symbol, "objective": request.objective, "organism": request.organism}
    given = {name: text for name, text in said.items() if text}
    return f"{HERE}?{urlencode(given | ({'offline': '1'} if request.offline else {}))}"
