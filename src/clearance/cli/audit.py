"""Commands on the trail: `audit list`, `audit verify`, `audit export`, `audit key`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from clearance.cli.options import Json, opened, options_of
from clearance.cli.screen import line, notice, out, print_json, shown, working

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.proof import Report
    from clearance.tampering import Problem

BAD = 1

Key = Annotated[
    Path | None,
    typer.Option(
        "--key", help="The public key (PEM), kept outside. [the workspace's own, no proof by itself]"
    ),
]
Head = Annotated[
    str | None, typer.Option("--expect-head", help="A seal noted elsewhere, as `verify` names it.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command(name="list")(list_entries)
    group.command()(verify)
    group.command()(export)
    group.command()(key)
    app.add_typer(group, name="audit", help="Look into the trail, check it, export it.")


def list_entries(
    ctx: typer.Context,
    *,
    after: Annotated[int, typer.Option(min=0, help="Begin after this number.")] = 0,
    subject: Annotated[str | None, typer.Option(help="Only about this run, review or call.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many entries at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List entries of the trail, oldest first."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.export import entry_record
        from clearance.store import audit

        with c.database.read() as tx:
            found = audit.read_after(tx, after, limit=limit, subject=subject)
            waiting = audit.standing(tx).waiting
    if options.as_json:
        print_json([entry_record(entry) for entry in found])
        return
    console = out()
    for entry in found:
        lead = Text(f"{entry.seq:>6}  {entry.time:%Y-%m-%d %H:%M:%S}  ", "dim").append(
            f"{entry.kind:<18} ", ""
        )
        line(console, shown(entry.subject).append(f"  {entry.actor}", "dim"), lead=lead)
    if not found:
        line(console, "There are no such entries.")
    if waiting:
        notice("Some entries have no number yet, and are not listed; a worker numbers them.")


def verify(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="An export to check; without it, the workspace.")
    ] = None,
    *,
    key: Key = None,
    expect_head: Head = None,
    as_json: Json = False,
) -> None:
    """Check that no entry was altered, deleted, inserted, moved or cut off. Exits with 1 where one was."""
    options = options_of(ctx, as_json=as_json)
    if file is not None:
        report = _verify_file(file, key=key, expect_head=expect_head)
    else:
        with opened(options) as c, working("Checking the trail"):
            report = _verify_workspace(c, key=key, expect_head=expect_head)
    if options.as_json:
        from clearance.export import report_record

        print_json(report_record(report))
    else:
        _draw(report, own_key=key is None and file is None)
    if not report.ok:
        raise typer.Exit(BAD)


def export(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Where to; without it, standard output.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Write the trail as JSON lines that can be checked far from here. Only what has a number is in it."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.errors import SettingsError
        from clearance.export import export_lines
        from clearance.store.trail import trail

        stored = trail(c.database)
        lines = export_lines(stored.entries, stored.seals, extent=stored.extent)
        if file is None:
            for each in lines:
                sys.stdout.buffer.write(each)
            sys.stdout.buffer.flush()
            return
        try:
            with working("Writing the trail"), file.open("wb") as target:
                target.writelines(lines)
        except OSError as error:
            raise SettingsError(f"{file} cannot be written: {error.strerror}") from error
    if options.as_json:
        print_json({"export": str(file)})
    else:
        notice(f"Check it with: clearance audit verify {file} --key notary.pub")


def key(ctx: typer.Context, *, as_json: Json = False) -> None:
    """Print the public key of the seals, to be kept where nobody of this workspace can change it."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.audit import public_keys

        pem = _own_keys(c)
        ids = list(public_keys(pem))
    if options.as_json:
        print_json({"key_ids": ids, "pem": pem.decode()})
    else:
        sys.stdout.write(pem.decode())


def _verify_workspace(c: "Clearance", *, key: Path | None, expect_head: str | None) -> "Report":
    from clearance.proof import verify as check
    from clearance.store.trail import trail

    public = _own_keys(c) if key is None else _read(key)
    stored = trail(c.database)
    return check(
        stored.entries, stored.seals, public_key=public, expect_head=expect_head, extent=stored.extent
    )


def _verify_file(file: Path, *, key: Path | None, expect_head: str | None) -> "Report":
    from clearance.errors import NotFoundError
    from clearance.export import verify_export

    public = None if key is None else _read(key)
    try:
        with file.open("rb") as lines:
            return verify_export(lines, public_key=public, expect_head=expect_head)
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from error


def _own_keys(c: "Clearance") -> bytes:
    from clearance.assembly import PRIVATE
    from clearance.notary import published_keys

    return published_keys(c.home / PRIVATE / "notary.key")


def _read(path: Path) -> bytes:
    from clearance.errors import NotFoundError

    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"The key {path} cannot be read: {error.strerror}") from error


def _draw(report: "Report", *, own_key: bool) -> None:
    console = out()
    mark = Text("✓ ", "green") if report.ok else Text("✗ ", "bold red")
    first, *others = report.problems or (None,)
    line(console, shown(f"{report.summary}{_line_of(first)}"), lead=mark)
    for problem in others:
        line(console, shown(f"{problem.message}{_line_of(problem)}"), lead="  ")
    if report.ok and report.head:
        line(console, Text(f"Last seal: {report.head}", "dim"), lead="  ")
    if report.ok and own_key:
        notice(
            "Checked with the key of the workspace itself. For proof, keep `clearance audit key` elsewhere."
        )


def _line_of(problem: "Problem | None") -> str:
    return f" (line {problem.line})" if problem is not None and problem.line is not None else ""
