"""A summary is a sentence with values in it; no value can pretend to be part of the sentence, or read on."""

from typing import Any

import pytest

from clearance.policy import Policy, Rule, judge
from clearance.summary import MAX_VALUE, fields, flaw, summary

MADE: list[tuple[str, dict[str, Any], str]] = [
    ("Pay {amount} to {to}", {"amount": 5, "to": "A-1"}, 'Pay 5 to "A-1"'),
    ("Pay {amount}", {"amount": 48250.0}, "Pay 48250.0"),
    ("Pay {amount}", {"amount": 2**70}, f"Pay {2**70}"),
    ("Pay {amount}", {}, "Pay –"),
    ("Pay {amount}", {"amount": None}, "Pay null"),
    ("To {to}", {"to": "A-1 (approved by Ann)"}, 'To "A-1 (approved by Ann)"'),
    ("To {to}", {"to": '" and nobody else'}, 'To "\\" and nobody else"'),
    ("To {to}", {"to": "{amount}", "amount": 5}, 'To "{amount}"'),
    ("To {to}", {"to": ["a", {"b": 1}]}, 'To ["a",{"b":1}]'),
    ("Nothing", {"amount": 5}, "Nothing"),
]


@pytest.mark.parametrize(("template", "arguments", "expected"), MADE)
def test_a_sentence_is_made_of_the_template_and_the_values(
    template: str, arguments: dict[str, Any], expected: str
) -> None:
    assert flaw(template) is None
    assert summary(template, arguments) == expected


def test_a_long_value_ends_in_dots() -> None:
    found = summary("{to}", {"to": "a" * 1000})
    assert len(found) == MAX_VALUE
    assert found.endswith("a…")


@pytest.mark.parametrize(
    "template",
    [
        "{", "}", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>99999999}", "{{a}}", "{a} }", "{ a }",
        "{a.__class__}",
        "%(a)s {", "x" * 301,
    ],
)  # fmt: skip
def test_what_is_more_than_names_in_braces_is_refused(template: str) -> None:
    assert flaw(template) is not None


def test_the_arguments_of_a_template_are_known() -> None:
    assert fields("Pay {amount} to {to}, {amount}") == ["amount", "to", "amount"]


def test_the_summaries_of_all_rules_stand_in_the_verdict_once_in_a_fixed_order() -> None:
    rules = (Rule("pay", summary="B {to}"), Rule("*", summary="A"), Rule("p*", summary="A"), Rule("pay"))
    for given in (rules, rules[::-1]):
        assert judge(Policy(given), "pay", arguments={}).summaries == ("A", "B {to}")
    assert len({Policy((rule,)).version for rule in rules}) == 4
