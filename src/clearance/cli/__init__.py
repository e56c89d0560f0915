"""The command line: `clearance COMMAND`, also as `python -m clearance`.

Each file of commands has `register(app)`, which adds them. Files are imported at every start, so they load
what is heavy (the workspace, LangGraph, a database driver) only inside their functions.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from clearance.cli.commands import Commands
from clearance.cli.options import Options

FILES = (
    "demo",
    "chat",
    "worker",
    "reading",
    "deciding",
    "claiming",
    "rules",
    "agents",
    "audit",
    "backup",
    "doctor",
    "serve",
    "people",
    "keys",
    "channels",
    "retention",
    "policy",
    "pipeline",
)


def main() -> None:
    """Run the command that the process was started with, and end the process."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that lacks a character gets its code, not a crash.
            reconfigure(errors="backslashreplace")
    build()(prog_name="clearance")


def build() -> typer.Typer:
    """Return the whole program."""
    app = typer.Typer(
        cls=Commands,
        add_completion=False,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_globally)
    for name in FILES:
        if find_spec(f"clearance.cli.{name}") is not None:
            import_module(f"clearance.cli.{name}").register(app)
    return app


def _globally(
    ctx: typer.Context,
    *,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            "--workspace",
            metavar="FOLDER",
            help="The workspace folder. [CLEARANCE_HOME, else ./workspace]",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="sqlite:///FILE or postgresql://… [CLEARANCE_DATABASE_URL, else in the workspace]",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who you are here. [CLEARANCE_PERSON, else your name on this machine]"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer in JSON, errors too; every command takes it as well.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> None:
    """Nothing runs but what a person cleared, exactly as cleared, at most once, and never lost."""
    ctx.obj = Options(home=home, database=database, person=person, as_json=as_json)
    if version:
        from clearance import __version__

        typer.echo(f"clearance {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
