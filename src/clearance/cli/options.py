"""What every command is told: which workspace, which person, and whether to answer in JSON."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clearance.assembly import Clearance

Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
"""The option that each command has for itself, besides the one of the whole program."""
SINGLE_USER = "Single-user workspace: its one person may decide what they asked for themselves."


@dataclass(frozen=True)
class Options:
    """The options of the whole program; None is: not given, so the environment or the default counts."""

    home: Path | None = None
    database: str | None = None
    person: str | None = None
    as_json: bool = False

    def arguments(self) -> Sequence[str]:
        """Return the same options as another process of this program takes them."""
        given = {"--home": self.home, "--database": self.database, "--person": self.person}
        found = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        return [*found, *(["--json"] if self.as_json else [])]


def invocation(options: Options) -> str:
    """Return how this program is called from here, with the same workspace, for commands to be copied."""
    import os
    import shlex
    import shutil
    import sys

    started, found = Path(sys.argv[0]), shutil.which("clearance")
    program = "clearance"
    if started.name == "__main__.py":
        program = f"{sys.executable} -m clearance"
    elif started.name == program and not (found and os.path.samefile(found, started)):
        # Not on the PATH: as it is when it was started out of an environment, such as by `make demo`.
        program = min(os.path.relpath(started), str(started.absolute()), key=len)
    told = replace(options, as_json=False, database=_without_password(options.database))
    return " ".join([program, *map(shlex.quote, told.arguments())])


def _without_password(url: str | None) -> str | None:
    if url is None:
        return None
    from sqlalchemy.engine import make_url

    return make_url(url).render_as_string(hide_password=True)


def options_of(ctx: typer.Context, *, as_json: bool = False) -> Options:
    """Return the options that a command runs under, its own `--json` included."""
    found: Options = ctx.find_object(Options) or Options()
    return replace(found, as_json=found.as_json or as_json)


@contextmanager
def opened(options: Options, *, make: bool = False, quiet: bool = False) -> Iterator["Clearance"]:
    """Open the workspace that the options name, without a worker in this process.

    Where nobody stands between asking and deciding, that is said on standard error: not to programs, and not
    by a process that another command has started (`quiet`). Raises `NotFoundError` where there is no
    workspace, unless it is to be made.
    """
    from clearance.cli.screen import working

    with working("Opening the workspace"):
        from clearance import logs, tracing
        from clearance.assembly import open_workspace
        from clearance.settings import Settings

        settings = Settings.read()
        url = options.database or settings.database_url
        if not make and not is_there(options):
            raise _nothing_there(options)
        logs.configure(level=settings.log_level, form=settings.log_format)
        tracing.configure()
        found = open_workspace(url, home=options.home, person=options.person, worker=False)
    try:
        if not options.as_json and not quiet:
            _say_mode(found)
        yield found
    finally:
        found.close()


def say_single_user() -> None:
    """Say on standard error that one person asks and decides here."""
    from clearance.cli.screen import notice

    notice(SINGLE_USER)


def _say_mode(c: "Clearance") -> None:
    from clearance.people import Mode
    from clearance.store import people

    with c.database.read() as tx:
        mode = people.mode(tx)
    if mode is Mode.SINGLE_USER:
        say_single_user()


def is_there(options: Options) -> bool:
    """Whether the workspace exists. A database server is only asked when it is opened."""
    file = _file(options)
    return file is None or file.exists()


def _file(options: Options) -> Path | None:
    from clearance.settings import Settings

    settings = Settings.read()
    url = options.database or settings.database_url
    if url is None:
        return (options.home or settings.home) / "clearance.db"
    scheme, _, path = url.partition(":///")
    return Path(path) if scheme.partition("+")[0] == "sqlite" and path else None


def _nothing_there(options: Options) -> Exception:
    """Say so, and make nothing: a reader in the wrong folder would leave a workspace behind."""
    from clearance.errors import NotFoundError

    return NotFoundError(
        f"There is no workspace here: {_file(options)} does not exist. Make one with `clearance demo`, or "
        "name another with --home or --database."
    )
