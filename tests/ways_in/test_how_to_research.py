"""`docs/how-to/research.md`: every command that it names does what it says."""

import json
import re

import pytest

from tests.house.sources import ROOT
from tests.ways_in.desk import Desk

PAGE = (ROOT / "docs" / "how-to" / "research.md").read_text(encoding="utf-8")
COMMANDS = [
    " ".join(each.split()[1:])
    for each in dict.fromkeys(re.findall(r"clearance pipeline [^`\n|]+", PAGE))
]  # fmt: skip
START = "pipeline start-hitl --symbol BRCA1 --offline"
PLAIN = [words for words in COMMANDS if "RUN" in words]


def _words(desk: Desk, words: str, run_id: str) -> list[str]:
    """Return a command of the page with what a reader puts in."""
    plan = json.loads((desk.home / "runs" / run_id / "plan.v1.json").read_text())
    plan["steps"] = [step for step in plan["steps"] if not step["needs"]][:1]
    mine = desk.home / "mine.json"
    mine.write_text(json.dumps(plan))
    given = {"RUN": run_id, "METHOD": "orf-scan", "FILE": str(mine), '"why"': "another gene"}
    return [given.get(word, word) for word in words.split()]


def test_the_page_names_the_commands_that_there_are() -> None:
    assert START in COMMANDS
    for word in ("show", "diff", "--approve", "--revise", "--edit", "--reject"):
        assert any(word in words for words in PLAIN)


@pytest.mark.parametrize("words", PLAIN)
def test_a_command_of_the_page_works_on_a_run_that_waits(desk: Desk, words: str) -> None:
    started = desk.run(*START.split())
    assert started.exit_code == 0, started.output
    (run_id,) = [folder.name for folder in (desk.home / "runs").iterdir()]
    if words == "pipeline resume RUN":
        # It goes on with a run that waits for nobody.
        assert desk.run("pipeline", "resume", run_id, "--reject", "-m", "no").exit_code == 0
    done = desk.run(*_words(desk, words, run_id))
    assert done.exit_code == 0, done.output
    ends = {
        "--approve": "stage=done ",
        "--edit": "stage=done ",
        "--reject": "stage=hitl_rejected ",
        "--revise": f"run_id={run_id} interrupted=True",
    }
    last = done.stdout.rstrip("\n").rpartition("\n")[2]
    for option, end in ends.items():
        if option in words:
            assert last.startswith(end), done.output


def test_the_report_is_where_the_page_says(desk: Desk) -> None:
    desk.run(*START.split())
    (folder,) = (desk.home / "runs").iterdir()
    done = desk.run("pipeline", "resume", folder.name, "--approve")
    assert done.exit_code == 0, done.output
    for name in ("report.html", *re.findall(r"`(report\.\w+|ro-crate-metadata\.json)`", PAGE)):
        assert (folder / name).is_file(), name
