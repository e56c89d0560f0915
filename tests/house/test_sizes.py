"""Files and functions stay small enough to be read in one go."""

import ast
from pathlib import Path

import pytest

from tests.house.sources import ALL_FILES, PRODUCT_FILES, ROOT, called

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 50


@pytest.mark.parametrize("path", ALL_FILES, ids=called)
def test_a_file_has_at_most_400_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES_OF_A_FILE, f"{called(path)} has {lines} lines: split it by meaning."


@pytest.mark.parametrize("path", PRODUCT_FILES, ids=called)
def test_a_function_has_at_most_50_lines(path: Path) -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    ]
    assert not too_long, too_long
