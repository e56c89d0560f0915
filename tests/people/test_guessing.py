"""Guessing gets slow: the wait as a function of failures, and many guesses at the same moment."""

from datetime import UTC, datetime, timedelta
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import TooManyTriesError, UnauthorizedError
from clearance.people import PER_ADDRESS, PER_PERSON, Patience, needs_fresh, wait_after
from clearance.policy import Risk
from clearance.signing_in import Client, sign_in
from clearance.workspace import Clearance
from tests.people.conftest import OWNER
from tests.people.together import together

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCES = st.builds(
    Patience, free=st.integers(0, 50), most=st.timedeltas(timedelta(seconds=1), timedelta(days=1))
)


@given(st.integers(0, 10**6), PATIENCES)
def test_the_wait_never_shrinks_and_has_an_end(failures: int, patience: Patience) -> None:
    wait, next = wait_after(failures, patience), wait_after(failures + 1, patience)
    assert timedelta(0) <= wait <= next <= patience.most
    assert (wait == timedelta(0)) is (failures < patience.free)


def test_the_wait_doubles() -> None:
    waits = [wait_after(failures, PER_PERSON).seconds for failures in range(4, 13)]
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert wait_after(19, PER_ADDRESS) == timedelta(0)
    assert wait_after(40, PER_ADDRESS) == timedelta(minutes=15)


def test_many_guesses_at_once_count_as_many(workspace: Clearance) -> None:
    database = workspace.database
    with database.read() as tx:
        now = database.now(tx)
    database._clock = lambda: now
    guess = partial(
        sign_in,
        database,
        OWNER,
        "not the right words",
        client=Client("192.0.2.1"),
        limits=workspace.session_limits,
    )
    kinds = [type(each) for each in together(*[guess] * 12)]
    assert (kinds.count(UnauthorizedError), kinds.count(TooManyTriesError)) == (5, 7)


@given(st.sampled_from(Risk), st.timedeltas(timedelta(0), timedelta(hours=1)))
def test_a_sign_in_is_fresh_for_five_minutes_and_never_for_critical_risk(risk: Risk, age: timedelta) -> None:
    expected = {
        Risk.LOW: False,
        Risk.MEDIUM: False,
        Risk.HIGH: age >= timedelta(minutes=5),
        Risk.CRITICAL: True,
    }
    assert needs_fresh(risk, fresh_at=NOW - age, now=NOW) is expected[risk]


def test_a_sign_in_of_the_future_is_not_fresh() -> None:
    assert needs_fresh(Risk.HIGH, fresh_at=NOW + timedelta(seconds=1), now=NOW)
