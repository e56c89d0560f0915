"""The folder of a run: what it says, what becomes of what is lost or changed in it."""

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from clearance import turns
from clearance.apps.research.state import Stage
from tests.research.pipelines import PATIENCE, Lab

pytestmark = pytest.mark.sqlite_by_day


def test_the_folder_says_what_waits(lab: Lab) -> None:
    lab.start()
    meta = json.loads((lab.research.store.folder("run1") / "meta.json").read_text())
    waiting = lab.waiting()
    assert meta["gene_symbol"] == "BRCA1"
    assert meta["stage"] == "hitl_plan_pending"
    assert meta["hitl"] == {
        "gate": "S4_plan",
        "run_id": "run1",
        "summary": waiting.plan.summary,
        "payload_path": "plan.v1.json",
        "created_at": waiting.review.asked_at.isoformat(),
        "review_id": waiting.review.id,
        "plan_sha256": waiting.plan.sha256,
    }


def test_a_plan_in_the_folder_that_was_edited_by_hand_changes_nothing_and_is_put_aside(lab: Lab) -> None:
    lab.start()
    plan = lab.waiting().plan
    path = lab.research.store.folder("run1") / "plan.v1.json"
    path.write_text(path.read_text().replace("gc-profile", "rm-rf"))
    assert lab.decide("approve").stage is Stage.DONE
    assert sorted(lab.executed()) == sorted(step.method for step in plan.steps)
    assert path.read_text() == plan.text
    assert "rm-rf" in path.with_name("plan.v1.json.changed").read_text()


def test_an_input_that_was_changed_in_the_folder_is_no_input(lab: Lab) -> None:
    lab.start()
    source = lab.waiting().plan.inputs[0]
    path = lab.research.store.path("run1", source.uri)
    path.write_text(">mine\nACGT\n")
    assert lab.decide("approve").stage is Stage.DONE
    assert hashlib.sha256(path.read_bytes()).hexdigest() == source.sha256
    assert path.with_name(f"{path.name}.changed").read_text() == ">mine\nACGT\n"


def lose(folder: Path) -> None:
    """Delete a folder with all that is in it, even while something is still written there."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def test_a_lost_folder_is_made_again(lab: Lab) -> None:
    lab.start()
    folder = lab.research.store.folder("run1")
    lose(folder)
    assert lab.decide("approve").stage is Stage.DONE
    assert {each.name for each in lab.research.store.files("run1")} <= {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    }


def test_a_folder_that_is_lost_while_a_gate_waits_is_made_again_for_who_looks(lab: Lab) -> None:
    lab.start()
    folder = lab.research.store.folder("run1")
    before = meta(lab)
    lose(folder)
    lab.research.rebuild("run1")
    assert meta(lab) == before
    for file in lab.research.store.files("run1"):
        assert hashlib.sha256((folder / file.name).read_bytes()).hexdigest() == file.sha256


def meta(lab: Lab) -> dict[str, Any]:
    """Return what `meta.json` says, once nothing of the run is at work."""
    path = lab.research.store.folder("run1") / "meta.json"
    found: dict[str, Any] = json.loads(path.read_text())
    until = time.monotonic() + PATIENCE
    while found["run"]["state"] == "running" and time.monotonic() < until:
        # The folder is written when the run's row is.
        time.sleep(0.01)
        found = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(
    ("decision", "state", "stage"),
    [("approve", "done", "done"), ("reject", "done", "hitl_rejected")],
)
def test_the_folder_says_how_a_run_has_ended_and_what_was_decided(
    lab: Lab, decision: str, state: str, stage: str
) -> None:
    lab.start()
    assert meta(lab)["last_decision"] is None
    lab.decide(decision, message="because")
    found = meta(lab)
    assert (found["run"]["state"], found["stage"], found["hitl"]) == (state, stage, None)
    assert found["last_decision"] == {"gate": "S4_plan", "decision": decision}


def test_the_folder_says_that_a_plan_was_sent_back_and_that_the_next_one_waits(lab: Lab) -> None:
    lab.start()
    lab.decide("revise", message="m", changes={"exclude": [lab.waiting().plan.steps[-1].method]})
    found = meta(lab)
    assert found["last_decision"] == {"gate": "S4_plan", "decision": "revise"}
    assert (found["hitl"]["payload_path"], found["hitl"]["plan_sha256"]) == (
        "plan.v2.json",
        lab.waiting().plan.sha256,
    )


def test_the_folder_says_that_a_run_was_cancelled_whoever_did_it(lab: Lab) -> None:
    lab.start()
    turns.cancel(lab.workspace.ledger, "run1", by="ann", reason="not needed")
    found = meta(lab)
    assert (found["run"]["state"], found["run"]["reason"], found["hitl"]) == ("cancelled", "not needed", None)


def test_the_folder_says_that_a_run_has_failed(lab: Lab) -> None:
    lab.start(symbol="BRCA9")
    found = meta(lab)
    assert (found["run"]["state"], found["stage"], found["hitl"]) == ("failed", "started", None)
    assert "BRCA1" in found["run"]["reason"]
