"""Slots: names for the processes of one machine, each held by a file lock that ends with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def folder_of(database: Path) -> Path:
    """Return where the slots of a database file are: beside it, and apart from those of any other file.

    All processes that work on it must use the same names, whatever they call their workspace.
    """
    file = database.resolve()
    return file.parent / ".clearance" / "slots" / file.name


def anyone_works(folder: Path) -> bool:
    """Whether a living process holds one of the slots."""
    for path in folder.glob("slot-*"):
        file = _lock(path)
        if file is None:
            return True
        os.close(file)
    return False


class Slot:
    """A name that this process holds until it ends. The kernel frees it, however the process dies."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.name, self._file = _first_free(folder)
        # A child would inherit the lock and keep it after this process has died.
        os.register_at_fork(after_in_child=self.close)

    def close(self) -> None:
        """Give the name back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @contextmanager
    def held_if_dead(self, name: str) -> Iterator[bool]:
        """Hold another name while its owner is dead, so that nobody takes it; False when it lives."""
        if name == self.name:
            yield False
            return
        file = _lock(self._folder / name)
        try:
            yield file is not None
        finally:
            if file is not None:
                os.close(file)


def _first_free(folder: Path) -> tuple[str, int]:
    number = 0
    while True:
        file = _lock(folder / f"slot-{number}")
        if file is not None:
            return f"slot-{number}", file
        number += 1


def _lock(path: Path) -> int | None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
