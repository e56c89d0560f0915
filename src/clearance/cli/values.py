"""Values: arguments of a call, drawn in full and exactly, and what an edit changed in them."""

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from clearance.cli.screen import block, line, shown
from clearance.toolcall import canonical, parse_arguments

FLAG = "▲"
_WIDEST_NAME = 24
_MISSING = object()


def draw_arguments(
    console: Console, arguments: str, *, flags: Mapping[str, str], indent: int = 2, style: str = "bold"
) -> None:
    """Draw every argument under its name, and beside each flagged one why it is pointed out.

    Texts stand in quotation marks, without any escapes, when they have one line, else behind a rule; other
    values are JSON. What would not be seen is a code.
    """
    values = parse_arguments(arguments)
    if not values:
        line(console, Text("no arguments", "dim"), indent=indent)
    width = min(max((shown(name).cell_len for name in values), default=0), _WIDEST_NAME)
    for name, value in values.items():
        why = flags.get(name)
        lead = Text(f"{FLAG} " if why else "  ", "bold yellow").append_text(shown(name, "cyan"))
        lead.append(" " * max(width - shown(name).cell_len, 0) + "  ")
        _draw_value(console, value, lead=lead, indent=indent, style=style)
        if why:
            under = Text(" " * (width + 4)).append(f"{FLAG} ", "bold yellow")
            line(console, shown(why, "yellow"), lead=under, indent=indent)
    for name in flags:
        if name not in values:
            lead = Text(f"{FLAG} ", "bold yellow").append_text(shown(name, "cyan")).append("  ")
            line(console, shown(f"not given; {flags[name]}", "yellow"), lead=lead, indent=indent)


def draw_changes(console: Console, before: str, after: str, *, indent: int) -> None:
    """Draw what differs between two sets of arguments, both values in full."""
    old, new = parse_arguments(before), parse_arguments(after)
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name, _MISSING), new.get(name, _MISSING)
        if was is not _MISSING and now is not _MISSING and canonical(was) == canonical(now):
            continue
        line(console, shown(name, "cyan"), indent=indent)
        for value, mark, style in ((was, "- ", "red"), (now, "+ ", "green")):
            if value is not _MISSING:
                _draw_value(console, value, lead=Text(mark, style), indent=indent + 2, style=style)


def one_line(value: Any) -> Text | None:
    """Return a value as one line, or None when it needs several."""
    if isinstance(value, str):
        return None if "\n" in value else Text('"').append_text(shown(value)).append('"')
    if isinstance(value, dict | list) and value:
        return None
    return shown(json.dumps(value))


def _draw_value(console: Console, value: Any, *, lead: Text, indent: int, style: str) -> None:
    text = one_line(value)
    if text is not None:
        text.stylize(style)
        line(console, text, lead=lead, indent=indent)
        return
    if isinstance(value, str):
        count = value.count("\n") + 1
        title, body = f"a text of {count} lines, {len(value)} characters", value
    else:
        title, body = "JSON", json.dumps(value, ensure_ascii=False, indent=2)
    line(console, Text(title, "dim"), lead=lead, indent=indent)
    block(console, body, indent=indent + 4, style=style)
