"""Files and functions stay small enough to be read in one go."""

import ast

from tests.house.sources import ALL_FILES, PRODUCT_FILES, called, parsed

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 50


def test_a_file_has_at_most_400_lines() -> None:
    lines = {called(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ALL_FILES}
    too_long = {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_FILE}
    assert not too_long, f"split them by meaning: {too_long}"


def test_a_function_has_at_most_50_lines() -> None:
    too_long = [
        f"{called(path)}:{node.lineno} {node.name} has {lines} lines"
        for path in PRODUCT_FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    ]
    assert not too_long, too_long
