"""Reviews over HTTP: listed by the page, shown exactly, decided once, taken back."""

import json
from typing import Any

import pytest

from clearance.people import Role
from clearance.policy import Risk
from clearance.web.records import ReviewRecord
from tests.web.asked import ask, decide
from tests.web.served import OWNER, Served

# By day: rows in their order, races, and one whole way through.
pytestmark = pytest.mark.sqlite_by_day(
    but=(
        "test_the_list_begins_with_the_highest_risk_and_then_the_one_asked_first",
        "test_pages_neither_repeat_nor_lose_anything_while_others_are_asked_and_decided",
        "test_reviews_that_wait_and_that_have_ended_are_two_lists",
        "test_an_edit_keeps_every_number_as_it_was_sent",
        "test_two_people_are_needed_where_the_rule_says_so",
    )
)

BIG = 2**70


def _listed(served: Served, by: str = OWNER, **query: Any) -> list[str]:
    """Return the ids of a whole list, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        answer = served.http.get("/api/v1/reviews", params={**query, **more}, headers=served.key(by))
        assert answer.status_code == 200, answer.text
        found += [each["review_id"] for each in answer.json()["reviews"]]
        cursor = answer.json()["next"]
        if cursor is None:
            return found


def test_the_list_begins_with_the_highest_risk_and_then_the_one_asked_first(served: Served) -> None:
    small, mail, wipe = ask(served, ("note", "{}")), ask(served), ask(served, ("wipe", "{}"))
    later = ask(served)
    assert _listed(served) == [wipe.id, mail.id, later.id, small.id]


def test_pages_neither_repeat_nor_lose_anything_while_others_are_asked_and_decided(served: Served) -> None:
    asked = [ask(served).id for _ in range(5)]
    first = served.http.get("/api/v1/reviews?limit=2", headers=served.key()).json()
    assert [each["review_id"] for each in first["reviews"]] == asked[:2]
    later, urgent = ask(served), ask(served, ("wipe", "{}"))
    served.workspace.gate.withdraw(asked[0], by=OWNER, reason="no")
    assert _listed(served, cursor=first["next"], limit=2) == [*asked[2:], later.id]
    assert _listed(served)[0] == urgent.id


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"risk": "high"}, ["pay"]),
        ({"program": "other"}, ["other"]),
        ({"requester": "bot"}, ["bot"]),
        ({"thread": "t1"}, ["thread"]),
        ({"tool": "pay"}, ["pay"]),
        ({"tool": "pay", "risk": "low"}, []),
        ({"status": "withdrawn"}, ["withdrawn"]),
        ({"status": ["settled", "withdrawn"]}, ["withdrawn", "settled"]),
        ({"status": "settled", "risk": "high"}, []),
        ({"status": "withdrawn", "thread": "t2"}, ["withdrawn"]),
    ],
)
def test_a_filter_leaves_what_it_names(served: Served, query: dict[str, str], wanted: list[str]) -> None:
    served.add_agent("bot")
    found = {
        "pay": ask(served, ("pay", '{"amount":1}')),
        "other": ask(served, program="other"),
        "bot": ask(served, by="bot"),
        "thread": ask(served, thread="t1"),
        "settled": ask(served),
        "withdrawn": ask(served, thread="t2"),
    }
    assert decide(served, found["settled"]).status_code == 200
    served.workspace.gate.withdraw(found["withdrawn"].id, by=OWNER, reason="no")
    assert _listed(served, **query) == [found[name].id for name in wanted]


def test_the_run_of_a_review_is_a_filter(served: Served) -> None:
    ask(served)
    review = ask(served)
    assert _listed(served, run=review.run_id) == [review.id]


def test_reviews_that_wait_and_that_have_ended_are_two_lists(served: Served) -> None:
    answer = served.http.get("/api/v1/reviews?status=pending&status=settled", headers=served.key())
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/query/status")


@pytest.mark.parametrize(
    "cursor", ["", "x", "é", "d2FpdGluZzpbMSwyXQ", "cnVuczpbIjIwMjYtMDEtMDFUMDA6MDA6MDBaIiwiYSJd", "A" * 5000]
)
def test_a_cursor_of_another_list_is_refused(served: Served, cursor: str) -> None:
    answer = served.http.get("/api/v1/reviews", params={"cursor": cursor}, headers=served.key())
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/query/cursor"


def test_a_review_is_shown_exactly_with_its_version_as_the_etag(served: Served) -> None:
    review = ask(served, ("pay", f'{{"amount":48250.0,"x":{BIG},"y":1e300,"z":"\\u202e"}}'))
    answer = served.http.get(f"/api/v1/reviews/{review.id}", headers=served.key())
    assert (answer.status_code, answer.headers["etag"]) == (200, '"1"')
    [call] = json.loads(answer.text)["calls"]
    assert call["args"] == {"amount": 48250.0, "x": BIG, "y": 1e300, "z": "\u202e"}
    assert isinstance(call["args"]["amount"], float)
    assert call["arguments"] == review.calls[0].arguments
    assert ReviewRecord.model_validate_json(answer.text).risk is Risk.HIGH


def test_a_decision_is_made_by_the_person_of_the_key_and_told_with_the_new_version(served: Served) -> None:
    served.add("eva")
    review = ask(served)
    answer = decide(served, review, {"type": "approve", "message": "fine"}, by="eva")
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert answer.json()["status"] == "settled"
    assert [item["by"] for item in answer.json()["calls"][0]["decisions"]] == ["eva"]


def test_the_body_cannot_say_who_decides(served: Served) -> None:
    review = ask(served)
    body = {"decisions": [{"type": "approve"}], "version": 1, "by": "eva"}
    answer = served.http.post(f"/api/v1/reviews/{review.id}/decide", json=body, headers=served.key())
    assert answer.status_code == 422


def test_an_edit_keeps_every_number_as_it_was_sent(served: Served) -> None:
    review = ask(served, ("pay", '{"amount":1}'))
    edit = f'{{"type":"edit","edited_action":{{"name":"pay","args":{{"amount":{BIG},"b":7.0}}}}}}'
    answer = served.http.post(
        f"/api/v1/reviews/{review.id}/decide",
        content=f'{{"version":1,"decisions":[{edit}]}}',
        headers={**served.key(), "Content-Type": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["calls"][0]["arguments"] == f'{{"amount":{BIG},"b":7.0}}'


@pytest.mark.parametrize("tag", ['"1"', 'W/"1"', "1"])
def test_if_match_names_the_version_as_well(served: Served, tag: str) -> None:
    review = ask(served)
    headers = {**served.key(), "If-Match": tag}
    body = {"decisions": [{"type": "approve"}]}
    assert (
        served.http.post(f"/api/v1/reviews/{review.id}/decide", json=body, headers=headers).status_code == 200
    )


@pytest.mark.parametrize(
    ("version", "tag", "status", "code"),
    [
        (None, None, 428, "version_required"),
        (None, "*", 422, "invalid_input"),
        (None, '"1", "2"', 422, "invalid_input"),
        (None, '"' + "1" * 5000 + '"', 422, "invalid_input"),
        (1, '"2"', 422, "invalid_input"),
        ("1", None, 422, "invalid_input"),
        (True, None, 422, "invalid_input"),
        (2, None, 409, "review_conflict"),
        (10**40, None, 409, "review_conflict"),
        (None, '"7"', 409, "review_conflict"),
    ],
)
def test_nothing_is_decided_without_the_version_that_was_seen(
    served: Served, version: object, tag: str | None, status: int, code: str
) -> None:
    review = ask(served)
    body = {"decisions": [{"type": "approve"}], **({} if version is None else {"version": version})}
    headers = served.key() | ({} if tag is None else {"If-Match": tag})
    answer = served.http.post(f"/api/v1/reviews/{review.id}/decide", json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert _listed(served) == [review.id]


def test_who_comes_second_is_told_who_decided_what(served: Served) -> None:
    served.add("eva")
    review = ask(served)
    assert decide(served, review, {"type": "reject", "message": "no"}, by="eva").status_code == 200
    answer = decide(served, review)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "review_conflict")
    assert (problem["review_status"], problem["version"]) == ("settled", 2)
    [said] = problem["decided"]
    assert (said["by"], said["type"], said["call"]) == ("eva", "reject", review.calls[0].key)
    assert "eva: reject send" in problem["detail"]


def test_every_fault_of_a_decision_has_its_place(served: Served) -> None:
    review = ask(served)
    answer = decide(served, review, {"type": "edit", "edited_action": {"name": "send", "args": {"to": 3}}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_review_decision")
    assert answer.json()["errors"][0]["pointer"] == "/decisions/0/edited_action/args/to"


@pytest.mark.parametrize(
    ("decisions", "pointers"),
    [
        ([], ["/decisions"]),
        ([{"type": "no"}], ["/decisions/0/type"]),
        ([{"type": "approve", "call": "x"}], ["/decisions/0/call"]),
        ([{"type": "approve"}, {"type": "approve"}], ["/decisions"]),
        ({"0": {"type": "approve"}}, ["/decisions"]),
        ([{"type": "edit", "edited_action": {"args": {"to": 3}}}], ["/decisions/0/edited_action/args/to"]),
    ],
)
@pytest.mark.parametrize("door", ["reviews/{}/decide", "threads/{}/review"])
def test_every_fault_points_into_the_body_that_was_sent(
    served: Served, door: str, decisions: Any, pointers: list[str]
) -> None:
    review = ask(served)
    named = review.id if door.startswith("reviews") else review.thread_id
    body = {"decisions": decisions, "version": 1, **({} if named == review.id else {"review_id": review.id})}
    answer = served.http.post(f"/api/v1/{door.format(named)}", json=body, headers=served.key())
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert [each["pointer"] for each in answer.json()["errors"]] == pointers
    assert all(pointer in answer.json()["detail"] for pointer in pointers if pointer != "/decisions")


@pytest.mark.parametrize(
    ("if_match", "pointer"), [("*", "/header/if-match"), ("x", "/header/if-match"), ('"2"', "/version")]
)
def test_a_version_that_is_wrong_is_pointed_at(served: Served, if_match: str, pointer: str) -> None:
    review = ask(served)
    answer = served.http.post(
        f"/api/v1/reviews/{review.id}/decide",
        json={"decisions": [{"type": "approve"}], "version": 1},
        headers={**served.key(), "If-Match": if_match},
    )
    assert (answer.status_code, [each["pointer"] for each in answer.json()["errors"]]) == (422, [pointer])


def test_two_people_are_needed_where_the_rule_says_so(served: Served) -> None:
    served.add("eva")
    served.add("leo")
    review = ask(served, ("wipe", "{}"))
    first = decide(served, review, by="eva").json()
    assert (first["status"], first["version"]) == ("pending", 2)
    [approvals] = first["calls"][0]["approvals"]
    assert approvals == {"group": None, "have": 1, "need": 2, "reject": 1, "escalates": []}
    assert decide(served, review, by="leo", version=2).json()["status"] == "settled"


def test_an_agent_sees_its_own_question_and_cannot_decide_it(served: Served) -> None:
    served.add_agent("bot")
    own, other = ask(served, by="bot"), ask(served)
    assert _listed(served, by="bot") == [own.id]
    assert _listed(served, by="bot", requester=OWNER) == []
    refused = decide(served, own, by="bot")
    assert (refused.status_code, refused.json()["detail"]) == (403, "Agents propose; only people decide.")
    assert decide(served, other, by="bot").status_code == 404


def test_what_an_agent_may_not_see_is_told_as_if_it_were_not_there(served: Served) -> None:
    served.add_agent("bot")
    found = []
    review = ask(served)
    for each in (review.id, "no/1/1"):
        answer = served.http.get(f"/api/v1/reviews/{each}", headers=served.key("bot"))
        found.append((answer.status_code, answer.text.replace(each, "ID")))
    assert found[0] == found[1]
    assert found[0][0] == 404


def test_a_question_is_taken_back_by_who_asked_it_and_by_operators(served: Served) -> None:
    served.add_agent("bot")
    served.add("eva")
    served.add("olga", role=Role.OPERATOR)
    by_agent, by_operator = ask(served, by="bot"), ask(served)
    path = "/api/v1/reviews/{}/withdraw"
    assert served.http.post(path.format(by_operator.id), headers=served.key("eva")).status_code == 403
    done = served.http.post(
        path.format(by_operator.id), json={"reason": "a mistake"}, headers=served.key("olga")
    )
    assert (done.json()["status"], done.json()["reason"]) == ("withdrawn", "a mistake")
    assert served.http.post(path.format(by_agent.id), headers=served.key("bot")).status_code == 200
    again = served.http.post(path.format(by_agent.id), headers=served.key("bot"))
    assert (again.status_code, again.json()["code"]) == (409, "review_conflict")
