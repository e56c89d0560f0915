"""Workers are killed at any moment, again and again, while people decide: nothing is lost or runs twice."""

import random
from multiprocessing.process import BaseProcess

import pytest

from clearance.outcome import CallState
from clearance.run import RunState
from tests.journeys.front import APPROVE, REJECT, Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import PATIENCE, Processes, kill, until
from tests.journeys.program import Stage, work

WORKERS = 2
RUNS = 12
KILLS = 8
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
    rows = [row for run_id in started for row in front.calls(run_id)]
    assert sum(row.state is CallState.UNCERTAIN for row in rows) <= KILLS * 4 * WORKERS
    for number in range(RUNS):
        assert front.say(f"t{number}", "send z").endswith("send did z")
    check(front)


class _Storm:
    """Kills one of the workers now and then, and starts another in its place."""

    def __init__(self, stage: Stage, processes: Processes, chance: random.Random) -> None:
        self._stage = stage
        self._processes = processes
        self._chance = chance
        self._left = KILLS
        self._working: list[BaseProcess] = []

    @property
    def is_over(self) -> bool:
        """Whether all have been killed that were to be."""
        return self._left == 0

    def __call__(self) -> None:
        while len(self._working) < WORKERS:
            self._working.append(self._processes.start(work, self._stage))
        if self._left and self._chance.random() < 0.2:
            kill(self._working.pop(self._chance.randrange(WORKERS)))
            self._left -= 1
