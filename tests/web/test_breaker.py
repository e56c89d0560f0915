"""The breaker over HTTP: what a parked agent proposes is refused with 429, and people let it go on."""

from typing import Any

import pytest

from clearance.errors import AgentParkedError
from clearance.store import parking
from clearance.store.parking import Parked
from tests.web.asked import ask
from tests.web.served import OWNER, Served


@pytest.fixture
def parked(served: Served) -> Served:
    """Serve a workspace whose agent `bot` is parked, and whose agent `other` is not."""
    for name in ("bot", "other"):
        served.add_agent(name)
    database = served.workspace.database
    with database.write() as tx:
        parking.park(tx, Parked("bot", "it proposed too much", database.now(tx)))
    return served


def _propose(served: Served, by: str) -> Any:
    body = {"key": "k1", "tool": "send", "arguments": {"to": "ana"}, "schema": {"type": "object"}}
    return served.http.post("/api/v1/calls", json=body, headers=served.key(by))


def _parked(served: Served, by: str = OWNER) -> list[str]:
    answer = served.http.get("/api/v1/agents/parked", headers=served.key(by))
    assert answer.status_code == 200, answer.text
    return [each["agent"] for each in answer.json()["parked"]]


def test_what_a_parked_agent_proposes_is_refused_and_names_the_breaker(parked: Served) -> None:
    refused = _propose(parked, "bot")
    assert (refused.status_code, refused.json()["code"]) == (429, "agent_parked")
    assert "The breaker has parked the agent bot" in refused.json()["detail"]
    assert _propose(parked, "other").status_code != 429
    with pytest.raises(AgentParkedError):
        ask(parked, by="bot")


def test_people_see_who_is_parked_and_let_it_go_on(parked: Served) -> None:
    assert (_parked(parked), _parked(parked, "bot"), _parked(parked, "other")) == (["bot"], ["bot"], [])

    def resume(by: str, agent: str = "bot") -> int:
        answer = parked.http.post(f"/api/v1/agents/{agent}/resume", headers=parked.key(by))
        return int(answer.status_code)

    assert [resume("bot"), resume("other"), resume(OWNER, "nobody"), resume(OWNER, OWNER)] == [
        403,
        403,
        404,
        404,
    ]
    assert resume(OWNER) == 200
    assert _parked(parked) == []
    assert resume(OWNER) == 409
    assert _propose(parked, "bot").status_code != 429
