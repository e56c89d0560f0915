"""Standing rules over HTTP: drafted from a review, used, listed, and taken back."""

from typing import Any

import pytest

from clearance.people import Person, Role
from clearance.policy import Policy, Rule, Threshold
from clearance.program import Program
from clearance.store import people
from tests.web.asked import _TOOLS, ask
from tests.web.served import OWNER, Served

TERMS: dict[str, Any] = {"uses": 2, "for": "8h"}


def _post(served: Served, path: str = "", by: str = OWNER, **body: Any) -> Any:
    return served.http.post(f"/api/v1/standing-rules{path}", json=body or None, headers=served.key(by))


def _listed(served: Served, by: str = OWNER, query: str = "") -> list[dict[str, Any]]:
    answer = served.http.get(f"/api/v1/standing-rules{query}", headers=served.key(by))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["standing_rules"]
    return found


def test_a_rule_is_made_listed_and_revoked(served: Served) -> None:
    review = ask(served)
    made = _post(served, review_id=review.id, **TERMS)
    assert made.status_code == 201, made.text
    record = made.json()
    assert (record["state"], record["equal"], record["uses_left"]) == (
        "active",
        {"to": '"ann@example.org"'},
        2,
    )
    assert _listed(served) == [record]
    revoked = _post(served, f"/{record['rule_id']}/revoke")
    assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
    assert _listed(served) == []
    assert _listed(served, query="?all=true") == [revoked.json()]
    assert _post(served, f"/{record['rule_id']}/revoke").status_code == 409


def test_a_rule_that_needs_more_people_is_a_draft_until_they_approve(served: Served) -> None:
    two = Policy(rules=(Rule("*", who=(Threshold(approve=2),)),))
    served.workspace.register(Program("desk", tools=_TOOLS, policy=two))
    database = served.workspace.database
    with database.write() as tx:
        for name in ("ben", "tom"):
            people.add(tx, Person(id=name, name=name, role=Role.REVIEWER), now=database.now(tx))
    review = ask(served, by="tom")
    record = _post(served, review_id=review.id, **TERMS).json()
    assert record["state"] == "drafted"
    path = f"/{record['rule_id']}/approve"
    assert _post(served, path, by="tom").status_code == 403
    approved = _post(served, path, by="ben").json()
    assert (approved["state"], [each["by"] for each in approved["approvals"]]) == ("active", [OWNER, "ben"])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"uses": 0}, "/uses"),
        ({"uses": "2"}, "/uses"),
        ({"uses": True}, "/uses"),
        ({"for": "soon"}, "/for"),
        ({"for": "32d"}, "/for"),
        ({"any": ["nothing"]}, "/any"),
        ({"when": "args."}, "/when"),
        ({"lasts": "8h"}, "/lasts"),
        ({"thread_only": "yes"}, "/thread_only"),
    ],
)
def test_what_cannot_be_remembered_is_refused_with_its_place(
    served: Served, change: dict[str, Any], pointer: str
) -> None:
    review = ask(served)
    refused = _post(served, **{"review_id": review.id, **TERMS, **change})
    assert refused.status_code == 422, refused.text
    assert pointer in {each["pointer"] for each in refused.json()["errors"]}
    assert _listed(served, query="?all=true") == []


def test_a_rule_that_is_asked_for_again_under_the_same_name_is_made_once(served: Served) -> None:
    body = {"review_id": ask(served).id, **TERMS}
    headers = served.key() | {"Idempotency-Key": "k1"}
    answers = [served.http.post("/api/v1/standing-rules", json=body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].text == answers[1].text
    assert len(_listed(served)) == 1
    other = served.http.post("/api/v1/standing-rules", json={**body, "uses": 3}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_agents_remember_nothing_and_see_only_what_is_about_them(served: Served) -> None:
    for name in ("bot", "other"):
        served.add_agent(name)
    review = ask(served, by="bot")
    assert _post(served, by="bot", review_id=review.id, **TERMS).status_code == 403
    assert _post(served, by="other", review_id=review.id, **TERMS).status_code == 404
    record = _post(served, review_id=review.id, **TERMS).json()
    assert _listed(served, by="bot") == [record]
    assert _listed(served, by="other") == []
    for verb in ("approve", "revoke"):
        assert _post(served, f"/{record['rule_id']}/{verb}", by="bot").status_code in (403, 409)
        assert _post(served, f"/{record['rule_id']}/{verb}", by="other").status_code == 404
        assert _post(served, f"/nothing/{verb}").status_code == 404


def test_an_agent_elsewhere_carries_out_what_a_rule_clears_without_waiting(served: Served) -> None:
    served.add_agent("bot")

    def propose(key: str, to: str = "ana") -> dict[str, Any]:
        body = {"key": key, "tool": "send", "arguments": {"to": to}, "schema": {"type": "object"}}
        answer = served.http.post("/api/v1/calls", json=body, headers=served.key("bot"))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    first = propose("k1")
    assert first["state"] == "held"
    assert _post(served, review_id=first["review_id"], **TERMS).json()["state"] == "active"
    second = propose("k2")
    assert (second["state"], second["may_take"]) == ("cleared", True)
    assert propose("k3", to="bob")["state"] == "held"
    taken = served.http.post("/api/v1/calls/k2/take", headers=served.key("bot"))
    assert (taken.status_code, taken.json()["args"]) == (200, {"to": "ana"})
    assert [each["uses_left"] for each in _listed(served)] == [1]
