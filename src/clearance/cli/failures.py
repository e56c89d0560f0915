"""Failures: what a command says when it cannot do what it was told, and the exit code it ends with."""

import json
import os
import sys
import traceback
from collections.abc import Sequence

import typer

from clearance.errors import ClearanceError, InvalidInputError, error_code

DEBUG = "CLEARANCE_DEBUG"
BUG, USAGE, INTERRUPTED = 1, 2, 130


def told(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong on stderr, and return the exit code for it."""
    match error:
        case ClearanceError():
            faults = error.faults if isinstance(error, InvalidInputError) else ()
            found = [{"pointer": fault.pointer, "message": fault.message} for fault in faults]
            _say(error_code(error), str(error), as_json=as_json, faults=found)
            return error.exit_code
        case typer.TyperException():
            _say("usage", _usage(error), as_json=as_json)
            return error.exit_code
        case typer.Abort():
            _say("interrupted", "Ended before it was done.", as_json=as_json)
            return INTERRUPTED
        case BrokenPipeError():
            # Who read our output has seen enough; nothing more can be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        case _:
            _say("bug", _bug(error), as_json=as_json)
            if os.environ.get(DEBUG):
                traceback.print_exception(error)
            return BUG


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "clearance"
    message = error.format_message()
    if message.startswith("Usage:"):  # a group without a command: its help is the answer
        return message
    stop = "" if message.endswith((".", "?", "!")) else "."
    return f"{message}{stop} See: {path} --help"


def _bug(error: Exception) -> str:
    how = "" if os.environ.get(DEBUG) else f" {DEBUG}=1 shows where, for a report."
    return f"Something is wrong inside clearance ({type(error).__name__}); this is not your mistake.{how}"


def _say(code: str, message: str, *, as_json: bool, faults: Sequence[dict[str, str]] = ()) -> None:
    if as_json:
        text = json.dumps({"error": code, "message": message, "faults": list(faults)})
    else:
        from clearance.visible import visible

        text = visible(message, lines=True)
    print(text, file=sys.stderr)
