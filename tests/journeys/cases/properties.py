"""The properties that cases state in words: each sentence that is known is a check of its own.

A sentence is a pattern, so that the same rule with other names and numbers is known too.
"""

import re
from collections.abc import Callable

from tests.journeys.cases.loading import CaseError
from tests.journeys.cases.world import World

Property = Callable[[World, re.Match[str]], None]
PROPERTIES: list[tuple[re.Pattern[str], Property]] = []


def says(pattern: str) -> Callable[[Property], Property]:
    """Make a function the check of every sentence that the pattern fits."""

    def keep(function: Property) -> Property:
        PROPERTIES.append((re.compile(pattern), function))
        return function

    return keep


def check_property(world: World, text: str) -> None:
    """Check what a sentence says. Raises `CaseError` for a sentence that is not known."""
    said = re.sub(r"\s+", " ", text).strip()
    for pattern, function in PROPERTIES:
        found = pattern.fullmatch(said)
        if found is not None:
            function(world, found)
            return
    raise CaseError(f"The interpreter knows no property {said!r}.")


def is_known(text: str) -> bool:
    """Whether a sentence is known."""
    said = re.sub(r"\s+", " ", text).strip()
    return any(pattern.fullmatch(said) for pattern, _ in PROPERTIES)
