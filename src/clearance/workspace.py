"""The workspace: one set of reviews, runs and people, as a process uses it."""

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from clearance.adapters import plain
from clearance.audit import AuditKind
from clearance.conditions import in_time
from clearance.engine import Engine
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.identity import IdentityProvider
from clearance.ledger import Ledger
from clearance.people import SessionLimits
from clearance.policy_checks import check_policy
from clearance.program import Program, Programs
from clearance.retention import Retention
from clearance.store import audit, policies
from clearance.store.database import Database
from clearance.worker import Worker

if TYPE_CHECKING:
    from clearance.adapters.checkpoints import FencedSaver
    from clearance.adapters.transcript import Transcripts

PRIVATE = ".clearance"
"""The folder inside a workspace's that holds the notary's key and the names of its processes."""


@dataclass
class Clearance:
    """One workspace, as this process uses it. Close it, or use it in a `with` statement.

    `person` is who acts here by default: the local user. `home` is the workspace folder.
    `public_url` is where people reach the pages, where that is set; `session_limits` is how long they stay
    signed in, and `identity_provider` where else they may do so;
    `person_decisions` is how many each may make in a minute over HTTP, 0: any number.
    """

    home: Path
    database: Database
    programs: Programs
    engine: Engine
    ledger: Ledger
    gate: Gate
    execution: Execution
    worker: Worker
    person: str
    public_url: str | None = None
    session_limits: SessionLimits = field(default_factory=SessionLimits)
    identity_provider: IdentityProvider | None = None
    person_decisions: int = 0
    _saver: threading.local = field(default_factory=threading.local)
    _savers: list["FencedSaver"] = field(default_factory=list)

    def register(self, program: Program) -> None:
        """Make a program known here, and its tools and policy in the workspace.

        Raises `PolicyError` for rules that could never do what they say.
        """
        check_policy(program.policy, {name: tool.schema for name, tool in program.tools.items()})
        with self.database.write() as tx:
            now = self.database.now(tx)
            policies.register_tools(tx, program.name, program.tools.values())
            last = policies.latest(tx, program.name)
            # What a person applied stays until a person changes it, whatever the code brings.
            applied = last is not None and last.source is policies.Source.APPLIED
            if not applied and policies.activate(tx, program.name, program.policy, now=now):
                facts = {"program": program.name, "version": program.policy.version}
                kind = AuditKind.POLICY_ACTIVATED
                audit.write(tx, kind, program.name, actor=self.person, now=now, facts=facts)
        self.programs.register(replace(program, policy=in_time(program.policy)))

    def run(self, run_id: str) -> AbstractContextManager[None]:
        """Make the calls of cleared functions inside the `with` statement the calls of one run.

        The key of a call is then its function and its number: the n-th call of a function is the same call
        whenever the run is entered again, and gives the result that was kept. `KeyReusedError` where it comes
        with other arguments. Leaving without an exception ends the run, unless one of its calls is open.
        """
        return plain.running(self, run_id)

    def checkpointer(self) -> "FencedSaver":
        """Return this thread's LangGraph checkpointer: a file beside the SQLite database, or PostgreSQL."""
        from clearance.adapters.checkpoints import open_checkpointer

        saver: FencedSaver | None = getattr(self._saver, "saver", None)
        if saver is None:
            saver = open_checkpointer(self.database.url.render_as_string(hide_password=False))
            self._saver.saver = saver
            self._savers.append(saver)
        return saver

    @property
    def retention(self) -> Retention:
        """What removes the values of finished threads."""
        return Retention(self.database, self.home, self.checkpointer)

    @cached_property
    def transcripts(self) -> "Transcripts":
        """The messages of every thread as they are kept, to be read from any thread of this process."""
        from clearance.adapters.checkpoints import open_checkpointer
        from clearance.adapters.transcript import Transcripts

        saver = open_checkpointer(self.database.url.render_as_string(hide_password=False))
        self._savers.append(saver)
        return Transcripts(saver)

    def close(self) -> None:
        """End the worker of this process and close every connection. What was not finished goes on later."""
        plain.closed(self)
        self.worker.stop()
        for saver in self._savers:
            saver.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
