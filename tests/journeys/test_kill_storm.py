"""Workers are killed at any moment, again and again, while people decide: nothing is lost or runs twice."""

import random
from multiprocessing.process import BaseProcess

import pytest

from clearance.killpoints import PLACES
from clearance.run import RunState
from tests.journeys.front import APPROVE, REJECT, Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import PATIENCE, Processes, kill, until, was_killed
from tests.journeys.program import Stage, work

WORKERS = 2
RUNS = 12
KILLS = 8
# The trail is written by every worker; these would take nearly all lots.
DEADLY = [place for place in PLACES if place not in ("in-number", "numbered", "in-seal")]
MESSAGES = ("send a", "send a, post b", "step a, step b | send c", "look a, send b")


@pytest.mark.parametrize("seed", sampled([1], by_night=range(2, 40)))
def test_a_storm_of_kills(stage: Stage, processes: Processes, front: Front, seed: int) -> None:
    chance = random.Random(seed)
    storm = _Storm(stage, processes, chance)
    started = [front.begin(f"t{n}", chance.choice(MESSAGES)) for n in range(RUNS)]

    def over() -> bool:
        storm()
        for run_id in started:
            review = front.pending_of(run_id)
            if review is not None and chance.random() < 0.3:
                front.decide(review, APPROVE if chance.random() < 0.8 else REJECT)
        return storm.is_over and not any(front.run(run_id).is_open for run_id in started)

    until(over, patience=3 * PATIENCE, what=f"the end of every run (seed {seed})")
    assert {front.run(run_id).state for run_id in started} == {RunState.DONE}
    for number in range(RUNS):
        assert front.say(f"t{number}", "send z").endswith("send did z")
    check(front)


class _Storm:
    """Starts workers that die at places drawn by lot, and kills one now and then, until it is over."""

    def __init__(self, stage: Stage, processes: Processes, chance: random.Random) -> None:
        self._stage = stage
        self._processes = processes
        self._chance = chance
        self._left = KILLS
        self._working: list[BaseProcess] = []

    @property
    def is_over(self) -> bool:
        """Whether all have died that were to."""
        return self._left == 0

    def __call__(self) -> None:
        if self._left and self._working and self._chance.random() < 0.1:
            kill(self._chance.choice(self._working))
        living = [process for process in self._working if not was_killed(process)]
        self._left = max(0, self._left - (len(self._working) - len(living)))
        self._working = living
        while len(self._working) < WORKERS:
            place = f"kill {self._chance.choice(DEADLY)}:{self._chance.randint(1, 5)}"
            watcher = place if len(self._working) < min(self._left, WORKERS) else None
            self._working.append(self._processes.start(work, self._stage, watcher))
