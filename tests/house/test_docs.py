"""The documents say what is so: what they name is there, and their examples give what they print."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clearance.settings import Settings
from tests.house import python_reference
from tests.house.sources import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Their examples need surroundings, which tests of their own make.
WITH_OWN_TEST = {"README.md", "docs/how-to/plain-function.md", "docs/models.md"}
_NAMED = re.compile(r"`((?:tests|docs|src|examples|benchmarks)/[^`\s*]*)`")
_LINKED = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_TEST = re.compile(r"`(test_\w+)`")
_BLOCKS = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    named = _NAMED.findall(_text(path))
    linked = [(path.parent / name).resolve() for name in _LINKED.findall(_text(path))]
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing + [_name(each) for each in linked if not each.exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_every_test_that_is_named_is_there(path: Path) -> None:
    tests = "\n".join(_text(each) for each in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"^\s*(?:async )?def (test_\w+)", tests, re.MULTILINE))
    assert [name for name in _TEST.findall(_text(path)) if name not in known] == []


def _examples(path: Path) -> str:
    """Return the programs of a document, one behind the other."""
    return "\n".join(block for kind, block in _BLOCKS.findall(_text(path)) if kind == "python")


def _printed(path: Path) -> list[str]:
    """Return the lines that the document says its programs print: each text block behind a program."""
    blocks = _BLOCKS.findall(_text(path))
    after = [text for (kind, _), (then, text) in itertools.pairwise(blocks) if (kind, then) == PAIR]
    return "".join(after).splitlines()


PAIR = ("python", "text")
WITH_EXAMPLES = [path for path in DOCUMENTS if _examples(path) and _name(path) not in WITH_OWN_TEST]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=_name)
def test_the_examples_print_what_the_document_says(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _examples(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == _printed(path)


def test_every_setting_is_documented() -> None:
    page = _text(ROOT / "docs" / "reference" / "settings.md")
    rows = [line for line in page.splitlines() if line.startswith("| `CLEARANCE_")]
    told = {name for row in rows for name in re.findall(r"`(CLEARANCE_\w+)`", row.split("|")[1])}
    assert told == {f"CLEARANCE_{name.upper()}" for name in Settings.model_fields}


def test_the_reference_of_python_is_what_the_code_says() -> None:
    assert python_reference.PAGE.read_text(encoding="utf-8") == python_reference.reference()
