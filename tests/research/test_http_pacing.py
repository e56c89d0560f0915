"""No host is asked faster than it allows."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from clearance.apps.research.http import Pace
from tests.research.network import Clock, pace


@given(rate=st.integers(1, 20), pauses=st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_no_second_holds_more_requests_than_the_rate(rate: int, pauses: list[float]) -> None:
    clock = Clock()
    pacing = pace(clock, rates={"host": float(rate)})
    times = []
    for pause in pauses:
        clock.seconds += pause
        pacing.wait("host")
        times.append(clock.seconds)
    for start in times:
        assert sum(start <= time < start + 0.999 for time in times) <= rate


def test_hosts_do_not_wait_for_each_other() -> None:
    clock = Clock()
    pacing = pace(clock, rates={"slow": 1.0}, default=1e6)
    pacing.wait("slow")
    pacing.wait("quick")
    assert clock.slept == []
    pacing.wait("slow")
    assert clock.seconds == 1.0


def test_a_pause_holds_the_host_for_everybody() -> None:
    clock = Clock()
    pacing = pace(clock)
    pacing.pause("host", 2.5)
    pacing.pause("host", 1.0)
    pacing.wait("host")
    assert clock.seconds == 2.5


def test_threads_share_a_host() -> None:
    clock = Clock()
    lock = threading.Lock()

    def sleep(seconds: float) -> None:
        with lock:
            clock.sleep(seconds)

    pacing = Pace({"host": 10.0}, monotonic=clock.monotonic, sleep=sleep)
    threads = [threading.Thread(target=pacing.wait, args=("host",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.seconds >= 0.7 - 1e-9
