"""A gated tool runs once, with exactly what was cleared, by the people and rules of today; or not at all."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from clearance import turns
from clearance.errors import FenceLostError, InvalidReviewDecisionError
from clearance.outcome import CallState
from clearance.people import Role
from clearance.policy import DecisionType, Effect, Policy, Predicate, Rule, Threshold
from clearance.review import Answer, ReviewStatus
from clearance.store import runs
from tests.rules.small_reviews import approve, edit, reject, respond
from tests.store.bench import MAIL, PAYMENT, Bench, Turn, in_run, named, reproposed

TWO = Policy(rules=(Rule(tool="*", who=(Threshold(approve=2),)),))


def approved(bench: Bench, *, by: str = "rita") -> Turn:
    """Return a turn whose one payment was approved."""
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve(), by=by)
    return turn


# --- what runs ---


def test_an_approved_call_runs_once_with_what_was_shown(bench: Bench) -> None:
    turn = approved(bench)
    first = bench.outcome(turn)
    assert (first.state, first.text) == (CallState.EXECUTED, "pay done")
    for _ in range(3):
        assert bench.outcome(turn) == first
    assert [(effect.tool, effect.arguments, effect.key) for effect in bench.effects] == [
        ("pay", PAYMENT, "r1/1/0")
    ]
    assert bench.clearances("r1/1/0") == ["used"]
    assert bench.trail("r1/1/0") == ["clearance:minted", "call:started", "call:executed"]


def test_an_edited_call_runs_as_it_was_edited(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    edited = {**PAYMENT, "amount_cents": 900, "memo": None}
    bench.decide(review, edit(None, edited))
    found = bench.outcome(turn)
    assert [effect.arguments for effect in bench.effects] == [edited]
    assert found.arguments == '{"account":"A-1","amount_cents":900,"memo":null}'


def test_an_edit_into_another_tool_runs_that_tool(bench: Bench) -> None:
    turn, review = bench.asked(("send_email", MAIL))
    bench.decide(review, edit(None, PAYMENT, name="pay"))
    assert bench.outcome(turn).tool == "pay"
    assert [effect.tool for effect in bench.effects] == ["pay"]


def test_siblings_end_each_in_its_own_way_and_in_the_order_of_the_message(bench: Bench) -> None:
    bench.register(
        Policy(
            rules=tuple(Rule(tool=name, decisions=tuple(DecisionType)) for name in ("pay", "send_email")),
            default=Effect.ALLOW,
        )
    )
    turn, review = bench.asked(
        ("pay", PAYMENT), ("send_email", MAIL), ("read_weather", {"city": "Oslo"}), ("pay", PAYMENT)
    )
    bench.decide(
        review, approve("r1/1/1"), respond("r1/1/3", "paid by hand"), reject("r1/1/0", message="not now")
    )
    assert named(bench.execute(turn)) == ["rejected", "executed", "executed", "responded"]
    assert sorted(effect.tool for effect in bench.effects) == ["read_weather", "send_email"]
    assert bench.ask(turn) is None


def test_a_read_only_call_runs_at_once_and_is_in_the_ledger(bench: Bench) -> None:
    turn = bench.propose(("read_weather", {"city": "Oslo"}))
    assert named(bench.execute(turn)) == ["executed"]
    assert named(bench.execute(turn)) == ["executed"]
    assert len(bench.effects) == 1
    assert bench.trail("r1/1/0") == ["call:started", "call:executed"]


def test_a_tool_cannot_change_what_is_kept_of_its_arguments(bench: Bench) -> None:
    bench.does["pay"] = lambda arguments, _: arguments.update(account="B-666")
    found = bench.outcome(approved(bench))
    assert found.arguments == '{"account":"A-1","amount_cents":1000}'


# --- what does not run ---


def test_a_call_that_nobody_was_asked_about_does_not_run(bench: Bench) -> None:
    turn = bench.propose(("pay", PAYMENT))
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []
    assert bench.row("r1/1/0") is None


def test_a_call_that_still_waits_does_not_run(bench: Bench) -> None:
    turn, _ = bench.asked(("pay", PAYMENT))
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []


def test_the_clearance_of_another_call_lets_nothing_run(bench: Bench) -> None:
    turn = approved(bench)
    other = reproposed(turn, ("read_weather", {"city": "Oslo"}), ("pay", PAYMENT))
    assert named(bench.execute(other)) == ["ask again", "ask again"]
    assert bench.effects == []
    assert bench.clearances("r1/1/0") == ["open"]


@pytest.mark.parametrize(
    "forged",
    [
        ("pay", {**PAYMENT, "account": "B-666"}),
        ("pay", {**PAYMENT, "amount_cents": 99999}),
        ("pay", '{"account":"A-1","amount_cents":1000.0}'),
        ("send_email", MAIL),
    ],
)
def test_a_call_with_other_arguments_is_blocked(bench: Bench, forged: Any) -> None:
    turn = approved(bench)
    assert named(bench.execute(reproposed(turn, forged))) == ["ask again"]
    assert bench.effects == []


@pytest.mark.parametrize("column", ["fingerprint", "arguments"])
def test_a_row_that_was_changed_from_outside_lets_nothing_run(bench: Bench, column: str) -> None:
    turn = approved(bench)
    forged = {"fingerprint": "0" * 64, "arguments": '{"account":"B-666","amount_cents":1000}'}[column]
    with bench.c.database.write() as tx:
        tx.exec_driver_sql(f"UPDATE reviewed_calls SET {column} = '{forged}'")
        if column == "fingerprint":
            tx.exec_driver_sql(f"UPDATE clearances SET fingerprint = '{forged}'")
    found = bench.execute(turn if column == "fingerprint" else reproposed(turn, ("pay", forged)))
    assert named(found) == ["ask again"]
    assert bench.effects == []


def test_a_rejection_wins_over_every_route(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, reject(message="no"))
    bench.register(Policy(default=Effect.ALLOW))
    assert named(bench.execute(turn)) == ["rejected"]
    assert bench.effects == []


def test_a_condition_that_answers_otherwise_the_second_time_undoes_no_rejection(bench: Bench) -> None:
    answers = iter([True])
    once = Predicate("once", "1", lambda _: next(answers, False))
    bench.register(Policy(rules=(Rule(tool="pay", when=once),), default=Effect.ALLOW))
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, reject())
    assert named(bench.execute(turn)) == ["rejected"]
    assert bench.effects == []


def test_a_condition_that_answers_otherwise_while_a_call_waits_does_not_let_it_run(bench: Bench) -> None:
    answers = iter([True])
    once = Predicate("once", "1", lambda _: next(answers, False))
    bench.register(Policy(rules=(Rule(tool="pay", when=once),), default=Effect.ALLOW))
    turn, _ = bench.asked(("pay", PAYMENT))
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []


# --- the rules and the people of today ---


def test_what_the_policy_denies_by_now_is_blocked(bench: Bench) -> None:
    turn = approved(bench)
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.DENY),)))
    assert named(bench.execute(turn)) == ["blocked"]
    assert bench.clearances("r1/1/0") == ["void"]
    bench.register()
    assert named(bench.execute(turn)) == ["blocked"]
    assert bench.effects == []


def test_a_condition_that_denies_since_the_approval_blocks_the_call(bench: Bench) -> None:
    frozen = threading.Event()
    freeze = Predicate("frozen", "1", lambda _: frozen.is_set())
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.DENY, when=freeze), Rule(tool="pay"))))
    turn = approved(bench)
    frozen.set()
    assert named(bench.execute(turn)) == ["blocked"]
    assert bench.effects == []


def _stricter(bench: Bench) -> None:
    bench.register(TWO)


def _disabled(bench: Bench) -> None:
    bench.change_person("rita", disabled=True)


def _viewer(bench: Bench) -> None:
    bench.change_person("rita", role=Role.VIEWER.value)


def _agent(bench: Bench) -> None:
    bench.change_person("rita", behind="tom")


def _finance(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(group="finance"),)),)))


@pytest.mark.parametrize("change", [_stricter, _disabled, _viewer, _agent, _finance])
def test_an_approval_that_is_not_enough_by_today_s_rules_is_asked_for_again(
    bench: Bench, change: Callable[[Bench], None]
) -> None:
    turn = approved(bench)
    change(bench)
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []
    assert bench.clearances("r1/1/0") == ["void"]
    assert bench.trail("r1/1/0") == ["clearance:minted", "clearance:voided"]
    again = bench.ask(turn)
    assert again is not None
    assert (again.id, again.round) == ("r1/1/2", 2)
    assert bench.review("r1/1/1").status is ReviewStatus.SETTLED
    assert bench.review("r1/1/1").calls[0].state is Answer.INVALIDATED
    if change is _stricter:
        again = bench.decide(again, approve(), by="rita")
    bench.decide(again, approve(), by="faye")
    assert named(bench.execute(turn)) == ["executed"]
    assert len(bench.effects) == 1


@pytest.mark.parametrize("by", ["tom", "dev-bot", "sub-bot"])
def test_nothing_starts_for_somebody_who_is_disabled_and_it_is_asked_about_again(
    bench: Bench, by: str
) -> None:
    turn, review = bench.asked(("pay", PAYMENT), by=by)
    bench.decide(review, approve())
    bench.change_person("tom", disabled=True)
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.clearances("r1/1/0") == ["void"]
    again = bench.ask(turn)
    assert again is not None
    assert (again.id, again.status) == ("r1/1/2", ReviewStatus.PENDING)
    for decision in (approve(), edit(None, {**PAYMENT, "amount_cents": 5})):
        with pytest.raises(InvalidReviewDecisionError, match=r"^tom is disabled here, and nothing starts"):
            bench.decide(again, decision)
    assert bench.effects == []
    bench.change_person("tom", disabled=False)
    bench.decide(again, approve())
    assert named(bench.execute(turn)) == ["executed"]
    assert len(bench.effects) == 1


@pytest.mark.parametrize("by", ["tom", "sub-bot"])
def test_what_the_policy_lets_run_at_once_waits_for_people_where_the_requester_is_disabled(
    bench: Bench, by: str
) -> None:
    bench.register(Policy(default=Effect.ALLOW))
    turn = bench.propose(("pay", PAYMENT), by=by)
    assert bench.ask(turn) is None
    bench.change_person("tom", disabled=True)
    assert named(bench.execute(turn)) == ["ask again"]
    review = bench.ask(turn)
    assert review is not None
    assert named(bench.execute(turn)) == ["ask again"]
    assert bench.effects == []
    bench.change_person("tom", disabled=False)
    bench.decide(review, approve())
    assert named(bench.execute(turn)) == ["executed"]


def test_a_call_for_somebody_who_is_disabled_can_be_rejected(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    bench.change_person("tom", disabled=True)
    bench.decide(review, reject())
    assert named(bench.execute(turn)) == ["rejected"]


def test_two_approvals_stand_where_one_of_the_two_is_enough_by_now(bench: Bench) -> None:
    bench.register(TWO)
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(bench.decide(review, approve(), by="omar"), approve(), by="rita")
    bench.register(Policy(rules=(Rule(tool="pay"),)))
    bench.change_person("omar", disabled=True)
    assert named(bench.execute(turn)) == ["executed"]


def test_an_own_approval_ends_with_the_single_user_days(alone: Bench) -> None:
    turn = approved(alone, by="tom")
    alone.hire()
    assert named(alone.execute(turn)) == ["ask again"]
    again = alone.ask(turn)
    assert again is not None
    alone.decide(again, approve(), by="rita")
    assert named(alone.execute(turn)) == ["executed"]
    assert len(alone.effects) == 1


def test_a_policy_that_lets_the_call_run_by_now_still_needs_the_stored_approval(bench: Bench) -> None:
    waiting, _ = bench.asked(("pay", PAYMENT), run_id="waiting")
    turn = approved(bench)
    bench.register(Policy(default=Effect.ALLOW))
    assert named(bench.execute(waiting)) == ["ask again"]
    assert named(bench.execute(turn)) == ["executed"]
    assert [effect.key for effect in bench.effects] == ["r1/1/0"]


def test_a_disabled_person_s_approval_matters_not_where_the_policy_asks_nobody_by_now(bench: Bench) -> None:
    turn = approved(bench)
    bench.change_person("rita", disabled=True)
    bench.register(Policy(default=Effect.ALLOW))
    assert named(bench.execute(turn)) == ["executed"]


def test_a_process_that_lacks_the_condition_does_not_run_the_call(bench: Bench) -> None:
    never = Predicate("never", "1", lambda _: False)
    bench.register(Policy(rules=(Rule(tool="pay", when=never),), default=Effect.ALLOW))
    turn = bench.propose(("pay", PAYMENT))
    elsewhere = Bench(bench.url, bench.home)
    try:
        assert named(elsewhere.execute(turn)) == ["ask again"]
        assert elsewhere.effects == []
    finally:
        elsewhere.close()
    assert named(bench.execute(turn)) == ["executed"]


# --- one clearance, one start ---


def test_the_database_keeps_no_second_open_clearance_of_a_call(bench: Bench) -> None:
    approved(bench)
    with pytest.raises(Exception, match=r"(?i)unique"), bench.c.database.write() as tx:
        tx.exec_driver_sql(
            "INSERT INTO clearances SELECT 'second', key, review_id, fingerprint, attempt, status, "
            "minted_at, used_at FROM clearances"
        )


def test_many_who_execute_at_once_start_the_call_once(bench: Bench) -> None:
    turn = approved(bench)
    bench.does["pay"] = lambda *_: threading.Event().wait(0.05)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(named(bench.execute(turn)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["executed"]] * 8
    assert len(bench.effects) == 1


def test_a_segment_that_was_taken_over_starts_nothing(bench: Bench) -> None:
    turn = approved(bench)
    with bench.c.database.write() as tx:
        claimed = runs.claim(tx, "thread-r1", owner=None)
    assert claimed is not None
    with pytest.raises(FenceLostError):
        bench.execute(in_run(turn, turn.run, fence=claimed.fence - 1), fence=claimed.fence - 1)
    assert bench.effects == []
    assert named(bench.execute(turn, fence=claimed.fence)) == ["executed"]


def test_a_run_of_a_worker_is_executed_under_its_fence(bench: Bench) -> None:
    run = turns.start(bench.c.ledger, "t", "pay", run_id="w", program="chat", by="tom")
    claimed = turns.claim(bench.c.ledger, run.thread_id, owner=None)
    assert claimed is not None
    turn = in_run(bench.propose(("pay", PAYMENT)), run, fence=claimed.fence)
    review = bench.ask(turn)
    assert review is not None
    assert not turns.finish(bench.c.ledger, claimed, answer=None)
    bench.decide(review, approve())
    again = turns.claim(bench.c.ledger, run.thread_id, owner=None)
    assert again is not None
    assert named(bench.execute(turn, fence=again.fence)) == ["executed"]
    turns.finish(bench.c.ledger, again, answer="paid")
    assert bench.run("w").answer == "paid"
