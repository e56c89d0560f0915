"""Tools that kill their process, hang, return far too much: the model gets one result, the thread goes on."""

import json

from clearance.audit import AuditKind, Entry
from clearance.outcome import CallState
from clearance.results import MODEL_LIMIT
from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store import calls
from clearance.store.trail import trail
from tests.journeys.front import Front
from tests.journeys.invariants import check
from tests.journeys.processes import Processes, until
from tests.journeys.program import LARGE, Stage, work


def kinds(front: Front, subject: str) -> list[str]:
    """Return what the trail tells of a subject."""
    front.opened.worker.notary.seal_now()  # type: ignore[union-attr]
    entries = trail(front.opened.database).entries
    return [entry.kind for entry in entries if isinstance(entry, Entry) and entry.subject == subject]


def test_a_tool_that_ends_its_process_is_uncertain_and_another_worker_goes_on(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage)
    run_id = front.begin("t1", "quit a, send b")
    front.decide(front.wait_until_pending(run_id))
    until(lambda: first.exitcode is not None)
    assert first.exitcode == 3
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    quitted, sent = front.calls(run_id)
    assert quitted.state is CallState.UNCERTAIN
    assert sent.state in (CallState.EXECUTED, CallState.UNCERTAIN), "it ran beside it"
    assert front.say("t1", "send c") == "send did c"
    check(front)


def test_a_tool_past_its_time_is_uncertain_and_the_thread_goes_on(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "hang a")
    assert "its outcome is unknown" in (front.bring_to_end(run_id).answer or "")
    [row] = front.calls(run_id)
    assert row.state is CallState.UNCERTAIN
    assert len(front.open_outcomes("t1")) == 1
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_what_a_tool_returns_late_answers_the_question_and_enters_with_the_next_message(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "hang a")
    front.bring_to_end(run_id)
    [question] = front.open_outcomes("t1")
    stage.release("a")
    front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    assert front.open_outcomes("t1") == []
    withdrawn = next(review for review in front.reviews("t1") if review.id == question.id)
    assert withdrawn.status is ReviewStatus.WITHDRAWN
    answer = front.say("t1", "send b")
    assert "the outcome of the earlier call hang" in answer
    assert "hang did a" in answer
    assert kinds(front, f"{run_id}/1/0")[-3:] == [
        AuditKind.CALL_STARTED,
        AuditKind.CALL_UNCERTAIN,
        AuditKind.CALL_LATE,
    ]
    check(front)


def test_a_result_that_comes_after_a_person_gave_one_changes_nothing(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "hang a")
    front.bring_to_end(run_id)
    [question] = front.open_outcomes("t1")
    front.decide(question, {"type": "respond", "message": "it was done at noon"})
    stage.release("a")
    until(lambda: AuditKind.CALL_LATE in kinds(front, f"{run_id}/1/0"))
    [row] = front.calls(run_id)
    assert row.state is CallState.RESPONDED
    answer = front.say("t1", "send b")
    assert "it was done at noon" in answer
    assert "hang did a" not in answer
    check(front)


def test_a_tool_that_only_reads_has_failed_when_its_time_is_over(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    answer = front.say("t1", "peek a")
    assert "gave no result within" in answer
    [row] = front.calls(front.runs()[0].id)
    assert row.state is CallState.FAILED
    assert front.open_outcomes("t1") == []
    stage.release("a")
    until(lambda: AuditKind.CALL_LATE in kinds(front, row.key))
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_of_a_result_of_5_mb_the_model_gets_a_part_and_all_of_it_is_kept(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    answer = front.say("t1", "pour a")
    assert len(answer.encode()) <= MODEL_LIMIT
    assert f"{LARGE} in all" in answer
    [row] = front.calls(front.runs()[0].id)
    assert row.artifact is not None
    with front.opened.database.read() as tx:
        kept = calls.artifact(tx, row.artifact)
    assert kept == b"x" * LARGE
    assert max(len(json.dumps(m.content)) for m in front.messages("t1")) < 2 * MODEL_LIMIT
    check(front)


def test_more_tools_than_segments_may_hang_and_the_worker_goes_on(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    hanging = [front.begin(f"t{n}", "hang a") for n in range(8)]
    for run_id in hanging:
        front.decide(front.wait_until_pending(run_id))
    for run_id in hanging:
        front.wait_until_ended(run_id)
        assert front.run(run_id).state is RunState.DONE
    assert front.say("t9", "send b") == "send did b"
    stage.release("a")
    for run_id in hanging:
        front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    check(front)
