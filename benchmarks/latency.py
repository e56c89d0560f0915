"""How long it takes from the commit of a decision to the start of the tool, at five decisions a second."""

import time

import clearance
from benchmarks.agents import PERSON, Reviewed, started
from benchmarks.figures import NAMES, Aim, Figure, Surroundings, median, percentile

MOST = Aim(15.0)


def measure(here: Surroundings) -> list[Figure]:
    """Park some turns, and decide them one after the other, on each database."""
    figures = []
    for kind in here.kinds:
        here.tell(f"decisions on {NAMES[kind]}")
        waits = _waits(here, kind)
        what = f"decision committed → tool started, {NAMES[kind]}"
        figures.append(Figure(f"{what}, p50", median(waits), "ms", aim=MOST))
        figures.append(Figure(f"{what}, p95", percentile(waits, 0.95), "ms"))
    return figures


def _waits(here: Surroundings, kind: str) -> list[float]:
    folder = here.folder()
    waits = []
    with clearance.open(here.database(kind, folder), home=folder, person=PERSON) as workspace:
        agent = Reviewed(workspace)
        agent.turn("the first")
        asked = [agent.ask(f"t{number}") for number in range(here.sizes.decisions)]
        for review in asked:
            time.sleep(here.sizes.pause)
            started.clear()
            approve = [{"type": "approve"}]
            workspace.gate.decide(review["review_id"], approve, by=PERSON, version=review["version"])
            committed = time.perf_counter()
            agent.chat.wait_for(review["run_id"])
            waits.append((started[0] - committed) * 1000)
    return waits
