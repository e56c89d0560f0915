"""Editing arguments: in the person's own editor, or taken from a file; exact either way."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from clearance.errors import InvalidInputError, SettingsError
from clearance.toolcall import canonical, parse_arguments
from clearance.visible import visible_json

_FALLBACK = "vi"


def read_text(name: str) -> str:
    """Return what a file holds, `-` being standard input. Raises `InvalidInputError`."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{name} is not UTF-8 text.") from None


def read_arguments(name: str) -> str:
    """Return the arguments that a file holds, as its text; it must be one JSON object, read strictly."""
    text = read_text(name)
    parse_arguments(text)
    return text


def edited_arguments(arguments: str, *, tool: str) -> str | None:
    """Let the person change arguments in `$VISUAL` or `$EDITOR`; return the new text, None when unchanged.

    The file shows the exact JSON, with escapes for what would not be seen. Raises `InvalidInputError` for
    what is no JSON object, `SettingsError` when the editor cannot be used.
    """
    before = parse_arguments(arguments)
    with tempfile.TemporaryDirectory(prefix="clearance-") as folder:
        file = Path(folder) / f"{tool.replace('/', '_')}.json"
        file.write_text(visible_json(before) + "\n", encoding="utf-8")
        _open_editor(file)
        text = read_text(str(file))
    after = parse_arguments(text)
    return None if canonical(after) == canonical(before) else text


def _open_editor(file: Path) -> None:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALLBACK
    try:
        code = subprocess.run([*shlex.split(named), str(file)], check=False).returncode
    except (OSError, ValueError):
        raise SettingsError(
            f"The editor {named!r} cannot be started. Set EDITOR, or give the arguments with --args FILE."
        ) from None
    if code != 0:
        raise InvalidInputError(f"The editor ended with code {code}; nothing was decided.")
