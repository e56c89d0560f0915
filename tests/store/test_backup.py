"""Backup and restore: nothing is lost, and a used clearance never comes back to life."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from clearance.apps.chat import ReviewedChat
from clearance.backup import Restored, mark_restored
from clearance.errors import ReviewConflictError
from clearance.outcome import CallState
from clearance.people import Person, Role
from clearance.review import Review
from clearance.run import RunState
from clearance.store import runs
from tests.journeys.front import APPROVE, Front
from tests.journeys.invariants import check_outcomes, check_trail
from tests.journeys.processes import until
from tests.journeys.program import PERSON, Stage, agent_of
from tests.store.office import (
    THREAD,
    Office,
    while_cleared,
    while_cleared_again,
    while_held,
    while_started,
    while_uncertain,
)
from tests.ways_in.desk import TWO_PEOPLE, Desk, error

STOPS = [while_held, while_cleared, while_started, while_uncertain, while_cleared_again]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A workspace of the test's own."""
    return Office(tmp_path / "office")


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Where the backup goes."""
    return tmp_path / "backup"


@dataclass(frozen=True)
class Copied:
    """A workspace that was backed up at a stage of its call, after which the call came to its end."""

    office: Office
    backup: Path
    review: Review


@pytest.fixture(scope="module", params=STOPS, ids=lambda stop: stop.__name__)
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copied:
    """A backup at every stage of a call, which no test changes."""
    folder = tmp_path_factory.mktemp("copied")
    office = Office(folder / "office")
    review = request.param(office, lambda: office.backup(folder / "backup"))
    return Copied(office, folder / "backup", review)


@pytest.fixture
def review(copied: Copied) -> Review:
    """What had been asked before the backup."""
    return copied.review


@pytest.fixture
def restored(copied: Copied, tmp_path: Path) -> Office:
    """The backup as a workspace in another folder."""
    return Office.restored(copied.backup, tmp_path / "restored")


# --- a call that was not at its end ---


def test_nothing_of_a_restored_workspace_runs_by_itself(restored: Office, review: Review) -> None:
    restored.stage.release("a")
    with restored.worker(), restored.front() as front:
        assert front.say("other", "send b") == "send did b"
        front.wait_until_idle(THREAD)
        assert [line.split()[:2] for line in restored.stage.effects()] == [["send", "b"]]
        assert front.calls(review.run_id)[0].state is CallState.UNCERTAIN


def test_people_are_asked_about_exactly_what_may_have_happened(restored: Office, review: Review) -> None:
    with restored.front() as front:
        [question] = front.open_outcomes(THREAD)
        [asked], [now] = review.calls, question.calls
        assert question.id != review.id
        assert (now.key, now.tool, now.arguments) == (asked.key, asked.tool, asked.arguments)
        assert (now.fingerprint, now.verdict.who) == (asked.fingerprint, asked.verdict.who)
        assert not front.run(review.run_id).is_open


def test_a_review_from_before_the_backup_decides_nothing_any_more(restored: Office, review: Review) -> None:
    with restored.front() as front:
        [question] = front.open_outcomes(THREAD)
        for version in (review.version, review.version + 1):
            with pytest.raises(ReviewConflictError):
                front.opened.gate.decide(review.id, [APPROVE], by=PERSON, version=version)
        assert front.open_outcomes(THREAD) == [question]


def test_an_approved_call_runs_once_with_a_new_clearance(restored: Office, review: Review) -> None:
    restored.stage.release("a")
    with restored.worker(), restored.front() as front:
        [question] = front.open_outcomes(THREAD)
        front.decide(question)
        front.wait_until_first_call_is(CallState.EXECUTED, review.run_id)
        [row] = front.calls(review.run_id)
        assert restored.stage.effects() == [f"{row.tool} a {row.key}"]
        assert "did a" in front.say(THREAD, "send b")
        assert len(restored.stage.effects()) == 2


def test_the_thread_takes_the_next_message_with_the_question_open(restored: Office) -> None:
    with restored.worker(), restored.front() as front:
        assert front.say(THREAD, "send b").endswith("send did b")
        assert len(front.open_outcomes(THREAD)) == 1


def test_the_trail_of_a_restored_workspace_tells_all_of_it_and_verifies(restored: Office) -> None:
    with restored.worker(), restored.front() as front:
        front.say(THREAD, "send b")
        front.wait_until_idle(THREAD)
        rows = [row for run in front.runs() for row in front.calls(run.id)]
        check_outcomes(rows, front.reviews(THREAD))
        check_trail(front, rows=rows, asked=front.reviews(THREAD))
    report = restored.desk.json("audit", "verify")
    assert (report["ok"], report["authenticated"]) == (True, True)
    kinds = [entry["kind"] for entry in restored.desk.json("audit", "list", "--limit", "1000")]
    assert "workspace:restored" in kinds


def test_the_workspace_that_was_backed_up_goes_on(copied: Copied) -> None:
    with copied.office.front() as front:
        rows = [row for run in front.runs() for row in front.calls(run.id)]
        assert [row.state for row in rows] == [CallState.EXECUTED]
        assert copied.office.stage.effects() == [f"{row.tool} a {row.key}" for row in rows]


# --- a call at its end, and what no call is about ---


def test_what_was_executed_stays_executed_and_is_not_asked_about(
    office: Office, backup: Path, tmp_path: Path
) -> None:
    review = while_held(office, lambda: None)
    office.backup(backup)
    other = Office.restored(backup, tmp_path / "restored")
    with other.worker(), other.front() as front:
        assert front.calls(review.run_id)[0].state is CallState.EXECUTED
        assert front.run(review.run_id).state is RunState.DONE
        assert front.reviews(THREAD) == [front.reviews(THREAD)[0]]
        assert front.say(THREAD, "send b") == "send did b"
        assert len(other.stage.effects()) == 1
        assert [message.content for message in front.messages(THREAD)][:1] == ["send a"]


def test_a_run_without_calls_has_ended(office: Office, backup: Path, tmp_path: Path) -> None:
    with office.front() as front:
        run_id = front.begin(THREAD, "send a")
    office.backup(backup)
    assert office.desk.json("runs")["runs"][0]["state"] == "queued"
    other = Office(tmp_path / "restored")
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


def test_calls_of_one_message_are_asked_about_one_by_one(
    office: Office, backup: Path, tmp_path: Path
) -> None:
    with office.worker(), office.front() as front:
        front.wait_until_parked(front.begin(THREAD, "send a, send b"))
        office.backup(backup)
    other = Office.restored(backup, tmp_path / "restored")
    with other.worker(), other.front() as front:
        first, second = sorted(front.open_outcomes(THREAD), key=lambda review: review.id)
        front.decide(first, {"type": "respond", "message": "it was sent"})
        front.decide(second)
        front.wait_until_first_call_is(CallState.RESPONDED, first.run_id)
        answer = front.say(THREAD, "look c")
        assert "it was sent" in answer
        assert [line.split()[:2] for line in other.stage.effects()] == [["send", "b"], ["look", "c"]]


# --- the copy itself ---


def test_a_backup_is_whole_while_a_worker_writes(office: Office, backup: Path, tmp_path: Path) -> None:
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
        other = Office.restored(backup / str(number), tmp_path / f"restored-{number}")
        for name in ("clearance.db", "checkpoints.db"):
            with closing(sqlite3.connect(other.desk.home / name)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        other.seal()
        assert other.desk.json("audit", "verify")["ok"]
        with other.worker(), other.front() as front:
            assert front.say(THREAD, "look c") == "look did c"


def test_checkpoints_that_are_ahead_of_the_database_shut_nobody_out(
    office: Office, backup: Path, tmp_path: Path
) -> None:
    while_held(office, lambda: None)
    office.backup(backup)
    with closing(sqlite3.connect(backup / "checkpoints.db")) as connection, connection:
        assert connection.execute("UPDATE fences SET fence = fence + 100").rowcount == 1
    other = Office.restored(backup, tmp_path / "restored")
    with other.worker(), other.front() as front:
        assert front.say(THREAD, "send b") == "send did b"


def test_a_thread_that_was_owned_at_the_backup_has_no_owner(
    office: Office, backup: Path, tmp_path: Path
) -> None:
    while_started(office, lambda: office.backup(backup))
    with closing(sqlite3.connect(backup / "clearance.db")) as connection:
        assert connection.execute("SELECT owner FROM threads").fetchall() != [(None,)]
    other = Office.restored(backup, tmp_path / "restored")
    with other.front() as front, front.opened.database.read() as tx:
        assert runs.owners(tx) == []


def test_a_backup_holds_no_private_key(office: Office, backup: Path) -> None:
    office.stage.open().close()
    office.backup(backup)
    assert sorted(file.name for file in backup.iterdir()) == ["clearance.db", "notary.pub"]
    assert b"PRIVATE" not in (backup / "notary.pub").read_bytes()


def test_a_backup_can_be_read_where_nothing_can_be_written(copied: Copied) -> None:
    for name in ("clearance.db", "checkpoints.db"):
        read = f"{(copied.backup / name).as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(read, uri=True)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# --- what is refused ---


def test_a_backup_into_a_folder_with_something_in_it_is_refused(office: Office, backup: Path) -> None:
    office.stage.open().close()
    backup.mkdir()
    (backup / "notes").write_text("mine")
    refused = office.desk.run("backup", str(backup), "--json")
    assert (refused.exit_code, error(refused)["error"]) == (12, "settings")
    assert [file.name for file in backup.iterdir()] == ["notes"]


def test_a_backup_onto_a_file_is_refused(office: Office, backup: Path) -> None:
    office.stage.open().close()
    backup.write_text("mine")
    assert office.desk.run("backup", str(backup)).exit_code == 12
    assert backup.read_text() == "mine"


NO_BACKUP = {
    "nothing there": lambda folder: shutil.rmtree(folder),
    "an empty folder": lambda folder: [file.unlink() for file in folder.iterdir()],
    "checkpoints alone": lambda folder: (folder / "clearance.db").unlink(),
    "a backup that was cut off": lambda folder: (folder / "clearance.db").rename(
        folder / "clearance.db.part"
    ),
    "an empty file": lambda folder: (folder / "clearance.db").write_bytes(b""),
    "no database": lambda folder: (folder / "clearance.db").write_text("hello " * 1000),
    "another database": lambda folder: shutil.copy(folder / "checkpoints.db", folder / "clearance.db"),
    "unreadable keys": lambda folder: (folder / "notary.pub").write_text("hello"),
}


@pytest.mark.parametrize("spoil", NO_BACKUP.values(), ids=NO_BACKUP)
def test_what_is_no_backup_makes_no_workspace(
    office: Office, backup: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    with office.front():
        office.backup(backup)
    spoil(backup)
    refused = Desk(tmp_path / "restored").run("restore", str(backup), "--json")
    assert refused.exit_code in (2, 12)
    assert error(refused)["error"] in ("invalid_input", "settings")
    assert not list((tmp_path / "restored").glob("*"))
    assert not list((tmp_path / "restored").glob(".restoring-*"))


@pytest.mark.parametrize("name", ["clearance.db", "clearance.db-wal", "checkpoints.db"])
def test_a_restore_over_a_workspace_is_refused(copied: Copied, tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / name).write_text("mine")
    refused = Desk(home).run("restore", str(copied.backup), "--json")
    assert (refused.exit_code, error(refused)["error"]) == (12, "settings")
    assert [(file.name, file.read_text()) for file in home.iterdir()] == [(name, "mine")]


# --- a database that was brought back by other means ---


def test_a_marked_workspace_shuts_out_whoever_works_on_it(migrated_database_url: str, tmp_path: Path) -> None:
    stage = Stage(migrated_database_url, tmp_path)
    front = Front(stage)
    with closing(front), stage.open(worker=True) as working:
        ReviewedChat(agent_of(working, stage))
        review = front.wait_until_parked(front.begin(THREAD, "hold a | send b"))
        front.decide(review)
        front.wait_until_first_call_is(CallState.STARTED, review.run_id)
        with stage.open() as restoring:
            assert mark_restored(restoring.ledger, by=PERSON) == Restored(uncertain_calls=1, ended_runs=1)
        stage.release("a")
        assert front.say("other", "look c") == "look did c"
        until(lambda: front.open_outcomes(THREAD) == [], what="the tool's own result, which comes late")
        assert front.run(review.run_id).state is RunState.FAILED
        assert front.say(THREAD, "look d").endswith("look did d")
        assert [line.split()[:2] for line in stage.effects()] == [["hold", "a"], ["look", "c"], ["look", "d"]]


def test_a_marked_workspace_asks_about_what_was_held(migrated_database_url: str, tmp_path: Path) -> None:
    stage = Stage(migrated_database_url, tmp_path)
    front = Front(stage)
    with closing(front), stage.open(worker=True) as working:
        ReviewedChat(agent_of(working, stage))
        review = front.wait_until_parked(front.begin(THREAD, "send a"))
        with stage.open() as restoring:
            for _ in range(2):
                mark_restored(restoring.ledger, by=PERSON)
        with pytest.raises(ReviewConflictError):
            front.decide(review)
        [question] = front.open_outcomes(THREAD)
        front.decide(question)
        front.wait_until_first_call_is(CallState.EXECUTED, review.run_id)
        assert len(stage.effects()) == 1
