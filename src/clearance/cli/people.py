"""Commands on people: who belongs to the workspace, with which role and groups, and how they get in."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, Options, opened, options_of

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.membership import Link
    from clearance.people import Mode, Person


class RoleName(StrEnum):
    """The roles, as the command line takes them before anything is loaded."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


Id = Annotated[str, typer.Argument(metavar="ID", help="The person's id.")]
Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where the pages are. [CLEARANCE_PUBLIC_URL, else port 8000 here]"),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command(name="list")(list_people)
    group.command()(show)
    group.command()(role)
    group.command()(groups)
    group.command()(link)
    group.command()(join)
    group.command()(disable)
    group.command()(enable)
    app.add_typer(group, name="people", help="Add, list and change the people of the workspace.")


def add(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="What they are called here; it never changes.")],
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Their name. [the id]")] = None,
    role: Annotated[RoleName, typer.Option(help="What they may do.")] = RoleName.REVIEWER,
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="A group they are in; again for more.")
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Let a person in, and print their one-time link.

    By it they set their password. From the second person on nobody decides what they asked for themselves.
    """
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.cli.screen import notice
        from clearance.membership import add_person
        from clearance.people import Mode, Role

        alone = _mode(c) is Mode.SINGLE_USER
        person, made = add_person(
            c.database, id, name=name, role=Role(role.value), groups=group or (), by=c.person
        )
        if alone and not options.as_json:
            notice("You are no longer alone here: from now on nobody decides their own requests.")
        _tell_link(c, options, made, url=url, more=_record(person))


def list_people(
    ctx: typer.Context,
    *,
    role: Annotated[RoleName | None, typer.Option(help="Only those with this role.")] = None,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="Only those in this group.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="Agents too.")] = False,
    as_json: Json = False,
) -> None:
    """List the people, disabled ones too."""
    from clearance.cli.screen import line, out, print_json, shown

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.people import Kind, Role
        from clearance.store import people

        with c.database.read() as tx:
            found = people.listed(
                tx,
                kind=None if agents else Kind.PERSON,
                role=None if role is None else Role(role.value),
                group=group,
            )
            mode = people.mode(tx)
    if options.as_json:
        print_json({"mode": mode.value, "people": [_record(each) for each in found]})
        return
    for each in found:
        line(out(), shown(_told(each)), lead=shown(each.id).append("  ", "dim"))
    if not found:
        line(out(), "Nobody here is that.")


def show(ctx: typer.Context, id: Id, *, as_json: Json = False) -> None:
    """Show one person.

    Their role, groups, how they sign in, and how many sessions and keys they have.
    """
    from clearance.cli.screen import line, out, print_json, shown

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import identities, keys, passwords, people, sessions

        with c.database.read() as tx:
            person = people.person(tx, id)
            now, idle = c.database.now(tx), c.session_limits.idle
            standing = {
                "password": id in passwords.those_with(tx),
                "provider": id in identities.those_with(tx),
                "sessions": len(sessions.open_of(tx, id, now=now, idle=idle)),
                "keys": sum(key.person == id and key.revoked_at is None for key in keys.listed(tx)),
            }
    if options.as_json:
        print_json({**_record(person), **standing})
        return
    line(out(), shown(_told(person)), lead=shown(person.id).append("  ", "dim"))
    ways = [word for word in ("password", "provider") if standing[word]]
    line(out(), f"signs in by {' and '.join(ways)}" if ways else "cannot sign in yet", indent=2)
    line(out(), f"sessions {standing['sessions']}, keys {standing['keys']}", indent=2)


def role(
    ctx: typer.Context,
    id: Id,
    role: Annotated[RoleName, typer.Argument(help="What they may do from now on.")],
    *,
    as_json: Json = False,
) -> None:
    """Give a person another role. The last admin keeps theirs."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.membership import set_role
        from clearance.people import Role

        person = set_role(c.database, id, Role(role.value), by=c.person)
    _tell(options, person, f"{person.name} has the role {person.role} now.")


def groups(
    ctx: typer.Context,
    id: Id,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]...", help="Their groups from now on; none: none.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Put a person into these groups, and out of all others."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.membership import set_groups

        person = set_groups(c.database, id, groups or (), by=c.person)
    _tell(options, person, f"{person.name} is in {_groups(person)} now.")


def link(ctx: typer.Context, id: Id, *, url: Url = None, as_json: Json = False) -> None:
    """Print a link by which a person sets a new password, once.

    It is also the way back in for who lost theirs.
    """
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.membership import invite

        made = invite(c.database, id, by=c.person)
        _tell_link(c, options, made, url=url, more={"id": made.person.id})


def disable(ctx: typer.Context, id: Id, *, as_json: Json = False) -> None:
    """Let a person do nothing here any more.

    Their sessions end, and their keys and links open nothing.
    """
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import membership

        person = membership.disable(c.database, id, by=c.person)
    _tell(
        options,
        person,
        f"{person.name} is disabled. What they approved and did not run yet is asked again where too few "
        "are left.",
    )


def enable(ctx: typer.Context, id: Id, *, as_json: Json = False) -> None:
    """Let a person in again. They sign in anew."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import membership

        person = membership.enable(c.database, id, by=c.person)
    _tell(options, person, f"{person.name} may come in again.")


def join(
    ctx: typer.Context,
    id: Id,
    *,
    subject: Annotated[
        str, typer.Option(metavar="SUBJECT", help="Who they are for the identity provider: its `sub`.")
    ],
    as_json: Json = False,
) -> None:
    """Say that a person is whom the identity provider means by a subject.

    From then on they come in by either way, and are one person.
    """
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import membership
        from clearance.errors import SettingsError

        if c.identity_provider is None:
            raise SettingsError("There is no identity provider here: set CLEARANCE_OIDC_ISSUER first.")
        issuer = c.identity_provider.issuer
        person = membership.join(c.database, id, issuer=issuer, subject=subject, by=c.person)
    _tell(options, person, f"{person.name} comes in through {issuer}, too.")


def _mode(c: "Clearance") -> "Mode":
    from clearance.store import people

    with c.database.read() as tx:
        return people.mode(tx)


def _tell(options: Options, person: "Person", sentence: str) -> None:
    from clearance.cli.screen import notice, print_json

    if options.as_json:
        print_json(_record(person))
        return
    notice(sentence)


def _tell_link(
    c: "Clearance", options: Options, made: "Link", *, url: str | None, more: dict[str, Any]
) -> None:
    from clearance.cli.screen import notice, print_json

    address = f"{(url or c.public_url or 'http://127.0.0.1:8000').rstrip('/')}{made.path}"
    if options.as_json:
        print_json({**more, "link": address, "expires_at": made.expires_at.isoformat()})
        return
    notice(
        f"{made.person.name} sets a password with this link, once, until "
        f"{made.expires_at:%Y-%m-%d %H:%M} UTC. Give it to nobody else; it is shown once:"
    )
    typer.echo(address)


def _told(person: "Person") -> str:
    words = [person.name] if person.name != person.id else []
    words.append(f"{person.role}, {_groups(person)}")
    if person.behind is not None:
        words.append(f"an agent that acts for {person.behind}")
    return "; ".join([*words, *(["disabled"] if person.disabled else [])])


def _groups(person: "Person") -> str:
    found: Sequence[str] = person.groups
    return f"groups {', '.join(found)}" if len(found) > 1 else f"group {found[0]}" if found else "no group"


def _record(person: "Person") -> dict[str, Any]:
    return {
        "id": person.id,
        "name": person.name,
        "kind": person.kind.value,
        "role": person.role.value,
        "groups": list(person.groups),
        "behind": person.behind,
        "disabled": person.disabled,
    }
