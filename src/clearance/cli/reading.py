"""Commands that only read: `inbox`, `show`, `runs`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.options import Json, invocation, opened, options_of
from clearance.run import RunState

if TYPE_CHECKING:
    from clearance.reading import Whole
    from clearance.run import Run

_STATE_NAMES = ", ".join(RunState)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(inbox)
    app.command()(show)
    app.command(name="runs")(list_runs)


def inbox(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many reviews at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List what waits for a decision, the riskiest first."""
    from clearance.cli.screen import line, out, print_json
    from clearance.reading import every, review_record

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import listing, reviews

        with c.database.read() as tx:
            found = every(c.database, tx, listing.inbox(tx, limit=limit))
            count = reviews.waiting_count(tx)
    if options.as_json:
        print_json({"waiting": count, "reviews": [review_record(each) for each in found]})
        return
    console = out()
    if not found:
        line(console, "Nothing waits for a decision.")
        return
    for each in found:
        _draw_entry(each, program=invocation(options))
    console.print()
    rest = f" Shown: {len(found)}; more with --limit." if count > len(found) else ""
    line(console, f"{count} {'review waits' if count == 1 else 'reviews wait'}.{rest}")


def show(
    ctx: typer.Context,
    review: Annotated[
        str, typer.Argument(metavar="REVIEW", help="The review's id, or a part of it that no other has.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Draw one review, every argument in full.

    What follows from each decision is said, and what was decided. Texts of people and models come last.
    """
    from clearance.cli.drawing import draw_claims, draw_commands, draw_review
    from clearance.cli.references import find_review
    from clearance.cli.screen import out, print_json, working
    from clearance.reading import review_record, whole
    from clearance.review import ReviewStatus

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        with c.database.read() as tx:
            found = whole(c.database, tx, find_review(tx, review))
        if not options.as_json:
            draw_review(out(), found)
        # Last, because it takes the longest: LangGraph is loaded for it.
        with working("Reading the conversation"):
            said = c.transcripts.model_text(found.review)
    if options.as_json:
        print_json(review_record(found, model_text=said))
        return
    draw_claims(out(), found, model_text=said)
    if found.review.status is ReviewStatus.PENDING:
        draw_commands(out(), found.review, program=invocation(options))


def list_runs(
    ctx: typer.Context,
    *,
    state: Annotated[
        list[RunState] | None,
        typer.Option(metavar="STATE", help=f"Only runs in this state ({_STATE_NAMES}); repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many runs at most.")] = 20,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    from clearance.cli.screen import line, out, print_json
    from clearance.reading import run_record

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import runs, secret_parts

        with c.database.read() as tx:
            found = secret_parts.veiled(tx, runs.list_runs(tx, states=tuple(state or ()), limit=limit))
    if options.as_json:
        print_json({"runs": [run_record(run) for run in found]})
        return
    if not found:
        line(out(), "There are no runs." if not state else "There are no runs in that state.")
    for run in found:
        _draw_run(run)


def _draw_entry(found: "Whole", *, program: str) -> None:
    from clearance.cli.drawing import risk_text
    from clearance.cli.screen import line, out, shown

    review = found.review
    console = out()
    names = ", ".join(call.tool for call in review.waiting)
    console.print()
    line(console, shown(names, "bold"), lead=risk_text(review.risk).append("  "))
    asked = f"asked by {review.requester} in thread {review.thread_id}"
    line(console, shown(f"{asked}, {review.asked_at:%Y-%m-%d %H:%M:%S} UTC", "dim"), indent=3)
    console.print(shown(f"   {program} show {review.id}"))


def _draw_run(run: "Run") -> None:
    from rich.text import Text

    from clearance.cli.screen import line, out, shown
    from clearance.reading import removed

    console = out()
    lead = Text(f"{run.state.value:<9}  ", _STATES.get(run.state, ""))
    lead.append(f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC  ", "dim")
    line(console, shown(run.id), lead=lead)
    line(console, shown(f"thread {run.thread_id}, asked by {run.requester}", "dim"), indent=11)
    said = run.reason or removed(run.redacted_at)
    if said:
        line(console, shown(said), indent=11)


_STATES = {
    RunState.WAITING: "yellow",
    RunState.DONE: "green",
    RunState.FAILED: "red",
    RunState.CANCELLED: "dim",
}
