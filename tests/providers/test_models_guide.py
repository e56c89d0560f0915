"""The guide to models says what is so: its example runs, and its tables and numbers are those of the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from llmock.pytest_plugin import LLMock

from clearance.adapters.langgraph import MAX_AGENT_STEPS, STEPS_PER_TOOL_ROUND
from clearance.adapters.model_calls import RETRIES
from clearance.adapters.model_errors import read_failure
from clearance.apps.chat.models import PROVIDERS, REQUEST_TIMEOUT
from tests.house.sources import ROOT

GUIDE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
PROSE = " ".join(GUIDE.split())
STATUSES = [
    (int(status), tried == "yes")
    for cell, tried in re.findall(r"^\| ([\d, ]+) \| (yes|no) \|", GUIDE, flags=re.MULTILINE)
    for status in cell.split(", ")
]


class Refused(Exception):
    """An error of a provider's client with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status_code = status


def test_the_example_runs_against_a_server_of_ones_own(provider: LLMock, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    given, url = "http://127.0.0.1:8000/v1", provider.base_url("openai")
    assert given in code
    provider.call_tool("send_email", {"to": "ana@example.org", "body": "hello"}).reply("It is sent.")
    done = subprocess.run(
        [sys.executable, "-c", code.replace(given, url)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["send_email waits", "It is sent."]


def test_the_settings_that_it_shows_are_read() -> None:
    named = set(re.findall(r"\bCLEARANCE_[A-Z_]+", GUIDE))
    assert named == {"CLEARANCE_MODEL", "CLEARANCE_MODEL_BASE_URL"}


def test_it_lists_every_provider_with_its_extra_and_its_keys() -> None:
    rows = re.findall(r"^\| `(\w+):NAME` \| `clearance\[(\w+)\]` \| (.*?) \|$", GUIDE, flags=re.MULTILINE)
    listed = {name: (extra, tuple(re.findall(r"`(\w+)`", keys))) for name, extra, keys in rows}
    assert listed == {name: (found.extra, found.keys) for name, found in PROVIDERS.items()}


def test_it_lists_the_statuses_that_the_code_knows() -> None:
    known = [400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 529]
    assert sorted(status for status, _ in STATUSES) == known


@pytest.mark.parametrize(("status", "tried_again"), STATUSES)
def test_a_status_is_tried_again_where_it_says_so(status: int, tried_again: bool) -> None:
    failure = read_failure(Refused(status))
    assert failure is not None
    assert failure.may_pass == tried_again


@pytest.mark.parametrize(
    "said",
    [
        f"tried up to {RETRIES.tries} times",
        f"begins at {RETRIES.first} seconds",
        f"at most {RETRIES.most:.0f} seconds",
        f"more than {RETRIES.longest:.0f} seconds after the first",
        f"for {REQUEST_TIMEOUT:.0f} seconds counts as lost",
        f"room for {MAX_AGENT_STEPS // STEPS_PER_TOOL_ROUND} messages with calls",
    ],
)
def test_its_numbers_are_those_of_the_code(said: str) -> None:
    assert said in PROSE
