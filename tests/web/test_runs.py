"""Runs over HTTP: listed by the page, shown, ended early by who may."""

from typing import Any

import pytest

from clearance.people import Role
from clearance.run import RunState
from clearance.web.records import RunRecord
from tests.web.asked import ask, decide
from tests.web.served import OWNER, Served

pytestmark = pytest.mark.sqlite_by_day


def _listed(served: Served, by: str = OWNER, **query: Any) -> list[str]:
    found: list[str] = []
    more: dict[str, Any] = {}
    while True:
        answer = served.http.get("/api/v1/runs", params={**query, **more}, headers=served.key(by))
        assert answer.status_code == 200, answer.text
        found += [each["run_id"] for each in answer.json()["runs"]]
        if answer.json()["next"] is None:
            return found
        more = {"cursor": answer.json()["next"]}


def test_pages_go_from_the_newest_to_the_oldest_in_whatever_state(served: Served) -> None:
    asked = [ask(served) for _ in range(5)]
    decide(served, asked[2])
    first = served.http.get("/api/v1/runs?limit=2", headers=served.key()).json()
    ask(served)
    rest = _listed(served, limit=2, cursor=first["next"])
    assert [each["run_id"] for each in first["runs"]] + rest == [each.run_id for each in reversed(asked)]


def test_filters_leave_what_they_name(served: Served) -> None:
    served.add_agent("bot")
    own, by_agent, other = ask(served), ask(served, by="bot"), ask(served, thread="t1", program="other")
    ended = ask(served)
    assert served.http.post(f"/api/v1/runs/{ended.run_id}/cancel", headers=served.key()).status_code == 200
    assert _listed(served, state="cancelled") == [ended.run_id]
    assert _listed(served, state=["waiting", "cancelled"], limit=1) == [
        each.run_id for each in (ended, other, by_agent, own)
    ]
    assert _listed(served, requester="bot") == [by_agent.run_id]
    assert _listed(served, thread="t1") == [other.run_id]
    assert _listed(served, program="other") == [other.run_id]
    assert _listed(served, program="desk", thread="t1") == []
    assert _listed(served, by="bot") == [by_agent.run_id]


def test_a_run_is_shown_to_who_may_see_it(served: Served) -> None:
    served.add_agent("bot")
    review = ask(served)
    answer = served.http.get(f"/api/v1/runs/{review.run_id}", headers=served.key())
    assert RunRecord.model_validate_json(answer.text).state is RunState.WAITING
    told = [
        served.http.get(f"/api/v1/runs/{each}", headers=served.key("bot"))
        .json()["detail"]
        .replace(each, "ID")
        for each in (review.run_id, "nothing/here")
    ]
    assert told[0] == told[1] == "There is no run ID."


def test_who_asked_and_operators_end_a_run_once_and_nobody_else(served: Served) -> None:
    served.add("eva")
    served.add("olga", role=Role.OPERATOR)
    served.add_agent("bot")
    review, by_agent = ask(served), ask(served, by="bot")
    path = f"/api/v1/runs/{review.run_id}/cancel"
    assert served.http.post(path, headers=served.key("eva")).status_code == 403
    assert served.http.post(path, headers=served.key("bot")).status_code == 404
    done = served.http.post(path, json={"reason": "too late"}, headers=served.key("olga"))
    assert (done.json()["state"], done.json()["reason"]) == ("cancelled", "too late")
    assert served.http.post(path, headers=served.key("olga")).status_code == 409
    assert decide(served, review).status_code == 409
    own = f"/api/v1/runs/{by_agent.run_id}/cancel"
    assert served.http.post(own, headers=served.key("bot")).json()["reason"] == "bot ended it."


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/reviews"])
def test_at_most_fifty_come_at_once(served: Served, path: str) -> None:
    assert served.http.get(f"{path}?limit=50", headers=served.key()).status_code == 200
    assert served.http.get(f"{path}?limit=51", headers=served.key()).status_code == 422
