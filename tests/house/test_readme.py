"""The README's example runs as it stands, and every file that it names is there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_run_and_print_the_held_call_and_the_answer(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    held, _, answer = done.stdout.partition("\n")
    assert held == '{"to":"ana@example.org","body":"Hello"}'
    assert "sent to ana@example.org" in answer


def test_every_file_that_it_names_is_there() -> None:
    named = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`((?:tests|docs|src)/[^`]*)`", README)
    missing = [name for name in named if "://" not in name and not (ROOT / name).exists()]
    assert missing == []
