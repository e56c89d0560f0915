"""The command `worker`: a process that works, and the one in front that starts it again when it dies."""

import os
import signal
import sys
import threading
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, Options, is_there, opened, options_of, say_single_user
from clearance.cli.supervisor import GRACE, Supervisor, tell
from clearance.errors import InvalidInputError
from clearance.people import Mode

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.settings import Settings


class Program(StrEnum):
    """What a worker may advance."""

    CHAT = "chat"
    RESEARCH = "research"


Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The chat's model, such as openai:NAME or offline. [CLEARANCE_MODEL]"),
]
Only = Annotated[
    Program | None,
    typer.Option(
        metavar="WHAT", help="chat, or research, which needs no model. [both, where research is installed]"
    ),
]
_LOOK_EVERY = 0.2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


def worker(
    ctx: typer.Context,
    *,
    model: Model = None,
    only: Only = None,
    grace: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="How long it may finish what it does when ended."),
    ] = GRACE,
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """Work: go on with runs, expire reviews, seal the trail, tell people.

    The work is done in a process of its own, which is started again when it dies. SIGTERM and Ctrl-C end
    both.
    """
    options = options_of(ctx, as_json=as_json)
    if child:
        _work(options, model=model, only=only, grace=grace)
        return
    report = _telling_mode(reporter(options), options)
    supervisor = Supervisor(worker_command(options, model=model, only=only, grace=grace), report=report)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ending.set())
    supervisor.start()
    while not ending.wait(_LOOK_EVERY) and not supervisor.ended.is_set():
        pass
    supervisor.stop(grace=grace)
    report({"event": "ended", "code": supervisor.exit_code})
    raise typer.Exit(supervisor.exit_code)


def worker_command(
    options: Options, *, model: str | None, only: Program | None = None, grace: float = GRACE
) -> list[str]:
    """Return the command that starts the working process."""
    given = {"--model": model, "--only": only}
    named = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    # -P: what lies in the folder where somebody happens to be is not imported.
    program = [sys.executable, "-P", "-m", "clearance", *options.arguments()]
    return [*program, "worker", "--child", "--grace", f"{grace:g}", *named]


def _work(options: Options, *, model: str | None, only: Program | None, grace: float) -> None:
    """Work until told to end, or until so many tools hang that a fresh process is better; then end it."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    threading.Thread(target=_outlive_nobody, args=(stopping,), name="parent", daemon=True).start()
    from clearance.settings import Settings

    settings = Settings.read()
    _check_programs(options, settings, model=model, only=only)
    with opened(options, make=True, quiet=True) as c:
        name = None if only is Program.RESEARCH else _open_chat(c, settings, model=model)
        if only is not Program.CHAT:
            _open_research(c, needed=only is Program.RESEARCH)
        c.worker.start()
        from clearance.store import people

        with c.database.read() as tx:
            mode = people.mode(tx)
        tell("ready", model=name, home=str(c.home), mode=mode.value)
        healthy = watch(c, stopping, most_hung=max(settings.segments // 2, 1))
        in_time = c.worker.stop(grace=grace)
        _seal(c)
        if not in_time:
            print("The time is over; what still ran is looked after by the next worker.", file=sys.stderr)
            _end(healthy=healthy)
    _end(healthy=healthy)


def check_only(model: str | None, only: Program | None) -> None:
    """Refuse a model for a worker that talks to nobody."""
    if only is Program.RESEARCH and model is not None:
        raise InvalidInputError("--model is for the chat, and --only research leaves that out.")


def _check_programs(
    options: Options, settings: "Settings", *, model: str | None, only: Program | None
) -> None:
    """Refuse what could never work before a workspace is made for nothing."""
    check_only(model, only)
    if only is Program.RESEARCH:
        return
    # Where there is no workspace, none remembers a model either.
    if model or settings.model or not is_there(options):
        from clearance.apps.chat.models import check_model, named_model

        check_model(named_model(model, settings.model), base_url=settings.model_base_url)


def _open_chat(c: "Clearance", settings: "Settings", *, model: str | None) -> str:
    from clearance.apps.chat.demo import open_agent
    from clearance.apps.chat.reviewed import ReviewedChat

    agent, name = open_agent(c, settings, model=model)
    ReviewedChat(agent)
    return name


def _open_research(c: "Clearance", *, needed: bool) -> None:
    """Have research runs advanced here, where what they need is installed."""
    from clearance.apps.research.setup import is_installed, open_research

    if needed or is_installed():
        open_research(c)


def _end(*, healthy: bool) -> None:
    """End the process at once: an ordinary exit would wait for segments, and tools may never end."""
    from clearance.tracing import flush

    flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if healthy else 1)


def watch(c: "Clearance", stopping: threading.Event, *, most_hung: int) -> bool:
    """Return when it is time to end; False when the worker's own threads have failed."""
    while not stopping.wait(_LOOK_EVERY):
        if not c.worker.alive:
            return False
        hung = c.execution.overdue()
        if hung >= most_hung:
            tell("handover", hung=hung)
            c.engine.stop()
            _drain(c, stopping)
            return True
    return True


def _drain(c: "Clearance", stopping: threading.Event) -> None:
    """Let the calls that are within their time come to their end, while the successor works."""
    while c.execution.busy() > c.execution.overdue() and not stopping.wait(_LOOK_EVERY):
        pass


def _seal(c: "Clearance") -> None:
    from clearance.errors import StoreError

    try:
        if c.worker.notary is not None:
            c.worker.notary.seal_now()
    except StoreError as error:
        print(f"The trail is sealed by the next worker: {error}", file=sys.stderr)


def _outlive_nobody(stopping: threading.Event) -> None:
    """End when the process in front has ended, however it did: then our standard input is closed."""
    # Not through `sys.stdin`: a thread that waits in there would break the end of the interpreter.
    while os.read(0, 1):
        pass
    stopping.set()


def _telling_mode(report: Any, options: Options) -> Any:
    """Say, when the first process works, that one person asks and decides here, where that is so."""
    told: list[str] = []

    def heard(event: dict[str, Any]) -> None:
        report(event)
        mode = event.get("mode")
        if mode is not None and not told:
            told.append(mode)
            if mode == Mode.SINGLE_USER and not options.as_json:
                say_single_user()

    return heard


def reporter(options: Options) -> Any:
    """Return what tells of events: as lines of JSON, or in a sentence each on standard error."""
    from clearance.cli.screen import err, line, print_json, shown

    def report(event: dict[str, Any]) -> None:
        if options.as_json:
            print_json(event, indent=None)
            return
        text = _sentence(event)
        if text:
            line(err(), shown(f"{time.strftime('%H:%M:%S')}  {text}"))

    return report


def _sentence(event: dict[str, Any]) -> str:
    match event["event"]:
        case "ready":
            return f"The worker works for {event['home']}, {_doing(event['model'])}. Ctrl-C ends it."
        case "serving":
            return f"Serving {event['home']} at {event['url']}. Ctrl-C ends it."
        case "ended":
            return "Ended."
        case "died":
            again = "" if event["final"] else " It is started again."
            return f"The worker ended by itself ({_code(event['code'])}).{again}"
        case "handover":
            return f"{event['hung']} tools hang in the worker; a fresh one takes over."
        case _:
            return ""


def _doing(model: str | None) -> str:
    if model is None:
        return "research runs only"
    return f"model {model}{' (fixed rules, no AI)' if model == 'offline' else ''}"


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
