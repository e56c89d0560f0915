"""Commands that decide: `decide` for every mixture of answers, and a short form for each answer."""

from typing import TYPE_CHECKING, Annotated

import typer

from clearance.cli.options import Json, options_of
from clearance.errors import InvalidInputError

if TYPE_CHECKING:
    from clearance.cli.settling import Answers
    from clearance.review import Review

ReviewName = Annotated[
    str, typer.Argument(metavar="REVIEW", help="The review's id, or a part of it that no other has.")
]
CallName = Annotated[
    str | None, typer.Argument(metavar="CALL", help="The call's number as `show` gives it, or its id.")
]
Version = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The version that you saw; needed once a review has changed."),
]
Wait = Annotated[
    float | None, typer.Option(min=0.0, metavar="SECONDS", help="Wait for the run, and print its answer.")
]
Message = Annotated[
    str, typer.Option("-m", "--message", metavar="TEXT", help="Your reason, which the agent is told.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (decide, approve, edit, reject, respond):
        app.command()(command)


def decide(
    ctx: typer.Context,
    review: ReviewName,
    *,
    approve: Annotated[
        list[str] | None, typer.Option(metavar="CALL", help="Let this call run; repeatable.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="CALL", help="Do not let it run; repeatable.")
    ] = None,
    edit: Annotated[
        list[str] | None,
        typer.Option(metavar="CALL=FILE", help="Let it run with the arguments in FILE; repeatable."),
    ] = None,
    respond: Annotated[
        list[str] | None,
        typer.Option(metavar="CALL=FILE", help="Give the agent this text as the result; repeatable."),
    ] = None,
    message: Message = "",
    version: Version = None,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Decide the calls of a review, each its own way.

    Every call that waits needs an answer: all of them are taken, or none.
    """
    from clearance.cli.editing import read_arguments, read_text
    from clearance.cli.references import find_call
    from clearance.cli.settling import Answers, Request, settle, with_message

    def collect(found: "Review") -> Answers:
        said = Answers()
        for name in reject or ():
            said.add(find_call(found, name), with_message({"type": "reject"}, message))
        note = "" if reject else message
        for name in approve or ():
            said.add(find_call(found, name), with_message({"type": "approve"}, note))
        for pair in edit or ():
            name, file = _pair(pair, "--edit")
            action = {"args": read_arguments(file)}
            said.add(find_call(found, name), with_message({"type": "edit", "edited_action": action}, note))
        for pair in respond or ():
            name, file = _pair(pair, "--respond")
            said.add(find_call(found, name), {"type": "respond", "message": read_text(file)})
        if not said.by_call:
            raise InvalidInputError("Say what is decided: --approve, --reject, --edit or --respond.")
        return said

    settle(Request(options_of(ctx, as_json=as_json), review, version, wait), collect)


def approve(
    ctx: typer.Context,
    review: ReviewName,
    call: CallName = None,
    *,
    message: Message = "",
    version: Version = None,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Let calls run, exactly as shown."""
    from clearance.cli.settling import Request, all_alike, settle, with_message

    request = Request(options_of(ctx, as_json=as_json), review, version, wait)
    settle(request, lambda found: all_alike(found, call, with_message({"type": "approve"}, message)))


def edit(
    ctx: typer.Context,
    review: ReviewName,
    call: CallName = None,
    *,
    args: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the arguments from here (- is standard input)."),
    ] = None,
    message: Message = "",
    version: Version = None,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Let a call run with other arguments.

    They come from a file, or you change them in your editor (VISUAL, EDITOR). A file that is left unchanged
    decides nothing.
    """
    from clearance.cli.editing import edited_arguments, read_arguments
    from clearance.cli.references import find_call
    from clearance.cli.settling import Request, all_alike, only_one, settle, with_message

    def collect(found: "Review") -> "Answers | None":
        name = call if call is not None else found.waiting[0].key
        only_one(found, name)
        target = find_call(found, name)
        text = read_arguments(args) if args else edited_arguments(target.arguments, tool=target.tool)
        if text is None:
            return None
        return all_alike(
            found, name, with_message({"type": "edit", "edited_action": {"args": text}}, message)
        )

    settle(Request(options_of(ctx, as_json=as_json), review, version, wait), collect)


def reject(
    ctx: typer.Context,
    review: ReviewName,
    call: CallName = None,
    *,
    message: Message = "",
    version: Version = None,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Do not let calls run."""
    from clearance.cli.settling import Request, all_alike, settle, with_message

    request = Request(options_of(ctx, as_json=as_json), review, version, wait)
    settle(request, lambda found: all_alike(found, call, with_message({"type": "reject"}, message)))


def respond(
    ctx: typer.Context,
    review: ReviewName,
    call: CallName = None,
    *,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="The result for the agent.")] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Take the result from here (- is standard input).")
    ] = None,
    version: Version = None,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Answer in the tool's place; nothing runs.

    The agent gets your text as the result of the call.
    """
    from clearance.cli.editing import read_text
    from clearance.cli.settling import Request, all_alike, settle

    if (text is None) == (file is None):
        raise InvalidInputError("Give the result with --text or --file, one of them.")
    result = text if text is not None else read_text(file or "-")
    request = Request(options_of(ctx, as_json=as_json), review, version, wait)
    settle(request, lambda found: all_alike(found, call, {"type": "respond", "message": result}))


def _pair(given: str, option: str) -> tuple[str, str]:
    """Return the call and the file of CALL=FILE."""
    name, equals, file = given.partition("=")
    if not equals or not name or not file:
        raise InvalidInputError(f"{option} takes CALL=FILE, such as 1=arguments.json; got {given!r}.")
    return name, file
