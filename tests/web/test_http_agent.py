"""The guide for agents over HTTP, and its example, do what they say."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from clearance.store import listing
from tests.house.sources import ROOT
from tests.web.live import serving
from tests.web.served import Served

pytestmark = pytest.mark.sqlite_by_day

GUIDE = (ROOT / "docs" / "how-to" / "http-agent.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^```http\n(\w+) (\S+)\n(.*?)```\n\n```json\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE)
NOT_AGAIN = "Do not try it again unless you are asked to."
EXAMPLE = ROOT / "examples" / "http_agent.py"


def decide(served: Served, **answer: Any) -> None:
    """Decide the one review that waits."""
    with served.workspace.database.read() as tx:
        [review] = listing.inbox(tx)
    served.workspace.gate.decide(review.id, [answer], by="ann", version=review.version)


def test_the_requests_of_the_guide_are_answered_as_it_says(served: Served) -> None:
    served.add_agent("mailer")
    assert len(STEPS) == 4
    for method, path, body, answer in STEPS:
        if path.endswith("/take"):
            decide(served, type="approve")
        given = served.http.request(
            method,
            path,
            content=body or None,
            headers={**served.key("mailer"), "content-type": "application/json"},
        )
        assert given.status_code == 200, given.text
        told = given.json()
        assert {name: told[name] for name in json.loads(answer)} == json.loads(answer)


@pytest.mark.parametrize(
    ("answer", "printed"),
    [
        ({"type": "approve"}, ["sending to ana: Hello", "executed"]),
        (
            {"type": "edit", "edited_action": {"args": {"to": "eve", "text": "Bye"}}},
            ["sending to eve: Bye", "executed"],
        ),
        (
            {"type": "reject", "message": "no"},
            [f"rejected: A reviewer rejected this call; send did not run. {NOT_AGAIN} Reason: no"],
        ),
    ],
)
def test_the_example_runs_what_people_cleared(
    served: Served, answer: dict[str, Any], printed: list[str]
) -> None:
    served.add_agent("mailer")
    key = served.key("mailer")["Authorization"].removeprefix("Bearer ")
    with serving(served.workspace) as address:
        environment = {**os.environ, "CLEARANCE_URL": address, "CLEARANCE_KEY": key}
        command = [sys.executable, str(EXAMPLE), "m-1", "ana", "Hello"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "review mailer:m-1/1/1 waits\n"
            decide(served, **answer)
            assert agent.stdout.read().splitlines() == printed
        again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "sending" not in again.stdout
