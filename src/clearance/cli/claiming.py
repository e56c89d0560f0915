"""Commands that say who is looking at a review: `claim` and `release`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.deciding import ReviewName
from clearance.cli.options import Json, opened, options_of

if TYPE_CHECKING:
    from clearance.assembly import Clearance


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(claim)
    app.command()(release)


def claim(
    ctx: typer.Context,
    review: ReviewName,
    *,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also where somebody else is looking at it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say that you are looking at a review.

    Others see it, and may leave it to you. It holds for 30 minutes, and until you have decided; claim it
    again for longer. It binds nobody: others can decide all the same.
    """
    from clearance.cli.references import find_review
    from clearance.cli.screen import line, out

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        with c.database.read() as tx:
            found = find_review(tx, review)
        made = c.gate.claim(found.id, by=c.person, take_over=take_over)
        if options.as_json:
            _print(c, found.id)
        else:
            line(out(), f"You are looking at it until {made.until:%Y-%m-%d %H:%M:%S} UTC.")


def release(ctx: typer.Context, review: ReviewName, *, as_json: Json = False) -> None:
    """Say that you are no longer looking at a review."""
    from clearance.cli.references import find_review
    from clearance.cli.screen import line, out

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        with c.database.read() as tx:
            found = find_review(tx, review)
        had = c.gate.release(found.id, by=c.person)
        if options.as_json:
            _print(c, found.id)
        else:
            line(out(), "Others see that it is free." if had else "You had not claimed it.")


def _print(c: "Clearance", review_id: str) -> None:
    from clearance.cli.screen import print_json
    from clearance.reading import review_record, whole
    from clearance.store import reviews

    with c.database.read() as tx:
        print_json(review_record(whole(c.database, tx, reviews.review(tx, review_id))))
