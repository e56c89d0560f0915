"""A cleared function runs once: under threads and processes at once, and when its process is killed."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import clearance
from clearance import killpoints
from clearance.assembly import Clearance
from clearance.errors import CallUncertainError, ReviewPendingError
from clearance.review import ReviewKind
from clearance.store import reviews
from tests.adapters import refunds

THREADS = 24
PROCESSES = 4


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """A workspace without a worker, on each kind of database."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Where the functions write down what they did."""
    return tmp_path / "book"


def _approve(workspace: Clearance, review_id: str) -> None:
    with workspace.database.read() as tx:
        version = reviews.review(tx, review_id).version
    workspace.gate.decide(review_id, [{"type": "approve"}], by="ann", version=version)


def _cleared(workspace: Clearance, function: str, *, order: int, book: Path) -> None:
    with pytest.raises(ReviewPendingError):
        refunds.FUNCTIONS[function](order, str(book))
    _approve(workspace, f"{function}-{order}/1/1")


def _killed_inside(workspace: Clearance, url: str, home: Path, *, function: str, book: Path) -> None:
    """Have a process killed while a cleared function runs in it."""
    _cleared(workspace, function, order=1, book=book)
    process = refunds.start_calling(url, home, function=function, order=1, book=book)
    refunds.let_go(book)
    refunds.until_written(book)
    process.kill()
    process.communicate()


def test_threads_and_processes_that_call_at_once_run_it_once_and_get_one_result(
    workspace: Clearance, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _cleared(workspace, "pay", order=1, book=book)
    others = [
        refunds.start_calling(
            migrated_database_url, tmp_path, function="pay", order=1, book=book, threads=THREADS // PROCESSES
        )
        for _ in range(PROCESSES)
    ]
    refunds.until_ready(book, processes=PROCESSES)
    refunds.let_go(book)
    given = refunds.called("pay", order=1, book=book, threads=THREADS)
    given = sum((refunds.said(process) for process in others), given)
    assert given == Counter({json.dumps({"order": 1, "entry": 1}): 2 * THREADS})
    assert book.read_text() == "paid 1\n"


def test_processes_that_call_for_the_first_time_at_once_ask_one_question(
    workspace: Clearance, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    others = [
        refunds.start_calling(migrated_database_url, tmp_path, function="pay", order=1, book=book, threads=6)
        for _ in range(PROCESSES)
    ]
    refunds.until_ready(book, processes=PROCESSES)
    refunds.let_go(book)
    assert sum((refunds.said(process) for process in others), Counter()) == {"ReviewPendingError": 24}
    with workspace.database.read() as tx:
        assert [review.id for review in reviews.inbox(tx)] == ["pay-1/1/1"]


def test_a_call_that_another_thread_has_just_taken_is_waited_for(workspace: Clearance, book: Path) -> None:
    _cleared(workspace, "pay", order=1, book=book)
    taken, other_ended = threading.Event(), threading.Event()

    def linger(place: str) -> None:
        if place == "taken":
            taken.set()
            other_ended.wait(0.5)

    given: Counter[str] = Counter()
    first = threading.Thread(target=lambda: given.update(refunds.called("pay", order=1, book=book)))
    killpoints.watch(linger)
    try:
        first.start()
        assert taken.wait(refunds.PATIENCE)
        given += refunds.called("pay", order=1, book=book)
        other_ended.set()
        first.join()
    finally:
        killpoints.watch(None)
    assert given == Counter({json.dumps({"order": 1, "entry": 1}): 2})


def test_a_call_whose_process_was_killed_is_uncertain_and_a_person_is_asked(
    workspace: Clearance, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _killed_inside(workspace, migrated_database_url, tmp_path, function="hang", book=book)
    for _ in range(2):
        with pytest.raises(CallUncertainError) as raised:
            refunds.hang(1, str(book))
    with workspace.database.read() as tx:
        [asked] = reviews.inbox(tx)
    assert (asked.id, asked.kind) == (raised.value.review_id, ReviewKind.OUTCOME)
    assert asked.id in str(raised.value)
    assert book.read_text() == "began 1\n"


def test_an_idempotent_call_whose_process_was_killed_is_run_again_by_who_calls_again(
    workspace: Clearance, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _killed_inside(workspace, migrated_database_url, tmp_path, function="post", book=book)
    assert refunds.post(1, str(book)) == "posted"
    assert refunds.post(1, str(book)) == "posted"
    assert book.read_text() == "posted 1\n" * 2


def test_a_person_who_says_that_it_did_not_happen_has_it_run_once_more(
    workspace: Clearance, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _killed_inside(workspace, migrated_database_url, tmp_path, function="hang", book=book)
    with pytest.raises(CallUncertainError) as raised:
        refunds.hang(1, str(book))
    _approve(workspace, str(raised.value.review_id))
    given = refunds.called("hang", order=1, book=book, threads=8)
    assert given == {"CallUncertainError": 8}
    assert book.read_text() == "began 1\n" * 2


@pytest.mark.parametrize("place", ["asked", "taken", "tool-ran", "outcome-kept"])
def test_whatever_kills_a_process_the_call_runs_at_most_once(
    place: str,
    workspace: Clearance,
    migrated_database_url: str,
    tmp_path: Path,
    book: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _cleared(workspace, "pay", order=1, book=book)
    monkeypatch.setenv(killpoints.VARIABLE, place)
    process = refunds.start_calling(migrated_database_url, tmp_path, function="pay", order=1, book=book)
    refunds.let_go(book)
    with pytest.raises(subprocess.CalledProcessError):
        _checked(process)
    given = refunds.called("pay", order=1, book=book)
    kept = {"asked": 1, "outcome-kept": 1}.get(place, 0)
    assert given == ({json.dumps({"order": 1, "entry": 1}): 1} if kept else {"CallUncertainError": 1})
    assert (book.read_text() if book.exists() else "") == ("" if place == "taken" else "paid 1\n")


def _checked(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=refunds.PATIENCE)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, "refunds")
