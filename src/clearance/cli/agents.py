"""Commands on agents that the breaker has parked: `agents parked`, `agents resume`."""

from typing import Annotated

import typer

from clearance.cli.options import Json, opened, options_of


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(parked)
    group.command()(resume)
    app.add_typer(group, name="agents", help="Agents that proposed too much and are parked.")


def parked(ctx: typer.Context, *, as_json: Json = False) -> None:
    """List the agents that are parked: nothing of them runs."""
    from clearance.cli.screen import line, out, print_json, shown
    from clearance.reading import parked_record

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import parking

        with c.database.read() as tx:
            found = parking.every(tx)
    if options.as_json:
        print_json({"parked": [parked_record(each) for each in found]})
        return
    if not found:
        line(out(), "No agent is parked.")
    for each in found:
        lead = shown(f"{each.agent}  ", "bold")
        line(out(), shown(f"since {each.at:%Y-%m-%d %H:%M:%S} UTC: {each.reason}"), lead=lead)


def resume(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id.")],
    *,
    as_json: Json = False,
) -> None:
    """Let a parked agent go on, as an operator."""
    from clearance.cli.screen import line, out, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.breaker import resume as let_go_on

        let_go_on(c.database, agent, by=c.person)
    if options.as_json:
        print_json({"resumed": agent})
        return
    line(out(), f"The agent {agent} may go on.")
