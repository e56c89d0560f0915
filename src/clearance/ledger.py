"""What the ledger's transactions share: the database, this process's name, and what a started call is."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from clearance.outcome import CallState, Outcome, uncertain
from clearance.program import Programs
from clearance.settlement import Wake
from clearance.store.calls import LedgerRow
from clearance.store.database import Database
from clearance.toolcall import Tool


@dataclass(frozen=True)
class Ledger:
    """The surroundings of `taking` and `keeping`. `worker` names this process and no other, ever."""

    database: Database
    programs: Programs
    wake: Wake
    worker: str
    new_id: Callable[[], str]


@dataclass(frozen=True)
class Taken:
    """A started call: its clearance is used, and until its outcome is kept that is unknown."""

    key: str
    attempt: int
    run_id: str
    thread_id: str
    tool: Tool
    arguments: str

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at the call."""
        return self.key


@dataclass(frozen=True)
class Refused:
    """The call may not run as things stand."""


@dataclass(frozen=True)
class Underway:
    """The call was started and has not ended. `superseded`: by a segment that lost the thread since."""

    taken: Taken
    worker: str | None
    superseded: bool
    overdue: bool


def new_id() -> str:
    """Return a fresh id: 64 random bits in hex."""
    return secrets.token_hex(8)


def due(now: datetime, tool: Tool) -> datetime:
    """Return when a call that starts now has passed its tool's time limit."""
    return now + timedelta(seconds=tool.timeout)


def outcome_of(row: LedgerRow) -> Outcome:
    """Return how a call of the ledger ended, or that it is uncertain."""
    text = uncertain(row.tool) if row.state is CallState.UNCERTAIN else row.result or ""
    return Outcome(
        key=row.key,
        state=row.state,
        tool=row.tool,
        arguments=row.arguments,
        text=text,
        artifact=row.artifact,
    )
