"""The guide to plain functions does what it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "plain-function.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
[COMMAND] = re.findall(r"^    (clearance .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def _approve(review_id: str, *, command: str = COMMAND) -> None:
    words = shlex.split(command.replace("refund-42/1/1", review_id))
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-m", *words], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_examples_of_the_guide_give_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(program: str, known: dict[str, object]) -> list[str]:
        exec(compile(program, str(GUIDE), "exec"), known)
        return capsys.readouterr().out.splitlines()

    one, many = PROGRAMS
    known: dict[str, object] = {"__name__": "shop"}
    assert run(one, known) == ["refund-42/1/1 waits"]
    _approve("refund-42/1/1")
    assert run(one, known) == ["paying 1999 cents", "{'order': 42, 'paid_cents': 1999}"]
    assert run(one, known) == ["{'order': 42, 'paid_cents': 1999}"]

    run_id = "refunds-2026-03/shop.issue_refund"
    assert run(many, known) == [f"{run_id}/1/1 waits", f"{run_id}/2/1 waits"]
    _approve(f"{run_id}/1/1")
    assert run(many, known) == ["paying 500 cents", f"{run_id}/2/1 waits"]
