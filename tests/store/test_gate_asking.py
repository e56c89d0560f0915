"""What is asked about anew: calls, tools and rules that changed, and what was rejected before."""

import copy
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from clearance.conditions import in_time
from clearance.errors import PolicyError
from clearance.outcome import CallState
from clearance.policy import DecisionType, Effect, Policy, Predicate, Rule, Threshold, requiring_approval
from clearance.review import Answer, ReviewStatus
from clearance.run import RunState
from tests.rules.case_tools import PAY
from tests.rules.small_reviews import approve, edit, reject
from tests.store.bench import GATED, LONG, MAIL, PAYMENT, Bench, Turn, named, reproposed, states

OTHER = {**PAYMENT, "account": "B-666"}


def state_of(bench: Bench, key: str) -> CallState | None:
    """Return how a call stands in the ledger."""
    row = bench.row(key)
    return None if row is None else row.state


# --- what was asked about changed while it waited ---


def test_changed_arguments_invalidate_the_review_and_are_asked_about_anew(bench: Bench) -> None:
    turn, first = bench.asked(("pay", PAYMENT))
    second = bench.ask(reproposed(turn, ("pay", OTHER)))
    assert second is not None
    assert (second.id, second.round) == ("r1/1/2", 2)
    assert '"B-666"' in second.calls[0].arguments
    old = bench.review(first.id)
    assert (old.status, old.reason) == (ReviewStatus.INVALIDATED, "What was asked about changed.")
    assert bench.trail(first.id) == ["review:asked", "review:invalidated"]
    bench.decide(second, approve())
    assert named(bench.execute(reproposed(turn, ("pay", OTHER)))) == ["executed"]
    assert [effect.arguments for effect in bench.effects] == [OTHER]


def test_the_approval_of_what_a_call_was_before_runs_nothing(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve())
    changed = reproposed(turn, ("pay", OTHER))
    assert named(bench.execute(changed)) == ["ask again"]
    assert bench.effects == []
    again = bench.ask(changed)
    assert again is not None
    assert bench.clearances("r1/1/0") == ["void"]
    assert state_of(bench, "r1/1/0") is CallState.HELD


def test_the_order_of_keys_and_a_written_default_change_nothing(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    for spelling in (
        '{ "amount_cents": 1000, "account": "A-1" }',
        '{"account":"A-1","amount_cents":1000,"currency":"EUR"}',
    ):
        assert bench.ask(reproposed(turn, ("pay", spelling))) == review
    bench.decide(review, approve())
    spelt = reproposed(turn, ("pay", {**PAYMENT, "currency": "EUR"}))
    assert bench.ask(spelt) is None
    assert named(bench.execute(spelt)) == ["executed"]
    assert bench.effects[0].arguments == PAYMENT


def test_another_tool_under_the_same_key_is_asked_about_anew(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    again = bench.ask(reproposed(turn, ("send_email", MAIL)))
    assert again is not None
    assert (again.id, again.calls[0].tool) == ("r1/1/2", "send_email")
    assert bench.review(review.id).status is ReviewStatus.INVALIDATED


@pytest.mark.parametrize("decided", [False, True])
def test_a_tool_whose_schema_changed_is_asked_about_anew(bench: Bench, decided: bool) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    if decided:
        bench.decide(review, approve())
    schema = copy.deepcopy(PAY)
    schema["properties"]["currency"]["default"] = "USD"
    bench.say("pay", schema=schema)
    bench.register()
    assert named(bench.execute(turn)) == ["ask again"]
    again = bench.ask(turn)
    assert again is not None
    assert again.calls[0].schema_hash != review.calls[0].schema_hash
    assert bench.effects == []
    bench.decide(again, approve())
    assert named(bench.execute(turn)) == ["executed"]


def test_a_call_that_waited_beside_the_changed_one_is_asked_about_again(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    again = bench.ask(reproposed(turn, ("pay", OTHER), ("send_email", MAIL)))
    assert again is not None
    assert [call.key for call in again.calls] == ["r1/1/0", "r1/1/1"]
    assert states(again) == [Answer.WAITING, Answer.WAITING]
    assert states(bench.review(review.id)) == [Answer.INVALIDATED, Answer.INVALIDATED]
    bench.decide(again, approve(), approve())
    assert named(bench.execute(reproposed(turn, ("pay", OTHER), ("send_email", MAIL)))) == ["executed"] * 2


def test_what_one_person_said_before_the_change_counts_no_more(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(approve=2),)),)))
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    bench.decide(review, approve(), approve(), by="omar")
    again = bench.ask(reproposed(turn, ("pay", OTHER), ("send_email", MAIL)))
    assert again is not None
    assert all(call.decisions == () for call in again.calls)


def test_a_call_that_is_gone_from_the_message_is_withdrawn(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    again = bench.ask(reproposed(turn, ("pay", PAYMENT)))
    assert again is not None
    assert [call.key for call in again.calls] == ["r1/1/0"]
    assert bench.review(review.id).status is ReviewStatus.INVALIDATED
    assert state_of(bench, "r1/1/1") is CallState.BLOCKED


def test_a_changed_call_that_would_run_at_once_is_still_decided_by_people(bench: Bench) -> None:
    small = Predicate("small", "1", lambda arguments: bool(arguments["amount_cents"] < 10))
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.ALLOW, when=small),)))
    turn, review = bench.asked(("pay", PAYMENT))
    changed = reproposed(turn, ("pay", {**PAYMENT, "amount_cents": 1}))
    again = bench.ask(changed)
    assert again is not None
    assert again.calls[0].arguments == '{"account":"A-1","amount_cents":1}'
    assert bench.review(review.id).status is ReviewStatus.INVALIDATED
    assert named(bench.execute(changed)) == ["ask again"]
    bench.decide(again, approve())
    assert named(bench.execute(changed)) == ["executed"]


def test_an_approved_call_that_changed_into_one_that_runs_at_once_comes_to_an_end(bench: Bench) -> None:
    small = Predicate("small", "1", lambda arguments: bool(arguments["amount_cents"] < 10))
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.ALLOW, when=small),)))
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve())
    changed = reproposed(turn, ("pay", {**PAYMENT, "amount_cents": 1}))
    assert named(bench.execute(changed)) == ["ask again"]
    again = bench.ask(changed)
    assert again is not None
    bench.decide(again, reject())
    assert named(bench.execute(changed)) == ["rejected"]
    assert bench.effects == []


def test_a_changed_call_that_the_policy_denies_is_blocked_and_its_sibling_asked_about_again(
    bench: Bench,
) -> None:
    large = Predicate("large", "1", lambda arguments: bool(arguments["amount_cents"] > 5000))
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.DENY, when=large),)))
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    changed = reproposed(turn, ("pay", {**PAYMENT, "amount_cents": 9000}), ("send_email", MAIL))
    again = bench.ask(changed)
    assert again is not None
    assert [call.key for call in again.calls] == ["r1/1/1"]
    assert state_of(bench, "r1/1/0") is CallState.BLOCKED
    assert bench.review(review.id).status is ReviewStatus.INVALIDATED
    bench.decide(again, approve())
    assert named(bench.execute(changed)) == ["blocked", "executed"]
    assert [effect.tool for effect in bench.effects] == ["send_email"]


def test_an_edited_call_stands_in_the_message_as_it_was_proposed_and_as_it_was_edited(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    edited = {**PAYMENT, "amount_cents": 900}
    bench.decide(review, edit(None, edited))
    for proposal in (PAYMENT, edited):
        assert bench.ask(reproposed(turn, ("pay", proposal))) is None
    assert named(bench.execute(reproposed(turn, ("pay", edited)))) == ["executed"]
    assert [effect.arguments for effect in bench.effects] == [edited]


# --- denied, and proposed again ---


def test_what_the_policy_denies_is_blocked_without_a_question(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.DENY),), default=Effect.ALLOW))
    turn = bench.propose(("pay", PAYMENT), ("read_weather", {"city": "Oslo"}))
    assert bench.ask(turn) is None
    assert bench.ask(turn) is None
    assert state_of(bench, "r1/1/0") is CallState.BLOCKED
    assert bench.trail("r1/1/0") == ["call:blocked"]
    assert named(bench.execute(turn)) == ["blocked", "executed"]
    assert [effect.tool for effect in bench.effects] == ["read_weather"]


def rejected_once(bench: Bench, arguments: Mapping[str, Any] = PAYMENT) -> Turn:
    """Return a turn whose first message proposed a payment that people rejected."""
    turn, review = bench.asked(("pay", arguments))
    bench.decide(review, reject(message="too much"))
    return turn


@pytest.mark.parametrize(
    "again", [PAYMENT, '{"amount_cents":1000,"account":"A-1"}', {**PAYMENT, "currency": "EUR"}]
)
def test_what_was_rejected_in_a_turn_is_not_asked_about_again(bench: Bench, again: Any) -> None:
    rejected_once(bench)
    turn = bench.propose(("pay", again), message=2)
    assert bench.ask(turn) is None
    found = bench.outcome(turn)
    assert found.state is CallState.REJECTED
    assert "rejected before in this turn" in found.text
    assert bench.trail("r1/2/0") == ["call:rejected"]


def test_another_call_of_a_rejected_tool_is_asked_about(bench: Bench) -> None:
    rejected_once(bench)
    assert bench.asked(("pay", OTHER), message=2)[1].id == "r1/2/1"


def test_a_tool_that_was_rejected_three_times_in_a_turn_is_not_asked_about_any_more(bench: Bench) -> None:
    for number in (1, 2, 3):
        _, review = bench.asked(("pay", {**PAYMENT, "amount_cents": number}), message=number)
        bench.decide(review, reject())
    turn = bench.propose(("pay", {**PAYMENT, "amount_cents": 4}), ("send_email", MAIL), message=4)
    review_of_mail = bench.ask(turn)
    assert review_of_mail is not None
    assert [call.tool for call in review_of_mail.calls] == ["send_email"]
    assert state_of(bench, "r1/4/0") is CallState.REJECTED


def test_another_turn_may_ask_again(bench: Bench) -> None:
    rejected_once(bench)
    assert bench.asked(("pay", PAYMENT), run_id="r2")[1].status is ReviewStatus.PENDING


def test_a_tool_that_runs_at_once_is_not_held_back_by_rejections(bench: Bench) -> None:
    rejected_once(bench)
    bench.register(Policy(default=Effect.ALLOW))
    turn = bench.propose(("pay", PAYMENT), message=2)
    assert bench.ask(turn) is None
    assert named(bench.execute(turn)) == ["executed"]


# --- conditions, and rules that this process lacks ---


def test_a_condition_that_fails_holds_the_call_and_the_review_says_so(bench: Bench) -> None:
    broken = Predicate("broken", "1", lambda arguments: bool(arguments["missing"]))
    bench.register(Policy(rules=(Rule(tool="*", effect=Effect.ALLOW, when=broken),), default=Effect.ALLOW))
    _, review = bench.asked(("pay", PAYMENT))
    assert review.calls[0].verdict.faults == ("condition broken (version 1) raised KeyError",)
    assert bench.review(review.id).calls[0].verdict == review.calls[0].verdict


def test_a_condition_that_hangs_holds_the_call_and_the_review_says_so(bench: Bench) -> None:
    go_on = threading.Event()
    hangs = Predicate("hangs", "1", lambda _: go_on.wait(LONG))
    rules = (Rule(tool="*", effect=Effect.ALLOW, when=hangs),)
    bench.register(in_time(Policy(rules=rules, default=Effect.ALLOW), limit=0.05))
    turn, review = bench.asked(("pay", PAYMENT))
    assert review.calls[0].verdict.faults == ("condition hangs (version 1) raised TimeoutError",)
    assert named(bench.execute(turn)) == ["ask again"]
    go_on.set()


WRONG = [
    Rule(tool="delete_fil"),
    Rule(tool=" delete_file "),
    Rule(tool="Delete_File"),
    Rule(tool="delete_file", decisions=()),
    Rule(tool="delete_file", who=(Threshold(approve=0),)),
    Rule(tool="delete_file", flags={"paht": "look"}),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.tool)
def test_a_program_whose_policy_could_never_do_what_it_says_is_refused_and_the_old_one_stays(
    bench: Bench, rule: Rule
) -> None:
    with pytest.raises(PolicyError, match="The policy cannot be used"):
        bench.register(Policy(rules=(rule,), default=Effect.ALLOW))
    assert bench.asked(("delete_file", {"path": "/srv/tmp/a"}))[1].status is ReviewStatus.PENDING


def test_another_process_without_the_condition_holds_the_call(bench: Bench) -> None:
    never = Predicate("never", "1", lambda _: False)
    policy = Policy(rules=(Rule(tool="pay", when=never),), default=Effect.ALLOW)
    bench.register(policy)
    turn = bench.propose(("pay", PAYMENT))
    assert bench.ask(turn) is None
    elsewhere = Bench(bench.url, bench.home)
    try:
        review = elsewhere.c.gate.ask(turn.question)
        assert review is not None
        (fault,) = review.calls[0].verdict.faults
        assert "condition never (version 1) is not known" in fault
    finally:
        elsewhere.close()


def test_a_verdict_is_stored_with_its_rules_and_policy(bench: Bench) -> None:
    policy = Policy(
        rules=(
            Rule(tool="pay", name="payments", who=(Threshold(approve=2, group="finance"),), reason=True),
            Rule(tool="*", decisions=(DecisionType.APPROVE, DecisionType.REJECT), flags={"account": "new"}),
        )
    )
    bench.register(policy)
    _, review = bench.asked(("pay", PAYMENT))
    verdict = bench.review(review.id).calls[0].verdict
    assert verdict == review.calls[0].verdict
    assert (verdict.rules, verdict.policy) == (("*", "payments"), policy.version)


def test_a_workspace_without_a_policy_holds_everything(bench: Bench) -> None:
    turn = bench.propose(("read_weather", {"city": "Oslo"}))
    unknown = Turn(turn.run, replace(turn.question, program="other"))
    assert bench.ask(unknown) is not None


def test_an_allowed_call_beside_a_held_one_does_not_wait_in_the_review(bench: Bench) -> None:
    bench.register(requiring_approval(GATED))
    _, review = bench.asked(("read_weather", {"city": "Oslo"}), ("pay", PAYMENT))
    assert [call.key for call in review.calls] == ["r1/1/1"]
    assert bench.run("r1").state is RunState.WAITING
