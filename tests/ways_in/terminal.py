"""A terminal: the command line as a process at a pseudo-terminal that a test reads and types into."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LONG = 180.0
"""Seconds after which something that should happen never will."""
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def command(home: Path, *words: str) -> list[str]:
    """Return the command line that runs the program in this workspace."""
    return [sys.executable, "-m", "clearance", "--home", str(home), *words]


def run(
    home: Path, *words: str, typed: str = "", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; nothing of it is a terminal."""
    return subprocess.run(
        command(home, *words),
        input=typed,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
        env={**os.environ, **(more or {})},
    )


class Terminal:
    """One process at a pseudo-terminal of `columns` by 50."""

    def __init__(self, words: Sequence[str], *, columns: int, more: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", **more}
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self._written = ""
        self._read_to = 0

    @property
    def text(self) -> str:
        """Everything that was written, without colours and cursor movements."""
        return _CODES.sub("", self._written).replace("\r\n", "\n")

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._master, f"{line}\n".encode())

    def end_of_input(self) -> None:
        """Type Ctrl-D."""
        os.write(self._master, b"\x04")

    def interrupt(self) -> None:
        """Type Ctrl-C, as the foreground process of a terminal is told of it."""
        self.process.send_signal(signal.SIGINT)

    def wait_for(self, part: str) -> None:
        """Read until the text has this part, after what was waited for before."""
        until = time.monotonic() + LONG
        while True:
            found = self.text.find(part, self._read_to)
            if found >= 0:
                self._read_to = found + len(part)
                return
            assert self._more(until), f"{part!r} never came:\n{self.text}"

    def wait(self) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + LONG
        while self._more(until):
            pass
        return self.process.wait(LONG)

    def close(self) -> None:
        """End the process, if it runs, and give the terminal back."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(LONG)
        os.close(self._master)

    def _more(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            read = os.read(self._master, 65536)
        except OSError:  # the last process at the terminal has ended
            return False
        self._written += read.decode(errors="replace")
        return bool(read)


@contextmanager
def terminal(
    home: Path, *words: str, columns: int = 80, more: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run a command at a terminal for as long as the block lasts."""
    opened = Terminal(command(home, *words), columns=columns, more=more or {})
    try:
        yield opened
    finally:
        opened.close()
