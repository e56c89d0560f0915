"""Assembly: builds every object of a process, once, and gives them back together."""

import getpass
import os
import secrets
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.engine import Engine
from clearance.engine.embedded import EmbeddedEngine
from clearance.engine.slots import folder_of
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.ledger import Ledger
from clearance.notary import Notary, SigningKey
from clearance.people import Person, Role
from clearance.program import Program, Programs
from clearance.store import audit, people, policies, runs
from clearance.store.database import Database, retrying
from clearance.worker import Worker

if TYPE_CHECKING:
    from clearance.adapters.checkpoints import FencedSaver

PRIVATE = ".clearance"


@dataclass
class Clearance:
    """One workspace, as this process uses it. Close it, or use it in a `with` statement.

    `person` is who acts here by default: the local user. `home` is the workspace folder.
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
    _saver: threading.local = field(default_factory=threading.local)
    _savers: list["FencedSaver"] = field(default_factory=list)

    def register(self, program: Program) -> None:
        """Make a program known here, and its tools and policy in the workspace."""
        self.programs.register(program)
        with self.database.write() as tx:
            now = self.database.now(tx)
            policies.register_tools(tx, program.name, program.tools.values())
            if policies.activate(tx, program.name, program.policy, now=now):
                facts = {"program": program.name, "version": program.policy.version}
                kind = AuditKind.POLICY_ACTIVATED
                audit.write(tx, kind, program.name, actor=self.person, now=now, facts=facts)

    def checkpointer(self) -> "FencedSaver":
        """Return this thread's LangGraph checkpointer: a file beside the SQLite database, or PostgreSQL."""
        from clearance.adapters.checkpoints import open_checkpointer

        saver: FencedSaver | None = getattr(self._saver, "saver", None)
        if saver is None:
            saver = open_checkpointer(self.database.url.render_as_string(hide_password=False))
            self._saver.saver = saver
            self._savers.append(saver)
        return saver

    def close(self) -> None:
        """End the worker of this process and close every connection. What was not finished goes on later."""
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


def open_workspace(
    url: str | None = None,
    *,
    home: Path | str | None = None,
    person: str | None = None,
    worker: bool = True,
    segments: int | None = None,
) -> Clearance:
    """Open a workspace, made when there is none, and start a worker in this process unless told not to.

    `url` is `sqlite:///FILE` or `postgresql://…`; without it `CLEARANCE_DATABASE_URL`, else `clearance.db`
    in the workspace folder. `person` is who acts here; default: the local user.
    Raises `SettingsError` for what cannot be used, `StoreError` when the database is away.
    """
    from clearance.settings import Settings

    settings = Settings.read()
    folder = Path(home) if home is not None else settings.home
    if url is None:
        url = settings.database_url if home is None else None
        url = url or f"sqlite:///{folder / 'clearance.db'}"
    database = Database(url)
    if database.path is not None and home is None:
        folder = database.path.parent
    retrying(lambda: prepare(database))
    built = _build(database, folder, segments=segments or settings.segments)
    built.person = _local_person(built, person or settings.person or _user_name())
    if worker:
        built.worker.start()
    return built


def prepare(database: Database) -> None:
    """Bring every table of a workspace to its newest form; safe when several processes start at once."""
    database.migrate()
    if not database.is_sqlite:
        from clearance.engine.procrastinate import setup

        setup(database)


def _build(database: Database, home: Path, *, segments: int) -> Clearance:
    programs = Programs()
    private = home / PRIVATE
    engine = _engine(database, segments=segments)

    def wake(tx: Connection, thread_id: str) -> None:
        runs.want(tx, thread_id)
        thread = runs.thread(tx, thread_id)
        if thread is not None and not thread.caller_driven:
            engine.wake(tx, thread_id, program=thread.program)

    ledger = Ledger(database, programs, wake, worker=_process_name(), new_id=new_id)
    gate = Gate(database, programs=programs, wake=wake, new_id=new_id)
    execution = Execution(ledger)
    notary = Notary(database, SigningKey.load_or_create(private / "notary.key"))
    worker = Worker(ledger, gate, execution, engine, notary)
    return Clearance(home, database, programs, engine, ledger, gate, execution, worker, person="")


def _engine(database: Database, *, segments: int) -> Engine:
    if database.path is not None:
        return EmbeddedEngine(database, slots=folder_of(database.path), threads=segments)
    from clearance.engine.procrastinate import ProcrastinateEngine

    return ProcrastinateEngine(database, concurrency=segments)


def _local_person(built: Clearance, name: str) -> str:
    """Return who acts here. The first to come is made the workspace's one person, an admin."""
    with built.database.write() as tx:
        if not people.nobody(tx):
            return name
        now = built.database.now(tx)
        people.add(tx, Person(id=name, name=name, role=Role.ADMIN), now=now)
        audit.write(tx, AuditKind.PERSON_ADDED, name, actor=name, now=now, facts={"role": Role.ADMIN})
    return name


def new_id() -> str:
    """Return a fresh id: 64 random bits in hex."""
    return secrets.token_hex(8)


def _process_name() -> str:
    """Return a name that no other process ever has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local"
