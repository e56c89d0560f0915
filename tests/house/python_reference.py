"""The reference of the Python names that users import, made from their signatures and docstrings.

`python -m tests.house.python_reference` writes it into `docs/reference/python.md`; a test compares the two.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import EnumType
from importlib import import_module
from typing import Any

from tests.house.sources import ROOT

PAGE = ROOT / "docs" / "reference" / "python.md"
MODULES = ("clearance", "clearance.apps.chat", "clearance.errors", "clearance.testing")
HEAD = """\
# Python reference

Everything that programs import. It is made from the code by `make reference`.
"""


def reference() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(line for name in MODULES for line in _module(name))]).rstrip() + "\n"


def _module(name: str) -> Iterator[str]:
    module = import_module(name)
    yield f"## `{name}`\n"
    for public in sorted(_names(module), key=str.lower):
        yield from _entry(public, getattr(module, public))


def _names(module: Any) -> list[str]:
    declared: list[str] | None = getattr(module, "__all__", None)
    if declared is not None:
        return declared
    own = [name for name in vars(module) if not name.startswith("_")]
    made_here = [name for name in own if getattr(vars(module)[name], "__module__", "") == module.__name__]
    return [name for name in made_here if callable(vars(module)[name])]


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}{_signature(value)}`\n"
    if callable(value):
        yield f"{inspect.getdoc(value) or ''}\n"
    if isinstance(value, EnumType):
        members: dict[str, Any] = dict(value.__members__)
        values = [member.value for member in members.values()]
        yield "Values: " + ", ".join(f"`{each}`" for each in values) + ".\n"
    elif inspect.isclass(value):
        for method, function in sorted(vars(value).items()):
            if inspect.isfunction(function) and not method.startswith("_"):
                yield f"- `{method}{_signature(function)}`: {_first_line(function)}"
        yield ""


def _signature(value: Any) -> str:
    """Return a signature as it is written, which is the same on every Python."""
    if isinstance(value, EnumType) or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    if inspect.isclass(value):
        return _construction(value)
    if not inspect.isfunction(value):
        return ""
    return _written(ast.parse(textwrap.dedent(inspect.getsource(value))).body[0])


def _construction(value: type) -> str:
    """Return how a class is called: its `__init__`, or the fields of a dataclass."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    body = found.body if isinstance(found, ast.ClassDef) else []
    for part in body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _written(part)
    if not is_dataclass(value):
        return ""
    fields = [part for part in body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    shown = [ast.unparse(part) for part in fields if not ast.unparse(part.target).startswith("_")]
    return f"({', '.join(shown)})"


def _written(function: ast.stmt) -> str:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    arguments = ast.unparse(function.args).removeprefix("self, ").removeprefix("self").removeprefix("cls")
    result = ast.unparse(function.returns).strip("'") if function.returns is not None else ""
    return f"({arguments})" + (f" -> {result}" if result not in ("", "None") else "")


def _first_line(function: Any) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
