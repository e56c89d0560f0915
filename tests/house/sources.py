"""The source files that the house tests read."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


PRODUCT_FILES = _python_files("src")
TEST_FILES = _python_files("tests")
ALL_FILES = [
    *PRODUCT_FILES,
    *TEST_FILES,
    *_python_files("examples"),
    *_python_files("benchmarks"),
]


def called(path: Path) -> str:
    """Return what a message calls this file: its path from the project's root."""
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    """Return what this file says, as a tree."""
    return ast.parse(path.read_text(encoding="utf-8"))
