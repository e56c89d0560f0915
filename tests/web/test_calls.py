"""Calls of agents elsewhere: proposed, decided, taken once, and their outcome told."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from clearance.adapters import foreign
from clearance.membership import disable, enable
from clearance.outcome import CallState
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Effect, Policy, Rule
from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store import calls, policies, reviews, runs
from tests.web.served import OWNER, Served

# By day: rows in their order, races, and one whole way through.
pytestmark = pytest.mark.sqlite_by_day(
    but=(
        "test_a_call_is_held_decided_taken_and_its_outcome_kept",
        "test_two_agents_may_use_the_same_key",
        "test_a_call_without_a_word_in_time_is_uncertain_and_is_asked_about",
        "test_integers_of_any_size_come_back_as_they_went",
        "test_of_many_who_take_a_call_at_once_one_gets_it",
        "test_of_many_who_propose_a_call_at_once_all_get_the_same_review",
    )
)

AGENT = "mailer"
AT_ONCE = 16
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["to"],
    "additionalProperties": False,
}
_ALL = (*DEFAULT_DECISIONS, DecisionType.RESPOND)
EXACT = '{"to": "ana", "amount": 48250.0}'


@pytest.fixture(autouse=True)
def agent(served: Served) -> str:
    """An agent that acts for ann."""
    return served.add_agent(AGENT)


def proposed(served: Served, key: str = "m-1", **more: Any) -> Any:
    """Let the agent propose a call, and return the answer."""
    body = {"key": key, "tool": "send", "arguments": {"to": "ana"}, "schema": SCHEMA, **more}
    return served.http.post("/api/v1/calls", json=body, headers=served.key(AGENT))


def told(served: Served, path: str, body: Any = None, *, by: str = AGENT) -> Any:
    """Post, and return the answer."""
    return served.http.post(f"/api/v1/calls/{path}", json=body, headers=served.key(by))


def look(served: Served, key: str = "m-1", *, by: str = AGENT, **query: Any) -> Any:
    """Ask how a call stands, and return the answer."""
    return served.http.get(f"/api/v1/calls/{key}", params=query, headers=served.key(by))


def decide(served: Served, review_id: str, answer: dict[str, Any], *, by: str = "ann") -> None:
    """Decide the one call of a review."""
    with served.workspace.database.read() as tx:
        version = reviews.review(tx, review_id).version
    served.workspace.gate.decide(review_id, [answer], by=by, version=version)


def run_state(served: Served, key: str = "m-1") -> RunState:
    """Return the state of the run that is the call."""
    with served.workspace.database.read() as tx:
        return runs.run(tx, f"{AGENT}:{key}").state


def test_a_call_is_held_decided_taken_and_its_outcome_kept(served: Served) -> None:
    asked = proposed(served, arguments=EXACT)
    assert (asked.status_code, asked.json()["state"]) == (200, "held")
    assert told(served, "m-1/take").json()["code"] == "review_pending"
    decide(served, asked.json()["review_id"], {"type": "approve"})
    assert look(served, wait=5).json()["may_take"]
    taken = told(served, "m-1/take").json()
    assert taken["arguments"] == EXACT
    assert taken["args"] == {"to": "ana", "amount": 48250.0}
    assert look(served).json()["state"] == "started"
    done = told(served, "m-1/outcome", {"attempt": taken["attempt"], "ok": True, "result": "sent"})
    assert (done.json()["state"], done.json()["result"]) == ("executed", "sent")
    assert run_state(served) is RunState.DONE


def test_a_call_is_handed_out_once(served: Served) -> None:
    decide(served, proposed(served).json()["review_id"], {"type": "approve"})
    assert told(served, "m-1/take").status_code == 200
    again = told(served, "m-1/take")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_the_same_key_is_the_same_call(served: Served) -> None:
    first = proposed(served).json()
    assert proposed(served).json() == first
    other = proposed(served, arguments={"to": "bob"})
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    assert proposed(served, tool="wire").json()["code"] == "key_reused"


def test_two_agents_may_use_the_same_key(served: Served) -> None:
    served.add_agent("other")
    mine = proposed(served).json()
    body = {"key": "m-1", "tool": "send", "arguments": {"to": "bob"}, "schema": SCHEMA}
    theirs = served.http.post("/api/v1/calls", json=body, headers=served.key("other")).json()
    assert theirs["review_id"] != mine["review_id"]
    assert look(served, by="other").json()["args"] == {"to": "bob"}


def test_an_agent_does_not_see_the_calls_of_another(served: Served) -> None:
    proposed(served)
    served.add_agent("other")
    hidden = look(served, by="other", agent=AGENT)
    unknown = look(served, by="other", key="m-2")
    assert hidden.status_code == unknown.status_code == 404
    assert told(served, "m-1/take", by="other").status_code == 404


def test_people_see_the_calls_of_agents(served: Served) -> None:
    proposed(served)
    assert look(served, by="ann", agent=AGENT).json()["agent"] == AGENT


def test_an_edited_call_is_handed_out_as_edited(served: Served) -> None:
    review = proposed(served).json()["review_id"]
    decide(served, review, {"type": "edit", "edited_action": {"args": {"to": "eve", "amount": 2.50}}})
    assert told(served, "m-1/take").json()["args"] == {"to": "eve", "amount": 2.5}


@pytest.mark.parametrize(
    ("answer", "state", "text"),
    [
        ({"type": "reject", "message": "no mail"}, "rejected", "no mail"),
        ({"type": "respond", "message": "Ana knows."}, "responded", "Ana knows."),
    ],
)
def test_a_call_that_does_not_run_says_why(
    served: Served, answer: dict[str, Any], state: str, text: str
) -> None:
    ask_with(served, Policy(rules=(Rule("*", decisions=_ALL),)))
    decide(served, proposed(served).json()["review_id"], answer)
    found = look(served).json()
    assert (found["state"], found["may_take"]) == (state, False)
    assert text in found["result"]
    refused = told(served, "m-1/take")
    assert (refused.status_code, refused.json()["code"]) == (409, "call_refused")
    assert run_state(served) is RunState.DONE


def ask_with(served: Served, policy: Policy) -> None:
    """Make a policy the active one for the agent."""
    database = served.workspace.database
    with database.write() as tx:
        policies.activate(tx, f"agent:{AGENT}", policy, now=database.now(tx))


def test_a_call_that_the_policy_denies_is_blocked(served: Served) -> None:
    ask_with(served, Policy(rules=(Rule("send", effect=Effect.DENY),)))
    assert proposed(served).json()["state"] == "blocked"
    assert told(served, "m-1/take").json()["code"] == "call_refused"
    assert run_state(served) is RunState.DONE


def test_a_call_that_the_policy_lets_through_can_be_taken_at_once(served: Served) -> None:
    ask_with(served, Policy(rules=(Rule("send", effect=Effect.ALLOW),)))
    found = proposed(served).json()
    assert (found["state"], found["review_id"]) == ("cleared", None)
    assert told(served, "m-1/take").status_code == 200


def test_a_policy_that_became_stricter_counts_when_a_call_is_taken(served: Served) -> None:
    ask_with(served, Policy(rules=(Rule("send", effect=Effect.ALLOW),)))
    proposed(served)
    ask_with(served, Policy())
    assert told(served, "m-1/take").json()["code"] == "review_pending"
    assert look(served).json()["state"] == "held"


def test_an_agent_of_somebody_who_is_disabled_proposes_and_takes_nothing(served: Served) -> None:
    served.add("eva")
    key = served.key(served.add_agent("helper", behind="eva"))
    call = {"key": "k1", "tool": "pay", "arguments": {}}
    asked = served.http.post("/api/v1/calls", json=call, headers=key).json()
    decision = {"decisions": [{"type": "approve"}], "version": 1}
    decide = f"/api/v1/reviews/{asked['review_id']}/decide"
    assert served.http.post(decide, json=decision, headers=served.key()).status_code == 200
    disable(served.workspace.database, "eva", by=OWNER)
    for path, body in (("calls/k1/take", None), ("calls", {**call, "key": "k2"})):
        assert served.http.post(f"/api/v1/{path}", json=body, headers=key).status_code == 403
    enable(served.workspace.database, "eva", by=OWNER)
    assert served.http.post("/api/v1/calls/k1/take", headers=key).status_code == 200


def test_agents_do_not_decide(served: Served) -> None:
    review = proposed(served).json()["review_id"]
    with pytest.raises(Exception, match="Agents propose; only people decide"):
        decide(served, review, {"type": "approve"}, by=AGENT)


def test_an_outcome_that_is_repeated_is_the_same_and_another_one_is_refused(served: Served) -> None:
    decide(served, proposed(served).json()["review_id"], {"type": "approve"})
    told(served, "m-1/take")
    said = {"attempt": 1, "ok": True, "result": {"id": 7}}
    first = told(served, "m-1/outcome", said)
    assert told(served, "m-1/outcome", said).json() == first.json()
    assert told(served, "m-1/outcome", {**said, "ok": False}).status_code == 409
    assert look(served).json()["result"] == '{"id": 7}'


def test_an_outcome_of_a_call_that_was_not_taken_is_refused(served: Served) -> None:
    proposed(served)
    assert told(served, "m-1/outcome", {"attempt": 1, "ok": True}).json()["code"] == "conflict"


def overdue(served: Served) -> str:
    """Let a call be taken and its time pass, and return the review that asks what became of it."""
    decide(served, proposed(served, timeout=0.001).json()["review_id"], {"type": "approve"})
    told(served, "m-1/take")
    database = served.workspace.database
    # The worker's own look, without waiting for it.
    while look(served).json()["state"] == "started":
        foreign.look_after(served.workspace.ledger)
    with database.read() as tx:
        row = calls.row(tx, f"{AGENT}:m-1/1")
        assert row is not None
        assert row.started_at is not None
        assert row.due_at == row.started_at + timedelta(milliseconds=1)
        [review] = [each for each in reviews.of_call(tx, row.key) if each.kind == "outcome"]
    return review.id


def test_a_call_without_a_word_in_time_is_uncertain_and_is_asked_about(served: Served) -> None:
    review = overdue(served)
    found = look(served).json()
    assert (found["state"], found["review_id"], found["may_take"]) == ("uncertain", review, False)
    assert told(served, "m-1/take").json()["code"] == "review_pending"


def test_a_call_that_did_not_happen_is_handed_out_once_more(served: Served) -> None:
    decide(served, overdue(served), {"type": "approve"})
    assert look(served).json()["may_take"]
    taken = told(served, "m-1/take").json()
    assert taken["attempt"] == 2
    assert told(served, "m-1/take").status_code == 409
    late = told(served, "m-1/outcome", {"attempt": 1, "ok": True})
    assert late.status_code == 409
    done = told(served, "m-1/outcome", {"attempt": 2, "ok": True, "result": "sent"})
    assert done.json()["state"] == "executed"


def test_a_late_word_settles_what_nobody_has_answered(served: Served) -> None:
    review = overdue(served)
    done = told(served, "m-1/outcome", {"attempt": 1, "ok": True, "result": "sent after all"})
    assert (done.json()["state"], done.json()["result"]) == ("executed", "sent after all")
    with served.workspace.database.read() as tx:
        assert reviews.review(tx, review).status is ReviewStatus.WITHDRAWN
    assert run_state(served) is RunState.DONE


def test_what_a_person_answered_stands_when_a_word_comes_later(served: Served) -> None:
    decide(served, overdue(served), {"type": "respond", "message": "Ana has it."})
    found = told(served, "m-1/outcome", {"attempt": 1, "ok": False, "result": "failed"}).json()
    assert (found["state"], found["result"]) == ("responded", "Ana has it.")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"key": ""}, "key"),
        ({"key": "a/b"}, "key"),
        ({"tool": "a b"}, "tool"),
        ({"arguments": {"to": 1}}, "must be"),
        ({"arguments": "[1]"}, "object"),
        ({"arguments": '{"to": NaN}'}, "NaN"),
        ({"arguments": '{"to": "a", "to": "b"}'}, "twice"),
        ({"schema": {"type": "object", "properties": {"to": {"pattern": "(a+)+$"}}}}, "pattern"),
        ({"schema": {"properties": {"x": {"allOf": [{"patternProperties": {}}]}}}}, "pattern"),
        ({"schema": {"description": "x" * 70_000}}, "larger"),
        ({"schema": {"type": "nothing"}}, "schema"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 1e9}, "timeout"),
        ({"approved": True}, "cannot be taken"),
    ],
)
def test_what_cannot_be_a_call_is_refused_and_leaves_nothing(
    served: Served, change: dict[str, Any], place: str
) -> None:
    answer = proposed(served, **change)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert place in answer.json()["detail"]
    with served.workspace.database.read() as tx:
        assert runs.list_runs(tx, states=(), limit=10) == []


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"arguments": {"a": "text"}}, ["/arguments/a"]),
        ({"arguments": 7}, ["/arguments", "/arguments"]),
        ({"arguments": "{"}, ["/arguments"]),
        ({"webhook": "ftp://example.org/"}, ["/webhook"]),
        ({"webhook": 7}, ["/webhook"]),
        ({"timeout": "soon"}, ["/timeout"]),
        ({"unknown": 1}, ["/unknown"]),
        ({"tool": None}, ["/tool"]),
    ],
)
def test_a_fault_points_into_the_body(served: Served, change: dict[str, Any], pointers: list[str]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = {"key": "k1", "tool": "pay", "arguments": {"a": 1}, "schema": schema, **change}
    answer = served.http.post("/api/v1/calls", json=body, headers=served.key(served.add_agent("bot")))
    assert (answer.status_code, [each["pointer"] for each in answer.json()["errors"]]) == (422, pointers)


def test_a_property_may_be_called_pattern(served: Served) -> None:
    schema = {"type": "object", "properties": {"pattern": {"type": "string", "default": "x"}}}
    assert proposed(served, schema=schema, arguments={}).json()["state"] == CallState.HELD


def test_integers_of_any_size_come_back_as_they_went(served: Served) -> None:
    text = '{"n": 123456789012345678901234567890}'
    asked = proposed(served, arguments=text, schema={"type": "object"})
    assert asked.json()["arguments"] == text
    assert "123456789012345678901234567890" in asked.text


def test_of_many_who_take_a_call_at_once_one_gets_it(served: Served) -> None:
    decide(served, proposed(served).json()["review_id"], {"type": "approve"})
    together = threading.Barrier(AT_ONCE)

    def take() -> int:
        together.wait()
        status: int = told(served, "m-1/take").status_code
        return status

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [pool.submit(take) for _ in range(AT_ONCE)]
    assert sorted(each.result() for each in answers) == [200] + [409] * (AT_ONCE - 1)


def test_of_many_who_propose_a_call_at_once_all_get_the_same_review(served: Served) -> None:
    served.key(AGENT)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda _: proposed(served).json(), range(AT_ONCE)))
    assert all(each == answers[0] for each in answers)
    with served.workspace.database.read() as tx:
        assert reviews.waiting_count(tx) == 1
