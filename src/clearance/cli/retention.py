"""The command that removes values: `retention apply`."""

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.options import Json, opened, options_of

if TYPE_CHECKING:
    from clearance.retention import Applied


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(apply)
    app.add_typer(group, name="retention", help="Remove the values of what has ended long ago.")


def apply(
    ctx: typer.Context,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Everything that ended longer ago than this: 90d, 12w, 36h."),
    ] = None,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="This thread, however new; all of it must have ended.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the values of finished threads, and close them. What happened stays in the trail.

    Arguments, results, messages, answers, comments and files are gone for good; states, fingerprints, who
    decided and when are kept, and the trail still verifies. Backups are not touched.
    """
    from clearance.cli.screen import print_json, working

    age = _age(older_than)
    if (age is None) == (thread is None):
        raise typer.BadParameter("Say what is removed: --older-than TIME, or --thread ID.")
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c, working("Looking" if dry_run else "Removing values"):
        done = c.retention.apply(older_than=age, thread=thread, by=c.person, dry=dry_run)
    if options.as_json:
        print_json({
            "dry_run": done.dry,
            "files_rewritten": done.scoured,
            "threads": [{"thread_id": each, **asdict(removed)} for each, removed in done.threads],
        })  # fmt: skip
        return
    _draw(done)


def _age(text: str | None) -> timedelta | None:
    from clearance.policy_file import duration

    if text is None:
        return None
    found = duration(text)
    if found is None:
        raise typer.BadParameter("A time is written as 90d, 12w, 36h or 1d12h.", param_hint="--older-than")
    return found


def _draw(done: "Applied") -> None:
    from clearance.cli.screen import line, notice, out, shown

    console = out()
    for thread_id, removed in done.threads:
        counts = ", ".join(f"{count} {name}" for name, count in asdict(removed).items() if count)
        line(console, shown(f"{thread_id}: {counts}"))
    count = len(done.threads)
    threads = "1 thread" if count == 1 else f"{count} threads"
    if not count:
        line(console, "Nothing has ended that long ago, or it is closed already.")
    elif done.dry:
        line(console, f"The values of {threads} would be removed. Nothing was changed.")
    else:
        line(console, f"The values of {threads} are removed. Backups still have them.")
    if not done.scoured:
        notice("Others read the database files meanwhile: run this again so that nothing is left in them.")
