"""Claims over HTTP: who is looking at a review is in its record, and a conflict says who holds it."""

from typing import Any

import pytest

from clearance.people import Person, Role
from clearance.store import people
from tests.web.asked import ask, decide
from tests.web.served import OWNER, Served


def _post(served: Served, path: str, by: str = OWNER, **body: Any) -> Any:
    return served.http.post(f"/api/v1/reviews/{path}", json=body, headers=served.key(by))


def _hire(served: Served, *names: str) -> None:
    database = served.workspace.database
    with database.write() as tx:
        for name in names:
            people.add(tx, Person(id=name, name=name, role=Role.REVIEWER), now=database.now(tx))


def test_a_claim_is_in_the_record_until_it_is_given_back(served: Served) -> None:
    review = ask(served)
    claimed = _post(served, f"{review.id}/claim")
    assert (claimed.status_code, claimed.json()["claim"]["by"]) == (200, OWNER)
    listed = served.http.get("/api/v1/reviews", headers=served.key()).json()["reviews"]
    assert [each["claim"] for each in listed] == [claimed.json()["claim"]]
    released = _post(served, f"{review.id}/release")
    assert (released.status_code, released.json()["claim"]) == (200, None)
    assert _post(served, f"{review.id}/release").status_code == 200


def test_a_claim_of_somebody_else_is_a_conflict_that_names_them(served: Served) -> None:
    _hire(served, "ben", "tom")
    review = ask(served, by="tom")
    held = _post(served, f"{review.id}/claim", by="ben").json()["claim"]
    refused = _post(served, f"{review.id}/claim")
    assert (refused.status_code, refused.json()["code"]) == (409, "review_claimed")
    assert (refused.json()["review_id"], refused.json()["claim"]) == (review.id, held)
    assert _post(served, f"{review.id}/release").status_code == 409
    assert _post(served, f"{review.id}/claim", take_over=True).json()["claim"]["by"] == OWNER
    assert decide(served, review, by="ben").status_code == 200


@pytest.mark.parametrize("body", [{"take_over": "yes"}, {"take_over": 1}, {"other": True}])
def test_a_claim_takes_nothing_else(served: Served, body: dict[str, Any]) -> None:
    review = ask(served)
    assert _post(served, f"{review.id}/claim", **body).status_code == 422


def test_agents_claim_nothing_and_what_is_not_there_is_not_found(served: Served) -> None:
    served.add_agent("bot")
    review = ask(served, by="bot")
    assert _post(served, f"{review.id}/claim", by="bot").status_code == 403
    other = ask(served)
    for verb in ("claim", "release"):
        assert _post(served, f"{other.id}/{verb}", by="bot").status_code == 404
        assert _post(served, f"nothing/{verb}").status_code == 404


def test_a_decision_is_shown_with_what_it_counted_for(served: Served) -> None:
    decided = decide(served, ask(served)).json()
    assert decided["calls"][0]["decisions"][0]["counted"] == [{"group": None, "need": 1, "through": None}]
