"""What people say about a call whose outcome is unknown, and how its thread learns of it."""

import pytest

from clearance.outcome import CallState
from clearance.review import Review, ReviewStatus
from clearance.run import RunState
from clearance.store import calls
from tests.journeys.front import APPROVE, REJECT, Front
from tests.journeys.invariants import check
from tests.journeys.processes import Processes, until, was_killed
from tests.journeys.program import Stage, work

pytestmark = pytest.mark.sqlite_by_day(
    but=(
        "test_a_second_attempt_runs_beside_a_turn_that_waits_for_people",
        "test_an_answer_is_not_lost_with_a_turn_that_fails",
        "in-take-again",
    )
)

# Where the second attempt of a call may be cut off, and whether anybody knows then what became of it.
SECOND = {
    "in-take-again": True,
    "taken": False,
    "tool-ran": False,
    "in-keep": False,
    "outcome-kept": True,
}


@pytest.fixture
def question(stage: Stage, processes: Processes, front: Front) -> Review:
    """The review that asks about a call whose process was killed; its turn has ended, a worker lives."""
    return uncertain(stage, processes, front, place="tool-ran")


def uncertain(stage: Stage, processes: Processes, front: Front, *, place: str) -> Review:
    """Bring about a call whose outcome is unknown, and return the question about it."""
    first = processes.start(work, stage, f"kill {place}")
    run_id = front.begin("t1", "send a")
    front.decide(front.wait_until_pending(run_id))
    until(lambda: was_killed(first))
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert "its outcome is unknown" in (front.run(run_id).answer or "")
    [asked] = front.open_outcomes("t1")
    return asked


def test_an_open_question_blocks_no_message(front: Front, question: Review) -> None:
    assert front.say("t1", "send b") == "send did b"
    assert front.open_outcomes("t1") == [question]
    check(front)


def test_who_knows_the_result_gives_it_and_the_thread_learns_it(front: Front, question: Review) -> None:
    front.decide(question, {"type": "respond", "message": "it was sent at noon"})
    [call] = question.calls
    [row] = front.calls(question.run_id)
    assert row.state is CallState.RESPONDED
    answer = front.say("t1", "send b")
    assert "the outcome of the earlier call send" in answer
    assert "it was sent at noon" in answer
    assert answer.endswith(" / send did b")
    assert front.say("t1", "send c") == "send did c", "it is told once"
    assert [line for line in front.stage.effects() if line.endswith(call.key)] == [f"send a {call.key}"]
    check(front)


def test_a_call_that_did_not_happen_is_run_once_more_with_a_clearance_of_its_own(
    stage: Stage, processes: Processes, front: Front
) -> None:
    question = uncertain(stage, processes, front, place="taken")
    [call] = question.calls
    assert stage.effects() == []
    front.decide(question, APPROVE)
    front.wait_until_first_call_is(CallState.EXECUTED, question.run_id)
    assert front.calls(question.run_id)[0].attempt == 2
    assert stage.effects() == [f"send a {call.key}"], "the same idempotency key"
    assert "send did a" in front.say("t1", "send b")
    check(front)


def test_a_second_attempt_runs_though_nobody_sends_a_message(front: Front, question: Review) -> None:
    front.decide(question, APPROVE)
    until(lambda: len(front.stage.effects()) == 2)
    front.wait_until_first_call_is(CallState.EXECUTED, question.run_id)
    check(front)


def test_a_second_attempt_runs_beside_a_turn_that_waits_for_people(front: Front, question: Review) -> None:
    run_id = front.begin("t1", "send b")
    waiting = front.wait_until_parked(run_id)
    front.decide(question, APPROVE)
    front.wait_until_first_call_is(CallState.EXECUTED, question.run_id)
    front.wait_until_idle("t1")
    assert front.pending_of(run_id) == waiting
    assert front.bring_to_end(run_id).answer == "send did b"
    assert "send did a" in front.say("t1", "send c"), "told with the next message"
    check(front)


def test_a_dropped_call_never_runs_again_and_the_thread_learns_it(front: Front, question: Review) -> None:
    front.decide(question, REJECT)
    [row] = front.calls(question.run_id)
    assert row.state is CallState.REJECTED
    assert "is not to be run again" in front.say("t1", "send b")
    assert len(front.stage.effects()) == 2
    check(front)


def test_an_answer_is_not_lost_with_a_turn_that_fails(front: Front, question: Review) -> None:
    front.decide(question, {"type": "respond", "message": "it was sent at noon"})
    failed = front.wait_until_ended(front.begin("t1", "boom"))
    assert failed.state is RunState.FAILED
    assert "it was sent at noon" in front.say("t1", "send b")
    assert front.say("t1", "send c") == "send did c", "it is told once"
    check(front)


def test_an_answer_that_a_failed_turn_has_told_is_not_told_again(front: Front, question: Review) -> None:
    front.decide(question, {"type": "respond", "message": "it was sent at noon"})
    failed = front.bring_to_end(front.begin("t1", "send b | boom"))
    assert failed.state is RunState.FAILED
    assert front.say("t1", "send c") == "send did c"
    told = [m for m in front.messages("t1") if "it was sent at noon" in str(m.content)]
    assert len(told) == 1
    check(front)


@pytest.mark.parametrize("place", SECOND)
def test_a_second_attempt_may_be_cut_off_like_the_first(
    stage: Stage, processes: Processes, front: Front, place: str
) -> None:
    question = uncertain(stage, processes, front, place="taken")
    for process in processes.living():
        process.kill()
    front.decide(question, APPROVE)
    second = processes.start(work, stage, f"kill {place}")
    until(lambda: was_killed(second))
    processes.start(work, stage)
    front.wait_until_idle("t1")
    [row] = front.calls(question.run_id)
    assert row.attempt == 2
    if SECOND[place]:
        assert row.state is CallState.EXECUTED
        assert front.open_outcomes("t1") == []
    else:
        assert row.state is CallState.UNCERTAIN
        [again] = front.open_outcomes("t1")
        assert again.id != question.id
        front.decide(again, {"type": "respond", "message": "it was sent at noon"})
    assert len(stage.effects()) == (0 if place == "taken" else 1)
    assert front.say("t1", "send b").endswith("send did b")
    check(front)


def test_a_second_attempt_needs_its_own_clearance_and_uses_it_up(front: Front, question: Review) -> None:
    front.decide(question, APPROVE)
    front.wait_until_first_call_is(CallState.EXECUTED, question.run_id)
    with front.opened.database.read() as tx:
        assert calls.open_second_attempts(tx, "t1") == []
    assert front.say("t1", "send b").endswith("send did b")
    assert len(front.stage.effects()) == 3
    assert [review.status for review in front.reviews("t1")] == [ReviewStatus.SETTLED] * 3
    check(front)
