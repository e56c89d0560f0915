"""What Agent Chat UI and Agent Inbox send when somebody decides, as recorded, and what becomes of it."""

from typing import Any

import pytest

from tests.web.langgraph_server.payments import RENT, FrontEnd, pays, recorded, wants
from tests.web.served import Served

pytestmark = pytest.mark.sqlite_by_day


@pytest.mark.parametrize("name", ["inbox-accept", "inbox-accept-of-old"])
def test_accept_with_empty_arguments_runs_what_is_stored(served: Served, name: str) -> None:
    paid = pays(served.workspace, wants(), "Done.")
    front = FrontEnd(served)
    front.say()
    front.show()
    assert front.heard(recorded(name))[-1].kind == "end"
    assert paid == [RENT]


def test_an_approval_in_the_chat_goes_on_with_the_stream(served: Served) -> None:
    paid = pays(served.workspace, wants(), "Done.")
    front = FrontEnd(served)
    front.say()
    heard = front.heard(front.seen("chat-ui-approve"))
    assert [each["type"] for each in heard[-2].data["messages"]] == ["human", "ai", "tool", "ai"]
    assert paid == [RENT]


def test_what_nobody_touched_stays_exact_and_a_text_becomes_the_number_that_it_was(served: Served) -> None:
    # JavaScript showed 48250.0 as 48250, and the last digits of the account as zeros.
    account = 1234567890123456789
    paid = pays(served.workspace, wants({"account": account}), "Done.")
    front = FrontEnd(served)
    front.say()
    body = front.seen("chat-ui-edit-with-texts")
    args = body["command"]["resume"]["decisions"][0]["edited_action"]["args"]
    args["account"] = 1234567890123456800
    front.heard(body)
    assert paid == [{"to": "landlord", "amount": 48250.0, "account": account, "months": 3}]
    assert isinstance(paid[0]["amount"], float)


def test_an_edit_of_the_inbox_changes_what_was_changed(served: Served) -> None:
    paid = pays(served.workspace, wants(), "Done.")
    front = FrontEnd(served)
    front.say()
    body = recorded("inbox-edit")
    action = body["command"]["resume"]["decisions"][0]["args"]
    action["args"]["account"] = 1234567890123456800
    front.heard(body)
    assert paid == [{"to": "landlord", "amount": 500.5, "account": RENT["account"], "months": 2}]


@pytest.mark.parametrize("months", ["three", "3.5", "1e400", "0x3", '3, "to": "thief"', ""])
def test_a_text_that_is_no_such_number_is_refused_at_its_place(served: Served, months: str) -> None:
    paid = pays(served.workspace, wants(), "Done.")
    front = FrontEnd(served)
    front.say()
    body = front.seen("chat-ui-edit-with-texts")
    body["command"]["resume"]["decisions"][0]["edited_action"]["args"]["months"] = months
    answer = front.stream(body)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/0/edited_action/args/months"]
    assert (len(front.waiting()), paid) == (1, [])


@pytest.mark.parametrize("name", ["inbox-ignore", "inbox-ignore-of-old"])
def test_ignore_rejects_the_call(served: Served, name: str) -> None:
    paid = pays(served.workspace, wants(), "As you like.")
    front = FrontEnd(served)
    front.say()
    assert front.post("runs", recorded(name)).status_code == 200
    assert (front.waiting(), paid) == ([], [])


@pytest.mark.parametrize("name", ["inbox-response", "inbox-response-of-old"])
def test_a_response_is_the_reason_why_a_call_does_not_run(served: Served, name: str) -> None:
    paid = pays(served.workspace, wants(), "I shall ask.")
    front = FrontEnd(served)
    front.say()
    messages = front.heard({**recorded(name), "stream_mode": ["values"]})[-2].data["messages"]
    assert "Ask her first." in messages[2]["content"]
    assert paid == []


def test_a_response_is_the_result_where_the_rules_take_one(served: Served) -> None:
    paid = pays(served.workspace, wants(), "Good.", respond=True)
    front = FrontEnd(served)
    front.say()
    front.post("runs/stream", recorded("inbox-response-of-old"))
    [call] = served.http.get("/api/v1/reviews?status=settled", headers=served.key()).json()["reviews"][0][
        "calls"
    ]
    assert (call["answer"], call["decisions"][0]["message"]) == ("responded", "Ask her first.")
    assert paid == []


def test_several_interrupts_are_answered_one_after_the_other(served: Served) -> None:
    paid = pays(served.workspace, wants({"to": "ana"}), wants({"to": "ben"}), "Both are paid.")
    front = FrontEnd(served)
    front.say()
    first = front.seen("chat-ui-approve")
    front.heard(first)
    assert [each["to"] for each in paid] == ["ana"]
    again = front.stream(first)
    assert (again.status_code, again.json()["code"]) == (409, "review_conflict")
    assert [each["to"] for each in paid] == ["ana"]
    front.heard(front.seen("chat-ui-approve"))
    assert [each["to"] for each in paid] == ["ana", "ben"]


def test_all_calls_of_one_message_are_approved_together_or_each_by_its_name(served: Served) -> None:
    paid = pays(served.workspace, wants({"to": "ana"}, {"to": "ben"}), "Done.")
    front = FrontEnd(served)
    front.say()
    body = front.seen("chat-ui-approve")
    assert front.stream(body).status_code == 422  # One answer does not reach two calls.
    approve, reject = {"type": "approve"}, {"type": "reject", "message": "No."}
    body["command"] = {"resume": {"decisions": [approve, reject]}}
    assert front.stream(body).status_code == 422  # Whose is which?
    keys = [call["call"] for call in front.waiting()[0]["calls"]]
    body["command"] = {"resume": {"decisions": [{**reject, "call": keys[0]}, {**approve, "call": keys[1]}]}}
    front.heard(body)
    assert [each["to"] for each in paid] == ["ben"]


@pytest.mark.parametrize("bound", ["interrupt", "payload"])
def test_an_answer_may_say_itself_which_review_it_is_for(served: Served, bound: str) -> None:
    paid = pays(served.workspace, wants(), wants({"to": "ben"}), "Done.")
    front = FrontEnd(served)
    [interrupt] = front.say()[-2].data["__interrupt__"]
    answer: dict[str, Any] = {"decisions": [{"type": "approve"}]}
    if bound == "interrupt":
        resume: dict[str, Any] = {interrupt["id"]: answer}
    else:
        resume = {**answer, "review_id": interrupt["value"]["review_id"], "version": 1}
    body = {"assistant_id": "chat", "command": {"resume": resume}}
    front.heard(body)
    assert front.stream(body).status_code == 409
    assert paid == [RENT]
