"""Asking and deciding, on both databases: asked once, decided by one, and everything of it or nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest

from clearance.errors import (
    ClearanceError,
    ForbiddenError,
    InvalidReviewDecisionError,
    NoPendingReviewError,
    NotFoundError,
    ReviewConflictError,
)
from clearance.outcome import CallState
from clearance.policy import DecisionType, Effect, Policy, Predicate, Risk, Rule, Threshold
from clearance.review import Answer, ReviewStatus
from clearance.run import RunState
from clearance.store import listing
from tests.rules.small_reviews import approve, edit, reject, respond
from tests.store.bench import MAIL, PAYMENT, Bench, states


def test_a_call_that_needs_people_waits_for_them(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT), ("read_weather", {"city": "Oslo"}))
    assert review == bench.review("r1/1/1")
    assert [call.key for call in review.calls] == ["r1/1/0"]
    assert review.calls[0].arguments == review.calls[0].proposed == json.dumps(PAYMENT, separators=(",", ":"))
    assert (review.requester, review.version, review.status) == ("tom", 1, ReviewStatus.PENDING)
    assert bench.run("r1").state is RunState.WAITING
    row = bench.row("r1/1/0")
    assert row is not None
    assert (row.state, row.fingerprint) == (CallState.HELD, review.calls[0].fingerprint)
    assert bench.row("r1/1/1") is None
    assert bench.trail("r1/1/1") == ["review:asked"]


def test_a_call_that_needs_nobody_is_not_asked_about(bench: Bench) -> None:
    turn = bench.propose(("read_weather", {"city": "Oslo"}))
    assert bench.ask(turn) is None
    assert bench.run("r1").state is RunState.RUNNING


def test_asking_again_changes_nothing(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    before = bench.counts()
    for _ in range(3):
        assert bench.ask(turn) == review
    assert bench.counts() == before


def test_asking_again_after_a_decision_asks_nothing(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    bench.decide(review, approve("r1/1/0"), reject("r1/1/1"))
    before = bench.counts()
    assert bench.ask(turn) is None
    assert bench.counts() == before


def test_the_salt_of_a_fingerprint_is_kept_with_the_arguments_and_nowhere_else(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    _, other = bench.asked(("pay", PAYMENT), run_id="r2")
    assert len(bytes.fromhex(review.calls[0].salt)) == 16
    assert review.calls[0].salt != other.calls[0].salt
    assert review.calls[0].fingerprint != other.calls[0].fingerprint


def test_a_decision_its_clearance_its_entries_and_the_wake_are_there_together(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    wanted = bench.thread("r1").wanted
    after = bench.decide(review, approve("r1/1/0"), reject("r1/1/1", message="no mail"))
    assert after == bench.review(review.id)
    assert states(after) == [Answer.APPROVED, Answer.REJECTED]
    assert after.status is ReviewStatus.SETTLED
    assert bench.clearances("r1/1/0") == ["open"]
    assert bench.clearances("r1/1/1") == []
    assert bench.thread("r1").wanted == wanted + 1
    assert bench.trail(review.id, of="review:") == ["review:asked", "review:decided", "review:settled"]
    assert bench.trail("r1/1/0") == ["clearance:minted"]
    assert bench.trail("r1/1/1", of="call:") == ["call:rejected"]
    rows = [bench.row(key) for key in ("r1/1/0", "r1/1/1")]
    assert [row.state if row else None for row in rows] == [CallState.CLEARED, CallState.REJECTED]


def test_the_trail_names_who_decided_and_keeps_neither_arguments_nor_comments(bench: Bench) -> None:
    _, review = bench.asked(("pay", {**PAYMENT, "memo": "hunter-22"}))
    bench.decide(review, edit("r1/1/0", {**PAYMENT, "memo": "tok_ABCDEF"}, message="a secret remark"))
    bench.trail()
    with bench.c.database.read() as tx:
        rows = tx.exec_driver_sql("SELECT actor, kind, facts FROM entries").all()
    told = json.dumps([list(map(str, row)) for row in rows])
    assert not any(secret in told for secret in ("hunter-22", "tok_ABCDEF", "a secret remark", "A-1"))
    assert {row[0] for row in rows if row[1].startswith("review:decided")} == {"rita"}


BAD: dict[str, Any] = {
    "nothing": [],
    "null": None,
    "a text": "approve",
    "an object": {"decisions": [approve()]},
    "an unknown type": [{"type": "yes"}],
    "no type": [{"call": "r1/1/0"}],
    "an edit without content": [{"type": "edit"}],
    "an edit that breaks the schema": [edit(None, {"account": 1})],
    "an edit of another tool's arguments": [edit(None, MAIL)],
    "an edit into an unknown tool": [edit(None, {}, name="wipe")],
    "two for one": [approve(), approve()],
    "an unknown call": [approve("r1/1/7")],
    "a comment that no database keeps": [reject(message="a\0b")],
    "half of a surrogate pair": [reject(message="\ud83d")],
    "a tool named by half of a surrogate pair": [edit(None, {}, name="\udc00")],
    "a list in the list": [[approve()]],
}


@pytest.mark.parametrize("payload", BAD.values(), ids=BAD.keys())
def test_a_refused_decision_changes_nothing_and_the_right_one_is_then_taken(
    bench: Bench, payload: Any
) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    before = bench.counts()
    for _ in range(2):
        with pytest.raises(InvalidReviewDecisionError):
            bench.c.gate.decide(review.id, payload, by="rita", version=1)
    assert bench.counts() == before
    assert bench.review(review.id) == review
    assert bench.decide(review, approve()).version == 2


def test_text_that_people_write_is_kept_as_they_wrote_it(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", decisions=tuple(DecisionType)),)))
    _, review = bench.asked(("pay", PAYMENT))
    said = "\u202ee\u0301\u2028 'quote' \\ \N{GRINNING FACE} \x07"
    assert bench.decide(review, respond(message=said)).calls[0].decisions[0].message == said
    row = bench.row("r1/1/0")
    assert row is not None
    assert (row.state, row.result) == (CallState.RESPONDED, said)


@pytest.mark.parametrize(
    ("by", "error"),
    [
        ("tom", ForbiddenError),
        ("dev-bot", ForbiddenError),
        ("mallory", ForbiddenError),
        ("nobody", NotFoundError),
        ("", NotFoundError),
        ("Rita", NotFoundError),
    ],
)
@pytest.mark.parametrize("decision", [approve(), reject()])
def test_only_who_is_entitled_decides(
    bench: Bench, by: str, error: type[ClearanceError], decision: dict[str, Any]
) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    before = bench.counts()
    with pytest.raises(error):
        bench.decide(review, decision, by=by)
    assert bench.counts() == before


@pytest.mark.parametrize("agent", ["dev-bot", "sub-bot"])
def test_whom_an_agent_acts_for_does_not_decide_what_it_asked(bench: Bench, agent: str) -> None:
    _, review = bench.asked(("pay", PAYMENT), by=agent)
    for party in ("tom", agent):
        with pytest.raises(ForbiddenError):
            bench.decide(review, approve(), by=party)
    assert bench.decide(review, approve(), by="rita").status is ReviewStatus.SETTLED


def test_the_one_person_of_a_workspace_decides_until_a_second_comes(alone: Bench) -> None:
    _, review = alone.asked(("pay", PAYMENT))
    assert alone.decide(review, approve(), by="tom").status is ReviewStatus.SETTLED
    alone.hire()
    _, other = alone.asked(("pay", PAYMENT), run_id="r2")
    with pytest.raises(ForbiddenError, match="own request"):
        alone.decide(other, approve(), by="tom")


def test_a_disabled_person_decides_nothing(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    bench.change_person("rita", disabled=True)
    with pytest.raises(ForbiddenError, match="disabled"):
        bench.decide(review, approve())


def test_a_second_decision_is_told_what_the_first_one_was(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, reject(message="no"), by="omar")
    with pytest.raises(ReviewConflictError, match="omar: reject pay") as caught:
        bench.decide(review, approve())
    assert caught.value.review == bench.review(review.id)
    assert bench.clearances("r1/1/0") == []


def test_a_decision_on_an_old_version_is_refused(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", who=(Threshold(approve=2),)),)))
    _, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve(), by="omar")
    with pytest.raises(ReviewConflictError, match="changed since you read it") as caught:
        bench.decide(review, approve())
    settled = bench.decide(caught.value.review, approve())
    assert settled.status is ReviewStatus.SETTLED


def test_the_decision_that_completes_the_quorum_clears_the_call(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", who=(Threshold(approve=2),)),)))
    _, review = bench.asked(("pay", PAYMENT))
    once = bench.decide(review, approve(), by="omar")
    assert (once.status, bench.clearances("r1/1/0")) == (ReviewStatus.PENDING, [])
    assert bench.run("r1").state is RunState.WAITING
    entries = bench.counts()["entries"]
    assert bench.decide(once, approve(), by="omar") == once
    assert bench.counts()["entries"] == entries
    assert bench.decide(once, approve(), by="rita").status is ReviewStatus.SETTLED
    assert bench.clearances("r1/1/0") == ["open"]


def test_an_edit_is_judged_and_bound_as_what_it_became(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    after = bench.decide(review, edit(None, '{"amount_cents": 900, "account": "A-1"}'))
    (call,) = after.calls
    assert call.arguments == '{"amount_cents":900,"account":"A-1"}'
    assert call.fingerprint != review.calls[0].fingerprint
    row = bench.row("r1/1/0")
    assert row is not None
    assert (row.arguments, row.fingerprint) == (call.arguments, call.fingerprint)


def test_an_edit_moves_a_review_to_its_new_risk_and_deadline(bench: Bench) -> None:
    large = Predicate("large", "1", lambda arguments: bool(arguments["amount_cents"] > 5000))
    strict = Rule(
        tool="pay", when=large, risk=Risk.CRITICAL, expire=timedelta(hours=1), who=(Threshold(approve=2),)
    )
    bench.register(Policy(rules=(strict, Rule(tool="*"))))
    _, other = bench.asked(("send_email", MAIL), run_id="other")
    _, review = bench.asked(("pay", PAYMENT))
    assert review.deadline is None
    after = bench.decide(review, edit(None, {**PAYMENT, "amount_cents": 5001}))
    assert after == bench.review(review.id)
    assert after.deadline is not None
    with bench.c.database.read() as tx:
        assert [found.id for found in listing.inbox(tx)] == [review.id, other.id]


def test_an_edit_into_a_tool_of_stricter_rules_is_refused(bench: Bench) -> None:
    into_a_deletion = edit(None, {"path": "/etc/passwd"}, name="delete_file")
    bench.register(Policy(rules=(Rule(tool="delete_file", decisions=(DecisionType.REJECT,)),)))
    _, review = bench.asked(("send_email", MAIL))
    with pytest.raises(InvalidReviewDecisionError, match="do not let an edit clear it"):
        bench.decide(review, into_a_deletion)
    bench.register(Policy(rules=(Rule(tool="delete_file", effect=Effect.DENY),)))
    with pytest.raises(InvalidReviewDecisionError, match="denies delete_file"):
        bench.decide(review, into_a_deletion)
    assert bench.decide(review, edit(None, {**MAIL, "subject": "s2"})).status is ReviewStatus.SETTLED


def test_faults_of_an_edit_come_with_their_places(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    with pytest.raises(InvalidReviewDecisionError) as caught:
        bench.decide(review, approve("r1/1/1"), edit("r1/1/0", {"account": "", "amount": 1}))
    assert [fault.pointer for fault in caught.value.faults] == [
        "/1/edited_action/args/account",
        "/1/edited_action/args/amount",
        "/1/edited_action/args/amount_cents",
    ]


def test_integers_of_any_size_come_back_from_the_store_as_they_went(bench: Bench) -> None:
    huge = "1" + "0" * 30
    data = f'{{"data":{{"id":9007199254740993,"huge":{huge},"f":48250.0,"s":"\u202e\\u0000"}}}}'
    turn, review = bench.asked(("write_record", data))
    assert bench.review(review.id).calls[0].arguments == data
    edited = data.replace("993", "994")
    bench.decide(review, edit(None, edited))
    assert bench.review(review.id).calls[0].proposed == data
    bench.execute(turn)
    assert bench.effects[0].arguments == json.loads(edited)
    assert isinstance(bench.effects[0].arguments["data"]["f"], float)


# --- doors that name no review ---


def test_the_first_review_of_a_thread_may_be_decided_without_naming_it(bench: Bench) -> None:
    bench.asked(("pay", PAYMENT))
    after = bench.c.gate.decide_waiting("thread-r1", [approve()], by="rita")
    assert (after.id, after.status) == ("r1/1/1", ReviewStatus.SETTLED)


def test_a_late_repetition_never_reaches_the_next_review_of_a_thread(bench: Bench) -> None:
    _, first = bench.asked(("pay", PAYMENT))
    bench.decide(first, approve())
    _, second = bench.asked(("pay", {**PAYMENT, "amount_cents": 5}), message=2)
    with pytest.raises(InvalidReviewDecisionError, match="late repetition"):
        bench.c.gate.decide_waiting("thread-r1", [approve()], by="rita")
    with pytest.raises(InvalidReviewDecisionError):
        bench.c.gate.decide_waiting("thread-r1", [approve("r1/1/0")], by="rita")
    assert bench.review(second.id) == second
    after = bench.c.gate.decide_waiting("thread-r1", [approve("r1/2/0")], by="rita")
    assert after.status is ReviewStatus.SETTLED


def test_a_thread_without_a_review_has_nothing_to_decide(bench: Bench) -> None:
    bench.propose(("read_weather", {"city": "Oslo"}))
    for thread in ("thread-r1", "no such thread"):
        with pytest.raises(NoPendingReviewError):
            bench.c.gate.decide_waiting(thread, [approve()], by="rita")


def test_an_unknown_review_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        bench.c.gate.decide("r9/1/1", [approve()], by="rita", version=1)


def test_two_calls_of_one_message_may_carry_the_same_id_of_the_model(bench: Bench) -> None:
    turn, review = bench.asked(("delete_file", {"path": "/srv/tmp/a"}), ("delete_file", {"path": "/etc"}))
    assert {call.tool_call_id for call in turn.question.calls} == {"call_0"}
    bench.decide(review, reject("r1/1/1"), approve("r1/1/0"))
    bench.execute(turn)
    assert [effect.arguments for effect in bench.effects] == [{"path": "/srv/tmp/a"}]
