"""The local executor: a run that is cancelled, and a worker that is killed in the middle of a step."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from clearance.apps.research.executors.jobs import StepJob, StepResult
from clearance.apps.research.executors.local import CANCELLED, LocalExecutor
from tests.house.sources import ROOT
from tests.research.door import Door, Guest
from tests.research.jobs_at_hand import obedient, told


class _Running:
    """A step that runs in a thread of its own."""

    def __init__(self, executor: LocalExecutor, given: StepJob) -> None:
        self._results: list[StepResult] = []
        self._thread = threading.Thread(target=lambda: self._results.append(executor.run(given)))
        self._thread.start()

    def result(self) -> StepResult:
        self._thread.join(60)
        return self._results[0]


@pytest.mark.parametrize("how", ["knock", "stubborn"])
def test_a_cancelled_step_ends_even_if_it_does_not_obey(how: str, tmp_path: Path) -> None:
    executor = obedient()
    with Door() as door:
        given = told(tmp_path, f"count:{tmp_path}/runs; {how}:{door.path}", retries=3)
        running = _Running(executor, given)
        guest = door.knocked()
        executor.cancel("r1")
        guest.wait_for_its_end()
        result = running.result()
    assert (result.error, result.tries) == (CANCELLED, 1)
    assert (tmp_path / "runs").read_text() == "x"
    assert executor.find(given) is None


def test_cancelling_ends_one_run_and_leaves_the_others(tmp_path: Path) -> None:
    executor = obedient()
    with Door() as door:
        ours = _Running(executor, told(tmp_path / "a", f"knock:{door.path}; give"))
        guests: list[Guest] = [door.knocked()]
        others = _Running(executor, told(tmp_path / "b", f"knock:{door.path}; give", run_id="r2"))
        guests.append(door.knocked())
        executor.cancel("r1")
        assert ours.result().error == CANCELLED
        guests[1].let_go()
        assert others.result().error is None


def test_a_step_that_waits_for_its_turn_is_cancelled_without_running(tmp_path: Path) -> None:
    executor = obedient(pool=1)
    with Door() as door:
        first = _Running(executor, told(tmp_path, f"knock:{door.path}; give", id="first"))
        guest = door.knocked()
        waiting = _Running(executor, told(tmp_path, f"count:{tmp_path}/runs; give", id="second", run_id="r2"))
        while len(executor._tickets) < 2:
            threading.Event().wait(0.01)
        executor.cancel("r2")
        result = waiting.result()
        guest.let_go()
        assert first.result().error is None
    assert (result.error, result.tries) == (CANCELLED, 0)
    assert not (tmp_path / "runs").exists()


def test_cancelling_what_does_not_run_does_nothing() -> None:
    obedient().cancel("r1")


def test_a_run_that_was_cancelled_may_be_carried_out_later(tmp_path: Path) -> None:
    executor = obedient()
    executor.cancel("r1")
    assert executor.run(told(tmp_path, "give")).error is None


_WORKER = """
import sys
from pathlib import Path
from tests.research.jobs_at_hand import obedient, told
obedient().run(told(Path(sys.argv[1]), sys.argv[2]))
"""


def _worker(folder: Path, do: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _WORKER, str(folder), do], cwd=ROOT)


def _killed(worker: "subprocess.Popen[bytes]") -> None:
    worker.kill()
    assert worker.wait() == -signal.SIGKILL


@pytest.mark.parametrize("how", ["knock", "stubborn"])
def test_a_step_dies_with_its_worker_and_is_run_again(how: str, tmp_path: Path) -> None:
    with Door() as door:
        do = f"count:{tmp_path}/runs; {how}:{door.path}; give"
        with _worker(tmp_path, do) as worker:
            guest = door.knocked()
            _killed(worker)
            guest.wait_for_its_end()
        given = told(tmp_path, do)
        assert obedient().find(given) is None
        if how == "stubborn":
            return
        again = _Running(obedient(), given)
        door.knocked().let_go()
        assert again.result().error is None
    assert (tmp_path / "runs").read_text() == "xx"


@pytest.mark.parametrize("how", ["children", "children-apart"])
def test_what_a_step_started_dies_with_the_worker_too(how: str, tmp_path: Path) -> None:
    with Door() as door, _worker(tmp_path, f"{how}:{door.path}; stubborn:{door.path}") as worker:
        guests = [door.knocked() for _ in range(4)]
        _killed(worker)
        for guest in guests:
            guest.wait_for_its_end()


def test_a_step_that_was_complete_when_its_worker_died_is_found_and_not_run_again(tmp_path: Path) -> None:
    with Door() as door:
        do = f"count:{tmp_path}/runs; give; knock:{door.path}"
        with _worker(tmp_path, do) as worker:
            guest = door.knocked()
            _killed(worker)
            guest.wait_for_its_end()
        given = told(tmp_path, do)
        found = obedient().find(given)
        assert found is not None
        assert (found.error, found.tries) == (None, 1)
        assert obedient().run(given).outputs == found.outputs
    assert (tmp_path / "runs").read_text() == "x"
    assert obedient().find(replace(given, run_id="r2")) is None


def test_a_step_dies_with_its_guard_and_is_tried_again(tmp_path: Path) -> None:
    with Door() as door:
        running = _Running(obedient(), told(tmp_path, f"knock:{door.path}; give", retries=1))
        first = door.knocked()
        guard = int(Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        first.wait_for_its_end()
        door.knocked().let_go()
        result = running.result()
    assert (result.error, result.tries) == (None, 2)
