"""Engines: how a thread that wants a segment reaches a worker. One port, two deliveries.

Delivery carries no meaning: a worker that is woken reads the thread's row and does what is missing. So a
wake may come twice, late or in another order, and a lost one is found by the engine's own look-out.
"""

from collections.abc import Callable
from typing import Protocol

from sqlalchemy import Connection

Advance = Callable[[str], None]
"""Brings a thread to its next stop; raises nothing."""


class Engine(Protocol):
    """The port. `owner` is the name that a claimed thread carries, None where delivery is exclusive."""

    @property
    def owner(self) -> str | None:
        """The name of this process as an owner of threads."""

    def wake(self, tx: Connection, thread_id: str, *, program: str) -> None:
        """Have a worker advance the thread once this transaction is committed."""

    def work(self, advance: Advance, *, programs: Callable[[], tuple[str, ...]]) -> None:
        """Advance threads of these programs until `stop`, one segment of a thread at a time."""

    def stop(self) -> None:
        """Take no more threads; `work` returns when the running segments have ended."""
