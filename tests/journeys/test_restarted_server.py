"""The PostgreSQL server dies while people decide and workers work: nothing is lost, nothing runs twice."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clearance.errors import ReviewConflictError, StoreError
from clearance.outcome import CallState
from clearance.review import Review
from clearance.run import RunState
from tests import databases as server
from tests.databases import Databases
from tests.journeys.front import Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import Processes, until
from tests.journeys.program import Stage, work

RUNS = 40
AWAY = 2.0
"""Seconds without a server."""


class OwnServer:
    """A server of this test alone, which it may kill."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="clearance-own-"))
        self.databases = Databases(self.folder)
        # Not the one that may be named for all other tests.
        (self.folder / "server-url").write_text(server._start_server(self.folder))

    def kill(self) -> None:
        """Kill the server as a power cut does."""
        pid = int((self.folder / "postgresql" / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)

    def start_again(self) -> None:
        """Start it on the same data, as soon as the processes of the dead one have noticed."""
        data = self.folder / "postgresql" / "data"
        log, program = data.parent / "log", server._programs(self.folder) / "pg_ctl"
        command: list[str | Path] = [program, "-D", data, "-l", log, "-w", "start"]

        def started() -> bool:
            with suppress(server.DatabaseServerError):
                server._run(command, self.folder)
                return True
            return False

        until(started, what="the server to start again")


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServer]:
    """A server that may be killed."""
    monkeypatch.delenv(server.SERVER_VARIABLE, raising=False)
    own = OwnServer()
    yield own
    own.databases.close()


@pytest.fixture
def migrated_database_url(own_server: OwnServer, tmp_path: Path) -> str:
    """A database on that server."""
    return own_server.databases.migrated("postgresql", tmp_path)


@pytest.mark.parametrize("decided_before", sampled([15], by_night=range(0, RUNS, 3)))
def test_a_server_that_dies_under_load_loses_nothing(
    stage: Stage, processes: Processes, front: Front, own_server: OwnServer, decided_before: int
) -> None:
    for _ in range(2):
        processes.start(work, stage)
    waiting = [front.wait_until_pending(front.begin(f"t{n}", f"send {n}")) for n in range(RUNS)]
    refused = 0
    for place, review in enumerate(waiting):
        if place == decided_before:
            own_server.kill()
            threading.Timer(AWAY, own_server.start_again).start()

        def decided(review: Review = review) -> bool:
            nonlocal refused
            try:
                front.decide(review)
            except ReviewConflictError:
                return True  # committed, and only the answer was lost
            except StoreError:
                refused += 1
                return False
            return True

        until(decided, what=f"the decision on {review.id}")
    for review in waiting:
        front.wait_until_ended(review.run_id)
    states = [front.calls(review.run_id)[0].state for review in waiting]
    assert refused > 0, "the server was away"
    assert {front.run(review.run_id).state for review in waiting} == {RunState.DONE}
    assert set(states) <= {CallState.EXECUTED, CallState.UNCERTAIN}
    assert states.count(CallState.UNCERTAIN) < RUNS // 2
    check(front)
    assert front.say("t0", "send again") == "send did again"
