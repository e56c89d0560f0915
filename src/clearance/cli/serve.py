"""The command `serve`: pages and API in this process, with a worker beside it that is started again."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, Options, invocation, is_there, opened, options_of
from clearance.cli.supervisor import Supervisor
from clearance.cli.worker import Model, Only, Program, check_only, reporter, worker_command

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI
    from uvicorn import Server

    from clearance.assembly import Clearance

GRACE = 3
"""Seconds that requests have to come to their end; streams end at once."""
_LOOK_EVERY = 0.1
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)


def serve(
    ctx: typer.Context,
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Where to listen; 0: any that is free.")
    ] = 8000,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Serve only; workers run elsewhere, and no model is needed.")
    ] = False,
    model: Model = None,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Serve the pages and the API, with a worker beside them.

    SIGTERM and Ctrl-C end both.
    """
    options = options_of(ctx, as_json=as_json)
    report = reporter(options)
    with closing(_listening(host, port)) as listening:
        if not no_worker:
            _check_model(options, model, only=only)
        with opened(options, make=True) as c:
            command = None
            if not no_worker:
                _check_model(options, model, c, only=only)
                command = worker_command(options, model=model, only=only)
            code = _serve(c, options, listening, worker=command, report=report)
    report({"event": "ended", "code": code})
    raise typer.Exit(code)


def _serve(
    c: "Clearance",
    options: Options,
    listening: socket.socket,
    *,
    worker: list[str] | None,
    report: Any,
) -> int:
    """Serve until told to end, or until there can be no worker; return the exit code.

    `worker` starts the working process; None: there is none beside this one.
    """
    from clearance.settings import Settings
    from clearance.web.app import create_app

    server = server_of(create_app(c, routers=program_routers(c), origins=Settings.read().origins))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # While it serves, the server has its own for the first two, and hands on to these when it has ended.
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    _say_where(c, options, listening, report=report)
    supervisor = Supervisor(worker or (), report=report)
    with _supervised(supervisor, server) if worker is not None else _alone():
        server.run(sockets=[listening])
    return supervisor.exit_code


def program_routers(c: "Clearance") -> "list[APIRouter]":
    """Return the routes of the bundled programs that are installed."""
    from clearance.apps.research.setup import is_installed, open_research

    if not is_installed():
        return []
    from clearance.apps.research.routes import routers_of

    return routers_of(open_research(c))


def server_of(app: "FastAPI") -> "Server":
    """Return a server that ends its streams before it waits for what else it answers."""
    from uvicorn import Config, Server

    class Ending(Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.changes.end()
            await super().shutdown(sockets)

    return Ending(
        Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )


@contextmanager
def _supervised(supervisor: Supervisor, server: "Server") -> Iterator[None]:
    """Have a worker as long as this lasts; where there can be none, the server ends as well."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_EVERY):
            if supervisor.ended.is_set():
                server.should_exit = True
                return

    supervisor.start()
    threading.Thread(target=watch, name="worker-watch", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        supervisor.stop()


@contextmanager
def _alone() -> Iterator[None]:
    yield


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that nobody else has. Raises `SettingsError` in one sentence."""
    from clearance.errors import SettingsError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise SettingsError(
            f"Port {port} of {host} cannot be listened on: {_reason(error)}. Name another one with --port."
        ) from error


def _reason(error: OSError) -> str:
    import errno
    import os

    if error.errno == errno.EADDRINUSE:
        return "another process has it"
    return os.strerror(error.errno) if isinstance(error.errno, int) and error.errno > 0 else "no such address"


def _check_model(
    options: Options, model: str | None, c: "Clearance | None" = None, *, only: Program | None
) -> None:
    """Refuse as the worker would, and where there is no workspace before one is made."""
    check_only(model, only)
    if only is Program.RESEARCH:
        return
    if c is None and is_there(options):
        return
    from clearance.apps.chat.demo import remembered_model
    from clearance.apps.chat.models import check_model, named_model
    from clearance.settings import Settings

    settings = Settings.read()
    remembered = None if c is None else remembered_model(c)
    check_model(named_model(model, settings.model, remembered), base_url=settings.model_base_url)


def _say_where(c: "Clearance", options: Options, listening: socket.socket, *, report: Any) -> None:
    from clearance.cli.screen import notice
    from clearance.store import keys

    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with c.database.read() as tx:
        usable = any(key.revoked_at is None for key in keys.listed(tx))
    report({"event": "serving", "url": url, "home": str(c.home)})
    if not usable and not options.as_json:
        notice(f"There is no key yet. Make one: {invocation(options)} keys add NAME --person {c.person}")
    _say_how_to_sign_in(c, options, url, report=report)
    if options.as_json:
        return
    if host not in _LOOPBACK and not (c.public_url or "").startswith("https:"):
        notice(
            "This is plain HTTP, reachable from elsewhere: keys travel as they are. Put TLS in front of it."
        )


def _say_how_to_sign_in(c: "Clearance", options: Options, url: str, *, report: Any) -> None:
    """Where nobody can sign in yet, give the one who started this a link to do so first.

    It goes to a terminal, or to the program that reads the events; never where it would be kept in a log.
    """
    import sys

    from clearance.cli.screen import notice
    from clearance.membership import can_sign_in, first_link

    with c.database.read() as tx:
        if can_sign_in(tx):
            return
    if not options.as_json and not sys.stderr.isatty():
        notice(f"Nobody can sign in yet. Make a link: {invocation(options)} people link {c.person}")
        return
    link = first_link(c.database, by=c.person)
    if link is None:
        return
    # Listening everywhere is no address to open; the machine itself always is one.
    here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    address = f"{c.public_url or here}{link.path}"
    until = link.expires_at.isoformat()
    report({"event": "sign-in", "url": address, "person": link.person.id, "until": until})
    if not options.as_json:
        notice(f"Nobody can sign in yet. Do so as {link.person.id} with this link, once, within a day:")
        typer.echo(address, err=True)
