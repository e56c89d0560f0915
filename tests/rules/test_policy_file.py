"""Policies in TOML say what Python values say, and everything that is wrong is named by line and column."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import Fault, PolicyError
from clearance.expression import Cel
from clearance.policy import DecisionType, Effect, Escalation, Policy, Risk, Rule, Threshold, judge
from clearance.policy_checks import warnings
from clearance.policy_file import RULE_KEYS, duration, place, read_policy
from clearance.policy_json import policy_from_json
from clearance.toolcall import canonical

TEXT = {"type": "string"}
CLOSED = {"type": "object", "additionalProperties": False}
TOOLS: dict[str, dict[str, Any]] = {
    "send_email": {**CLOSED, "properties": {"to": {}, "body": {}}},
    "pay": {
        **CLOSED,
        "properties": {
            "amount": {},
            "to": {},
            "count": {"type": ["integer", "null"]},
            "card": {"anyOf": [{"$ref": "#/$defs/Card"}, {"type": "null"}]},
            "lines": {"type": "array", "items": {"properties": {"sku": TEXT, "at": TEXT}}},
        },
        "$defs": {"Card": {"type": "object", "properties": {"number": TEXT, "pin": TEXT}}},
    },
    "search": {"type": "object"},
}
GROUPS = ["finance", "ops"]

EVERYTHING = """\
default = "deny"

[[rule]]
name = "large payments"
tool = "pa*"
when = 'money(args.amount) >= 100'
effect = "hold"
risk = "critical"
who = [{approve = 2}, {approve = 1, reject = 2, from = "group:finance"}]
decisions = ["approve", "reject"]
remind = ["30m", "4h"]
escalate = {after = "12h", to = "group:ops"}
expire = "1d12h"
reason = "required"
self_approval = false
flags = {amount = "much", "to" = "new"}
secret = ["to", "amount.exact"]
summary = "Pay {amount} to {to}"

[[rule]]
tool = "search"  # everything else is left out
effect = 'allow'
"""


def refused(text: str, *, tools: Any = TOOLS, groups: Any = GROUPS) -> list[tuple[str, str]]:
    """Return the places of a file that is refused, and what is wrong there."""
    with pytest.raises(PolicyError) as caught:
        read_policy(text, tools=tools, groups=groups)
    assert str(caught.value).startswith("The policy file cannot be used.")
    assert all(isinstance(fault, Fault) for fault in caught.value.faults)
    return [(fault.pointer, fault.message) for fault in caught.value.faults]


def test_a_file_says_what_python_values_say() -> None:
    assert read_policy(EVERYTHING, tools=TOOLS, groups=GROUPS) == Policy(
        rules=(
            Rule(
                "pa*",
                Effect.HOLD,
                when=Cel("money(args.amount) >= 100"),
                risk=Risk.CRITICAL,
                who=(Threshold(approve=2), Threshold(approve=1, reject=2, group="finance")),
                decisions=(DecisionType.APPROVE, DecisionType.REJECT),
                remind=(timedelta(minutes=30), timedelta(hours=4)),
                escalate=Escalation(timedelta(hours=12), "ops"),
                expire=timedelta(hours=36),
                reason=True,
                self_approval=False,
                flags={"amount": "much", "to": "new"},
                secret=("to", "amount.exact"),
                name="large payments",
                summary="Pay {amount} to {to}",
            ),
            Rule("search", Effect.ALLOW),
        ),
        default=Effect.DENY,
    )


def test_every_key_of_a_rule_is_in_the_file_above() -> None:
    assert all(f"\n{key} = " in EVERYTHING for key in RULE_KEYS)


@pytest.mark.parametrize("text", ["", "# nothing\n", 'default = "hold"\n'])
def test_an_empty_file_holds_everything(text: str) -> None:
    assert read_policy(text, tools=TOOLS) == Policy()


def test_a_policy_of_a_file_comes_back_from_its_row_with_its_conditions() -> None:
    policy = read_policy(EVERYTHING)
    read = policy_from_json(json.loads(json.dumps(policy.to_json())))
    assert (read, read.version) == (policy, policy.version)
    for amount in (99, 100, "100", None):
        arguments = {"amount": amount}
        assert judge(read, "pay", arguments=arguments) == judge(policy, "pay", arguments=arguments)
    assert judge(read, "pay", arguments={"amount": 100}).effect is Effect.HOLD
    assert judge(read, "pay", arguments={"amount": 99}).effect is Effect.DENY


def test_the_version_covers_the_text_of_a_condition_and_self_approval() -> None:
    rules = [Rule("pay"), Rule("pay", when=Cel("args.a > 1")), Rule("pay", when=Cel("args.a > 2"))]
    rules += [Rule("pay", self_approval=True), Rule("pay", self_approval=False)]
    assert len({Policy((rule,)).version for rule in rules}) == len(rules)
    assert "self_approval" not in canonical(Policy((rules[0],)).to_json())


RULE = '[[rule]]\ntool = "pay"\n'
WRONG: list[tuple[str, str, str]] = [
    ("default = 5", "1:11", "default is one of allow, hold, deny"),
    ('default = "alow"', "1:11", "default is one of allow"),
    ('\ndefualt = "hold"', "2:11", "there is no key 'defualt' here"),
    ("a = ", "1:5", "is no TOML"),
    ('[[rule]]\ntool = "pay', "2:12", "is no TOML"),
    ('default = "hold"\ndefault = "deny"', "2:17", "is no TOML"),
    ("a = " + "[" * 100_000, "1:1", "is nested too deep"),
    ("[rule]\n", "1:1", "each rule is a table of its own"),
    ("rule = 5\n", "1:8", "each rule is a table of its own"),
    ('[[rule]]\nname = "x"\n', "1:1", "a rule names its tool"),
    (f'{RULE}efect = "hold"\n', "3:9", "a rule has no key 'efect'; it has name, tool, when"),
    (f'{RULE}notify = "1h"\n', "3:10", "a rule has no key 'notify'"),
    (f"{RULE}[rule.more]\nx = 1\n", "3:1", "a rule has no key 'more'"),
    ("[[rule]]\ntool = 5\n", "2:8", "tool is text that is not empty"),
    ('[[rule]]\ntool = ""\n', "2:8", "tool is text that is not empty"),
    ('[[rule]]\ntool = "pays"\n', "2:8", "names no known tool (pay, search, send_email)"),
    (f"{RULE}name = 5\n", "3:8", "name is text"),
    (f'{RULE}effect = "HOLD"\n', "3:10", "effect is one of allow, hold, deny"),
    (f"{RULE}effect = true\n", "3:10", "effect is one of"),
    (f'{RULE}risk   =   "hgih"\n', "3:12", "risk is one of low"),
    (f'{RULE}"risk" = []\n', "3:10", "risk is one of low"),
    (f"{RULE}who = 2\n", "3:7", "who is a list of"),
    (f"{RULE}who = [{{approve = 0}}]\n", "3:7", "approve counts people: a whole number from 1"),
    (f"{RULE}who = {{reject = -1}}\n", "3:7", "reject counts people"),
    (f"{RULE}who = {{approve = true}}\n", "3:7", "approve counts people"),
    (f"{RULE}who = {{approve = 1.0}}\n", "3:7", "approve counts people"),
    (f"{RULE}who = {{aprove = 2}}\n", "3:7", "who is a list of"),
    (f'{RULE}who = {{from = "finance"}}\n', "3:7", 'from names a group: "group:NAME"'),
    (f'{RULE}who = {{from = "group: "}}\n', "3:7", "from names a group"),
    (f'{RULE}who = {{from = "group:nobody"}}\n', "3:7", "names the group 'nobody'; there are finance, ops"),
    (f"{RULE}[[rule.who]]\napprove = 0\n", "3:1", "approve counts people"),
    (f'{RULE}decisions = "approve"\n', "3:13", "decisions is a list of some of approve"),
    (f'{RULE}decisions = ["aprove"]\n', "3:13", "decisions is a list"),
    (f"{RULE}decisions = []\n", "3:13", "allows no decision"),
    (f"{RULE}expire = 60\n", "3:10", "expire is a time such as 90s"),
    (f'{RULE}expire = "4 hours"\n', "3:10", "expire is a time"),
    (f'{RULE}expire = "0s"\n', "3:10", "expires before it is asked"),
    (f"{RULE}remind = 60\n", "3:10", "remind is a time such as 90s"),
    (f'{RULE}remind = ["30m", "soon"]\n', "3:10", "remind is a time"),
    (f'{RULE}remind = "0s"\n', "3:10", "reminds before it is asked"),
    (f'{RULE}remind = "2h"\nexpire = "2h"\n', "3:10", "reminds when it has expired already"),
    (f'{RULE}escalate = "2h"\n', "3:12", 'escalate is {after = "2h", to = "group:NAME"}'),
    (f'{RULE}escalate = {{after = "2h"}}\n', "3:12", "escalate is {after"),
    (f'{RULE}escalate = {{after = "2h", to = "ops"}}\n', "3:12", 'to names a group: "group:NAME"'),
    (f'{RULE}escalate = {{after = 2, to = "group:ops"}}\n', "3:12", "escalate is a time such as"),
    (f'{RULE}escalate = {{after = "2h", to = "group:ops", from = 1}}\n', "3:12", "escalate is {after"),
    (f'{RULE}escalate = {{after = "2h", to = "group:nobody"}}\n', "3:12", "names the group 'nobody'; there"),
    (
        f'{RULE}escalate = {{after = "2h", to = "group:ops"}}\nexpire = "1h"\n',
        "3:12",
        "escalates when it has expired already",
    ),
    (f'{RULE}expire = "9999d"\n', "3:10", "expires after more than 3653 days"),
    (f'{RULE}expire = "999999999w"\n', "3:10", "expire is a time"),
    (f'{RULE}reason = "maybe"\n', "3:10", 'reason is true or false, or "required"'),
    (f"{RULE}self_approval = 1\n", "3:17", "self_approval is true or false"),
    (f'{RULE}secret = "to"\n', "3:10", "secret is a list of names"),
    (f'{RULE}secret = ["."]\n', "3:10", "secret is a list of names"),
    (f'{RULE}secret = ["to", "pin.code"]\n', "3:10", "hides 'pin', which is no argument of its tools"),
    (
        f'{RULE}secret = ["card.numbr"]\n',
        "3:10",
        "hides 'card.numbr', but 'card' has no 'numbr'; it has number",
    ),
    (f'{RULE}secret = ["lines.skuu"]\n', "3:10", "but 'lines' has no 'skuu'; it has sku"),
    (f'{RULE}secret = ["/card/number/x"]\n', "3:10", "but 'card.number' has no 'x'"),
    (f"{RULE}when = 'args.count in [1, \"2\"]'\n", "3:9", "takes 'count' for text; its tools say n"),
    (f"{RULE}when = 'args.card.number == 5'\n", "3:9", "takes 'card.number' for number; its tools say text"),
    (
        f"{RULE}when = 'args.lines.exists(l, l.sku == 5)'\n",
        "3:30",
        "takes 'lines.*.sku' for number; its tools say text",
    ),
    (f"{RULE}flags = [1]\n", "3:9", "flags name arguments"),
    (f"{RULE}flags = {{amount = true}}\n", "3:9", "flags name arguments"),
    (f'{RULE}flags = {{amuont = "x"}}\n', "3:9", "flags 'amuont', which is no argument of its tools"),
    (f'{RULE}flags.amuont = "x"\n', "3:16", "flags 'amuont'"),
    (f'{RULE}summary = "Pay {{amuont}}"\n', "3:11", "names 'amuont', which is no argument"),
    (f'{RULE}summary = "Pay {{amount!r}}"\n', "3:11", "braces only round names of arguments"),
    (f'{RULE}summary = "Pay {{}}"\n', "3:11", "braces only round names of arguments"),
    (f'{RULE}summary = "{"x" * 301}"\n', "3:11", "at most 300 characters"),
    (f"{RULE}summary = 5\n", "3:11", "summary is text"),
    (f"{RULE}when = true\n", "3:8", "when is text"),
    (f"{RULE}when = 'args.amount > limit'\n", "3:23", "limit is not defined"),
    (f'{RULE}when = "args.amount > limit"\n', "3:23", "limit is not defined"),
    (f'{RULE}when = "args.to == \\"a\\" && x"\n', "3:8", "x is not defined"),
    (f"{RULE}when = '''args.amount\n > limit'''\n", "4:4", "limit is not defined"),
    (f'{RULE}when = """\nargs.amount\n > limit\n"""\n', "5:4", "limit is not defined"),
    (f"{RULE}when = 'args.amuont > 5'\n", "3:14", "reads 'amuont', which is no argument of its tools"),
    (f"{RULE}when = 'args.amount > > 5'\n", "3:23", "is not CEL from here on"),
    (f"{RULE}when = 'args.amount.matches(args.to)'\n", "3:21", "takes one pattern that is written out"),
    (
        '[[rule]]\ntool = "pay"\ndecisions = ["approve"]\n[[rule]]\ntool = "*"\ndecisions = ["reject"]\n',
        "6:13",
        "the rules for pay together allow no decision",
    ),
]


@pytest.mark.parametrize(("text", "at", "message"), WRONG, ids=lambda value: repr(value)[:50])
def test_what_is_wrong_is_named_by_line_and_column(text: str, at: str, message: str) -> None:
    found = refused(text)
    assert found[0][0] == at
    assert message in found[0][1]


def test_everything_that_is_wrong_is_named_at_once_in_its_order() -> None:
    text = f'{RULE}risk = 1\n[[rule]]\ntool = "pay"\neffect = 2\nwho = 3\n'
    assert [at for at, _ in refused(text)] == ["3:8", "6:10", "7:7"]


def test_long_texts_do_not_shift_places() -> None:
    text = f'{RULE}name = """\n[[rule]]\ntool = "x"\nrisk = 1\n"""\nrisk = 2\n'
    assert refused(text)[0][0] == "8:8"


def test_without_tools_and_groups_their_names_are_not_checked() -> None:
    text = '[[rule]]\ntool = "unheard_of"\nwhen = "args.x > 1"\nwho = [{from = "group:nobody"}]\n'
    assert read_policy(text).rules[0].tool == "unheard_of"
    assert len(refused(text)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("4h", timedelta(hours=4)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
        ("1d12h", timedelta(hours=36)),
        ("0s", timedelta(0)),
        *((wrong, None) for wrong in ("", "4", "h", "4 h", "-4h", "4H", "4.5h", "4h ", "P1D", "٤h", "1y")),
    ],
)
def test_a_time_is_written_as_number_and_unit(text: str, expected: timedelta | None) -> None:
    assert duration(text) == expected


SAID: list[tuple[str, str, str]] = [
    (f'{RULE}when = "1 > 2"\n', "3:8", "rule 'pay when 1 > 2' says the same of every call"),
    (f'{RULE}effect = "allow"\n[[rule]]\ntool = "*"\n', "3:10", "allows nothing: rule '*' is stronger"),
    (f"{RULE}who = {{approve = 3}}\n", "3:7", "needs 3 people, and there are 2"),
    (f'{RULE}who = {{from = "group:ops"}}\n', "3:7", "needs 1 people in group ops, and there are 0"),
]


@pytest.mark.parametrize(("text", "at", "message"), SAID)
def test_what_a_rule_may_not_mean_is_said(text: str, at: str, message: str) -> None:
    policy = read_policy(text, tools=TOOLS, groups=GROUPS)
    (found,) = warnings(policy, TOOLS, members={"": 2, "finance": 1, "ops": 0})
    assert place(text, found.rule, found.key) == at
    assert message in found.message


@pytest.mark.parametrize(
    "text",
    [
        f'{RULE}effect = "allow"\n[[rule]]\ntool = "*"\nwhen = "args.x > 1"\n',
        f'{RULE}effect = "allow"\n[[rule]]\ntool = "search"\n',
        '[[rule]]\ntool = "*"\neffect = "allow"\n[[rule]]\ntool = "pay"\n',
        f"{RULE}who = {{approve = 2}}\n",
    ],
)
def test_nothing_is_said_of_rules_that_mean_something(text: str) -> None:
    assert warnings(read_policy(text, tools=TOOLS), TOOLS, members={"": 2}) == []


@pytest.mark.parametrize("text", ["a" * 900_000, "[" + " " * 900_000, " " * 900_000 + "a", "'" * 900_000])
def test_a_long_line_is_refused_at_once(text: str) -> None:
    began = time.process_time()
    assert "is no TOML" in refused(text)[0][1]
    assert time.process_time() - began < 5.0


@given(st.text(alphabet="[]{}'\"=.,# \nruletowhn\\0", max_size=60))
def test_no_text_fails_in_another_way(text: str) -> None:
    found = None
    try:
        read_policy(text)
    except PolicyError as error:
        found = error
    assert found is None or found.faults
    assert found is None or all(fault.pointer.replace(":", "").isdigit() for fault in found.faults)
