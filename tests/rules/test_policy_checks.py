"""A policy that could never do what it says is refused when it is made or loaded, and the rule is named."""

from datetime import timedelta
from typing import Any

import pytest

from clearance.errors import PolicyError
from clearance.policy import (
    DecisionType,
    Effect,
    Escalation,
    Policy,
    Predicate,
    Risk,
    Rule,
    Threshold,
    predicate,
)
from clearance.policy_checks import LONGEST_EXPIRE, check_policy
from tests.rules.case_tools import SCHEMAS

TOOLS = ["delete_file", "send_email", "read_weather", "live/wipe", "test/wipe"]


def refusal(*rules: Rule, tools: list[str] = TOOLS) -> str:
    """Return why these rules are refused for these tools."""
    with pytest.raises(PolicyError) as caught:
        check_policy(Policy(rules=rules), tools)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "delete_fil",
        " delete_file ",
        "delete_file\n",
        "Delete_File",
        "DELETE_FILE",
        "delete-file",
        "delete_file_*",
        "d\u0435lete_file",
        "wipe",
        "",
        "prod/*",
        "[x]*",
    ],
    ids=ascii,
)
def test_a_rule_that_matches_no_tool_is_refused_and_named(name: str) -> None:
    said = refusal(Rule(tool=name), Rule(tool="send_email"))
    assert f"rule {name!r} names no known tool" in said
    assert "send_email" in said


@pytest.mark.parametrize("name", ["delete_file", "*", "*_file", "live/*", "d[ae]lete_file", "test/wipe"])
def test_a_rule_that_matches_a_tool_is_taken(name: str) -> None:
    check_policy(Policy(rules=(Rule(tool=name),)), TOOLS)


def test_an_empty_policy_is_taken_because_it_holds_everything() -> None:
    check_policy(Policy(), TOOLS)
    check_policy(Policy(), [])


def test_a_rule_without_any_tool_to_match_is_refused() -> None:
    assert "names no known tool" in refusal(Rule(tool="*"), tools=[])


HOUR = timedelta(hours=1)
WRONG_VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "no decision": ({"decisions": ()}, "rule 'the rule' allows no decision"),
    "nobody approves": ({"who": (Threshold(approve=0),)}, "rule 'the rule' has a threshold below 1"),
    "nobody rejects": ({"who": (Threshold(), Threshold(reject=0))}, "has a threshold below 1"),
    "less than nobody": ({"who": (Threshold(approve=-1),)}, "has a threshold below 1"),
    "a group without a name": ({"who": (Threshold(group=""),)}, "a threshold of a group without a name"),
    "a blank group": ({"who": (Threshold(group=" "),)}, "a threshold of a group without a name"),
    "no time": ({"expire": timedelta(0)}, "rule 'the rule' expires before it is asked"),
    "a time that is over": ({"expire": timedelta(seconds=-1)}, "expires before it is asked"),
    "a reminder at once": ({"remind": (timedelta(0),)}, "reminds before it is asked"),
    "a reminder that is over": ({"remind": (timedelta(seconds=-1),)}, "reminds before it is asked"),
    "a reminder with the end": (
        {"remind": (HOUR,), "expire": HOUR},
        "rule 'the rule' reminds when it has expired already",
    ),
    "a reminder without end": ({"remind": (timedelta.max,)}, "reminds after more than 3653 days"),
    "an escalation at once": ({"escalate": Escalation(timedelta(0), "ops")}, "escalates before it is asked"),
    "an escalation with the end": (
        {"escalate": Escalation(HOUR, "ops"), "expire": HOUR},
        "escalates when it has expired already",
    ),
    "an escalation to nobody": ({"escalate": Escalation(HOUR, " ")}, "escalates to a group without a name"),
    "a time without end": ({"expire": timedelta.max}, "expires after more than 3653 days: leave it out"),
}


@pytest.mark.parametrize(("change", "expected"), WRONG_VALUES.values(), ids=WRONG_VALUES.keys())
def test_a_rule_that_could_never_do_what_it_says_is_refused_and_named(
    change: dict[str, Any], expected: str
) -> None:
    assert expected in refusal(Rule(tool="delete_file", name="the rule", **change))


def test_the_shortest_and_the_longest_time_are_taken() -> None:
    for expire in (timedelta(microseconds=1), LONGEST_EXPIRE):
        check_policy(Policy(rules=(Rule(tool="*", expire=expire),)), TOOLS)


def test_rules_that_leave_a_tool_no_decision_in_common_are_refused() -> None:
    rules = (
        Rule(tool="delete_*", decisions=(DecisionType.APPROVE,)),
        Rule(tool="*", decisions=(DecisionType.REJECT,)),
    )
    assert "the rules for delete_file together allow no decision" in refusal(*rules)
    with pytest.raises(PolicyError):
        check_policy(Policy(rules=rules), TOOLS)
    check_policy(Policy(rules=rules[:1]), TOOLS)


def test_two_conditions_of_one_name_and_version_are_refused() -> None:
    one, other = Predicate("<lambda>", "1", lambda _: True), Predicate("<lambda>", "1", lambda _: False)
    newer = Predicate("<lambda>", "2", other.function)
    rules = (Rule(tool="*", when=one), Rule(tool="delete_file", when=other))
    assert "two conditions are called <lambda> (version 1)" in refusal(*rules)
    check_policy(Policy(rules=(Rule(tool="*", when=one), Rule(tool="delete_file", when=one))), TOOLS)
    check_policy(Policy(rules=(Rule(tool="*", when=one), Rule(tool="delete_file", when=newer))), TOOLS)


@pytest.mark.parametrize(
    ("tool", "argument", "known"),
    [
        ("delete_file", "path", True),
        ("delete_file", "paht", False),
        ("*_file", "paht", False),
        ("*", "city", True),
        ("write_record", "city", False),
        ("anything", "city", True),
    ],
)
def test_a_flag_on_an_argument_that_no_schema_allows_is_refused(
    tool: str, argument: str, known: bool
) -> None:
    policy = Policy(rules=(Rule(tool=tool, flags={argument: "look at it"}),))
    schemas = {**SCHEMAS, "anything": {"type": "object"}}
    schemas = {name: schemas[name] for name in schemas if tool != "*" or name != "anything"}
    if known:
        check_policy(policy, schemas)
    else:
        with pytest.raises(PolicyError, match=f"flags '{argument}'"):
            check_policy(policy, schemas)
    check_policy(policy, list(schemas))


def test_every_wrong_rule_is_named_at_once() -> None:
    said = refusal(
        Rule(tool="delete_fil"),
        Rule(tool="send_email", decisions=(), name="second"),
        Rule(tool="read_weather", who=(Threshold(approve=0),)),
    )
    assert all(name in said for name in ("'delete_fil'", "'second'", "'read_weather'"))


ILL_TYPED: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt effect": ({"effect": "aproval"}, "'effect' is one of allow, hold, deny"),
    "an effect with a blank": ({"effect": "hold "}, "'effect' is one of"),
    "an effect in capitals": ({"effect": "HOLD"}, "'effect' is one of"),
    "no effect": ({"effect": None}, "'effect' is one of"),
    "an effect that is a bool": ({"effect": True}, "'effect' is one of"),
    "a misspelt decision": ({"decisions": ("aprove",)}, "'decisions' is a tuple of some of approve"),
    "decisions as one text": ({"decisions": "approve"}, "'decisions' is a tuple"),
    "a decision among others": ({"decisions": ("approve", None)}, "'decisions' is a tuple"),
    "a misspelt risk": ({"risk": "hgih"}, "'risk' is one of low"),
    "a time in seconds": ({"expire": 60}, "'expire' is a timedelta"),
    "a time as text": ({"expire": "60"}, "'expire' is a timedelta"),
    "a time as inf": ({"expire": "inf"}, "'expire' is a timedelta"),
    "a bare reminder": ({"remind": timedelta(1)}, "'remind' is a tuple of timedeltas"),
    "reminders as text": ({"remind": ("30m",)}, "'remind' is a tuple of timedeltas"),
    "an escalation as a group": ({"escalate": "ops"}, "'escalate' is an Escalation(…)"),
    "an escalation in a threshold": (
        {"who": (Threshold(group="ops", also=(Escalation(timedelta(1), "finance"),)),)},
        "'escalate' is an Escalation(…)",
    ),
    "a bare function": ({"when": lambda _: True}, "'when' is made by predicate(version=…), or is Cel(…)"),
    "a bare threshold": ({"who": Threshold()}, "'who' is a tuple of thresholds"),
    "a group for a threshold": ({"who": ("finance",)}, "'who' is a tuple of thresholds"),
    "flags without reasons": ({"flags": ["account"]}, "'flags' map names"),
    "a flag whose reason is no text": ({"flags": {"account": True}}, "'flags' map names"),
    "a reason that is a word": ({"reason": "required"}, "'reason' is True or False"),
    "a name that is no text": ({"name": 7}, "'name' is text"),
}


@pytest.mark.parametrize(("change", "expected"), ILL_TYPED.values(), ids=ILL_TYPED.keys())
def test_what_cannot_be_part_of_a_rule_is_refused_when_it_is_made_and_named(
    change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        Rule(**{"tool": "delete_file", **change})
    assert expected in str(caught.value)
    assert str(caught.value).startswith("Rule ")


@pytest.mark.parametrize("tool", [None, 7, ["delete_file"]], ids=repr)
def test_a_tool_is_named_by_text(tool: Any) -> None:
    with pytest.raises(PolicyError, match="'tool' is the name of a tool"):
        Rule(tool=tool)


@pytest.mark.parametrize("field", ["approve", "reject"])
@pytest.mark.parametrize("count", [True, 1.0, "2", None], ids=repr)
def test_a_threshold_is_a_whole_number_of_people(field: str, count: Any) -> None:
    with pytest.raises(PolicyError, match="whole numbers"):
        Threshold(**{field: count})


def test_the_group_of_a_threshold_is_text() -> None:
    with pytest.raises(PolicyError, match="a name"):
        Threshold(group=("finance",))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("large", ""), ("large", 1), (None, "1")])
def test_a_condition_has_a_name_and_a_version(name: Any, version: Any) -> None:
    with pytest.raises(PolicyError, match="a name and a version"):
        Predicate(name, version)


def test_a_condition_is_named_after_its_function() -> None:
    @predicate(version="2")
    def large(arguments: dict[str, Any]) -> bool:
        return bool(arguments)

    assert (large.name, large.version) == ("large", "2")


@pytest.mark.parametrize("default", ["aproval", "HOLD", None, True], ids=repr)
def test_a_default_that_is_no_effect_is_refused(default: Any) -> None:
    with pytest.raises(PolicyError, match="none of allow, hold, deny"):
        Policy(default=default)


def test_words_stand_for_their_members() -> None:
    spelt: Any = {"effect": "deny", "risk": "high", "decisions": ["approve", "reject"], "who": [Threshold()]}
    written = Rule(
        tool="delete_file",
        effect=Effect.DENY,
        risk=Risk.HIGH,
        decisions=(DecisionType.APPROVE, DecisionType.REJECT),
        who=(Threshold(),),
    )
    assert Rule(tool="delete_file", **spelt) == written
    assert Policy(rules=[written]) == Policy(rules=(written,))  # type: ignore[arg-type]
    default: Any = "allow"
    assert Policy(default=default).to_json()["default"] == "allow"
