"""The command `doctor`: what is wrong here, or waits for somebody, and what to do about it."""

from typing import TYPE_CHECKING

import typer
from rich.text import Text

from clearance.cli.options import Json, Options, opened, options_of
from clearance.cli.screen import line, out, print_json, shown, working
from clearance.cli.waiting import anyone_works

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.health import Finding

FAULTY = 1
_MARKS = {"good": ("✓", "green"), "attention": ("!", "yellow"), "fault": ("✗", "bold red")}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(ctx: typer.Context, *, as_json: Json = False) -> None:
    """Check the settings, the workspace, stuck runs and uncertain calls. Exits with 1 for a fault."""
    options = options_of(ctx, as_json=as_json)
    where, found = _look(options)
    if options.as_json:
        print_json({"database": where, "findings": [_record(each) for each in found]})
    else:
        _draw(where, found)
    if any(each.level == "fault" for each in found):
        raise typer.Exit(FAULTY)


def _look(options: Options) -> "tuple[str | None, list[Finding]]":
    """Return which database was looked at, and what was found; that it cannot be opened is a finding."""
    from clearance.errors import SettingsError, StoreError
    from clearance.health import Finding, Level, check_up

    try:
        with opened(options) as c, working("Looking"):
            from clearance.assembly import PRIVATE

            where = c.database.url.render_as_string()
            key = c.home / PRIVATE / "notary.key"
            return where, [*check_up(c.database, key=key, anyone_works=anyone_works(c)), _model(c)]
    except (SettingsError, StoreError) as error:
        advice = "Mend this, then look again: clearance doctor"
        return None, [Finding(Level.FAULT, str(error), advice)]


def _model(c: "Clearance") -> "Finding":
    from clearance.apps.chat.demo import remembered_model
    from clearance.health import Finding, Level
    from clearance.settings import Settings

    model = Settings.read().model or remembered_model(c)
    if model is None:
        return Finding(Level.GOOD, "no model is set (CLEARANCE_MODEL): chat and worker ask for one")
    return Finding(Level.GOOD, f"the model is {model}")


def _record(finding: "Finding") -> dict[str, str]:
    return {"level": finding.level, "what": finding.what, "advice": finding.advice}


def _draw(where: str | None, found: "list[Finding]") -> None:
    console = out()
    if where is not None:
        line(console, shown(where, "dim"), lead=Text("  database  ", "dim"))
    for each in found:
        mark, style = _MARKS[each.level]
        word = "" if each.level == "good" else f"{each.level}: "
        line(console, shown(each.what), lead=Text(f"{mark} {word}", style))
        if each.advice:
            line(console, shown(each.advice, "dim"), lead="  → ")
