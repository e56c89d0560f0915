"""Research runs over HTTP, as tests start them and wait for them."""

import time
from collections.abc import Mapping
from typing import Any

from tests.web.served import OWNER, Served

API = "/api/v1/pipeline"
OBJECTIVE = "base composition and codon usage"
"""Short runs: an objective that few methods serve."""
BRCA1: Mapping[str, Any] = {"symbol": "BRCA1", "offline": True, "objective": OBJECTIVE}
PATIENCE = 60.0


def start(served: Served, *, by: str = OWNER, **more: Any) -> str:
    """Start a run, and return its id once its plan waits."""
    answer = served.http.post(API, json={**BRCA1, **more}, headers=served.key(by))
    assert answer.status_code == 200, answer.text
    run_id: str = answer.json()["run_id"]
    found = wait(served, run_id)
    assert found["interrupted"], found
    return run_id


def wait(served: Served, run_id: str) -> dict[str, Any]:
    """Return a run as soon as it waits for people, or has ended."""
    until = time.monotonic() + PATIENCE
    while True:
        found: dict[str, Any] = served.http.get(f"{API}/{run_id}", headers=served.key()).json()
        if found["interrupted"] and found["stage"].endswith("_pending"):
            return found
        if found["state"] in ("done", "failed", "cancelled"):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.02)
