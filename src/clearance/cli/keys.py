"""Commands on keys: `keys add`, `keys list`, `keys revoke`. A key is how a caller over HTTP is known."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, opened, options_of
from clearance.credential import EVERY_SCOPE, Scope, in_words

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.store.keys import Key


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command(name="list")(list_keys)
    group.command()(revoke)
    app.add_typer(group, name="keys", help="Make, list and revoke the keys of callers over HTTP.")


def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is called; an agent's own name.")],
    *,
    agent: Annotated[
        bool, typer.Option("--agent", help="The key of the agent NAME, which proposes and never decides.")
    ] = False,
    behind: Annotated[
        str | None, typer.Option(metavar="PERSON", help="Whom the agent acts for. [you]")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="PERSON", help="The key of a person, who decides with it.")
    ] = None,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(metavar="SCOPE", help="How far it goes: propose, decide, manage; repeatable. [all]"),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="The key only reads.")] = False,
    as_json: Json = False,
) -> None:
    """Make a key and print it. That is the only time: keep it where its caller finds it."""
    if agent == (person is not None):
        raise typer.BadParameter("Say whose key it is: --agent, or --person PERSON.")
    if behind is not None and not agent:
        raise typer.BadParameter("--behind belongs to --agent.")
    if scope and read_only:
        raise typer.BadParameter("A key with a --scope does more than read: leave out --read-only.")
    scopes = () if read_only else scope or EVERY_SCOPE
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.keyring import add_agent, add_key, new_credential

        made = new_credential()
        with _named_people(c):
            owner = person or add_agent(c.database, name, behind=behind or c.person, by=c.person).id
            key = add_key(c.database, name, person=owner, by=c.person, made=made, scopes=scopes)
    from clearance.cli.screen import notice, print_json

    if options.as_json:
        print_json({**_record(key), "key": made.text})
        return
    far = in_words(key.scopes)
    notice(f"The key of {key.person} ({far}). It is shown once, and only its digest is kept:")
    typer.echo(made.text)


def list_keys(ctx: typer.Context, *, as_json: Json = False) -> None:
    """List the keys, revoked ones too. What opens is not kept, and cannot be shown."""
    from clearance.cli.screen import line, out, print_json, shown

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import keys

        with c.database.read() as tx:
            found = keys.listed(tx)
    if options.as_json:
        print_json({"keys": [_record(each) for each in found]})
        return
    if not found:
        line(out(), "There are no keys. Make one: clearance keys add NAME --agent, or --person PERSON")
    for each in found:
        lead = shown(each.name).append(f"  {each.id}  ", "dim")
        line(out(), shown(_told(each)), lead=lead)


def revoke(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The key's name, or its id.")],
    *,
    as_json: Json = False,
) -> None:
    """Let a key open nothing from now on. Its name can be used again."""
    from clearance.cli.screen import notice, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.keyring import revoke_key

        with _named_people(c):
            key = revoke_key(c.database, name, by=c.person)
    if options.as_json:
        print_json({"revoked": key.id, "name": key.name})
        return
    notice(f"The key {key.name} of {key.person} opens nothing any more.")


@contextmanager
def _named_people(c: "Clearance") -> Iterator[None]:
    """Where somebody is not known here, say who is."""
    from clearance.errors import NotFoundError
    from clearance.store import people

    with c.database.read() as tx:
        persons = people.persons(tx)
    try:
        yield
    except NotFoundError as error:
        if not str(error).startswith("Nobody"):
            raise
        who = ", ".join(each.id for each in persons)
        raise NotFoundError(f"{error} Name one of the people of this workspace: {who}.") from error


def _told(key: "Key") -> str:
    used = "never used" if key.used_at is None else f"used {key.used_at:%Y-%m-%d %H:%M} UTC"
    state = used if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%d %H:%M} UTC"
    return f"of {key.person}, {in_words(key.scopes)}, made {key.created_at:%Y-%m-%d %H:%M} UTC, {state}"


def _record(key: "Key") -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "person": key.person,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at.isoformat(),
        "used_at": None if key.used_at is None else key.used_at.isoformat(),
        "revoked_at": None if key.revoked_at is None else key.revoked_at.isoformat(),
    }
