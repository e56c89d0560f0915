"""Commands on standing rules: `rules list`, `rules add`, `rules approve`, `rules revoke`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.options import Json, opened, options_of

if TYPE_CHECKING:
    from clearance.standing import StandingRule

RuleName = Annotated[str, typer.Argument(metavar="RULE", help="The standing rule's id.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command(name="list")(list_rules)
    group.command()(add)
    group.command()(approve)
    group.command()(revoke)
    app.add_typer(group, name="rules", help="Let calls like one that was asked about run without asking.")


def list_rules(
    ctx: typer.Context,
    *,
    every: Annotated[bool, typer.Option("--all", help="Those that are used no more, too.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List standing rules, the newest first."""
    from clearance.cli.screen import line, out, print_json
    from clearance.reading import standing_record

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance.store import standing

        with c.database.read() as tx:
            found = standing.page(tx, every=every, limit=limit)
    if options.as_json:
        print_json({"standing_rules": [standing_record(each) for each in found]})
        return
    if not found:
        line(out(), "There are no standing rules: people are asked about every call that is held.")
    for each in found:
        _draw(each)


def add(
    ctx: typer.Context,
    *,
    review: Annotated[
        str, typer.Option("--from", metavar="REVIEW", help="The review of the call to remember.")
    ],
    uses: Annotated[int, typer.Option(metavar="N", help="How many calls it may clear.")],
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="For how long, such as 8h.")],
    call: Annotated[
        str | None, typer.Option(metavar="CALL", help="Which call, where the review has several.")
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option("--any", metavar="ARGUMENT", help="It may have any value; repeatable."),
    ] = None,
    when: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="A condition in CEL that must hold besides.")
    ] = None,
    thread: Annotated[bool, typer.Option("--thread", help="Only in the thread of the call.")] = False,
    as_json: Json = False,
) -> None:
    """Remember a call, so that others like it need not wait.

    Every argument must be what it was, unless it is named with --any. It is used once as many people approve
    as the call needed; you are the first of them.
    """
    from clearance.cli.references import find_call, find_review
    from clearance.errors import InvalidInputError
    from clearance.policy_file import duration
    from clearance.standing import Terms

    options = options_of(ctx, as_json=as_json)
    time = duration(lasts)
    if time is None:
        raise InvalidInputError(f"--for takes a time such as 90s, 30m, 4h, 2d or 1w; got {lasts!r}.")
    with opened(options) as c:
        from clearance import remembering
        from clearance.ledger import new_id

        with c.database.read() as tx:
            found = find_review(tx, review)
        key = None if call is None else find_call(found, call).key
        terms = Terms(uses, time, free=tuple(free or ()), when=when, thread_only=thread)
        made = remembering.draft(c.database, found.id, terms, by=c.person, rule_id=new_id(), call=key)
    _say(made, as_json=options.as_json)


def approve(ctx: typer.Context, rule: RuleName, *, as_json: Json = False) -> None:
    """Approve of a standing rule that somebody drafted."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import remembering

        found = remembering.approve(c.database, rule, by=c.person)
    _say(found, as_json=options.as_json)


def revoke(ctx: typer.Context, rule: RuleName, *, as_json: Json = False) -> None:
    """Take a standing rule out of use. What it cleared, and has not started, is asked about again."""
    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import remembering

        found = remembering.revoke(c.database, rule, by=c.person)
    _say(found, as_json=options.as_json)


def _say(rule: "StandingRule", *, as_json: bool) -> None:
    from clearance.cli.screen import line, notice, out, print_json
    from clearance.reading import standing_record
    from clearance.standing import StandingState

    if as_json:
        print_json(standing_record(rule))
        return
    _draw(rule)
    if rule.state is StandingState.DRAFTED:
        notice("It is not used yet: more people must approve of it.")
        line(out(), f"clearance rules approve {rule.id}")


def _draw(rule: "StandingRule") -> None:
    from clearance.cli.screen import line, out, shown

    console = out()
    lead = shown(f"{rule.state.value:<8}  ", "bold")
    line(console, shown(f"{rule.tool} of {rule.requester}, in {rule.program}"), lead=lead)
    where = "in every thread" if rule.thread_id is None else f"in thread {rule.thread_id}"
    until = f"{rule.uses_left} of {rule.uses} uses left until {rule.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    line(console, shown(f"{until}, {where}, up to {rule.risk.value} risk", "dim"), indent=10)
    same = [f"{name} = {text}" for name, text in rule.equal.items()]
    same += [f"{name} = any" for name in rule.free]
    same += [rule.when.text] if rule.when is not None else []
    line(console, shown(", ".join(same) or "no arguments"), indent=10)
    names = ", ".join(each.by for each in rule.approvals)
    line(console, shown(f"{rule.id}, by {names}", "dim"), indent=10)
