"""The worker and the process in front of it: whatever dies, the work goes on; told to end, both end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from clearance import turns
from clearance.assembly import new_id, open_workspace
from clearance.cli.options import SINGLE_USER
from clearance.cli.supervisor import EVENT, Supervisor
from clearance.cli.waiting import anyone_works
from clearance.cli.worker import watch
from clearance.policy import Effect, Policy
from clearance.program import Program
from clearance.run import Run, RunState
from clearance.toolcall import Tool, ToolCall
from tests.ways_in.desk import Desk, answers
from tests.ways_in.terminal import LONG, command, run


class Front:
    """`clearance worker --json` as a process, with the events that it prints."""

    def __init__(self, home: Path) -> None:
        words = command(home, "--json", "worker", "--model", "offline", "--grace", "2")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._events: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the next event of this name."""
        while True:
            found = self._events.get(timeout=LONG)
            if found["event"] == event:
                return found

    def close(self) -> None:
        """Kill it, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._events.put(json.loads(line))


def test_it_says_once_that_the_workspace_is_of_a_single_user(tmp_path: Path) -> None:
    words = command(tmp_path, "worker", "--model", "offline", "--grace", "2")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while SINGLE_USER not in lines[-1] and lines[-1]:
            lines.append(process.stderr.readline())
        process.terminate()
        rest = process.stderr.read()
    assert "".join([*lines, rest]).count(SINGLE_USER) == 1


@pytest.fixture
def front(desk: Desk) -> Iterator[Front]:
    """A worker that works."""
    process = Front(desk.home)
    yield process
    process.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes() if Path("/proc").exists() else True


def _eventually(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + LONG
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_a_worker_that_is_killed_is_started_again_and_works(desk: Desk, front: Front) -> None:
    first = front.wait_for("ready")
    assert (first["model"], first["home"]) == ("offline", str(desk.home))
    os.kill(first["pid"], signal.SIGKILL)
    assert front.wait_for("died")["code"] == -signal.SIGKILL
    second = front.wait_for("ready")
    assert second["pid"] != first["pid"]
    with open_workspace(home=desk.home, worker=False) as c:
        assert anyone_works(c)
        started = turns.start(
            c.ledger, "t", "What is the weather in Jakarta?", run_id=new_id(), program="chat", by="ana"
        )

        def done() -> bool:
            with c.database.read() as tx:
                return turns.find(tx, started.id).state is RunState.DONE

        assert _eventually(done)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both_processes(desk: Desk, front: Front, number: signal.Signals) -> None:
    child = front.wait_for("ready")["pid"]
    front.process.send_signal(number)
    assert front.process.wait(LONG) == 0
    assert front.wait_for("ended")["code"] == 0
    assert not _lives(child)
    with open_workspace(home=desk.home, worker=False) as c:
        assert not anyone_works(c)


def test_a_worker_does_not_outlive_the_process_in_front(front: Front) -> None:
    child = front.wait_for("ready")["pid"]
    front.process.kill()
    front.process.wait(LONG)
    assert _eventually(lambda: not _lives(child))


def test_a_worker_without_a_model_is_refused_and_not_tried_again(desk: Desk) -> None:
    desk.open().close()
    done = run(desk.home, "worker", "--json")
    assert done.returncode == 12
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["started", "died", "ended"]
    assert json.loads(done.stderr)["error"] == "settings"


def test_a_process_that_only_reads_or_decides_is_not_seen_as_a_worker(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    with desk.open() as reader:
        assert not anyone_works(reader)
        assert desk.json("approve", review.id)["worker_running"] is False
        assert answers(desk.review(review.id)) == ["approved"]


def test_a_worker_is_seen_from_a_workspace_of_another_name(desk: Desk, tmp_path: Path) -> None:
    url = f"sqlite:///{desk.home / 'clearance.db'}"
    with (
        open_workspace(home=desk.home, worker=True) as works,
        open_workspace(url, home=tmp_path / "elsewhere", worker=False) as other,
    ):
        assert _eventually(lambda: works.worker.alive and anyone_works(other))


def test_two_databases_of_one_folder_do_not_share_their_workers(tmp_path: Path) -> None:
    first, second = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    with open_workspace(first, worker=True) as works, open_workspace(second, worker=False) as other:
        assert _eventually(lambda: anyone_works(works))
        assert not anyone_works(other)


def _script(folder: Path, body: str) -> list[str]:
    """Return the command of a process that speaks to the supervisor as the worker does."""
    file = folder / "script.py"
    file.write_text(
        f"import json, os, pathlib, sys, time\nEVENT = {EVENT!r}\n"
        "def tell(event, **more):\n"
        "    print(EVENT + json.dumps({'event': event, **more}), flush=True)\n"
        f"born = pathlib.Path({str(folder / 'born')!r})\n"
        "with born.open('a') as file: print(time.monotonic(), file=file)\n"
        f"nth = len(born.read_text().splitlines())\n{body}"
    )
    return [sys.executable, str(file)]


def _born(folder: Path) -> list[float]:
    return [float(line) for line in (folder / "born").read_text().split()]


def test_a_process_that_dies_at_once_is_started_ever_more_slowly(tmp_path: Path) -> None:
    died: Queue[dict[str, Any]] = Queue()
    supervisor = Supervisor(_script(tmp_path, "sys.exit(1)"), report=died.put)
    supervisor.start()
    assert _eventually(lambda: (tmp_path / "born").exists() and len(_born(tmp_path)) >= 3)
    supervisor.stop()
    first, second, third = _born(tmp_path)[:3]
    assert second - first >= 0.5
    assert third - second >= 1.0


@pytest.mark.parametrize("code", [2, 12])
def test_what_starting_again_does_not_mend_ends_the_supervisor(tmp_path: Path, code: int) -> None:
    supervisor = Supervisor(_script(tmp_path, f"sys.exit({code})"))
    supervisor.start()
    assert not supervisor.wait_ready(LONG)
    assert supervisor.ended.wait(LONG)
    assert supervisor.exit_code == code
    assert len(_born(tmp_path)) == 1


def test_a_worker_that_hands_over_has_a_successor_while_it_ends(tmp_path: Path) -> None:
    body = (
        "tell('ready')\n"
        "if nth == 1:\n"
        "    tell('handover', hung=2)\n"
        f"    gate = pathlib.Path({str(tmp_path / 'gate')!r})\n"
        "    while not gate.exists(): time.sleep(0.01)\n"
        "else: sys.stdin.read()\n"
    )
    events: Queue[dict[str, Any]] = Queue()
    supervisor = Supervisor(_script(tmp_path, body), report=events.put)
    supervisor.start()
    seen = [events.get(timeout=LONG) for _ in range(5)]
    first, second = (each["pid"] for each in seen if each["event"] == "started")
    assert [each["event"] for each in seen if each["pid"] == first] == ["started", "ready", "handover"]
    assert _lives(first)
    (tmp_path / "gate").touch()
    assert _eventually(lambda: not _lives(first))
    assert _lives(second)
    supervisor.stop()
    assert not _lives(second)


def test_a_worker_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    body = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell('ready')\ntime.sleep(3600)"
    events: Queue[dict[str, Any]] = Queue()
    supervisor = Supervisor(_script(tmp_path, body), report=events.put)
    supervisor.start()
    assert supervisor.wait_ready(LONG)
    supervisor.stop(grace=0.0)
    assert not _lives(events.get()["pid"])


def test_what_a_tool_prints_is_passed_on_and_gives_no_orders(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = "print('a tool speaks'); print(EVENT + 'nonsense'); tell('ready'); sys.stdin.read()"
    supervisor = Supervisor(_script(tmp_path, body))
    supervisor.start()
    assert supervisor.wait_ready(LONG)
    supervisor.stop()
    assert capfd.readouterr().out.splitlines() == ["a tool speaks", f"{EVENT}nonsense"]


def test_a_worker_hands_over_when_too_many_tools_hang(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()
    hanging = Tool(
        "hang", {"type": "object"}, run=lambda *_: release.wait(LONG), read_only=True, timeout=0.05
    )
    with open_workspace(home=desk.home, worker=True) as c:
        program = Program("desk", tools={"hang": hanging}, policy=Policy(default=Effect.ALLOW))
        c.register(program)
        with c.database.read() as tx:
            now = c.database.now(tx)
        by_hand = Run("r", "t", "desk", RunState.RUNNING, requester="ana", input=None, created_at=now)
        started = turns.start_by_caller(c.ledger, by_hand)
        calls = [ToolCall(f"r/1/{place}", "hang", "{}") for place in range(2)]
        outcomes = c.execution.execute(started, calls, message=1, tools=program.tools, fence=None)
        assert len(outcomes) == 2
        assert c.execution.overdue() == 2
        assert watch(c, threading.Event(), most_hung=2)
        release.set()
    assert json.loads(capfd.readouterr().out.removeprefix(EVENT)) == {"event": "handover", "hung": 2}
