"""A door at which running steps knock, so that a test knows that they run, and when they have ended."""

import select
import socket
import tempfile
from types import TracebackType
from typing import Self

PATIENCE = 60.0


class Guest:
    """One process that knocked. Its connection ends with it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = int(connection.makefile("rb").readline())

    def let_go(self) -> None:
        """Let it go on."""
        self._connection.sendall(b"x")

    def wait_for_its_end(self) -> None:
        """Return when the process, and whoever has its connection, has ended."""
        assert self._connection.recv(1) == b""


class Door:
    """Takes in those who knock at `path`, which is short as such paths must be."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="door")
        self.path = f"{self._folder.name}/d"
        self._socket = socket.socket(socket.AF_UNIX)
        self._guests: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._socket.bind(self.path)
        self._socket.listen(100)
        self._socket.settimeout(PATIENCE)
        return self

    def knocked(self) -> Guest:
        """Return the next one who knocks."""
        connection, _ = self._socket.accept()
        connection.settimeout(PATIENCE)
        self._guests.append(connection)
        return Guest(connection)

    def somebody_waits(self) -> bool:
        """Whether one more has knocked."""
        return bool(select.select([self._socket], [], [], 0.2)[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._guests:
            each.close()
        self._socket.close()
        self._folder.cleanup()
