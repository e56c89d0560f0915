"""A cleared function runs once: under threads and processes at once, and when its process is killed."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

import clearance
from clearance import killpoints
from clearance.errors import CallUncertainError
from clearance.policy import Policy
from clearance.program import Program
from clearance.review import ReviewKind
from clearance.store import listing
from clearance.toolcall import Tool
from clearance.workspace import Clearance
from tests.adapters import refunds
from tests.adapters.decided import decide, inbox, pending
from tests.journeys.processes import PATIENCE, Processes, kill, server, until, was_killed

THREADS = 24
PROCESSES = 4


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Where the functions write down what they did."""
    return tmp_path / "book"


@pytest.fixture(scope="session")
def fork_server() -> ForkServerContext:
    """The process that the others are forked from."""
    return server()


@pytest.fixture
def processes(fork_server: ForkServerContext, tmp_path: Path) -> Iterator[Processes]:
    """The processes of one test; what they said is shown when it fails."""
    log = tmp_path / "log"
    started = Processes(fork_server, log)
    yield started
    started.end()
    print(log.read_text() if log.exists() else "")


def _clear(workspace: Clearance, function: str, *, book: Path) -> None:
    decide(workspace, pending(lambda: refunds.FUNCTIONS[function](1, str(book))))


def _said(book: Path, *, times: int) -> Counter[str]:
    """Return what the processes said, once they have spoken so often."""
    until(lambda: len(refunds.entries(refunds.said_in(book))) == times, what="what the processes say")
    given = [Counter(json.loads(line)) for line in refunds.entries(refunds.said_in(book))]
    return sum(given, Counter())


def test_threads_and_processes_that_call_at_once_ask_once_run_it_once_and_get_one_result(
    workspace: Clearance, processes: Processes, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    arguments = (migrated_database_url, tmp_path, "pay", book, THREADS // PROCESSES, 2)
    for _ in range(PROCESSES):
        processes.start(refunds.call_in_turns, *arguments)
    _said(book, times=PROCESSES)

    book.with_suffix(".turn-0").touch()
    assert refunds.called("pay", order=1, book=book, threads=THREADS) == {"ReviewPendingError": THREADS}
    assert _said(book, times=3 * PROCESSES) == {"ReviewPendingError": THREADS}
    assert inbox(workspace) == ["pay-1/1/1"]

    decide(workspace, "pay-1/1/1")
    book.with_suffix(".turn-1").touch()
    result = json.dumps({"order": 1, "entry": 1})
    assert refunds.called("pay", order=1, book=book, threads=THREADS) == {result: THREADS}
    assert _said(book, times=4 * PROCESSES)[result] == THREADS
    assert refunds.entries(book) == ["paid 1"]


def test_a_call_that_another_thread_has_just_taken_is_waited_for(workspace: Clearance, book: Path) -> None:
    _clear(workspace, "pay", book=book)
    taken, other_ended = threading.Event(), threading.Event()
    given: Counter[str] = Counter()

    def linger(place: str) -> None:
        if place == "taken":
            taken.set()
            other_ended.wait(0.5)

    first = threading.Thread(target=lambda: given.update(refunds.called("pay", order=1, book=book)))
    killpoints.watch(linger)
    try:
        first.start()
        assert taken.wait(PATIENCE)
        given.update(refunds.called("pay", order=1, book=book))
        other_ended.set()
        first.join()
    finally:
        killpoints.watch(None)
    assert given == {json.dumps({"order": 1, "entry": 1}): 2}


def test_processes_that_register_a_program_at_once_all_do(migrated_database_url: str, tmp_path: Path) -> None:
    opened = [
        clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False)
        for _ in range(PROCESSES)
    ]
    failed: list[Exception] = []

    def register(workspace: Clearance, program: Program) -> None:
        together.wait()
        try:
            workspace.register(program)
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails the test
            failed.append(error)

    for number in range(10):
        together = threading.Barrier(PROCESSES)
        tool = Tool(f"tool_{number}", {"type": "object"}, lambda *_: "done")
        program = Program(f"program-{number}", {tool.name: tool}, Policy())
        threads = [threading.Thread(target=register, args=(each, program)) for each in opened]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for each in opened:
        each.close()
    assert not failed


def _die_inside(
    workspace: Clearance, processes: Processes, url: str, home: Path, *, function: str, book: Path
) -> None:
    """Have a process killed while a cleared function runs in it."""
    _clear(workspace, function, book=book)
    process = processes.start(refunds.call_in_turns, url, home, function, book, 1, 1)
    book.with_suffix(".turn-0").touch()
    until(book.exists, what="the function's first entry")
    kill(process)


def test_a_call_whose_process_was_killed_is_uncertain_and_a_person_is_asked(
    workspace: Clearance, processes: Processes, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _die_inside(workspace, processes, migrated_database_url, tmp_path, function="hang", book=book)
    for _ in range(2):
        with pytest.raises(CallUncertainError) as raised:
            refunds.hang(1, str(book))
    with workspace.database.read() as tx:
        [asked] = listing.inbox(tx)
    assert (asked.id, asked.kind) == (raised.value.review_id, ReviewKind.OUTCOME)
    assert asked.id in str(raised.value)
    assert refunds.entries(book) == ["began 1"]


def test_an_idempotent_call_whose_process_was_killed_is_run_again_by_one_of_those_who_call(
    workspace: Clearance, processes: Processes, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _die_inside(workspace, processes, migrated_database_url, tmp_path, function="post", book=book)
    refunds.said_in(book).unlink()
    for _ in range(PROCESSES):
        processes.start(refunds.call_in_turns, migrated_database_url, tmp_path, "post", book, 6, 1)
    assert refunds.called("post", order=1, book=book, threads=6) == {'"posted"': 6}
    assert _said(book, times=2 * PROCESSES) == {'"posted"': 6 * PROCESSES}
    assert refunds.entries(book) == ["posted 1", "posted 1"]


def test_a_call_that_a_person_says_did_not_happen_runs_once_more_for_all_who_call(
    workspace: Clearance, processes: Processes, migrated_database_url: str, tmp_path: Path, book: Path
) -> None:
    _die_inside(workspace, processes, migrated_database_url, tmp_path, function="hang", book=book)
    with pytest.raises(CallUncertainError) as raised:
        refunds.hang(1, str(book))
    decide(workspace, str(raised.value.review_id))
    assert refunds.called("hang", order=1, book=book, threads=8) == {"CallUncertainError": 8}
    assert refunds.entries(book) == ["began 1", "began 1"]


@pytest.mark.parametrize(
    ("place", "function", "given", "entries"),
    [
        ("asked", "pay", json.dumps({"order": 1, "entry": 1}), ["paid 1"]),
        ("taken", "give", "CallUncertainError", []),
        ("tool-ran", "give", "CallUncertainError", ["gave 1"]),
        ("outcome-kept", "pay", json.dumps({"order": 1, "entry": 1}), ["paid 1"]),
    ],
)
def test_a_call_whose_process_is_killed_anywhere_runs_at_most_once(
    place: str,
    function: str,
    given: str,
    entries: list[str],
    workspace: Clearance,
    processes: Processes,
    migrated_database_url: str,
    tmp_path: Path,
    book: Path,
) -> None:
    _clear(workspace, function, book=book)
    process = processes.start(refunds.call_and_die, migrated_database_url, tmp_path, function, book, place)
    until(lambda: was_killed(process), what=f"the end at {place}")
    assert refunds.called(function, order=1, book=book) == {given: 1}
    assert refunds.entries(book) == entries
