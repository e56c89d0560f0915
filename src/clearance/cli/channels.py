"""Commands on channels: where people are told of what waits for them. Addresses are secrets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, opened, options_of

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.channel import Channel

_FAILED = 1
Name = Annotated[str, typer.Argument(metavar="NAME", help="The channel's name, or its id.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command(name="list")(list_channels)
    group.command(name="test")(try_one)
    group.command()(enable)
    group.command()(disable)
    group.command()(remove)
    group.command()(deliveries)
    app.add_typer(group, name="channels", help="Say where people are told of what waits for them.")


def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the channel is called.")],
    *,
    address_file: Annotated[
        Path, typer.Option(metavar="FILE", help="Take the address from here (- is standard input).")
    ] = Path("-"),
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="apprise (mail, Slack, Teams and others), or webhook.")
    ] = "apprise",
    person: Annotated[str | None, typer.Option(metavar="PERSON", help="It is for one person.")] = None,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="It is for a group.")] = None,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="It is for everybody of a role.")] = None,
    on: Annotated[
        list[str] | None, typer.Option(metavar="EVENT", help="Tell of this; repeatable. [all but settled]")
    ] = None,
    min_risk: Annotated[
        str, typer.Option(metavar="RISK", help="Tell only of reviews of this risk or a higher one.")
    ] = "low",
    as_json: Json = False,
) -> None:
    """Add a channel. Its address holds secrets: it comes from a file or standard input."""
    served = [(word, whom) for word, whom in (("person", person), ("group", group), ("role", role)) if whom]
    if len(served) != 1:
        raise typer.BadParameter("Say whom the channel is for: --person, --group or --role, one of them.")
    [(serves, whom)] = served
    options = options_of(ctx, as_json=as_json)
    address = _address(address_file)
    with opened(options) as c:
        made = _added(
            c, name, kind=kind, address=address, serves=serves, whom=whom, on=on or [], min_risk=min_risk
        )
    from clearance.cli.screen import notice, print_json

    if options.as_json:
        from clearance.notices.records import channel_record

        print_json({**channel_record(made), "secret": made.secret})
        return
    notice(f"The channel {made.name} is used from now on. Try it: clearance channels test {made.name}")
    if made.secret is not None:
        notice("The secret that its messages are signed with. It is shown once:")
        typer.echo(made.secret)


def _added(
    c: "Clearance",
    name: str,
    *,
    kind: str,
    address: str,
    serves: str,
    whom: str,
    on: list[str],
    min_risk: str,
) -> "Channel":
    from clearance.channel import DEFAULT_EVENTS, ChannelKind, Event, Serves
    from clearance.ledger import new_id
    from clearance.notices.channels import add_channel
    from clearance.policy import Risk

    return add_channel(
        c.database,
        name,
        kind=ChannelKind(_one_of(kind, ChannelKind, "--kind")),
        address=address,
        serves=Serves(serves),
        whom=whom,
        by=c.person,
        id=new_id(),
        allowed=c.worker.messenger.allowed,
        events=[Event(_one_of(each, Event, "--on")) for each in on] or DEFAULT_EVENTS,
        min_risk=Risk(_one_of(min_risk, Risk, "--min-risk")),
    )


def list_channels(ctx: typer.Context, *, as_json: Json = False) -> None:
    """List the channels. Of an address only its scheme is shown."""
    from clearance.cli.screen import line, out, print_json, shown

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import channels

        with c.database.read() as tx:
            found = channels.listed(tx)
    if options.as_json:
        from clearance.notices.records import channel_record

        print_json({"channels": [channel_record(each) for each in found]})
        return
    if not found:
        line(out(), "There are no channels. Add one: clearance channels add NAME --person PERSON")
    for each in found:
        state = "" if each.enabled else ", disabled"
        text = f"{each.shown_address}, {each.serves} {each.whom}, {each.min_risk} risk up{state}"
        line(out(), shown(text), lead=shown(each.name).append("  "))
        line(out(), shown(", ".join(each.events), "dim"), indent=2)


def try_one(ctx: typer.Context, name: Name, *, as_json: Json = False) -> None:
    """Send a message by a channel now, and say whether it was taken. Exits with 1 when it was not."""
    from clearance.cli.screen import notice, print_json, working

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c, working("Sending"):
        from clearance.assembly import new_id
        from clearance.notices.channels import try_channel

        error = try_channel(c.database, name, by=c.person, id=new_id(), allowed=c.worker.messenger.allowed)
    if options.as_json:
        print_json({"channel": name, "taken": error is None, "error": error})
    else:
        notice("It was taken." if error is None else f"It was not taken. {error}")
    if error is not None:
        raise typer.Exit(_FAILED)


def enable(ctx: typer.Context, name: Name, *, as_json: Json = False) -> None:
    """Use a channel again; what waited for it is sent."""
    _switch(ctx, name, enabled=True, as_json=as_json)


def disable(ctx: typer.Context, name: Name, *, as_json: Json = False) -> None:
    """Send nothing by a channel until it is enabled."""
    _switch(ctx, name, enabled=False, as_json=as_json)


def remove(ctx: typer.Context, name: Name, *, as_json: Json = False) -> None:
    """Remove a channel, with what it had still to send."""
    from clearance.cli.screen import notice, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.notices.channels import remove_channel

        gone = remove_channel(c.database, name, by=c.person)
    if options.as_json:
        print_json({"removed": gone.id, "name": gone.name})
        return
    notice(f"The channel {gone.name} is gone.")


def deliveries(
    ctx: typer.Context,
    *,
    undelivered: Annotated[
        bool, typer.Option("--undelivered", help="Only what could not be sent, however often it was tried.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, metavar="N", help="How many at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List what was and will be sent, the newest first."""
    from clearance.cli.screen import line, out, print_json, shown

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import channels
        from clearance.store import deliveries as rows
        from clearance.store.deliveries import DeliveryStatus

        with c.database.read() as tx:
            wanted = DeliveryStatus.UNDELIVERED if undelivered else None
            found = rows.listed(tx, status=wanted, limit=limit)
            names = {each.id: each.name for each in channels.listed(tx)}
    if options.as_json:
        from clearance.notices.records import delivery_record

        print_json({"deliveries": [delivery_record(each, names[each.channel]) for each in found]})
        return
    if not found:
        line(out(), "Nothing." if undelivered else "Nothing was sent yet.")
    for each in found:
        error = f": {each.error}" if each.error else ""
        tries = "1 try" if each.tries == 1 else f"{each.tries} tries"
        text = f"{each.event} {each.subject}, by {names[each.channel]}, {tries}{error}"
        line(out(), shown(text), lead=shown(each.status.value).append("  "))


def _switch(ctx: typer.Context, name: str, *, enabled: bool, as_json: bool) -> None:
    from clearance.cli.screen import notice, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.notices.channels import set_enabled

        found = set_enabled(c.database, name, enabled=enabled, by=c.person)
    if options.as_json:
        from clearance.notices.records import channel_record

        print_json(channel_record(found))
        return
    notice(f"The channel {found.name} is {'used again' if enabled else 'not used until it is enabled'}.")


def _address(file: Path) -> str:
    from clearance.errors import InvalidInputError

    if str(file) == "-":
        if sys.stdin.isatty():
            from clearance.cli.screen import notice

            notice("Write the address, then Enter. It is not shown.")
            from getpass import getpass

            return getpass("").strip()
        return sys.stdin.readline().strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInputError(f"The file {file} cannot be read. Give one that holds the address.") from None


def _one_of(given: str, known: Any, option: str) -> str:
    if given not in tuple(known):
        raise typer.BadParameter(f"{option} is one of {', '.join(known)}.")
    return given
