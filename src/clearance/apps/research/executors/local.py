"""The local executor: each step is a process of its own, with limits, and nothing of it outlives this one.

A step gets a folder to work in, its inputs as read-only copies that were checked by hash, and an environment
without anything of ours. This keeps a faulty step from doing harm; it is no sandbox against a hostile one,
which has the rights of the user. Its code is a template whose hash people cleared.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from clearance.apps.research.executors.jobs import StepJob, StepResult
from clearance.apps.research.executors.step_folder import (
    JOB,
    LARGEST_LIST,
    USAGE,
    complete,
    job_text,
    keep_complete,
    read_input,
    write_files,
)

WORK = ".work"
CANCELLED = "The step was ended: its run was cancelled."
_LOCK = ".lock"
_GUARD = Path(__file__).with_name("guard.py")
_LOOK_AGAIN = 0.05
_MB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one step may take. Sizes in megabytes, times in seconds.

    `memory_mb` is room beyond the step's estimate, as addresses: libraries reserve far more than they use.
    `cpu_s` None: as much as the step's time limit. `grace_s` is the time between SIGTERM and SIGKILL;
    every `look_s` the guard counts the step's processes and what its folder takes on the disk.
    """

    memory_mb: int = 4096
    file_mb: int = 256
    disk_mb: int = 1024
    processes: int = 256
    cpu_s: int | None = None
    grace_s: float = 2.0
    look_s: float = 1.0


@dataclass(eq=False)
class _Ticket:
    """A job that was handed in and has not ended."""

    run_id: str
    cancelled: bool = False
    guard: subprocess.Popen[bytes] | None = None


@dataclass(frozen=True)
class _Ended:
    """How one try ended; `again`: whether another one may end better."""

    result: StepResult
    again: bool = field(default=False)


class _Hold:
    """The lock of a step's folder. Whoever inherits its `number` holds it on after this process has left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.number = -1

    def take(self) -> bool:
        """Try to take the lock; return whether it is ours."""
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            return False
        self.number = number
        return True

    def leave(self) -> None:
        """Give the lock up here."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


class _CancelledError(Exception):
    """The job was cancelled before anything of it was started."""


class LocalExecutor:
    """Carries steps out on this machine, at most `pool` at a time over all runs.

    A step is run again, up to its `retries`, when it failed or took too long, never when what it was handed
    was wrong. `command` is what runs a step; it gets the template and the path of the job, as `step` does.
    """

    def __init__(
        self, *, pool: int = 2, command: Sequence[str] | None = None, limits: Limits | None = None
    ) -> None:
        if pool < 1:
            raise ValueError("a pool has room for one step at least")
        self._pool = pool
        self._command = list(command or (sys.executable, "-P", "-m", "clearance.apps.research.step"))
        self._limits = limits or Limits()
        self._changed = threading.Condition()
        self._busy = 0
        self._tickets: set[_Ticket] = set()

    def run(self, job: StepJob) -> StepResult:
        """Carry a step out to its end, or give the result that is there; what goes wrong is in the result."""
        ticket = _Ticket(job.run_id)
        with self._changed:
            self._tickets.add(ticket)
        try:
            with self._turn(ticket), self._alone(job, ticket) as hold:
                return self.find(job) or self._tries(job, ticket, hold=hold)
        except _CancelledError:
            return StepResult(error=CANCELLED, tries=0)
        except OSError as error:
            return StepResult(error=f"The step could not be started: {error.strerror or 'no room'}.", tries=0)
        finally:
            with self._changed:
                self._tickets.discard(ticket)

    def find(self, job: StepJob) -> StepResult | None:
        """Return the result of a job whose outputs are complete in its folder, else None. Starts nothing."""
        work = job.folder / WORK
        # The second: it was complete when this process died, before its files were moved.
        return complete(job.folder, job) or complete(work, job, out=work / "out")

    def cancel(self, run_id: str) -> None:
        """End what runs or waits of a run now: SIGTERM, then SIGKILL, to the whole group of each step."""
        with self._changed:
            for ticket in self._tickets:
                if ticket.run_id == run_id:
                    ticket.cancelled = True
                    _ask_to_end(ticket)
            self._changed.notify_all()

    @contextlib.contextmanager
    def _alone(self, job: StepJob, ticket: _Ticket) -> Iterator[_Hold]:
        """Hold the folder of a step; the guard holds it on until nothing of the step is left.

        A process that lost its run may still be at the same step: then its result is waited for.
        """
        job.folder.mkdir(parents=True, exist_ok=True)
        hold = _Hold(job.folder / _LOCK)
        try:
            self._take(hold, ticket)
            yield hold
        finally:
            hold.leave()

    def _take(self, hold: _Hold, ticket: _Ticket) -> None:
        while not hold.take():
            with self._changed:
                if ticket.cancelled:
                    raise _CancelledError
                self._changed.wait(_LOOK_AGAIN)

    @contextlib.contextmanager
    def _turn(self, ticket: _Ticket) -> Iterator[None]:
        with self._changed:
            while self._busy >= self._pool and not ticket.cancelled:
                self._changed.wait()
            if ticket.cancelled:
                raise _CancelledError
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def _tries(self, job: StepJob, ticket: _Ticket, *, hold: _Hold) -> StepResult:
        used = StepResult(tries=0)
        while True:
            ended = self._try(job, ticket, hold=hold)
            used = _added(used, ended.result)
            if not ended.again or ticket.cancelled or used.tries > job.step.retries:
                break
        if used.error is None:
            keep_complete(job, used)
        _remove(job.folder / WORK)
        return used

    def _try(self, job: StepJob, ticket: _Ticket, *, hold: _Hold) -> _Ended:
        work = job.folder / WORK
        _remove(work)
        drift = _lay_out(work, job)
        if drift is not None:
            return _Ended(StepResult(error=drift))
        (work / "guard.json").write_text(json.dumps(self._task(work, job, lock=hold.number)))
        with subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), str(work / "guard.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(work),
            start_new_session=True,
            pass_fds=(hold.number,),
            bufsize=0,
        ) as guard:
            # This process may be frozen and replaced; who replaces it then waits for the guard alone.
            hold.leave()
            with self._changed:
                ticket.guard = guard
                if ticket.cancelled:
                    _ask_to_end(ticket)
            try:
                # The guard keeps the time limit; should it hang itself, the step dies with it.
                guard.wait(job.step.timeout_s + self._limits.grace_s * 2 + 60)
            except subprocess.TimeoutExpired:
                guard.kill()
            finally:
                with self._changed:
                    ticket.guard = None
        self._take(hold, ticket)
        found = complete(job.folder, job)
        return self._judged(work, job) if found is None else _Ended(found)

    def _task(self, work: Path, job: StepJob, *, lock: int) -> dict[str, Any]:
        limits = self._limits
        return {
            "command": [*self._command, job.step.template.name, str(work / "step.json")],
            "environment": environment(work),
            "folder": str(work),
            "report": str(work / USAGE),
            "lock": lock,
            "timeout_s": job.step.timeout_s,
            "grace_s": limits.grace_s,
            "look_s": limits.look_s,
            "cpu_s": limits.cpu_s or job.step.timeout_s,
            "memory_bytes": (job.step.estimate.mem_mb + limits.memory_mb) * _MB,
            "file_bytes": limits.file_mb * _MB,
            "disk_bytes": limits.disk_mb * _MB,
            "processes": limits.processes,
        }

    def _judged(self, work: Path, job: StepJob) -> _Ended:
        """Return how a try ended, from the guard's report and the files."""
        try:
            report = json.loads((work / USAGE).read_bytes()[:LARGEST_LIST])
        except (OSError, ValueError):
            return _Ended(StepResult(error="The step was lost: its guard was killed."), again=True)
        used = StepResult(cpu_s=report["cpu_s"], wall_s=report["wall_s"], peak_mb=report["peak_mb"])
        if report["ended"] is not None:
            error = self._why(report["ended"], job)
            return _Ended(replace(used, error=error), again=report["ended"] == "timeout")
        if report["code"] == 0:
            found = complete(work, job, out=work / "out")
            if found is not None:
                return _Ended(found)
            return _Ended(replace(used, error="The step ended without a complete list of its outputs."))
        if report["signal"] is not None:
            return self._killed(report["signal"], used, job)
        said = report["said"] or f"The step failed with exit code {report['code']}."
        return _Ended(replace(used, error=said), again=report["code"] != 2)

    def _killed(self, number: int, used: StepResult, job: StepJob) -> _Ended:
        if number == signal.SIGXCPU:
            most = self._limits.cpu_s or job.step.timeout_s
            return _Ended(replace(used, error=f"The step used more than {most} processor seconds."))
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return _Ended(replace(used, error=f"The step was killed by {name}."), again=True)

    def _why(self, ended: str, job: StepJob) -> str:
        match ended:
            case "timeout":
                return f"The step took longer than {job.step.timeout_s} s and was ended."
            case "disk":
                return f"The step wrote more than {self._limits.disk_mb} MB and was ended."
            case "processes":
                return f"The step started more than {self._limits.processes} processes and was ended."
            case _:
                return CANCELLED


def environment(work: Path) -> dict[str, str]:
    """Return all that a step sees of the environment: no key, no proxy, no name of ours.

    PYTHONPATH is handed on where it is set: without it the same program might not be found.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work / "home"),
        "TMPDIR": str(work / "home"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        **one,
        **path,
    }


def _lay_out(work: Path, job: StepJob) -> str | None:
    """Make the folder that a step works in; return what is wrong with an input, else None."""
    (work / "home").mkdir(parents=True)
    (work / "in").mkdir()
    inputs: dict[str, dict[str, str]] = {}
    for number, (name, given) in enumerate(sorted(job.inputs.items())):
        content = read_input(given)
        if content is None:
            return f"input_drift: {name} is not the file that was cleared, or cannot be read."
        path = work / "in" / str(number)
        path.write_bytes(content)
        path.chmod(0o444)
        inputs[name] = {"path": str(path), "sha256": given.sha256}
    document: Mapping[str, Any] = {
        "template": {"name": job.step.template.name, "sha256": job.step.template.sha256},
        "params": job.step.params,
        "inputs": inputs,
        "out": str(work / "out"),
    }
    write_files(work, [("step.json", json.dumps(document).encode()), (JOB, job_text(job).encode())])
    return None


def _added(used: StepResult, last: StepResult) -> StepResult:
    """Return the last try's result with what all tries together used."""
    return replace(
        last,
        cpu_s=str(Decimal(used.cpu_s) + Decimal(last.cpu_s)),
        wall_s=str(Decimal(used.wall_s) + Decimal(last.wall_s)),
        peak_mb=max(used.peak_mb, last.peak_mb),
        tries=used.tries + 1,
    )


def _ask_to_end(ticket: _Ticket) -> None:
    if ticket.guard is not None and ticket.guard.stdin is not None:
        # It may have ended just now.
        with contextlib.suppress(OSError, ValueError):
            ticket.guard.stdin.write(b"c")


def _remove(folder: Path) -> None:
    """Remove a folder and everything in it, whatever rights a step has set there."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(0o700)
    if folder.exists():
        shutil.rmtree(folder)
