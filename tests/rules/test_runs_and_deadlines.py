"""What an open run answers to a message, and until when a review can be decided."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.deadline import deadline, is_over
from clearance.errors import ConflictError, ReviewPendingError, ThreadBusyError
from clearance.policy import Verdict
from clearance.run import OPEN, Run, RunState, conflict
from tests.rules.small_reviews import NOW, verdict


def run(state: RunState) -> Run:
    """Return a run in this state."""
    return Run("r", "t", "chat", state, "u-1004", "hello", NOW)


@pytest.mark.parametrize(
    ("state", "pending", "expected"),
    [
        (RunState.QUEUED, None, ThreadBusyError),
        (RunState.RUNNING, None, ThreadBusyError),
        (RunState.WAITING, "r/1/1", ReviewPendingError),
        (RunState.WAITING, None, ThreadBusyError),
        (RunState.RUNNING, "r/1/1", ThreadBusyError),
    ],
)
def test_a_thread_with_an_open_run_says_why_it_takes_no_message(
    state: RunState, pending: str | None, expected: type[ConflictError]
) -> None:
    assert type(conflict(run(state), pending_review=pending)) is expected


@pytest.mark.parametrize("state", [state for state in RunState if state not in OPEN])
def test_a_run_that_has_ended_is_no_conflict(state: RunState) -> None:
    assert not run(state).is_open
    with pytest.raises(ValueError, match="has ended"):
        conflict(run(state), pending_review=None)


def expiring(*times: timedelta | None) -> list[Verdict]:
    """Return verdicts that set these times."""
    return [Verdict(**{**verdict().__dict__, "expire": time}) for time in times]


def test_the_earliest_time_of_all_calls_is_the_deadline() -> None:
    found = deadline(expiring(None, timedelta(hours=2), timedelta(hours=1)), asked_at=NOW)
    assert found == NOW + timedelta(hours=1)


def test_without_any_time_a_review_waits_for_ever() -> None:
    assert deadline(expiring(None, None), asked_at=NOW) is None
    assert not is_over(None, now=datetime.max.replace(tzinfo=UTC))


def test_a_decision_at_the_instant_of_the_deadline_is_late() -> None:
    assert not is_over(NOW, now=NOW - timedelta(microseconds=1))
    assert is_over(NOW, now=NOW)
    assert is_over(NOW, now=NOW + timedelta(microseconds=1))


@given(
    st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    st.integers(-720, 720),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=3653)),
)
def test_a_deadline_is_elapsed_time_in_every_zone(asked: datetime, minutes: int, expire: timedelta) -> None:
    at = asked.astimezone(timezone(timedelta(minutes=minutes)))
    found = deadline(expiring(expire), asked_at=at)
    assert found is not None
    assert found - at == expire
    assert is_over(found, now=(at + expire).astimezone(UTC))


def test_a_time_without_a_zone_is_never_compared() -> None:
    with pytest.raises(TypeError):
        is_over(NOW, now=NOW.replace(tzinfo=None))
