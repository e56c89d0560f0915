"""Assembly: builds every object of a process, once, and gives them back together."""

import getpass
import os
import secrets
import socket
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection

from clearance.adapters import plain
from clearance.audit import AuditKind
from clearance.breaker import Limits
from clearance.engine import Engine
from clearance.engine.embedded import EmbeddedEngine
from clearance.engine.slots import folder_of
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.keyring import check_id
from clearance.ledger import Ledger, new_id
from clearance.membership import set_mode, set_sight
from clearance.notary import Notary, SigningKey
from clearance.notices.linking import Linking
from clearance.notices.messenger import Messenger
from clearance.notices.targets import Allowed
from clearance.notices.webhook import Courier
from clearance.people import SYSTEM, Person, Role
from clearance.program import Programs
from clearance.store import audit, people, runs
from clearance.store.database import Database, retrying
from clearance.worker import Worker
from clearance.workspace import PRIVATE, Clearance

__all__ = ["PRIVATE", "Clearance", "new_id", "open_workspace", "prepare"]


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
    allowed = Allowed.read(settings.webhook_allow)
    built = _build(
        database,
        folder,
        segments=segments or settings.segments,
        allowed=allowed,
        public_url=settings.public_url,
        limits=Limits(settings.agent_calls, settings.agent_same_calls),
    )
    built.public_url, built.session_limits = settings.public_url, settings.session_limits
    built.identity_provider, built.person_decisions = settings.identity_provider, settings.person_decisions
    built.person = _local_person(built, person or settings.person or _user_name())
    if settings.people_mode is not None:
        set_mode(database, settings.people_mode, by=built.person)
    if settings.people_see is not None:
        set_sight(database, settings.people_see, by=built.person)
    if settings.retention_days is not None:
        built.worker.retention, built.worker.retain = (
            built.retention,
            timedelta(days=settings.retention_days),
        )
    if worker:
        built.worker.start()
    plain.opened(built)
    return built


def prepare(database: Database) -> None:
    """Bring every table of a workspace to its newest form; safe when several processes start at once."""
    database.migrate()
    if not database.is_sqlite:
        from clearance.engine.procrastinate import setup

        setup(database)


def _build(
    database: Database,
    home: Path,
    *,
    segments: int,
    allowed: Allowed,
    public_url: str | None,
    limits: Limits,
) -> Clearance:
    programs = Programs()
    private = home / PRIVATE
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = _engine(database, segments=segments)

    def wake(tx: Connection, thread_id: str) -> None:
        program = runs.want(tx, thread_id)
        if program is not None:
            engine.wake(tx, thread_id, program=program)

    ledger = Ledger(database, programs, wake, worker=_process_name(), new_id=new_id)
    gate = Gate(database, programs=programs, wake=wake, new_id=new_id, limits=limits)
    execution = Execution(ledger)
    notary = Notary(database, SigningKey.load_or_create(private / "notary.key"))
    messenger = Messenger(database, Linking(private / "links.key"), allowed, public_url)
    worker = Worker(ledger, gate, execution, engine, notary, Courier(database, allowed), messenger)
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
        check_id(name)
        now = built.database.now(tx)
        people.add(tx, Person(id=name, name=name, role=Role.ADMIN), now=now)
        audit.write(tx, AuditKind.PERSON_ADDED, name, actor=name, now=now, facts={"role": Role.ADMIN})
    return name


def _process_name() -> str:
    """Return a name that no other process ever has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _user_name() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "local"
    # A service's own account may well be called so; in the trail it is the product that is.
    return "local" if name.casefold() == SYSTEM else name
