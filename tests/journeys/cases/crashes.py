"""Where a process is killed: the words of the cases, as places in the product."""

from tests.journeys.cases.fixture_tools import IN_TOOL
from tests.journeys.cases.loading import CaseError
from tests.journeys.cases.served import ANSWERING

_PLACES = {
    "after the decision is stored, before the claim": "woken",
    "after the claim, before the tool starts": "before-take",
    "while the tool runs": IN_TOOL,
    "after the side effect, before the result is stored": "tool-ran",
    "after the result is stored, before the model is called": "outcome-kept",
    "while the approval answer is being sent to the client": ANSWERING,
    "after the notification is sent, before the checkpoint is committed": "asked",
}


def place_of(said: str) -> str:
    """Return the place at which a process dies. Raises `CaseError` for words that name none."""
    if said not in _PLACES:
        raise CaseError(f"The interpreter knows no place to crash {said!r}.")
    return _PLACES[said]
