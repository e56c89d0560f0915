"""The table of the cases that wait for a door: it is neither too long nor too short."""

import pytest

from tests.journeys.cases.loading import Case, load
from tests.journeys.cases.waiting import DOORS, WAITING, doors_of, missing

CASES = {case.id: case for case in load()}


def test_the_table_names_known_cases_and_doors() -> None:
    assert set(WAITING) <= set(CASES)
    assert {door for doors in WAITING.values() for door in doors} <= set(DOORS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_waits_as_long_as_a_door_of_its_own_is_missing_and_no_longer(case: Case) -> None:
    wanted = missing(case)
    assert (case.id in WAITING) == bool(wanted), f"{case.id} waits for {wanted or 'nothing'}: say so here"


@pytest.mark.parametrize("case_id", WAITING)
def test_the_table_names_the_doors_that_a_case_uses(case_id: str) -> None:
    assert set(WAITING[case_id]) == set(doors_of(CASES[case_id]))
