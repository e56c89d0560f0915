"""The supervisor: keeps one worker process alive, as a child that may die without taking this process along.

The child ends by itself when this process is gone: its standard input is a pipe that then closes. What it
prints comes through here; lines that begin with `EVENT` are for the supervisor, and the rest is passed on.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

EVENT = "clearance-worker "

GRACE = 10.0
"""Seconds that a worker has for what it is doing when it is told to end."""
_GOODBYE = 5.0
"""Seconds more that it has for closing what it opened."""
_LOOK_EVERY = 0.05
_LONGEST_PAUSE = 30.0
_FIRST_PAUSE = 0.5
_LIVED_WELL = 60.0
# What starting again does not mend: how it was called, and how the installation is set up.
_FOR_GOOD = frozenset({2, 4, 5, 6, 12})

Report = Callable[[dict[str, Any]], None]


@dataclass
class Supervisor:
    """One worker at a time, started again when it dies, ever more slowly when it dies at once.

    `command` starts the working process; `report` hears of `started`, `ready`, `handover`, `died`;
    `log` takes what the worker writes to standard error, which otherwise goes where this process's does.
    `ended` is set when there is no worker any more, and `exit_code` then says why.
    """

    command: Sequence[str]
    report: Report = field(default=lambda _: None)
    log: Path | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    exit_code: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _children: "list[Child]" = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Start the worker, and watch over it in a thread."""
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()

    def stop(self, *, grace: float = GRACE) -> None:
        """End the worker: it has `grace` seconds for what it is doing, and is killed then."""
        self._stopping.set()
        with self._lock:
            children = list(self._children)
        for child in children:
            child.process.terminate()
        until = time.monotonic() + grace + _GOODBYE
        for child in children:
            child.end(max(0.0, until - time.monotonic()))
        self.ended.set()

    def wait_ready(self, timeout: float) -> bool:
        """Whether a worker works, or came to work within `timeout` seconds; False at once when none can."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            with self._lock:
                if any(child.works for child in self._children):
                    return True
            if self.ended.wait(_LOOK_EVERY):
                return False
        return False

    def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            born = time.monotonic()
            child = self._spawn()
            if child is None:
                return
            child.over.wait()
            if child.handed_over.is_set() or self._stopping.is_set():
                continue
            code = child.process.returncode
            final = not child.ready.is_set() and code in _FOR_GOOD
            self.report({"event": "died", "pid": child.process.pid, "code": code, "final": final})
            if final:
                self.exit_code = code
                self.ended.set()
                return
            pause = _FIRST_PAUSE if time.monotonic() - born > _LIVED_WELL else pause
            self._stopping.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _spawn(self) -> "Child | None":
        with self._lock:
            if self._stopping.is_set():
                return None
            child = Child(_start(self.command, self.log), self.report)
            self._children = [each for each in self._children if each.process.poll() is None]
            self._children.append(child)
        self.report({"event": "started", "pid": child.process.pid})
        return child


class Child:
    """One worker process. `over` is set when it has ended, or hands its work to a successor while it ends."""

    def __init__(self, process: "subprocess.Popen[str]", report: Report) -> None:
        self.process = process
        self.ready = threading.Event()
        self.handed_over = threading.Event()
        self.over = threading.Event()
        self._report = report
        self._reader = threading.Thread(target=self._read, name="worker-output", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name="worker-end", daemon=True).start()

    @property
    def works(self) -> bool:
        """Whether it takes work now."""
        return self.ready.is_set() and not self.over.is_set()

    def end(self, seconds: float) -> None:
        """Wait for its end, and bring it about when the time is over."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(_LOOK_EVERY)

    def _wait(self) -> None:
        # Not by the end of its output: a program that a tool started may hold that open for ever.
        self.process.wait()
        self.over.set()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _read(self) -> None:
        with cast(IO[str], self.process.stdout) as output:
            for text in output:
                event = _event(text)
                if event is None:
                    sys.stdout.write(text)
                    sys.stdout.flush()
                    continue
                match event["event"]:
                    case "ready":
                        self.ready.set()
                    case "handover":
                        self.handed_over.set()
                        self.over.set()
                self._report({**event, "pid": self.process.pid})


def tell(event: str, **more: object) -> None:
    """Tell the supervisor of this process what it does."""
    sys.stdout.write(f"{EVENT}{json.dumps({'event': event, **more})}\n")
    sys.stdout.flush()


def _event(text: str) -> dict[str, Any] | None:
    if not text.startswith(EVENT):
        return None
    try:
        found = json.loads(text.removeprefix(EVENT))
    except ValueError:
        return None
    return found if isinstance(found, dict) and "event" in found else None


def _start(command: Sequence[str], log: Path | None) -> "subprocess.Popen[str]":
    """Start a worker in a session of its own: Ctrl-C in the terminal is for this process, which tells it."""
    with nullcontext(None) if log is None else log.open("a") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )
