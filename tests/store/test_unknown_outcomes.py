"""Outcomes that nobody knows: people are asked, and a second attempt needs a word that still counts."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from clearance.errors import CallUncertainError, ConflictError, ForbiddenError, InvalidReviewDecisionError
from clearance.outcome import CallState, Outcome
from clearance.people import Role
from clearance.policy import Effect, Policy, Rule, Threshold
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store import calls, reviews
from clearance.store.database import Database
from tests.rules.small_reviews import approve, edit, reject, respond
from tests.store.bench import LONG, PAYMENT, Bench, Turn, cleared, named, raising

SHORT = 0.2
"""Seconds that a tool of these tests may take, where it is to take too long."""
OUTCOME = "r1/1/0/outcome/1"


@pytest.fixture
def hung(bench: Bench) -> Any:
    """A turn whose payment hangs past its time limit; setting the event lets it end."""
    go_on = threading.Event()
    bench.say("pay", timeout=SHORT)
    bench.register()
    bench.does["pay"] = lambda *_: go_on.wait(LONG) and "paid late"
    yield cleared(bench), go_on
    go_on.set()
    until_idle(bench)


def until_idle(bench: Bench) -> None:
    """Wait until no tool runs in this process."""
    until = time.monotonic() + LONG
    while bench.c.execution.busy() and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert bench.c.execution.busy() == 0


def test_a_tool_past_its_time_limit_is_uncertain_and_people_are_asked(bench: Bench, hung: Any) -> None:
    turn, _ = hung
    found = bench.outcome(turn)
    assert (found.state, found.is_error) == (CallState.UNCERTAIN, True)
    assert "its outcome is unknown" in found.text
    review = bench.review(OUTCOME)
    assert (review.kind, review.status, review.deadline) == (ReviewKind.OUTCOME, ReviewStatus.PENDING, None)
    assert review.calls[0].verdict.rules == ("pay",)
    assert bench.trail("r1/1/0")[-1] == "call:uncertain"
    assert bench.c.execution.overdue() == 1
    assert bench.outcome(turn) == found
    assert len(bench.effects) == 1


def test_a_question_about_an_outcome_blocks_no_message(bench: Bench, hung: Any) -> None:
    turn, _ = hung
    bench.outcome(turn)
    assert bench.run("r1").state is not RunState.WAITING
    with bench.c.database.read() as tx:
        assert reviews.pending(tx, "thread-r1") is None
    assert bench.ask(turn) is None


def test_hung_tools_are_not_waited_for_one_after_the_other(bench: Bench) -> None:
    go_on, timeout = threading.Event(), 2.0
    bench.say("pay", timeout=timeout)
    bench.register()
    bench.does["pay"] = lambda *_: go_on.wait(LONG)
    turn, review = bench.asked(*[("pay", {**PAYMENT, "amount_cents": n}) for n in (1, 2, 3, 4)])
    bench.decide(review, *[approve()] * 4)
    began = time.monotonic()
    assert named(bench.execute(turn)) == ["uncertain"] * 4
    assert time.monotonic() - began < 4 * timeout, "one waited for the other"
    go_on.set()
    until_idle(bench)


def test_a_late_result_closes_the_question(bench: Bench, hung: Any) -> None:
    turn, go_on = hung
    bench.outcome(turn)
    go_on.set()
    until_idle(bench)
    found = bench.outcome(turn)
    assert (found.state, found.text) == (CallState.EXECUTED, "paid late")
    assert bench.review(OUTCOME).status is ReviewStatus.WITHDRAWN
    assert bench.trail("r1/1/0")[-2:] == ["call:uncertain", "call:late"]
    assert late_answers(bench) == [
        '[Clearance: the outcome of the earlier call pay {"account":"A-1","amount_cents":1000} '
        "is known now: paid late]"
    ]


def late_answers(bench: Bench) -> list[str]:
    """Return what the next message of the thread brings in."""
    with bench.c.database.write() as tx:
        return list(calls.late_answers_for(tx, "r-next", thread_id="thread-r1").values())


def settled(bench: Bench, *decisions: Any, by: str = "rita") -> Review:
    """Answer what became of the call."""
    return bench.decide(bench.review(OUTCOME), *decisions, by=by)


def test_a_person_says_that_it_happened(bench: Bench, hung: Any) -> None:
    turn, go_on = hung
    bench.outcome(turn)
    settled(bench, respond(message="the bank says: paid"))
    found = bench.outcome(turn)
    assert (found.state, found.text) == (CallState.RESPONDED, "the bank says: paid")
    assert "the bank says: paid" in late_answers(bench)[0]
    go_on.set()
    until_idle(bench)
    assert bench.outcome(turn) == found
    assert bench.trail("r1/1/0")[-2:] == ["call:responded", "call:late"]


def test_a_person_leaves_it_unknown_for_good(bench: Bench, hung: Any) -> None:
    turn, _ = hung
    bench.outcome(turn)
    settled(bench, reject())
    found = bench.outcome(turn)
    assert found.state is CallState.REJECTED
    assert "whether it happened stays unknown" in found.text
    assert again(bench) is None
    assert len(bench.effects) == 1


def again(bench: Bench) -> Outcome | None:
    """Run the call once more, if people have said so."""
    return bench.c.execution.execute_again("r1/1/0", tools=bench.tools)


def test_a_person_says_that_it_did_not_happen_and_it_runs_once_more_under_the_same_key(
    bench: Bench, hung: Any
) -> None:
    turn, _ = hung
    bench.outcome(turn)
    assert again(bench) is None
    wanted = bench.thread("r1").wanted
    settled(bench, approve())
    assert bench.thread("r1").wanted == wanted + 1
    bench.does["pay"] = lambda *_: "paid"
    found = again(bench)
    assert found is not None
    assert (found.state, found.text) == (CallState.EXECUTED, "paid")
    assert again(bench) is None
    assert [effect.key for effect in bench.effects] == ["r1/1/0", "r1/1/0"]
    assert bench.clearances("r1/1/0") == ["used", "used"]
    row = bench.row("r1/1/0")
    assert row is not None
    assert row.attempt == 2


def test_a_late_first_result_changes_nothing_after_the_second_attempt(bench: Bench, hung: Any) -> None:
    turn, go_on = hung
    bench.outcome(turn)
    settled(bench, approve())
    bench.does["pay"] = lambda *_: "paid"
    again(bench)
    go_on.set()
    until_idle(bench)
    assert bench.outcome(turn).text == "paid"
    assert bench.trail("r1/1/0")[-1] == "call:late"


def _deny(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", effect=Effect.DENY),)))


def _two(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", who=(Threshold(approve=2),)),)))


def _disable(bench: Bench) -> None:
    bench.change_person("rita", disabled=True)


def _other_schema(bench: Bench) -> None:
    bench.say("pay", timeout=SHORT, schema={"type": "object"})
    bench.register()


def _disable_requester(bench: Bench) -> None:
    bench.change_person("tom", disabled=True)


@pytest.mark.parametrize("change", [_deny, _two, _disable, _disable_requester, _other_schema])
def test_a_second_attempt_that_does_not_stand_any_more_is_asked_about_again(
    bench: Bench, hung: Any, change: Callable[[Bench], None]
) -> None:
    turn, _ = hung
    bench.outcome(turn)
    settled(bench, approve())
    change(bench)
    assert again(bench) is None
    assert again(bench) is None
    assert len(bench.effects) == 1
    assert bench.clearances("r1/1/0")[-1] == "void"
    asked = bench.review(f"{OUTCOME}/2")
    assert (asked.kind, asked.status) == (ReviewKind.OUTCOME, ReviewStatus.PENDING)
    bench.decide(asked, respond(message="it did happen"), by="omar")
    assert bench.outcome(turn).text == "it did happen"


def test_what_became_of_a_call_is_not_edited_and_the_question_not_taken_back(bench: Bench, hung: Any) -> None:
    turn, _ = hung
    bench.outcome(turn)
    with pytest.raises(InvalidReviewDecisionError, match="cannot be answered with edit"):
        settled(bench, edit(None, PAYMENT))
    with pytest.raises(ConflictError):
        bench.c.gate.withdraw(OUTCOME, by="tom", reason="x")


def test_what_became_of_a_call_that_nobody_was_asked_about_is_told_by_operators(bench: Bench) -> None:
    go_on = threading.Event()
    bench.say("pay", timeout=SHORT)
    bench.register(Policy(default=Effect.ALLOW))
    bench.does["pay"] = lambda *_: go_on.wait(LONG)
    turn = bench.propose(("pay", PAYMENT))
    assert bench.outcome(turn).state is CallState.UNCERTAIN
    with pytest.raises(ForbiddenError, match="operator"):
        settled(bench, approve(), by="rita")
    settled(bench, approve(), by="olga")
    bench.does["pay"] = lambda *_: "paid"
    found = again(bench)
    assert found is not None
    assert found.state is CallState.EXECUTED
    go_on.set()
    until_idle(bench)


@pytest.mark.parametrize("default", [Effect.ALLOW, Effect.HOLD])
@pytest.mark.parametrize("change", [{"disabled": True}, {"role": Role.REVIEWER}, {"role": Role.VIEWER}])
def test_the_word_for_a_second_attempt_counts_only_while_its_person_may_give_it(
    bench: Bench, default: Effect, change: dict[str, Any]
) -> None:
    go_on = threading.Event()
    bench.say("pay", timeout=SHORT)
    bench.register(Policy(default=Effect.ALLOW))
    bench.does["pay"] = lambda *_: go_on.wait(LONG)
    bench.outcome(bench.propose(("pay", PAYMENT)))
    settled(bench, approve(), by="olga")
    bench.register(Policy(default=default))
    bench.change_person("olga", **change)
    assert again(bench) is None
    assert len(bench.effects) == 1
    assert bench.review(f"{OUTCOME}/2").status is ReviewStatus.PENDING
    go_on.set()
    until_idle(bench)


def test_a_tool_that_only_reads_has_failed_when_it_takes_too_long(bench: Bench) -> None:
    go_on = threading.Event()
    bench.say("read_weather", read_only=True, timeout=SHORT)
    bench.register()
    bench.does["read_weather"] = lambda *_: go_on.wait(LONG)
    found = bench.outcome(bench.propose(("read_weather", {"city": "Oslo"})))
    assert (found.state, found.text) == (CallState.FAILED, "read_weather gave no result within 0.2 s.")
    assert bench.counts()["reviews"] == 0
    go_on.set()
    until_idle(bench)


def test_a_tool_may_say_itself_that_it_does_not_know(bench: Bench) -> None:
    bench.does["pay"] = raising(CallUncertainError("the connection broke"))
    assert bench.outcome(cleared(bench)).state is CallState.UNCERTAIN
    assert bench.review(OUTCOME).status is ReviewStatus.PENDING


# --- a call whose process was lost ---


def lose(bench: Bench, turn: Turn) -> None:
    """Leave the turn's call as a process leaves it that was killed after the start."""
    keeps = Database(bench.url)
    with keeps.write() as tx:
        tx.exec_driver_sql("UPDATE clearances SET status = 'used'")
        moved = calls.move(
            tx,
            "r1/1/0",
            attempt=1,
            frm=(CallState.CLEARED,),
            to=CallState.STARTED,
            values={"worker": "killed-1", "started_at": turn.run.created_at, "due_at": turn.run.created_at},
        )
    keeps.close()
    assert moved


@pytest.mark.parametrize(
    ("says", "expected", "times"),
    [
        ({}, "uncertain", 0),
        ({"idempotent": True}, "executed", 1),
        ({"verify": lambda *_: "it was paid"}, "executed", 0),
        ({"verify": lambda *_: None}, "executed", 1),
        ({"verify": raising(ValueError("no answer"))}, "uncertain", 0),
    ],
)
def test_a_started_call_without_a_process_is_run_again_only_where_that_is_safe(
    bench: Bench, says: dict[str, Any], expected: str, times: int
) -> None:
    bench.say("pay", **says)
    bench.register()
    turn = cleared(bench)
    lose(bench, turn)
    assert named(bench.execute(turn)) == [expected]
    assert len(bench.effects) == times
    assert named(bench.execute(turn)) == [expected]
    assert len(bench.effects) == times
