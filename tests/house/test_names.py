"""Every file is named after a thing and says what it is for; nothing is left open or left out."""

import ast
import re
from pathlib import Path

from tests.house.sources import ALL_FILES, TEST_FILES, called, parsed

# Names that say nothing: what lies there belongs somewhere else.
EMPTY_NAMES = {
    "base", "common", "helper", "helpers", "manager", "managers", "misc", "service", "services",
    "util", "utils",
}  # fmt: skip

# Put together, so that this file does not find itself.
OPEN_ENDS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")

WAYS_TO_LEAVE_A_TEST_OUT = {
    "skip", "skipif", "skipIf", "skipUnless", "skipTest", "SkipTest", "xfail", "importorskip",
    "expectedFailure",
}  # fmt: skip


def test_a_file_and_its_folder_are_named_after_a_thing() -> None:
    unnamed = [
        called(path)
        for path in ALL_FILES
        if {word for part in Path(called(path)).with_suffix("").parts for word in part.split("_")}
        & EMPTY_NAMES
    ]
    assert not unnamed, f"name them after what they are about: {unnamed}"


def test_a_file_says_what_it_is_for() -> None:
    silent = [called(path) for path in ALL_FILES if not ast.get_docstring(parsed(path))]
    assert not silent, f"they have no docstring: {silent}"


def test_a_file_leaves_nothing_open() -> None:
    open_ends = [
        f"{called(path)}:{number} {line.strip()}"
        for path in ALL_FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if OPEN_ENDS.search(line)
    ]
    assert not open_ends, open_ends


def test_no_test_is_left_out() -> None:
    left_out = [
        f"{called(path)}:{node.lineno} {name}"
        for path in TEST_FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute | ast.Name)
        and (name := node.attr if isinstance(node, ast.Attribute) else node.id) in WAYS_TO_LEAVE_A_TEST_OUT
    ]
    assert not left_out, left_out
