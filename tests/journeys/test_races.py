"""Many people decide the same review at the same moment: one wins, the others learn who it was."""

import threading
from collections import Counter
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import pytest

from clearance.errors import ReviewConflictError
from clearance.outcome import CallState
from clearance.review import Review
from clearance.run import RunState
from tests.journeys.front import Front
from tests.journeys.invariants import check
from tests.journeys.processes import Processes
from tests.journeys.program import PERSON, Stage, work

PROCESSES = 4
THREADS = 6
SEATS = PROCESSES * THREADS
BY_DAY = 12
BY_NIGHT = 500

# What a seat got, for one race after the other: whether it won, and how the call then stood.
Results = list[tuple[bool, str]]


@dataclass(frozen=True)
class Race:
    """One review that all seats decide at once; those with odd numbers say the second."""

    review_id: str
    version: int
    says: tuple[str, str]


@pytest.mark.parametrize("says", [("approve", "approve"), ("approve", "reject")])
def test_of_24_decisions_at_once_one_wins_and_the_call_runs_as_it_says(
    stage: Stage, processes: Processes, front: Front, nightly: bool, says: tuple[str, str]
) -> None:
    processes.start(work, stage)
    asked = [park(front, n) for n in range(BY_NIGHT if nightly else BY_DAY)]
    races = [Race(review.id, review.version, says) for review in asked]
    results = run_races(stage, processes, races)
    for place, review in enumerate(asked):
        won = [seat[place][1] for seat in results if seat[place][0]]
        lost = Counter(seat[place][1] for seat in results if not seat[place][0])
        assert len(won) == 1
        assert lost == {won[0]: SEATS - 1}, "the others are told what the winner said"
        front.wait_until_ended(review.run_id)
        [row] = front.calls(review.run_id)
        assert row.state is (CallState.EXECUTED if won[0] == "approved" else CallState.REJECTED)
        assert front.run(review.run_id).state is RunState.DONE
    check(front)


def park(front: Front, number: int) -> Review:
    """Bring a thread to where it waits for people."""
    return front.wait_until_pending(front.begin(f"t{number}", f"send {number}"))


def run_races(stage: Stage, processes: Processes, races: list[Race]) -> list[Results]:
    """Let every seat take part in every race; return what each got."""
    start = processes.context.Barrier(SEATS)
    told: Queue[Results] = processes.context.Queue()
    for _ in range(PROCESSES):
        processes.start(take_seats, stage, races, start, told)
    return [told.get(timeout=600) for _ in range(SEATS)]


def take_seats(stage: Stage, races: list[Race], start: Barrier, told: "Queue[Results]") -> None:
    """Be one process with several people in it."""
    with stage.open() as opened:

        def sit(seat: int) -> None:
            told.put([submit(race, seat) for race in races if start.wait(600) >= 0])

        def submit(race: Race, seat: int) -> tuple[bool, str]:
            decisions = [{"type": race.says[seat % 2]}]
            try:
                after = opened.gate.decide(race.review_id, decisions, by=PERSON, version=race.version)
            except ReviewConflictError as error:
                return False, error.review.calls[0].state.value
            return True, after.calls[0].state.value

        seats = [threading.Thread(target=sit, args=(seat,)) for seat in range(THREADS)]
        for thread in seats:
            thread.start()
        for thread in seats:
            thread.join()
