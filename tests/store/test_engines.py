"""Both engines keep one contract, each on its own database, over rows that are claimed and released."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.store.workplace import LONG, Workplace

DOOMED = "import sys; from tests.store.workplace import die_in_a_segment; die_in_a_segment(*sys.argv[1:])"


@pytest.fixture
def place(migrated_database_url: str, tmp_path: Path) -> Iterator[Workplace]:
    """A workplace without workers, on each kind of database."""
    made = Workplace(migrated_database_url, tmp_path)
    yield made
    made.close()


def test_a_wake_reaches_a_worker(place: Workplace) -> None:
    place.start()
    place.want("t")
    assert place.until_advanced("t")
    assert place.thread("t").done == 1


def test_a_wake_is_delivered_to_a_worker_that_starts_later(place: Workplace) -> None:
    place.want("t")
    place.start()
    assert place.until_advanced("t")


def test_a_wake_that_is_rolled_back_does_nothing(place: Workplace) -> None:
    place.start()
    with suppress(ZeroDivisionError), place.database.write() as tx:
        place.want_in(tx, "dropped")
        raise ZeroDivisionError
    place.want("kept")
    assert place.until_advanced("kept")
    with place.database.write() as tx:
        place.want_in(tx, "dropped")
    assert place.until_advanced("dropped")
    assert place.thread("dropped").done == 1
    assert place.segments["dropped"] == 1


def test_a_thread_has_one_segment_at_a_time(place: Workplace) -> None:
    place.start()
    threads = [f"t{number}" for number in range(5)]

    def want_often() -> None:
        for number in range(25):
            place.want(threads[number % 5])

    wanting = [threading.Thread(target=want_often) for _ in range(8)]
    for each in wanting:
        each.start()
    for each in wanting:
        each.join()
    assert place.until(lambda: all(place.thread(thread).done == 40 for thread in threads))
    assert not place.overlaps


def test_different_threads_run_side_by_side(place: Workplace) -> None:
    together = threading.Barrier(4, timeout=LONG)
    place.body = lambda _: together.wait()
    place.start(threads=4)
    for number in range(4):
        place.want(f"t{number}")
    assert place.until(lambda: sum(place.segments.values()) == 4)
    assert not together.broken


def test_a_thread_that_is_wanted_while_its_segment_runs_is_advanced_again(place: Workplace) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        inside.set()
        go_on.wait(LONG)

    place.body = wait
    place.start()
    place.want("t")
    assert inside.wait(LONG)
    place.want("t")
    go_on.set()
    assert place.until_advanced("t", times=2)
    assert place.thread("t").done == 2


def test_a_thread_whose_wake_was_lost_is_found(place: Workplace) -> None:
    place.start()
    with place.database.write() as tx:
        place.want_silently(tx, "t")
    assert place.until_advanced("t")


def test_after_stop_nothing_is_taken_until_the_next_worker_comes(place: Workplace) -> None:
    engine = place.start()
    place.want("before")
    assert place.until_advanced("before")
    engine.stop()
    assert place.has_ended(engine)
    place.want("after")
    assert place.segments["after"] == 0
    place.start()
    assert place.until_advanced("after")


def test_a_worker_that_was_stopped_before_it_started_ends(place: Workplace) -> None:
    place.engine.stop()
    assert place.has_ended(place.start())


def test_work_ends_after_the_segments_that_run(place: Workplace) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        inside.set()
        go_on.wait(LONG)

    place.body = wait
    engine = place.start()
    place.want("t")
    assert inside.wait(LONG)
    engine.stop()
    assert not place.has_ended(engine, within=0.2)
    go_on.set()
    assert place.has_ended(engine)
    assert place.thread("t").done == 1


def test_the_thread_of_a_killed_worker_goes_on_in_another(
    place: Workplace, migrated_database_url: str, tmp_path: Path
) -> None:
    place.want("t")
    killed = subprocess.run(
        [sys.executable, "-c", DOOMED, migrated_database_url, str(tmp_path)],
        cwd=ROOT,
        timeout=LONG,
        check=False,
    )
    assert killed.returncode == -9
    assert place.thread("t").fence == 1
    place.start()
    assert place.until_advanced("t")
    assert (place.thread("t").done, place.thread("t").fence) == (1, 2)


def test_threads_of_a_program_wait_until_a_worker_knows_it(place: Workplace) -> None:
    place.start()
    place.want("r", program="research")
    place.want("c", program="chat")
    assert place.until_advanced("c")
    place.want("c", program="chat")
    assert place.until_advanced("c", times=2)
    assert place.segments["r"] == 0
    place.programs = ("chat", "research")
    assert place.until_advanced("r")
    place.want("r", program="research")
    assert place.until_advanced("r", times=2)


def test_a_segment_that_raises_does_not_end_the_worker(place: Workplace) -> None:
    seen: list[str] = []

    def fail_at_first(thread_id: str) -> None:
        seen.append(thread_id)
        if seen.count(thread_id) == 1 and thread_id == "bad":
            raise ZeroDivisionError

    place.body = fail_at_first
    place.start(threads=1)
    place.want("bad")
    place.want("good")
    assert place.until_advanced("good")
    assert place.until(lambda: place.thread("bad").done == 1)
