"""Commands on policies: `policy check`, `test`, `simulate`, `apply`, `show`, `history`, `reset`."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, Options, is_there, opened, options_of

if TYPE_CHECKING:
    from clearance.applying import Known
    from clearance.policy import Policy
    from clearance.store.policies import Activation

ACTIVE = "active"
Program = Annotated[
    str, typer.Option("--program", metavar="NAME", help="The program whose policy it is. [chat]")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The policy, in TOML.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command()(check)
    group.command(name="test")(try_one)
    group.command()(simulate)
    group.command()(apply)
    group.command()(show)
    group.command()(history)
    group.command()(reset)
    app.add_typer(group, name="policy", help="Check, try and apply the rules that say what a call needs.")


def check(ctx: typer.Context, file: File, *, program: Program = "chat", as_json: Json = False) -> None:
    """Say what is wrong with a policy file, and what it may not mean. Nothing is changed."""
    from clearance.cli.screen import line, notice, out, print_json

    options = options_of(ctx, as_json=as_json)
    text = _read(file)
    known = _known(options, program)
    policy = known.read(text)
    warnings = known.warnings(policy, text)
    if options.as_json:
        said = [{"pointer": place, "message": message} for place, message in warnings]
        print_json({"version": policy.version, "rules": len(policy.rules), "warnings": said})
        return
    line(out(), f"The policy can be used: {len(policy.rules)} rules, version {policy.version}.")
    for place, message in warnings:
        notice(f"{file}:{place}: {message}")


def try_one(
    ctx: typer.Context,
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="A file, or `active`.")],
    call: Annotated[Path, typer.Argument(metavar="CALL", help="The call, in JSON; - is standard input.")],
    *,
    program: Program = "chat",
    as_json: Json = False,
) -> None:
    """Say what a policy makes of one call: which rules match, what they read, and who is needed."""
    from clearance.cli.policy_drawing import draw_trial, trial_record
    from clearance.cli.screen import print_json
    from clearance.trial import read_trial, try_call

    options = options_of(ctx, as_json=as_json)
    given = read_trial(_read(call))
    found = try_call(_policy(options, policy, program), given)
    if options.as_json:
        print_json(trial_record(found))
    else:
        draw_trial(found)


def simulate(
    ctx: typer.Context,
    file: File,
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help="Runs of the last TIME: 12h, 30d.")] = "30d",
    program: Program = "chat",
    as_json: Json = False,
) -> None:
    """Judge the calls that are stored by a policy file, beside the active policy. Nothing is changed."""
    from clearance.cli.policy_drawing import draw_simulation, simulation_record
    from clearance.cli.screen import print_json
    from clearance.policy_file import duration

    options = options_of(ctx, as_json=as_json)
    text = _read(file)
    span = duration(since)
    if span is None:
        raise typer.BadParameter(f"{since!r} is no time such as 12h, 30d or 1w.", param_hint="--since")
    with opened(options) as c:
        from clearance.applying import known
        from clearance.simulation import simulate as judged
        from clearance.store import policies

        with c.database.read() as tx:
            then = known(tx, program).read(text)
            today = policies.active(tx, program)
            found = judged(tx, program, today=today, then=then, since=c.database.now(tx) - span)
    if options.as_json:
        print_json(simulation_record(found))
    else:
        draw_simulation(found)


def apply(
    ctx: typer.Context,
    file: File,
    *,
    program: Program = "chat",
    instead_of: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Only if this is still the number of the active policy."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a policy file the active policy of a program, from the next call on, also after a new start."""
    from clearance.cli.screen import line, notice, out, print_json

    options = options_of(ctx, as_json=as_json)
    text = _read(file)
    with opened(options) as c:
        from clearance import applying

        policy, changed = applying.apply(
            c.database, text, program=program, by=c.person, instead_of=instead_of
        )
        with c.database.read() as tx:
            warnings = applying.known(tx, program).warnings(policy, text)
    if options.as_json:
        said = [{"pointer": place, "message": message} for place, message in warnings]
        record = {"program": program, "version": policy.version, "changed": changed, "warnings": said}
        print_json(record)
        return
    state = "is active now" if changed else "was active already"
    line(out(), f"Version {policy.version} {state} in program {program}.")
    for place, message in warnings:
        notice(f"{file}:{place}: {message}")


def show(ctx: typer.Context, *, program: Program = "chat", as_json: Json = False) -> None:
    """Print the active policy of a program: the file as it was applied, or the rules of its code in JSON."""
    from clearance.cli.screen import notice, print_json

    options = options_of(ctx, as_json=as_json)
    found = _history(options, program)[0]
    if options.as_json:
        print_json({"program": program, **_record(found), "policy": found.policy, "text": found.text})
        return
    notice(_told(found))
    if found.text is None:
        print_json(found.policy)
    else:
        from clearance.visible import visible

        sys.stdout.write(visible(found.text, lines=True).rstrip("\n") + "\n")


def history(ctx: typer.Context, *, program: Program = "chat", as_json: Json = False) -> None:
    """List the policies that were active in a program, the newest first."""
    from clearance.cli.screen import line, out, print_json

    options = options_of(ctx, as_json=as_json)
    found = _history(options, program)
    if options.as_json:
        print_json({"program": program, "policies": [_record(each) for each in found]})
        return
    for each in found:
        line(out(), _told(each))


def reset(ctx: typer.Context, *, program: Program = "chat", as_json: Json = False) -> None:
    """Let the policy that the program's code brings count again, in place of an applied one."""
    from clearance.cli.screen import line, out, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        from clearance import applying

        policy = applying.reset(c.database, program=program, by=c.person)
    if options.as_json:
        print_json({"program": program, "version": policy.version})
    else:
        line(out(), f"The code's policy counts again in program {program}: version {policy.version}.")


def _read(path: Path) -> str:
    from clearance.errors import InvalidInputError, NotFoundError

    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is no text in UTF-8 (byte {error.start}).") from error


def _known(options: Options, program: str) -> "Known":
    from clearance.applying import Known, known

    if not is_there(options):
        return Known(tools={}, members=None)
    with opened(options) as c, c.database.read() as tx:
        return known(tx, program)


def _policy(options: Options, named: str, program: str) -> "Policy":
    if named != ACTIVE:
        return _known(options, program).read(_read(Path(named)))
    with opened(options) as c:
        from clearance.store import policies

        with c.database.read() as tx:
            return policies.active(tx, program)


def _history(options: Options, program: str) -> "list[Activation]":
    from clearance.errors import NotFoundError

    with opened(options) as c:
        from clearance.store import policies

        with c.database.read() as tx:
            found = policies.history(tx, program)
            others = policies.programs(tx)
    if not found:
        known = f"There are {', '.join(others)}." if others else "No program was started here."
        raise NotFoundError(f"Program {program} has no policy. {known}")
    return found


def _record(found: "Activation") -> dict[str, Any]:
    return {
        "number": found.number,
        "version": found.version,
        "source": found.source.value,
        "active_since": found.active_since.isoformat(),
    }


def _told(found: "Activation") -> str:
    whence = "from a file" if found.source.value == "applied" else "from the program's code"
    return f"{found.number}  {found.version}  {whence}, since {_when(found.active_since)}"


def _when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
