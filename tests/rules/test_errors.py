"""Each error has a status and an exit code of its own sort, and a sentence that says what to do."""

import pytest

from clearance import errors
from clearance.errors import ClearanceError, Fault, FenceLostError, InvalidInputError

CLASSES = [
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ClearanceError)
]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_has_an_http_status_and_an_exit_code(error: type[ClearanceError]) -> None:
    assert error.status == 202 or 400 <= error.status < 600
    assert 1 <= error.exit_code < 64
    assert error.__name__ in (errors.__doc__ or "") or error is ClearanceError


def test_sorts_of_errors_have_exit_codes_of_their_own() -> None:
    direct = [each for each in CLASSES if each.__bases__ == (ClearanceError,)]
    codes = [each.exit_code for each in direct]
    assert len(set(codes)) == len(codes)


def test_the_order_to_stop_is_no_failure_that_a_handler_could_swallow() -> None:
    assert not issubclass(FenceLostError, Exception)


def test_faults_are_told_with_their_places() -> None:
    error = InvalidInputError("Not so.", faults=[Fault("/a", "is missing"), Fault("", "must be an object")])
    assert str(error) == "Not so. /a: is missing; (whole): must be an object"
    assert len(error.faults) == 2
