"""The reviewed chat, as a person and their agent use it, through `ReviewedChat`, on both databases."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from clearance.apps.chat import validate_decisions
from clearance.errors import (
    EmptyMessageError,
    InvalidReviewDecisionError,
    NoPendingReviewError,
    ReviewConflictError,
    ReviewPendingError,
)
from tests.apps.conftest import Desk, Talk
from tests.scripted import calls

MAIL = ("send_email", {"to": "ana@example.org", "subject": "Hello"})
PAY = ("pay", {"account": "A-1", "amount_cents": 500})
WEATHER = ("get_weather", {"city": "Oslo"})


def edit(args: dict[str, Any], name: str = "send_email") -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def test_a_plain_answer_needs_nobody(talk: Talk) -> None:
    chat, _ = talk("Good morning.")
    assert chat.send_message("t", "Hello") == {
        "thread_id": "t",
        "answer": "Good morning.",
        "pending_review": None,
    }


def test_a_read_only_call_runs_without_a_review(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(WEATHER), "It is sunny.")
    assert chat.send_message("t", "Weather?")["answer"] == "It is sunny."
    assert desk.cities == ["Oslo"]


def test_a_gated_call_waits_and_shows_its_exact_arguments(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL, WEATHER))
    reply = chat.send_message("t", "Write to Ana")
    review = reply["pending_review"]
    assert reply["answer"] is None
    assert review is not None
    (request,) = review["action_requests"]
    assert (request["name"], request["args"]) == MAIL
    assert json.loads(request["arguments"]) == MAIL[1]
    (config,) = review["review_configs"]
    assert config["allowed_decisions"] == ["approve", "edit", "reject"]
    assert json.dumps(review)
    assert desk.mails == []
    assert desk.cities == [], "the other calls of the message wait with it"


def test_an_approved_call_runs_once_as_shown(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL), "Sent.")
    chat.send_message("t", "Write to Ana")
    assert chat.submit_review("t", [{"type": "approve"}])["answer"] == "Sent."
    assert desk.mails == [{**MAIL[1], "body": ""}]


def test_an_edited_call_runs_as_edited_and_the_history_says_so(talk: Talk, desk: Desk) -> None:
    chat, model = talk(calls(MAIL), "Sent.")
    chat.send_message("t", "Write to Ana")
    args = {"to": "ana@example.org", "subject": "Good day", "body": "Best wishes"}
    chat.submit_review("t", [edit(args)])
    assert desk.mails == [args]
    message, result = (m for m in model.seen[-1] if isinstance(m, AIMessage | ToolMessage))
    assert isinstance(message, AIMessage)
    assert message.tool_calls[0]["args"] == args
    assert "reviewer changed this call" in str(result.content)
    assert next(m for m in chat.messages("t") if isinstance(m, AIMessage)).id == message.id


def test_an_edit_leaves_a_message_with_reasoning_as_it_was(talk: Talk, desk: Desk) -> None:
    said = calls(MAIL)
    said.content = [{"type": "thinking", "thinking": "…", "signature": "abc"}]
    chat, model = talk(said, "Sent.")
    chat.send_message("t", "Write to Ana")
    chat.submit_review("t", [edit({**MAIL[1], "subject": "Other"})])
    message = next(m for m in model.seen[-1] if isinstance(m, AIMessage))
    assert message.tool_calls[0]["args"] == MAIL[1]
    assert message.content == said.content
    assert desk.mails[0]["subject"] == "Other"
    result = next(m for m in model.seen[-1] if isinstance(m, ToolMessage))
    assert '"subject":"Other"' in str(result.content)


def test_a_rejected_call_does_not_run_and_the_model_learns_why(talk: Talk, desk: Desk) -> None:
    chat, model = talk(calls(MAIL), "I did not send it.")
    chat.send_message("t", "Write to Ana")
    reply = chat.submit_review("t", [{"type": "reject", "message": "not today"}])
    assert reply["answer"] == "I did not send it."
    assert desk.mails == []
    result = next(m for m in model.seen[-1] if isinstance(m, ToolMessage))
    assert result.status == "error"
    assert "not today" in str(result.content)


def test_a_persons_result_stands_in_for_the_tools(talk: Talk, desk: Desk) -> None:
    from clearance import DecisionType, Policy, Rule

    rule = Rule("send_email", decisions=(DecisionType.APPROVE, DecisionType.RESPOND))
    chat, model = talk(calls(MAIL), "Thanks.", policy=Policy((rule,)))
    chat.send_message("t", "Write to Ana")
    chat.submit_review("t", [{"type": "respond", "message": "I called her instead."}])
    result = next(m for m in model.seen[-1] if isinstance(m, ToolMessage))
    assert (result.content, result.status) == ("I called her instead.", "success")
    assert desk.mails == []


def test_a_mixed_batch_runs_only_what_was_approved_with_results_in_call_order(talk: Talk, desk: Desk) -> None:
    chat, model = talk(calls(PAY, MAIL, WEATHER), "Done.")
    review = chat.send_message("t", "Do it all")["pending_review"]
    assert review is not None
    by_tool = {request["name"]: request["call"] for request in review["action_requests"]}
    chat.submit_review(
        "t",
        [
            {"type": "approve", "call": by_tool["send_email"]},
            {"type": "reject", "call": by_tool["pay"], "message": "no money"},
        ],
    )
    results = [m for m in model.seen[-1] if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in results] == ["call_0", "call_1", "call_2"]
    assert [m.status for m in results] == ["error", "success", "success"]
    assert (len(desk.payments), len(desk.mails), desk.cities) == (0, 1, ["Oslo"])


def test_without_names_differing_decisions_are_refused(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(PAY, MAIL), "Done.")
    chat.send_message("t", "Do it all")
    with pytest.raises(InvalidReviewDecisionError, match="must name its 'call'"):
        chat.submit_review("t", [{"type": "approve"}, {"type": "reject"}])
    chat.submit_review("t", [{"type": "approve"}, {"type": "approve"}])
    assert (len(desk.payments), len(desk.mails)) == (1, 1)


@pytest.mark.sqlite_by_day
@pytest.mark.parametrize(
    "bad",
    [
        [],
        None,
        "approve",
        {"decisions": {}},
        [None],
        [{"type": None}],
        [{"type": "APPROVE "}],
        [{"type": "yes"}],
        [{"approved": "false"}],
        [{"type": "approve"}, {"type": "approve"}],
        [{"type": "approve", "call": "c9"}],
        [{"type": "approve", "extra": 1}],
        [{"type": "respond", "message": "x"}],
        [{"type": "edit"}],
        [{"type": "edit", "edited_action": {}}],
        [edit({"to": "a@x", "subject": 3})],
        [edit({"to": "a@x"})],
        [edit({"to": "a@x", "subject": "s", "cc": "b@x"})],
        [edit({"command": "rm"}, name="run_shell")],
    ],
    ids=str,
)
def test_a_bad_decision_changes_nothing_and_the_right_one_still_works(
    talk: Talk, desk: Desk, bad: Any
) -> None:
    chat, _ = talk(calls(MAIL), "Sent.")
    before = chat.send_message("t", "Write to Ana")["pending_review"]
    assert before is not None
    with pytest.raises(InvalidReviewDecisionError):
        chat.submit_review("t", bad)
    assert chat.pending_review("t") == before
    assert desk.mails == []
    assert chat.submit_review("t", [{"type": "approve"}])["answer"] == "Sent."
    assert len(desk.mails) == 1


def test_every_fault_of_an_edit_is_named_at_its_json_pointer(talk: Talk) -> None:
    chat, _ = talk(calls(PAY))
    review = chat.send_message("t", "Pay")["pending_review"]
    assert review is not None
    bad = [edit({"account": 7, "amount_cents": "500", "amout": 1}, name="pay")]
    with pytest.raises(InvalidReviewDecisionError) as caught:
        chat.submit_review("t", bad)
    pointers = {fault.pointer for fault in caught.value.faults}
    base = "/0/edited_action/args"
    assert pointers == {f"{base}/account", f"{base}/amount_cents", f"{base}/amout"}
    with pytest.raises(InvalidReviewDecisionError) as caught:
        validate_decisions(bad, review)
    assert {fault.pointer for fault in caught.value.faults} == pointers


def test_an_empty_message_is_refused(talk: Talk) -> None:
    chat, _ = talk("Hi.")
    with pytest.raises(EmptyMessageError):
        chat.send_message("t", "  \n")


def test_a_message_while_a_review_waits_is_refused_and_loses_nothing(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL), "Sent.", "And now?")
    chat.send_message("t", "Write to Ana")
    with pytest.raises(ReviewPendingError):
        chat.send_message("t", "yes, approve it")
    assert desk.mails == []
    chat.submit_review("t", [{"type": "approve"}])
    assert chat.send_message("t", "and?")["answer"] == "And now?"
    assert [m.content for m in chat.messages("t") if isinstance(m, HumanMessage)] == ["Write to Ana", "and?"]


def test_a_decision_where_nothing_waits_is_refused(talk: Talk) -> None:
    chat, _ = talk("Hi.")
    chat.send_message("t", "Hello")
    with pytest.raises(NoPendingReviewError):
        chat.submit_review("t", [{"type": "approve"}])
    with pytest.raises(NoPendingReviewError):
        chat.submit_review("unknown", [{"type": "approve"}])


def test_a_late_repetition_never_reaches_the_next_review(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL), calls(PAY), "Done.")
    first = chat.send_message("t", "Do it")["pending_review"]
    assert first is not None
    decision = [{"type": "approve", "call": first["action_requests"][0]["call"]}]
    seen = {"review_id": first["review_id"], "version": first["version"]}
    chat.submit_review("t", decision, **seen)
    with pytest.raises(ReviewConflictError) as caught:
        chat.submit_review("t", decision, **seen)
    assert "approve send_email" in str(caught.value)
    with pytest.raises(InvalidReviewDecisionError):
        chat.submit_review("t", decision)
    assert desk.payments == []


def test_a_nameless_answer_from_elsewhere_reaches_only_a_threads_first_review(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL), calls(PAY), "Done.")
    chat.send_message("t", "Do it")
    elsewhere, _ = talk()
    talk(calls(PAY), "Done.")
    elsewhere.submit_review("t", [{"type": "approve"}])
    late, _ = talk()
    with pytest.raises(InvalidReviewDecisionError, match="late repetition"):
        late.submit_review("t", [{"type": "approve"}])
    assert desk.payments == []


def test_an_unknown_tool_goes_back_to_the_model_before_any_review(talk: Talk, desk: Desk) -> None:
    chat, model = talk(calls(("rm_rf", {}), WEATHER), "Sorry.")
    assert chat.send_message("t", "Go")["answer"] == "Sorry."
    results = [m for m in model.seen[-1] if isinstance(m, ToolMessage)]
    by_id = {m.tool_call_id: m for m in results}
    assert by_id["call_0"].status == "error"
    assert "There is no tool rm_rf" in str(by_id["call_0"].content)
    assert desk.cities == ["Oslo"]


@pytest.mark.sqlite_by_day
@pytest.mark.parametrize(
    "args",
    [
        {"account": "A", "amount_cents": "500"},
        {"account": "A", "amount_cents": 5.0},
        {"account": "A", "amount_cents": True},
        {"account": "A"},
        {"account": "A", "amount_cents": 1, "amout": 2},
        {"account": "A", "amount_cents": 2**70},
        {"account": "\ud800", "amount_cents": 1},
        {"account": "A", "amount_cents": float("nan")},
    ],
    ids=str,
)
def test_arguments_that_break_the_schema_go_back_to_the_model_before_any_review(
    talk: Talk, desk: Desk, args: dict[str, Any]
) -> None:
    chat, model = talk(calls(("pay", args)), "I will ask again.")
    assert chat.send_message("t", "Pay")["answer"] == "I will ask again."
    (result,) = (m for m in model.seen[-1] if isinstance(m, ToolMessage))
    assert result.status == "error"
    assert desk.payments == []
    assert chat.pending_review("t") is None


@pytest.mark.sqlite_by_day
@pytest.mark.parametrize("ids", [["x", "x"], [None, None], ["", ""], ["x", None]], ids=str)
def test_calls_whose_ids_are_missing_or_repeated_are_shown_and_decided_each(
    talk: Talk, desk: Desk, ids: list[str | None]
) -> None:
    said = calls(("pay", {"account": "A", "amount_cents": 1}), ("pay", {"account": "B", "amount_cents": 2}))
    for call, call_id in zip(said.tool_calls, ids, strict=True):
        call["id"] = call_id
    chat, _ = talk(said, "Done.")
    review = chat.send_message("t", "Pay")["pending_review"]
    assert review is not None
    first, second = review["action_requests"]
    chat.submit_review(
        "t",
        [{"type": "reject", "call": second["call"]}, {"type": "approve", "call": first["call"]}],
    )
    assert [payment["account"] for payment in desk.payments] == ["A"]


def test_an_identical_proposal_after_a_rejection_is_not_asked_again_in_that_turn(
    talk: Talk, desk: Desk
) -> None:
    chat, model = talk(calls(MAIL), calls(MAIL), calls(MAIL), "I stop.")
    chat.send_message("t", "Write to Ana")
    assert chat.submit_review("t", [{"type": "reject"}])["answer"] == "I stop."
    assert desk.mails == []
    assert "not asked again" in str(model.seen[-1][-1].content)


def test_rejections_of_one_tool_are_bounded_in_a_turn(talk: Talk, desk: Desk) -> None:
    steps = [calls(("send_email", {"to": "a@x", "subject": str(n)})) for n in range(12)]
    chat, _ = talk(*steps, "I stop.", gated=["send_email"])
    reply = chat.send_message("t", "Write to Ana")
    asked = 0
    while reply["pending_review"] is not None:
        asked += 1
        reply = chat.submit_review("t", [{"type": "reject"}])
    assert asked == 3
    assert desk.mails == []


def test_the_turn_ends_with_a_closing_message_after_25_steps(talk: Talk, desk: Desk) -> None:
    steps = [calls(("get_weather", {"city": str(n)})) for n in range(40)]
    chat, model = talk(*steps)
    reply = chat.send_message("t", "Loop")
    assert "more steps than one turn may have" in str(reply["answer"])
    assert len(desk.cities) == 8
    assert len(model.seen) == 9
    assert "more steps" in str(chat.messages("t")[-1].content)


def test_steps_are_counted_across_resumes(talk: Talk, desk: Desk) -> None:
    steps = [calls(("pay", {"account": "A", "amount_cents": n + 1})) for n in range(40)]
    chat, _ = talk(*steps)
    reply = chat.send_message("t", "Loop")
    while reply["pending_review"] is not None:
        reply = chat.submit_review("t", [{"type": "approve"}])
    assert len(desk.payments) == 8


def test_a_turn_that_failed_leaves_a_thread_that_takes_the_next_message(talk: Talk, desk: Desk) -> None:
    from clearance.errors import RunFailedError

    def broken(_: Any) -> str:
        raise RuntimeError("no route")

    chat, _ = talk(calls(MAIL), broken, "Back again.")
    chat.send_message("t", "Write to Ana")
    with pytest.raises(RunFailedError):
        chat.submit_review("t", [{"type": "approve"}])
    assert chat.send_message("t", "Still there?")["answer"] == "Back again."
    assert len(desk.mails) == 1


def test_two_threads_do_not_share_anything(talk: Talk, desk: Desk) -> None:
    chat, _ = talk(calls(MAIL), calls(PAY), "One.", "Two.")
    chat.send_message("a", "Write")
    chat.send_message("b", "Pay")
    chat.submit_review("a", [{"type": "approve"}])
    assert (len(desk.mails), len(desk.payments)) == (1, 0)
    assert chat.pending_review("b") is not None
