"""What is not so of messages and pages fails a case, as everything else does."""

from typing import Any

from tests.journeys.cases.running import Place
from tests.journeys.cases.test_interpreter import APPROVE, START, place, run

__all__ = ["place"]


def test_what_is_not_so_of_messages_and_pages_fails(place: Place) -> None:
    steps: list[dict[str, Any]] = [
        {"op": "configure", "policy": "P0", "notify": ["email"]},
        START[1],
        {"op": "view", "surface": "email", "review": "r1"},
        {"op": "view", "surface": "web", "review": "r1"},
        {"op": "decide", "via": "web", "by": "mallory", "review": "r1", "decisions": APPROVE["decisions"]},
    ]
    wrong: list[dict[str, Any]] = [
        {"check": "shown", "surface": "email", "must_contain": ["B-2"]},
        {"check": "shown", "surface": "email", "must_contain": ["masked"]},
        {"check": "shown", "surface": "email", "must_not_contain": ["pay as the subject line"]},
        {"check": "shown", "surface": "web", "must_not_contain": ["A-1"]},
        {"check": "property", "text": "a warning after step 2"},
        {"check": "step", "n": 5, "outcome": "accepted"},
        {"check": "step", "n": 5, "outcome": "no_effect"},
    ]
    so = {"check": "shown", "surface": "email", "must_contain": ["A-1", "the number of characters not shown"]}
    report = run(place, steps, *wrong, so)
    assert len(report.failures) == len(wrong), report.failures
