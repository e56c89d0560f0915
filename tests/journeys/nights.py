"""What is left to the nightly form of the suite: more of the same, where the day has a sample."""

from collections.abc import Iterable

import pytest


def sampled(by_day: Iterable[object], *, by_night: Iterable[object]) -> list[object]:
    """Return cases for `parametrize`; those of the night are collected with `--nightly` only."""
    return [_case(case) for case in by_day] + [_case(case, pytest.mark.nightly) for case in by_night]


def _case(case: object, *marks: pytest.MarkDecorator) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=marks)
