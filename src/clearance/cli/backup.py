"""Commands that copy a workspace: `backup`, `restore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.options import Json, Options, opened, options_of
from clearance.cli.screen import line, notice, out, print_json, working

if TYPE_CHECKING:
    from clearance.backup import Restored


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(backup)
    app.command()(restore)


def backup(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    *,
    as_json: Json = False,
) -> None:
    """Copy the workspace's databases while it is in use. The notary's private key is not copied."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.assembly import PRIVATE
        from clearance.backup import back_up
        from clearance.errors import SettingsError
        from clearance.notary import published_keys

        if c.database.path is None:
            raise SettingsError(
                "On PostgreSQL use the server's own backup (pg_dump). After restoring it, and before any "
                "worker starts, run: clearance restore --mark"
            )
        with working("Copying the workspace"):
            back_up(c.database.path, to=folder, keys=published_keys(c.home / PRIVATE / "notary.key"))
    if options.as_json:
        print_json({"backup": str(folder)})
    else:
        line(out(), f"The workspace is copied to {folder}.")
        notice(f"Bring it back with: clearance --home NEW-FOLDER restore {folder}")


def restore(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="The folder of the backup.")] = None,
    *,
    mark: Annotated[
        bool, typer.Option("--mark", help="The database was brought back by other means: only mark it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring a backup back as a workspace that has none. What was open in it is asked about, never run.

    A copy does not know what ran after it was made: every call that was held, cleared or started in it is
    uncertain now, and open runs end.
    """
    options = options_of(ctx, as_json=as_json)
    if (folder is None) != mark:
        raise typer.BadParameter(
            "Name the backup's folder, or give --mark for a database that is back already."
        )
    found = _mark(options) if folder is None else _restore(folder, options)
    if options.as_json:
        print_json({"uncertain_calls": found.uncertain_calls, "ended_runs": found.ended_runs})
        return
    console = out()
    line(console, "The workspace is back.")
    if found.uncertain_calls:
        calls = "1 call is" if found.uncertain_calls == 1 else f"{found.uncertain_calls} calls are"
        line(console, f"{calls} uncertain, and may have run since the backup. Answer in: clearance inbox")
    if found.ended_runs:
        runs = "1 run has" if found.ended_runs == 1 else f"{found.ended_runs} runs have"
        line(console, f"{runs} ended; the thread takes the next message.")


def _mark(options: Options) -> "Restored":
    with opened(options) as c:
        from clearance.backup import mark_restored

        with working("Looking at what was open"):
            return mark_restored(c.ledger, by=c.person)


def _restore(folder: Path, options: Options) -> "Restored":
    from clearance.assembly import PRIVATE, open_workspace
    from clearance.backup import KEYS, mark_restored, restoring
    from clearance.errors import SettingsError
    from clearance.notary import keep_keys
    from clearance.settings import Settings

    settings = Settings.read()
    if options.database or settings.database_url:
        raise SettingsError("A backup folder becomes a workspace folder: use --home, not a database URL.")
    home = options.home or settings.home
    with working("Restoring the workspace"), restoring(folder, to=home) as database:
        if (folder / KEYS).exists():
            keep_keys(home / PRIVATE / "notary.key", (folder / KEYS).read_bytes())
        url = f"sqlite:///{database}"
        with open_workspace(url, home=home, person=options.person, worker=False) as c:
            return mark_restored(c.ledger, by=c.person)
