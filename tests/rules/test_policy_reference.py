"""`docs/reference/policy.md` and the code say the same: every key, variable, function and limit."""

import re

import pytest

from clearance.cel import MAX_WORK
from clearance.expression import (
    FUNCTIONS,
    MAX_NESTING,
    MAX_PATTERN,
    MAX_REPEATS,
    MAX_TEXT,
    VARIABLES,
    Cel,
    read,
)
from clearance.policy_checks import LONGEST_EXPIRE
from clearance.policy_file import RULE_KEYS, WHO_KEYS
from clearance.summary import MAX_TEMPLATE
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of a section's table, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_key_of_a_rule_is_told_as_the_code_tells_it() -> None:
    assert [(key.strip("`"), means) for key, means in rows("In a rule")] == list(RULE_KEYS.items())


def test_every_key_of_a_threshold_is_told() -> None:
    assert [key.strip("`") for key, _ in rows("In `who`")] == list(WHO_KEYS)


def test_every_variable_is_told() -> None:
    assert [name.strip("`") for name, _ in rows("Variables of a condition")] == list(VARIABLES)


def test_every_function_is_told_and_none_is_made_up() -> None:
    told = [name for cell, _ in rows("Functions of a condition") for name in re.findall(r"`(\w+)\(", cell)]
    assert sorted(told) == sorted(FUNCTIONS)


def test_every_limit_is_told() -> None:
    told = [value for _, value in rows("Limits")]
    numbers = [MAX_TEXT, MAX_NESTING, MAX_PATTERN, MAX_REPEATS]
    assert told == [
        *map(str, numbers),
        "none",
        str(MAX_WORK),
        f"{LONGEST_EXPIRE.days} days",
        str(MAX_TEMPLATE),
    ]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_that_is_told_is_known(name: str) -> None:
    assert not [flaw for flaw in read(Cel(f"{name}(args.x)").text).flaws if "no function" in flaw.message]
