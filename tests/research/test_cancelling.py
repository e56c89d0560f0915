"""A run that is cancelled elsewhere: the steps that run here are ended soon."""

import sys
from pathlib import Path
from typing import Never

import clearance
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.report import open_reporter
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.setup import open_research
from clearance.run import RunState
from tests.research.door import Door
from tests.research.jobs_at_hand import QUICK
from tests.research.pipelines import OBJECTIVE, PATIENCE

KNOCK = """
import os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
door.sendall(b"%d\\n" % os.getpid())
door.recv(1)
"""


def test_steps_end_when_their_run_is_cancelled_by_another_process(
    migrated_database_url: str, tmp_path: Path
) -> None:
    with (
        Door() as door,
        clearance.open(migrated_database_url, home=tmp_path, person="ann") as here,
        clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as elsewhere,
    ):
        waits = LocalExecutor(pool=1, command=[sys.executable, "-c", KNOCK, door.path], limits=QUICK)
        research = ResearchRuns(
            here, executors={"local": waits}, reporter=open_reporter, model_named=_no_model
        )
        research.start(ResearchRequest("BRCA1", OBJECTIVE, offline=True), run_id="r1", by="ann")
        research.wait_for("r1", wait=PATIENCE)
        research.decide("r1", HITLDecision.APPROVE, by="ann")
        guest = door.knocked()
        cancelled = open_research(elsewhere).cancel("r1", by="ann", reason="enough")
        guest.wait_for_its_end()
        assert cancelled.state is RunState.CANCELLED
        assert research.run("r1").state is RunState.CANCELLED


def _no_model(name: str) -> Never:
    raise AssertionError(name)
