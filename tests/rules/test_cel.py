"""Conditions in CEL: true, false, or a hold that says why, whatever the arguments are and however large."""

import subprocess
import sys
import time
from typing import Any

import pytest

from clearance.cel import MAX_WORK, flaws
from clearance.expression import MAX_NESTING, MAX_TEXT, Cel, Origin, read
from clearance.policy import Effect, Policy, Rule, Verdict, judge

ORIGIN = Origin(
    run={"id": "r1", "thread": "t1", "program": "chat"},
    person={"id": "ana", "groups": ["finance"], "role": "reviewer", "kind": "person"},
)
LONGEST_SECONDS = 5.0


def verdict(when: str, *, tool: str = "pay", origin: Origin | None = ORIGIN, **arguments: Any) -> Verdict:
    """Return what a policy says that allows what the condition is true of, and denies the rest."""
    rules = (Rule("*", Effect.ALLOW, when=Cel(when), name="the rule"),)
    return judge(Policy(rules, default=Effect.DENY), tool, arguments=arguments, origin=origin)


ANSWERED: list[tuple[str, dict[str, Any], bool]] = [
    ("args.amount > 100", {"amount": 101}, True),
    ("args.amount > 100", {"amount": 100}, False),
    ("args.amount > 100", {"amount": 100.5}, True),
    ("args.amount == 100", {"amount": 100.0}, True),
    ("args.amount <= 9223372036854775807", {"amount": 2**63 - 1}, True),
    ('args.env != "prod"', {"env": "test"}, True),
    ('args.env in ["test", "dev"]', {"env": "dev"}, True),
    ('args.env in ["test", null]', {"env": None}, True),
    ("args.port in [-1, 80, 8080.0]", {"port": 80}, True),
    ('"prod" == args.env', {"env": "test"}, False),
    ("args.urgent == true", {"urgent": True}, True),
    ("args.urgent", {"urgent": False}, False),
    ("args.note == null", {"note": None}, True),
    ('args.note != null && args.note == "x"', {"note": None}, False),
    ('has(args.note) && args.note == "x"', {}, False),
    ("!has(args.note)", {}, True),
    ('args.to.all(each, domain(each) == "corp.example")', {"to": ["a@corp.example", "b@corp.example"]}, True),
    ('args.to.exists(each, domain(each) != "corp.example")', {"to": ["a@corp.example"]}, False),
    ('(args.to).exists(each, each == "boss")', {"to": ["ana", "boss"]}, True),
    ('args.to[1] == "boss" && (args.to[0]) != "boss"', {"to": ["ana", "boss"]}, True),
    ('person.groups.exists(each, each == "finance") || args.n == 1', {"n": 1}, True),
    ('"boss" in args.to && "x" in args.headers', {"to": ["boss"], "headers": {"x": 1}}, True),
    ("(args.a + args.b) * 2 == 6", {"a": 1, "b": 2}, True),
    ('args.lines.exists_one(each, each.sku == "A")', {"lines": [{"sku": "A"}, {"sku": "B"}]}, True),
    ('args.path.matches("^/srv/[a-z]+$")', {"path": "/srv/data"}, True),
    ("args.path.matches(r'^\\d{4}$')", {"path": "2026"}, True),
    ('path(args.path).startsWith("/srv/")', {"path": "/srv/x"}, True),
    ('domain(args.to) == "corp.example"', {"to": "a@CORP.example"}, True),
    ("money(args.amount) >= 100 && money(args.amount) < 1000.5", {"amount": 1000}, True),
    ('args["with-dash"] == 1', {"with-dash": 1}, True),
    ('tool == "pay"', {}, True),
    ('"finance" in person.groups && person.role != "admin"', {}, True),
    ('person.id == "ana" && person.kind == "person" && run.program == "chat"', {}, True),
    ("size(args.items) > 2 ? false : true", {"items": [1]}, True),
    ("timestamp(args.at) < timestamp('2027-01-01T00:00:00Z')", {"at": "2026-01-01T00:00:00Z"}, True),
    ("args.amount > 1 // a comment", {"amount": 2}, True),
]


@pytest.mark.parametrize(("when", "arguments", "matches"), ANSWERED)
def test_a_condition_decides_whether_its_rule_matches(
    when: str, arguments: dict[str, Any], matches: bool
) -> None:
    assert flaws(Cel(when)) == ()
    found = verdict(when, **arguments)
    assert (found.effect, found.faults) == (Effect.ALLOW if matches else Effect.DENY, ())


DEEPEST: list[Any] = []
for _ in range(500):
    DEEPEST = [DEEPEST]
AMOUNT, TEXT, TO = "args.amount < 100", 'args.env != "prod"', 'domain(args.to) == "corp.example"'
FILE = 'path(args.path).startsWith("/srv/")'
HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    (AMOUNT, {}, "a field that it reads is missing"),
    (AMOUNT, {"amount": None}, "kinds that do not fit"),
    (AMOUNT, {"amount": "5"}, "kinds that do not fit"),
    (AMOUNT, {"amount": True}, "kinds that do not fit"),
    (AMOUNT, {"amount": [5]}, "kinds that do not fit"),
    (AMOUNT, {"amount": float("nan")}, "an argument is no JSON value"),
    (AMOUNT, {"amount": -float("inf")}, "an argument is no JSON value"),
    (AMOUNT, {"amount": -(2**63) - 1}, "an integer does not fit into 64 bits"),
    (AMOUNT, {"amount": 2**63}, "an integer does not fit into 64 bits"),
    (AMOUNT, {"amount": 2**64 + 5}, "an integer does not fit into 64 bits"),
    (AMOUNT, {"amount": 5, "deep": {"more": [2**64]}}, "an integer does not fit into 64 bits"),
    (AMOUNT, {"amount": 5, "deep": DEEPEST}, "the arguments are nested too deep"),
    (AMOUNT, {"amount": {"$gt": 0}}, "kinds that do not fit"),
    (AMOUNT, {"amount": (1, 2)}, "kinds that do not fit"),
    (AMOUNT, {"amount": b"5"}, "an argument is no JSON value"),
    ("args.amount + 1 > 0", {"amount": 2**63 - 1}, "a number is too large"),
    ("args.amount / args.by > 0", {"amount": 1, "by": 0}, "it divides by zero"),
    ("args.amount != 100", {"amount": "100"}, "an argument is no number"),
    ("args.amount != 1", {"amount": True}, "an argument is no number"),
    ("100 != args.amount", {"amount": None}, "an argument is no number"),
    (TEXT, {"env": ["prod"]}, "an argument is no text"),
    (TEXT, {"env": None}, "an argument is no text"),
    (TEXT, {"env": 5}, "an argument is no text"),
    ('!(args.env in ["prod"])', {"env": ["prod"]}, "an argument is no text"),
    ('!(args.env in [1, "prod"])', {"env": "prod"}, "an argument is no number"),
    ('!(args.env in ["prod", 1])', {"env": 1}, "an argument is no text"),
    ('!(args.env in ["a", "b", true])', {"env": "a"}, "an argument is no bool"),
    ('!(args.env in ["a", ["b", 1][0], 2])', {"env": "a"}, "an argument is no number"),
    ('!args.env.contains("prod")', {"env": ["production"]}, "an argument is no text"),
    ('args.at.env != "prod"', {"at": {"env": ["prod"]}}, "an argument is no text"),
    ('args["env"] != "prod"', {"env": ["prod"]}, "an argument is no text"),
    ("args.urgent != true", {"urgent": "true"}, "an argument is no bool"),
    ('(args.env) == "prod"', {"env": ["prod"]}, "an argument is no text"),
    ('"prod" == ((args.env))', {"env": ["prod"]}, "an argument is no text"),
    ('args.envs[0] == "prod"', {"envs": [["prod"]]}, "an argument is no text"),
    ('args.to.exists(t, t == "boss@corp.com")', {"to": [["boss@corp.com"]]}, "an argument is no text"),
    ('args.to.exists(t, "boss@corp.com" == (t))', {"to": ["a", ["boss@corp.com"]]}, "an argument is no text"),
    ('args.lines.exists(l, l.sku == "A")', {"lines": [{"sku": ["A"]}]}, "an argument is no text"),
    ('!args.to.all(t, domain(t) == "corp.com")', {"to": {"a@corp.com": 1}}, "goes through what is no list"),
    ("(args.to).exists(t, t.startsWith('x'))", {"to": "xyz"}, "goes through what is no list"),
    ('"prod" in args.envs', {"envs": [["prod"]]}, "an argument is no text"),
    (TO, {"to": "x@evil.com,a@corp.example"}, "address() takes one plain mail address"),
    (TO, {"to": ["a@corp.example"]}, "a text was expected"),
    (TO, {"to": "a@cоrp.example"}, "takes one plain mail address"),
    (TO, {"to": "a@xn--crp-hoa.example"}, "takes one plain mail address"),
    (f"{TO} || true", {"to": "x@evil.com,a@corp.example"}, "takes one plain mail address"),
    (FILE, {"path": "/srv/../etc/passwd"}, "no path with empty, . or .. steps"),
    (FILE, {"path": "/srv/%2e%2e/etc"}, "a plain path"),
    ("money(args.amount) < 100", {"amount": "5"}, "money() takes a number"),
    ("money(args.amount) < 100", {"amount": True}, "money() takes a number"),
    ("money(args.amount) < 100", {"amount": -5000}, "an amount from 0"),
    ("money(args.amount, 2) < 100", {"amount": 5}, "money() takes one value"),
    ("args.amount", {"amount": 1}, "it gives no bool"),
    ("args.env", {"env": "true"}, "it gives no bool"),
    ("args.env ? true : false", {"env": "true"}, "kinds that do not fit"),
    ("args.items[3] == 1", {"items": [1]}, "an item that it reads is missing"),
    ("int(args.env) > 5", {"env": "five"}, "it failed"),
]


@pytest.mark.parametrize(("when", "arguments", "why"), HOSTILE, ids=ascii)
def test_a_condition_without_an_answer_holds_the_call_and_says_why(
    when: str, arguments: dict[str, Any], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = verdict(when, **arguments)
    assert found.effect is Effect.HOLD
    assert found.rules == ("the rule",)
    (fault,) = found.faults
    assert fault.startswith("the condition of rule 'the rule' gave no answer: ")
    assert why in fault
    # Values are for people who review, not for logs.
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("when", ['person.id == "ana"', 'run.program == "chat"'])
def test_a_condition_on_who_asks_holds_where_that_is_not_known(when: str) -> None:
    found = verdict(when, origin=None)
    assert found.effect is Effect.HOLD
    assert "is not known here" in found.faults[0]


def test_a_missing_field_of_the_person_holds() -> None:
    nobody = Origin(run={}, person={})
    assert verdict('person.id == "ana"', origin=nobody).effect is Effect.HOLD


FLAWED: list[tuple[str, int, str]] = [
    ("", 0, "is not CEL from here on"),
    ("args.amount >", 13, "is not CEL from here on"),
    ("args.amount = 3", 12, "is not CEL from here on"),
    ("args.amount >\n  > 3", 16, "is not CEL from here on"),
    ("arg.amount > 3", 0, "arg is not defined; there are args, tool, run, person"),
    ("args.amount > limit", 14, "limit is not defined"),
    ('fetch(args.url) == ""', 0, "there is no function fetch()"),
    ('args.name.lower() == "x"', 10, "there is no function lower()"),
    ("args.items.map(x, x + 1) == [1]", 11, "makes a list"),
    ("args.items.filter(x, x > 1) == []", 11, "makes a list"),
    ("args.a.all(x, args.b.all(y, x == y))", 21, "a loop inside a loop can take too long"),
    ("args.a.all(args, args > 1)", 11, "args is taken"),
    ('[args.a, args.b].exists(x, x == "prod")', 17, "a loop walks an argument"),
    ('(args.a + args.b).exists(x, x == "prod")', 18, "a loop walks an argument"),
    ('args.envs[args.at] == "prod"', 9, "inside [ ] stands a number"),
    ('(args.other ? args.env : args.env) == "prod"', 0, "compare the arguments themselves"),
    ('[args.env] == ["prod"]', 11, "compare items and fields"),
    ('["prod"] == args.envs', 9, "compare items and fields"),
    ('{"a": args.env} == {"a": "prod"}', 16, "compare items and fields"),
    ('args == {"env": "prod"}', 5, "compare items and fields"),
    ('args.env != ("prod")', 9, "without brackets around it"),
    ('("prod") == args.env', 9, "without brackets around it"),
    ('args.env == (["prod"])[0]', 9, "without brackets around it"),
    ("args.name.matches(args.pattern)", 10, "takes one pattern that is written out"),
    ('args.name.matches("a" + args.b)', 10, "takes one pattern that is written out"),
    ('matches(args.name, "a")', 0, "takes one pattern that is written out"),
    ('args.names.all(x, x.matches("a"))', 20, "inside a loop can take too long"),
    ('args.name.matches("(a{20}){20}")', 18, "64 repeats"),
    ('args.name.matches("a{1,999999999999999999}")', 18, "64 repeats"),
    (f'args.name.matches("{"a" * 200}")', 18, "200 characters"),
    ('args.name.matches("(")', 18, "is no pattern"),
    ('args.name.matches("a(?=b)")', 18, "is no pattern"),
    ("true" + " || true" * MAX_TEXT, 0, "is longer than 1000 characters"),
    ("(" * (MAX_NESTING + 1) + "true" + ")" * (MAX_NESTING + 1), MAX_NESTING, "is nested deeper than 16"),
]


@pytest.mark.parametrize(("when", "offset", "message"), FLAWED, ids=lambda value: repr(value)[:40])
def test_a_condition_that_cannot_be_evaluated_is_refused_at_its_place(
    when: str, offset: int, message: str
) -> None:
    found = flaws(Cel(when))
    assert found
    assert found[0].offset == offset
    assert message in found[0].message
    # Where one is stored all the same, it holds.
    assert verdict(when).effect is Effect.HOLD


# Each of them ends the process, when it reaches the interpreter as it is.
DEEP = {
    "brackets": "(" * 400 + "true" + ")" * 400,
    "lists": "[" * 400 + "]" * 400 + " == []",
    "maps": "{1:" * 300 + "1" + "}" * 300 + " == {}",
    "calls": "size(" * 180 + "args" + ")" * 180 + " > 1",
}
WIDE = {
    "sums": "1" + "+1" * 495 + " > 0",
    "fields": "args" + ".a" * 490 + " == 1",
    "items": "args" + "[0]" * 325 + " == 1",
    "negations": "!" * 990 + "true",
    "signs": "-" * 990 + "1 > 0",
    "comparisons": "true" + "==true" * 165,
    "choices": "true?true:" * 99 + "true",
    "alternatives": "true" + "||true" * 165,
}


@pytest.mark.parametrize("when", [*DEEP.values(), *WIDE.values()], ids=[*DEEP, *WIDE])
def test_no_condition_ends_the_process_however_deep_it_is(when: str) -> None:
    script = (
        "import sys, threading; from clearance.cel import flaws; from clearance.expression import Cel\n"
        "from clearance.policy import *\n"
        "def ask():\n"
        "    flaws(Cel(sys.argv[1]))\n"
        "    judge(Policy((Rule('*', when=Cel(sys.argv[1])),)), 'pay', arguments={})\n"
        "    print('alive')\n"
        # As small as the threads of other systems are.
        "threading.stack_size(512 * 1024)\n"
        "thread = threading.Thread(target=ask); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", script, when], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


SLOW: list[tuple[str, dict[str, Any]]] = [
    ('args.text.matches("^(a+)+$")', {"text": "a" * 200_000 + "!"}),
    ('args.text.matches("^(a|a)*b$")', {"text": "a" * 200_000 + "!"}),
    ('args.text.matches("^(.*){20}x$")', {"text": "a" * 200_000}),
    ('args.text.matches("([ab]*a[ab]{60})!")', {"text": "ab" * 100_000}),
    ('args.text.matches("(\\\\w+\\\\s?){30}!")', {"text": "ab " * 60_000}),
    ("args.items.all(x, x >= 0)", {"items": list(range(2000))}),
    ("args.items.all(x, args.text.contains(args.text))", {"items": [1] * 60_000, "text": "a" * 100_000}),
    ("args.items.all(x, size(args.text + args.text) > 1)", {"items": [1] * 60_000, "text": "a" * 100_000}),
    ("size(" + "+".join(["args.text"] * 95) + ") > 1", {"text": "a" * 200_000}),
    ('args.to.all(x, domain(x) == "corp.example")', {"to": ["a@corp.example"] * 10_000}),
]


@pytest.mark.parametrize(("when", "arguments"), SLOW, ids=lambda value: repr(value)[:40])
def test_a_condition_takes_moments_or_holds_however_large_the_arguments_are(
    when: str, arguments: dict[str, Any]
) -> None:
    began = time.monotonic()
    found = verdict(when, **arguments)
    assert time.monotonic() - began < LONGEST_SECONDS
    assert not found.faults or "the arguments are too large for it" in found.faults[0]


def test_a_loop_over_ordinary_arguments_is_answered() -> None:
    when = 'args.to.all(each, domain(each) == "corp.example")'
    to = [f"person.{number}@corp.example" for number in range(200)]
    assert verdict(when, to=to).faults == ()
    assert len(when) * len(str(to)) * len(to) < MAX_WORK


def test_what_a_condition_reads_is_known_with_its_places() -> None:
    found = read('args.amount > 1 && has(args.note) && args["a-b"].c == person.id')
    assert found.arguments == (("amount", 5), ("note", 28), ("a-b", 42))
    assert found.names == {"args", "person"}


def test_a_condition_cannot_change_the_arguments() -> None:
    arguments: dict[str, Any] = {"items": [{"sku": "A"}], "amount": 5}
    verdict("args.items.exists(x, x.sku == 'A')", **arguments)
    assert arguments == {"items": [{"sku": "A"}], "amount": 5}


@pytest.mark.parametrize("first", ["cel", "clearance.cel"])
def test_a_program_may_use_the_library_too_before_or_after(first: str) -> None:
    others = {"cel": "clearance.cel", "clearance.cel": "cel"}
    script = (
        f"import {first}\nimport {others[first]}\n"
        "from clearance.policy import *; from clearance.expression import Cel; import cel\n"
        "found = judge(Policy((Rule('*', when=Cel('args.a > 1')),)), 'pay', arguments={'a': 2})\n"
        "print(cel.evaluate('1 + 1'), found.effect, found.faults)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("2 hold ()\n", 0), done.stderr


def test_only_the_extension_is_loaded_and_not_the_program_that_comes_with_it() -> None:
    script = (
        "import sys, clearance.cel; print(sorted({'typer', 'rich', 'prompt_toolkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
