"""Backup and restore: nothing is lost, and a used clearance never comes back to life."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from clearance.errors import ReviewConflictError
from clearance.outcome import CallState
from clearance.people import Person, Role
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store import reviews
from tests.journeys.front import APPROVE, Front
from tests.journeys.invariants import check_outcomes, check_trail
from tests.journeys.program import PERSON, Stage
from tests.store.office import (
    THREAD,
    Office,
    Stop,
    while_cleared,
    while_cleared_again,
    while_held,
    while_started,
    while_uncertain,
)
from tests.ways_in.desk import TWO_PEOPLE, Desk, error

STOPS = [while_held, while_cleared, while_started, while_uncertain, while_cleared_again]
every_stage = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A workspace of the test's own."""
    return Office(tmp_path / "office")


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "backup"


@pytest.fixture
def restore(office: Office, backup: Path) -> Callable[[Stop], tuple[Office, Review]]:
    """A call that backs up at a stage, lets the call run to its end, and restores elsewhere.

    It returns the restored office, and the review that had been asked before the backup.
    """

    def made(stop: Stop) -> tuple[Office, Review]:
        review = stop(office, lambda: office.backup(backup))
        return office.restored(backup), review

    return made


Restore = Callable[[Stop], tuple[Office, Review]]


# --- a call that was not at its end ---


@every_stage
def test_nothing_of_a_restored_workspace_runs_by_itself(restore: Restore, stop: Stop) -> None:
    office, review = restore(stop)
    office.stage.release("a")
    with office.worker(), office.front() as front:
        assert front.say("other", "send b") == "send did b"
        front.wait_until_idle(THREAD)
        assert [line.split()[:2] for line in office.stage.effects()] == [["send", "b"]]
        assert front.calls(review.run_id)[0].state is CallState.UNCERTAIN


@every_stage
def test_people_are_asked_about_exactly_what_may_have_happened(restore: Restore, stop: Stop) -> None:
    office, review = restore(stop)
    with office.front() as front:
        [question] = front.open_outcomes(THREAD)
        [asked], [now] = review.calls, question.calls
        assert question.id != review.id
        assert (now.key, now.tool, now.arguments) == (asked.key, asked.tool, asked.arguments)
        assert (now.fingerprint, now.verdict.who) == (asked.fingerprint, asked.verdict.who)
        assert not front.run(review.run_id).is_open


@every_stage
def test_a_review_from_before_the_backup_decides_nothing_any_more(restore: Restore, stop: Stop) -> None:
    office, review = restore(stop)
    with office.front() as front:
        [question] = front.open_outcomes(THREAD)
        for version in (review.version, review.version + 1):
            with pytest.raises(ReviewConflictError):
                front.opened.gate.decide(review.id, [APPROVE], by=PERSON, version=version)
        assert front.open_outcomes(THREAD) == [question]


@every_stage
def test_an_approved_call_runs_once_with_a_new_clearance(restore: Restore, stop: Stop) -> None:
    office, review = restore(stop)
    office.stage.release("a")
    with office.worker(), office.front() as front:
        [question] = front.open_outcomes(THREAD)
        front.decide(question)
        front.wait_until_first_call_is(CallState.EXECUTED, review.run_id)
        [row] = front.calls(review.run_id)
        assert office.stage.effects() == [f"{row.tool} a {row.key}"]
        assert "did a" in front.say(THREAD, "send b")
        assert len(office.stage.effects()) == 2


@every_stage
def test_the_thread_takes_the_next_message_with_the_question_open(restore: Restore, stop: Stop) -> None:
    office, _ = restore(stop)
    with office.worker(), office.front() as front:
        assert front.say(THREAD, "send b").endswith("send did b")
        assert len(front.open_outcomes(THREAD)) == 1


@every_stage
def test_the_trail_of_a_restored_workspace_tells_all_of_it_and_verifies(restore: Restore, stop: Stop) -> None:
    office, _ = restore(stop)
    with office.worker(), office.front() as front:
        front.say(THREAD, "send b")
        front.wait_until_idle(THREAD)
        rows = [row for run in front.runs() for row in front.calls(run.id)]
        check_outcomes(rows, front.reviews(THREAD))
        check_trail(front, rows=rows, asked=front.reviews(THREAD))
    report = office.desk.json("audit", "verify")
    assert (report["ok"], report["authenticated"]) == (True, True)
    kinds = [entry["kind"] for entry in office.desk.json("audit", "list", "--limit", "1000")]
    assert "workspace:restored" in kinds


@every_stage
def test_the_workspace_that_was_backed_up_goes_on(office: Office, backup: Path, stop: Stop) -> None:
    stop(office, lambda: office.backup(backup))
    with office.front() as front:
        rows = [row for run in front.runs() for row in front.calls(run.id)]
        assert [row.state for row in rows] == [CallState.EXECUTED]
        assert office.stage.effects() == [f"{row.tool} a {row.key}" for row in rows]


# --- a call at its end, and what no call is about ---


def test_what_was_executed_stays_executed_and_is_not_asked_about(office: Office, backup: Path) -> None:
    review = while_held(office, lambda: None)
    office.backup(backup)
    other = office.restored(backup)
    with other.worker(), other.front() as front:
        assert front.calls(review.run_id)[0].state is CallState.EXECUTED
        assert front.run(review.run_id).state is RunState.DONE
        assert front.reviews(THREAD) == [front.reviews(THREAD)[0]]
        assert front.say(THREAD, "send b") == "send did b"
        assert len(other.stage.effects()) == 1
        assert [message.content for message in front.messages(THREAD)][:1] == ["send a"]


def test_a_run_without_calls_has_ended(office: Office, backup: Path) -> None:
    with office.front() as front:
        run_id = front.begin(THREAD, "send a")
    office.backup(backup)
    assert office.desk.json("runs")["runs"][0]["state"] == "queued"
    other = Office(office.desk.home.with_name("restored"))
    assert other.desk.json("restore", str(backup)) == {"uncertain_calls": 0, "ended_runs": 1}
    with other.worker(), other.front() as front:
        assert front.run(run_id).state is RunState.FAILED
        assert front.say(THREAD, "look b") == "look did b"
        assert [line.split()[:2] for line in other.stage.effects()] == [["look", "b"]]


def test_an_edit_that_was_not_yet_enough_is_what_people_are_asked_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    review = desk.hold(("pay", '{"amount":1}'), policy=TWO_PEOPLE)
    desk.add(Person(id="rita", name="Rita", role=Role.REVIEWER))
    arguments = tmp_path / "arguments.json"
    arguments.write_text('{"amount": 2}')
    assert desk.run("edit", review.id, "--args", str(arguments), person="rita").exit_code == 0
    desk.json("backup", str(tmp_path / "backup"))
    other = Desk(tmp_path / "other")
    other.json("restore", str(tmp_path / "backup"))
    [question] = other.json("inbox")["reviews"]
    [call] = question["calls"]
    assert (call["args"], call["approvals"][0]["need"]) == ({"amount": 2}, 2)


def test_calls_of_one_message_are_asked_about_one_by_one(office: Office, backup: Path) -> None:
    with office.worker(), office.front() as front:
        front.wait_until_parked(front.begin(THREAD, "send a, send b"))
        office.backup(backup)
    other = office.restored(backup)
    with other.worker(), other.front() as front:
        first, second = sorted(front.open_outcomes(THREAD), key=lambda review: review.id)
        front.decide(first, {"type": "respond", "message": "it was sent"})
        front.decide(second)
        front.wait_until_first_call_is(CallState.RESPONDED, first.run_id)
        answer = front.say(THREAD, "look c")
        assert "it was sent" in answer
        assert [line.split()[:2] for line in other.stage.effects()] == [["send", "b"], ["look", "c"]]


# --- the copy itself ---


def test_a_backup_is_whole_while_a_worker_writes(office: Office, backup: Path) -> None:
    enough = threading.Event()

    def talk() -> None:
        with office.front() as front:
            while not enough.is_set():
                front.say(THREAD, "look a, look b")

    with office.worker():
        talking = threading.Thread(target=talk)
        talking.start()
        for number in range(3):
            office.backup(backup / str(number))
        enough.set()
        talking.join()
    for number in range(3):
        other = office.restored(backup / str(number), name=f"restored-{number}")
        for name in ("clearance.db", "checkpoints.db"):
            with closing(sqlite3.connect(other.desk.home / name)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        other.seal()
        assert other.desk.json("audit", "verify")["ok"]
        with other.worker(), other.front() as front:
            assert front.say(THREAD, "look c") == "look did c"


def test_checkpoints_that_are_ahead_of_the_database_shut_nobody_out(office: Office, backup: Path) -> None:
    while_held(office, lambda: None)
    office.backup(backup)
    with closing(sqlite3.connect(backup / "checkpoints.db")) as connection, connection:
        assert connection.execute("UPDATE fences SET fence = fence + 100").rowcount == 1
    other = office.restored(backup)
    with other.worker(), other.front() as front:
        assert front.say(THREAD, "send b") == "send did b"


def test_a_thread_that_was_owned_at_the_backup_is_free(office: Office, backup: Path) -> None:
    while_started(office, lambda: office.backup(backup))
    other = office.restored(backup)
    with other.front() as front, front.opened.database.read() as tx:
        assert reviews.pending(tx, THREAD) is None
        assert front.is_idle(THREAD) or not front.opened.database.path  # owned by nobody
