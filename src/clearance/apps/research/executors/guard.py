"""The guard of one step: a small process that starts it, holds it to its limits, and leaves nothing of it.

`python -I -S guard.py TASK.json`, where the task is {"command", "environment", "folder", "report", "lock",
"timeout_s", "grace_s", "look_s", "cpu_s", "memory_bytes", "file_bytes", "disk_bytes", "processes"}. A byte on
standard input asks the step to end (SIGTERM, and SIGKILL when the grace is over); the end of standard input
means that whoever started the guard is dead: then everything is killed at once.

The report is {"code" or "signal": how the step ended, "ended": why the guard ended it or null, "said": the
last line of its standard error, "cpu_s", "wall_s", "peak_mb"}. It uses the standard library alone, little of
it, and stays small: what a process is measured to need at its highest begins with what the one that forked
it had, and every step pays for what is imported here.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Task = dict[str, Any]

KEPT_OF_ERRORS = 4096
LONGEST_LINE = 300
SWEEP_SECONDS = 5.0
# Of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Guard:
    """Watches over one step from its start until nothing of it is left."""

    def __init__(self, task: "Task") -> None:
        self._task = task
        self._linux = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._status: int | None = None
        self._ended: str | None = None
        self._kill_at: float | None = None
        self._said = b""
        self._cpu_s = 0.0
        self._peak_kb = 0

    def run(self) -> "dict[str, Any]":
        """Start the step, wait for its end, and return the report."""
        if self._linux is not None:
            # What the step leaves behind becomes a child of this process, wherever it hides.
            self._linux.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._woken = _wake_on_child()
        self._errors, errors = os.pipe()
        os.set_blocking(self._errors, False)
        started = time.monotonic()
        self._timeout_at = started + self._task["timeout_s"]
        self._look_at = started + self._task["look_s"]
        guard = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            self._become_the_step(errors, guard)
        os.close(errors)
        self._sources = [0, self._woken, self._errors]
        while self._status is None:
            self._wait()
            self._judge()
            self._reap()
        self._sweep()
        self._hear()
        return self._report(time.monotonic() - started)

    def _wait(self) -> None:
        dates = [self._look_at, self._timeout_at if self._ended is None else self._kill_at]
        left = min(each for each in dates if each is not None) - time.monotonic()
        ready, _, _ = select.select(self._sources, [], [], max(0.0, left))
        if self._errors in ready:
            self._hear()
        if self._woken in ready:
            os.read(self._woken, 512)
        if 0 in ready:
            asked = os.read(0, 16)
            if not asked:
                self._sources.remove(0)
            self._end("cancelled" if asked else "abandoned", at_once=not asked)

    def _judge(self) -> None:
        now = time.monotonic()
        if self._ended is None and now >= self._timeout_at:
            self._end("timeout", at_once=False)
        if self._kill_at is not None and now >= self._kill_at:
            self._signal(signal.SIGKILL)
            self._kill_at = now + self._task["grace_s"]
        if now >= self._look_at:
            self._look_at = now + self._task["look_s"]
            if disk_used(self._task["folder"]) > self._task["disk_bytes"]:
                self._end("disk", at_once=True)
            elif len(descendants(os.getpid())) > self._task["processes"]:
                self._end("processes", at_once=True)

    def _end(self, why: str, *, at_once: bool) -> None:
        self._ended = self._ended or why
        self._signal(signal.SIGKILL if at_once else signal.SIGTERM)
        wait = 0.0 if at_once else self._task["grace_s"]
        self._kill_at = min(self._kill_at or float("inf"), time.monotonic() + wait)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            # A group of nothing but zombies, on some systems.
            pass

    def _reap(self) -> bool:
        """Take in what has ended; return whether anything still runs."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._cpu_s += used.ru_utime + used.ru_stime
            self._peak_kb = max(self._peak_kb, used.ru_maxrss // (1 if sys.platform == "linux" else 1024))
            if pid == self._pid:
                self._status = status

    def _sweep(self) -> None:
        """Kill what the step left behind: it has ended, and so has everything that it started."""
        self._signal(signal.SIGKILL)
        until = time.monotonic() + SWEEP_SECONDS
        while self._reap() and time.monotonic() < until:
            for pid in descendants(os.getpid()):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)

    def _hear(self) -> None:
        """Keep the end of what the step says on standard error; the rest is dropped."""
        while True:
            try:
                heard = os.read(self._errors, 65536)
            except BlockingIOError:
                return
            if not heard:
                if self._errors in self._sources:
                    self._sources.remove(self._errors)
                return
            self._said = (self._said + heard)[-KEPT_OF_ERRORS:]
            if self._status is None:
                return

    def _report(self, wall_s: float) -> "dict[str, Any]":
        code = os.waitstatus_to_exitcode(self._status or 0)
        return {
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "ended": self._ended,
            "said": last_line(self._said.decode(errors="replace")),
            "cpu_s": f"{self._cpu_s:.2f}",
            "wall_s": f"{wall_s:.2f}",
            "peak_mb": -(-self._peak_kb // 1024),
        }

    def _become_the_step(self, errors: int, guard: int) -> "NoReturn":
        try:
            os.setsid()
            if self._linux is not None:
                self._linux.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != guard:
                    os._exit(1)
            os.chdir(self._task["folder"])
            nothing = os.open(os.devnull, os.O_RDWR)
            for number, source in enumerate((nothing, nothing, errors)):
                os.dup2(source, number)
            limit(self._task)
            command = self._task["command"]
            os.execve(command[0], command, self._task["environment"])
        except BaseException as error:  # noqa: BLE001 - a forked child must not go on as its parent
            os.write(2, f"the step could not be started: {type(error).__name__}\n".encode())
        os._exit(1)


def limit(task: "Task") -> None:
    """Set the limits of this process. Those that a system does not know are left to the guard."""
    limits = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, task["cpu_s"], task["cpu_s"] + 5),
        (resource.RLIMIT_FSIZE, task["file_bytes"], task["file_bytes"]),
        (resource.RLIMIT_AS, task["memory_bytes"], task["memory_bytes"]),
    ]
    if sys.platform == "linux":
        # Counts all processes of the user: so many more than there are now. Root is not held by it.
        most = int(_text("/proc/loadavg").split()[3].partition("/")[2]) + task["processes"]
        limits.append((resource.RLIMIT_NPROC, most, most))
    for kind, soft, hard in limits:
        _, highest = resource.getrlimit(kind)
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise


def disk_used(folder: str) -> int:
    """Return how many bytes the files below a folder take on the disk."""
    used = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                used += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return used


def descendants(pid: int) -> list[int]:
    """Return the processes below one, where /proc tells of them; else none."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if sys.platform == "linux" else ():
        if entry.isdigit():
            try:
                fields = _text(f"/proc/{entry}/stat").rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    open_ends = [pid]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return found


def last_line(text: str) -> str:
    """Return the last line that says something, bounded, without letters that do not print."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = "".join(letter if letter.isprintable() else "?" for letter in (lines or [""])[-1])
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"


def _wake_on_child() -> int:
    """Return a pipe that can be read when a child has ended."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    return woken


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main(path: str) -> None:
    """Carry out a task, and write the report whole or not at all."""
    task = json.loads(_text(path))
    # Held until everything is over, so that nobody starts the same step beside it; not by the step itself.
    os.set_inheritable(task["lock"], False)
    report = Guard(task).run()
    part = task["report"] + ".part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(json.dumps(report))
    os.replace(part, task["report"])


if __name__ == "__main__":
    main(sys.argv[1])
