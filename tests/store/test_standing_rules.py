"""Standing rules: people clear calls like one in advance, so often and until then, and can take it back."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from clearance import remembering
from clearance.assembly import new_id
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from clearance.policy import DecisionType, Effect, Policy, Risk, Rule, Threshold
from clearance.review import Answer, Review, ReviewKind, ReviewStatus
from clearance.standing import StandingRule, StandingState, Terms
from clearance.store import retention, standing
from clearance.store import tables as t
from tests.rules.small_reviews import approve, reject
from tests.store.bench import GATED, LONG, MAIL, PAYMENT, Bench, Proposal, named

HOUR = timedelta(hours=1)
TERMS = Terms(uses=3, lasts=8 * HOUR)
TWO = (Threshold(approve=2),)


def remembered(bench: Bench, terms: Terms = TERMS, *, by: str = "rita", call: Any = None) -> StandingRule:
    """Remember a payment (or the call) that was asked about, as one who may decide it."""
    _, review = bench.asked(call or ("pay", PAYMENT), run_id="first")
    return remembering.draft(bench.c.database, review.id, terms, by=by, rule_id="s1")


def rule(bench: Bench, rule_id: str = "s1") -> StandingRule:
    """Read a standing rule."""
    with bench.c.database.read() as tx:
        return standing.rule(tx, rule_id)


def settled(bench: Bench, run_id: str) -> Review:
    """Return the review of a run's one message."""
    return bench.review(f"{run_id}/1/1")


# --- what is remembered runs ---


def test_a_call_like_the_one_that_is_remembered_runs_without_waiting(bench: Bench) -> None:
    made = remembered(bench)
    assert (made.state, made.author) == (StandingState.ACTIVE, "rita")
    turn = bench.propose(("pay", dict(reversed(PAYMENT.items()))), run_id="r2")
    assert bench.ask(turn) is None
    assert named(bench.execute(turn)) == ["executed"]
    assert rule(bench).uses_left == 2


def test_the_review_is_there_settled_with_who_said_so_and_through_what(bench: Bench) -> None:
    remembered(bench)
    bench.ask(bench.propose(("pay", PAYMENT), run_id="r2"))
    review = settled(bench, "r2")
    assert (review.status, review.ended_at) == (ReviewStatus.SETTLED, review.asked_at)
    (call,) = review.calls
    (said,) = call.decisions
    assert (call.state, said.type, said.by, said.standing) == (
        Answer.APPROVED,
        DecisionType.APPROVE,
        "rita",
        "s1",
    )
    assert bench.clearances("r2/1/0") == ["open"]
    assert bench.trail(review.id, of="review:") == ["review:asked", "review:settled"]
    assert bench.trail("s1") == [
        "standing-rule:drafted",
        "standing-rule:activated",
        "standing-rule:used",
    ]


def test_asking_again_uses_nothing_up(bench: Bench) -> None:
    remembered(bench)
    turn = bench.propose(("pay", PAYMENT), run_id="r2")
    for _ in range(3):
        assert bench.ask(turn) is None
    assert rule(bench).uses_left == 2
    assert named(bench.execute(turn)) == ["executed"]
    assert bench.ask(turn) is None
    assert len(bench.effects) == 1


def test_nothing_is_used_up_for_somebody_who_is_disabled(bench: Bench) -> None:
    remembered(bench)
    bench.change_person("tom", disabled=True)
    _, review = bench.asked(("pay", PAYMENT), run_id="r2")
    assert review.status is ReviewStatus.PENDING
    assert rule(bench).uses_left == 3


def test_the_last_use_ends_the_rule_and_the_next_call_is_asked_about(bench: Bench) -> None:
    remembered(bench, Terms(uses=1, lasts=HOUR))
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is None
    assert (rule(bench).state, rule(bench).uses_left) == (StandingState.USED, 0)
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r3")) is not None


def test_calls_of_one_message_use_up_one_use_each_and_the_others_wait(bench: Bench) -> None:
    remembered(bench, Terms(uses=2, lasts=HOUR))
    calls: list[Proposal] = [("pay", PAYMENT), ("send_email", MAIL), ("pay", PAYMENT), ("pay", PAYMENT)]
    turn, review = bench.asked(*calls, run_id="r2")
    found = [call.state for call in bench.review(review.id).calls]
    assert found == [Answer.APPROVED, Answer.WAITING, Answer.APPROVED, Answer.WAITING]
    assert bench.effects == []
    bench.decide(review, approve("r2/1/1"), reject("r2/1/3"))
    assert named(bench.execute(turn)) == ["executed", "executed", "executed", "rejected"]


def test_many_that_ask_at_once_use_up_no_more_than_there_is(bench: Bench) -> None:
    remembered(bench)
    turns = [bench.propose(("pay", PAYMENT), run_id=f"at-once-{n}") for n in range(6)]
    found: list[Any] = []
    asking = [threading.Thread(target=lambda turn=turn: found.append(bench.ask(turn))) for turn in turns]
    for each in asking:
        each.start()
    for each in asking:
        each.join(LONG)
    assert sorted(each is None for each in found) == [False] * 3 + [True] * 3
    assert (rule(bench).state, rule(bench).uses_left) == (StandingState.USED, 0)


# --- what is not like it is asked about ---


@pytest.mark.parametrize(
    ("call", "more"),
    [
        (("pay", {**PAYMENT, "amount_cents": 1001}), {}),
        (("pay", {**PAYMENT, "memo": "new"}), {}),
        (("send_email", MAIL), {}),
        (("pay", PAYMENT), {"by": "dev-bot"}),
    ],
    ids=["another value", "one argument more", "another tool", "another requester"],
)
def test_what_is_not_the_same_waits(bench: Bench, call: Any, more: dict[str, Any]) -> None:
    remembered(bench)
    assert bench.ask(bench.propose(call, run_id="r2", **more)) is not None
    assert rule(bench).uses_left == 3


@pytest.mark.parametrize(
    ("terms", "arguments", "runs"),
    [
        ({"free": ("amount_cents",)}, {**PAYMENT, "amount_cents": 7}, True),
        ({"free": ("amount_cents",)}, {**PAYMENT, "account": "A-2"}, False),
        (
            {"free": ("amount_cents",), "when": "args.amount_cents < 500"},
            {**PAYMENT, "amount_cents": 7},
            True,
        ),
        ({"free": ("amount_cents",), "when": "args.amount_cents < 500"}, PAYMENT, False),
        ({"when": 'args.memo == "x"'}, PAYMENT, False),
    ],
    ids=["a free argument", "one that is not", "a condition that holds", "that does not", "without answer"],
)
def test_arguments_that_are_free_may_differ_as_far_as_the_condition_lets_them(
    bench: Bench, terms: dict[str, Any], arguments: dict[str, Any], runs: bool
) -> None:
    remembered(bench, Terms(uses=3, lasts=HOUR, **terms))
    assert (bench.ask(bench.propose(("pay", arguments), run_id="r2")) is None) == runs


def test_a_rule_for_one_thread_speaks_in_no_other(bench: Bench) -> None:
    remembered(bench, Terms(uses=3, lasts=HOUR, thread_only=True))
    assert rule(bench).thread_id == "thread-first"
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None


def test_a_rule_whose_time_is_over_speaks_for_nothing(bench: Bench) -> None:
    made = remembered(bench, Terms(uses=3, lasts=HOUR))
    turn = bench.propose(("pay", PAYMENT), run_id="r2")
    gate = bench.gate_at(lambda: made.expires_at)
    assert gate.ask(turn.question) is not None
    gate.sweep()
    gate.sweep()
    gate.database.close()
    assert rule(bench).state is StandingState.EXPIRED
    assert bench.trail("s1")[-1] == "standing-rule:expired"


@pytest.mark.parametrize(
    "stricter",
    [
        Rule(tool="*", risk=Risk.HIGH),
        Rule(tool="*", who=TWO),
        Rule(tool="*", who=(Threshold(group="finance"),)),
        Rule(tool="*", decisions=(DecisionType.REJECT,)),
    ],
    ids=["a higher risk", "more people", "other people", "no approval"],
)
def test_a_policy_that_became_stricter_asks_people_again(bench: Bench, stricter: Rule) -> None:
    remembered(bench)
    bench.register(Policy(rules=(stricter,)))
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None
    assert rule(bench).uses_left == 3


def test_what_the_policy_denies_never_runs(bench: Bench) -> None:
    remembered(bench)
    bench.register(Policy(rules=(Rule(tool="*", effect=Effect.DENY),)))
    turn = bench.propose(("pay", PAYMENT), run_id="r2")
    assert bench.ask(turn) is None
    assert named(bench.execute(turn)) == ["blocked"]


def test_a_tool_whose_schema_changed_is_another_tool(bench: Bench) -> None:
    remembered(bench)
    bench.say("pay", schema={"type": "object"})
    bench.register()
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None


def test_what_people_were_asked_about_before_stays_theirs(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), run_id="r2")
    remembered(bench)
    assert bench.ask(turn) == review


# --- its people ---


def test_a_rule_needs_as_many_people_as_the_call_that_it_replaces(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(2), Threshold(group="finance"))),)))
    assert remembered(bench).state is StandingState.DRAFTED
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None

    def approve_rule(by: str) -> StandingRule:
        return remembering.approve(bench.c.database, "s1", by=by)

    assert approve_rule("rita").state is StandingState.DRAFTED
    with pytest.raises(ForbiddenError):
        approve_rule("tom")
    assert approve_rule("omar").state is StandingState.DRAFTED
    assert approve_rule("faye").state is StandingState.ACTIVE
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r3")) is None
    assert [said.by for said in settled(bench, "r3").calls[0].decisions] == ["rita", "omar", "faye"]
    with pytest.raises(ConflictError, match="is no draft: it is active"):
        approve_rule("olga")


@pytest.mark.parametrize("by", ["tom", "mallory", "dev-bot"])
def test_who_may_not_decide_the_call_does_not_draft(bench: Bench, by: str) -> None:
    with pytest.raises(ForbiddenError):
        remembered(bench, by=by)


def test_in_a_workspace_of_one_its_person_remembers_what_they_asked_for(alone: Bench) -> None:
    assert remembered(alone, by="tom").state is StandingState.ACTIVE
    assert alone.ask(alone.propose(("pay", PAYMENT), run_id="r2")) is None
    # From the second person on nobody decides their own, in advance no more than now.
    alone.hire()
    assert alone.ask(alone.propose(("pay", PAYMENT), run_id="r3")) is not None


def test_a_rule_of_who_is_disabled_speaks_for_nothing(bench: Bench) -> None:
    remembered(bench)
    bench.change_person("rita", disabled=True)
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None


def _loses_its_person(bench: Bench) -> None:
    bench.change_person("rita", disabled=True)


def _is_revoked(bench: Bench) -> None:
    remembering.revoke(bench.c.database, "s1", by="rita")


def _risk_rises(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", risk=Risk.HIGH),)))


@pytest.mark.parametrize("change", [_loses_its_person, _is_revoked, _risk_rises])
def test_what_a_rule_cleared_is_asked_about_again_when_it_stands_no_more_before_the_start(
    bench: Bench, change: Any
) -> None:
    remembered(bench)
    turn = bench.propose(("pay", PAYMENT), run_id="r2")
    bench.ask(turn)
    change(bench)
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []
    again = bench.ask(turn)
    assert again is not None
    bench.decide(again, approve(), by="omar")
    assert named(bench.execute(turn)) == ["executed"]


def test_what_has_run_out_or_been_used_up_meanwhile_keeps_what_it_cleared(bench: Bench) -> None:
    remembered(bench, Terms(uses=1, lasts=HOUR))
    turn = bench.propose(("pay", PAYMENT), run_id="r2")
    bench.ask(turn)
    gate = bench.later(hours=2)
    gate.sweep()
    gate.database.close()
    assert named(bench.execute(turn)) == ["executed"]


@pytest.mark.parametrize(("by", "may"), [("rita", True), ("olga", True), ("omar", False), ("dev-bot", False)])
def test_its_author_or_an_operator_revokes_a_rule(bench: Bench, by: str, may: bool) -> None:
    remembered(bench)
    if not may:
        with pytest.raises(ForbiddenError):
            remembering.revoke(bench.c.database, "s1", by=by)
        return
    assert remembering.revoke(bench.c.database, "s1", by=by).state is StandingState.REVOKED
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None
    with pytest.raises(ConflictError, match="revoked already"):
        remembering.revoke(bench.c.database, "s1", by=by)


def test_a_rule_ends_with_the_values_that_it_was_made_from(bench: Bench) -> None:
    made = remembered(bench)
    with bench.c.database.write() as tx:
        retention.empty(tx, "thread-first", now=bench.c.database.now(tx))
    found = rule(bench)
    assert (found.state, found.equal, found.when) == (StandingState.EXPIRED, {}, None)
    assert made.equal
    assert bench.trail("s1")[-1] == "standing-rule:expired"
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r2")) is not None


# --- what cannot be remembered ---


@pytest.mark.parametrize(
    ("terms", "pointer"),
    [
        (Terms(uses=0, lasts=HOUR), "/uses"),
        (Terms(uses=-1, lasts=HOUR), "/uses"),
        (Terms(uses=1001, lasts=HOUR), "/uses"),
        (Terms(uses=1, lasts=timedelta(0)), "/for"),
        (Terms(uses=1, lasts=-HOUR), "/for"),
        (Terms(uses=1, lasts=timedelta(days=32)), "/for"),
        (Terms(uses=1, lasts=timedelta.max), "/for"),
        (Terms(uses=1, lasts=HOUR, free=("nothing",)), "/any"),
        (Terms(uses=1, lasts=HOUR, when="args."), "/when"),
        (Terms(uses=1, lasts=HOUR, when=""), "/when"),
        (Terms(uses=1, lasts=HOUR, when='person.id == "x"'), "/when"),
        (Terms(uses=1, lasts=HOUR, when="unheard(args)"), "/when"),
    ],
)
def test_terms_that_say_nothing_sensible_are_refused(bench: Bench, terms: Terms, pointer: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        remembered(bench, terms)
    assert {fault.pointer for fault in caught.value.faults} == {pointer}
    with pytest.raises(NotFoundError):
        rule(bench)


@pytest.mark.parametrize(
    "policy",
    [
        Rule(tool="*", risk=Risk.HIGH),
        Rule(tool="*", risk=Risk.CRITICAL),
        Rule(tool="*", decisions=(DecisionType.REJECT, DecisionType.RESPOND)),
        Rule(tool="*", secret=("account",)),
    ],
    ids=["high risk", "critical risk", "no approval", "a secret argument"],
)
def test_what_is_decided_each_time_is_not_remembered(bench: Bench, policy: Rule) -> None:
    bench.register(Policy(rules=(policy,)))
    with pytest.raises(InvalidInputError):
        remembered(bench)


def test_what_became_of_a_call_and_a_plan_are_decided_each_time(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT), run_id="first")
    for kind in (ReviewKind.OUTCOME, ReviewKind.PLAN):
        with bench.c.database.write() as tx:
            tx.execute(update(t.reviews).where(t.reviews.c.id == review.id).values(kind=kind.value))
        with pytest.raises(InvalidInputError, match="decided each time"):
            remembering.draft(bench.c.database, review.id, TERMS, by="rita", rule_id=new_id())


def test_one_call_of_several_is_named(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    for call in (None, "nothing"):
        with pytest.raises(InvalidInputError, match="Name one call"):
            remembering.draft(bench.c.database, review.id, TERMS, by="rita", rule_id="s1", call=call)
    made = remembering.draft(bench.c.database, review.id, TERMS, by="rita", rule_id="s1", call="r1/1/1")
    assert (made.tool, made.requester) == ("send_email", "tom")
    assert made.tool in GATED


def test_rules_are_listed_newest_first_those_in_use_or_all(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    for name in ("s1", "s2", "s3"):
        remembering.draft(bench.c.database, review.id, TERMS, by="rita", rule_id=name)
    remembering.revoke(bench.c.database, "s2", by="rita")
    with bench.c.database.read() as tx:
        assert [each.id for each in standing.page(tx, every=False, limit=9)] == ["s3", "s1"]
        assert [each.id for each in standing.page(tx, every=True, limit=2)] == ["s3", "s2"]
