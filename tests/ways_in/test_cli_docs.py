"""`docs/cli.md` and the program say the same: every command, option, exit code and JSON field."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from clearance import errors
from clearance.apps.chat.models import OFFLINE, PROVIDERS
from clearance.cli import build
from clearance.cli.failures import BUG, INTERRUPTED, USAGE
from clearance.errors import ClearanceError, error_code
from tests.house.sources import ROOT
from tests.ways_in.desk import Desk

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
GENERAL = {"--json", "--help", "-h"}


def _commands(group: Any, path: str = "clearance") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if not hasattr(command, "commands") or command.callback is not None:
            yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")


PROGRAM = get_command(build())
COMMANDS = dict(_commands(PROGRAM))


def _section(path: str) -> str:
    _, _, rest = PAGE.partition(f"\n### `{path}`\n")
    return re.split(r"\n##", rest)[0]


def _options(command: Any) -> set[str]:
    return {
        word
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
        for word in parameter.opts
    }


def _documented_options(text: str) -> set[str]:
    return set(re.findall(r"`(--?[a-z][a-z-]*)(?: [A-Z=]+)?`", text))


def test_every_command_has_its_section_and_every_section_its_command() -> None:
    assert set(re.findall(r"\n### `(.*)`\n", PAGE)) == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_documented_and_none_is_made_up(path: str) -> None:
    table = "\n".join(line for line in _section(path).splitlines() if line.startswith("|"))
    assert _documented_options(table) == _options(COMMANDS[path]) - GENERAL


@pytest.mark.parametrize("path", COMMANDS)
def test_every_argument_is_documented(path: str) -> None:
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "argument":
            assert (parameter.metavar or parameter.name).upper() in _section(path)


def test_the_options_of_the_whole_program_are_documented() -> None:
    _, _, rest = PAGE.partition("\n## Options of the whole program\n")
    assert _documented_options(re.split(r"\n## ", rest)[0]) == _options(PROGRAM) | GENERAL


def _exit_codes() -> dict[int, set[str]]:
    found: dict[int, set[str]] = {0: set(), BUG: {"bug"}, INTERRUPTED: {"interrupted"}, USAGE: {"usage"}}
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, ClearanceError) and each is not ClearanceError:
            # The class alone tells the word; its own constructor may want much more.
            found.setdefault(each.exit_code, set()).add(error_code(each.__new__(each)))
    return found


def test_every_exit_code_and_error_word_is_documented() -> None:
    rows = re.findall(r"\n\| (\d+) \|([^|]*)\|", PAGE)
    assert {int(code): set(re.findall(r"`(\w+)`", words)) for code, words in rows} == _exit_codes()


def test_every_model_that_can_be_named_is_documented() -> None:
    named = set(re.findall(r"\n\| `([a-z]+)(?::NAME)?`", PAGE)) - set(COMMANDS)
    assert {*PROVIDERS, OFFLINE} <= named
    for provider in PROVIDERS.values():
        for word in (provider.extra, *provider.keys):
            assert f"`{word}`" in PAGE


def _fields(value: object) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield name
                if name not in ("args", "flags"):
                    yield from _fields(item)
        case list():
            for item in value:
                yield from _fields(item)


def test_every_field_of_the_json_answers_is_documented(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":1}'))
    desk.hold(("wipe", "{}"))
    answers = [desk.json("show", review.id), desk.json("approve", review.id, "-m", "fine")]
    answers += [desk.json("inbox"), desk.json("runs")]
    undocumented = {name for name in _fields(answers) if f"`{name}`" not in PAGE}
    assert not undocumented
