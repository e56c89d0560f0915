"""The commands on policies: checked, tried and simulated without a change; applied, shown, and taken back."""

import json
from pathlib import Path
from typing import Any

import pytest

from clearance.people import Person, Role
from tests.ways_in.desk import Desk, error

OF_DESK = ("--program", "desk")
FILE = """\
default = "allow"

[[rule]]
name = "mail to outside"
tool = "send_email"
when = 'domain(args.to) != "corp.example"'
risk = "high"
who = [{approve = 2}]
expire = "4h"
reason = true
flags = {to = "outside"}
"""
OUT = {"tool": "send_email", "args": {"to": "eve@evil.example", "body": "b"}}


@pytest.fixture
def held(desk: Desk) -> Desk:
    """A desk with two calls that wait, of a program with the code's policy."""
    desk.hold(("send_email", '{"to":"ana@corp.example","body":"b"}'), ("pay", '{"amount":1}'))
    return desk


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write a file, and return its path."""

    def written(text: str | dict[str, Any], name: str = "policy.toml") -> str:
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return str(path)

    return written


def test_a_good_file_can_be_used_and_warnings_have_a_place(held: Desk, write: Any) -> None:
    path = write(FILE)
    done = held.run("policy", "check", path, *OF_DESK)
    assert done.exit_code == 0, done.output
    assert "can be used: 1 rules" in done.stdout
    assert f"{path}:8:7: rule 'mail to outside' needs 2 people, and there are 1" in done.stderr
    answer = held.json("policy", "check", path, *OF_DESK)
    assert answer["rules"] == 1
    assert [each["pointer"] for each in answer["warnings"]] == ["8:7"]


def test_a_file_can_be_checked_where_there_is_no_workspace(desk: Desk, write: Any) -> None:
    answer = desk.json("policy", "check", write(FILE))
    assert "never started here" in answer["warnings"][0]["message"]
    assert not desk.home.exists()


def test_a_bad_file_is_refused_with_its_places(held: Desk, write: Any) -> None:
    path = write(FILE.replace("send_email", "send_emial").replace("args.to", "args.too"))
    for command in ("check", "apply", "simulate"):
        found = error(held.run("policy", command, path, *OF_DESK, "--json"))
        assert found["error"] == "policy"
        assert [fault["pointer"] for fault in found["faults"]] == ["5:8"]
    found = error(held.run("policy", "check", write(FILE.replace("args.to", "args.too")), *OF_DESK, "--json"))
    assert [fault["pointer"] for fault in found["faults"]] == ["6:21"]
    assert [each["source"] for each in held.json("policy", "history", *OF_DESK)["policies"]] == ["code"]


def test_a_call_is_tried_rule_by_rule(held: Desk, write: Any) -> None:
    found = held.json("policy", "test", write(FILE), write(OUT, "call.json"), *OF_DESK)
    assert (found["effect"], found["risk"]) == ("hold", "high")
    assert found["who"] == [{"approve": 2, "reject": 1, "group": None}]
    assert (found["expires_in"], found["reason_required"]) == (14400.0, True)
    assert found["flags"] == {"to": "outside"}
    assert found["rules"] == [
        {"rule": "mail to outside", "matches": True, "fault": None, "reads": {"to": "eve@evil.example"}}
    ]
    drawn = held.run("policy", "test", write(FILE), write(OUT, "call.json"), *OF_DESK).stdout
    assert "hold, high risk" in drawn
    assert "Needed: 2 of anybody who may decide" in drawn
    assert 'mail to outside: matches (to = "eve@evil.example")' in drawn


def test_a_call_whose_condition_gives_no_answer_says_why(held: Desk, write: Any) -> None:
    call = write({"tool": "send_email", "args": {"to": "a@evil.example,b@corp.example"}}, "call.json")
    found = held.json("policy", "test", write(FILE), call, *OF_DESK)
    assert found["effect"] == "hold"
    assert found["rules"][0]["matches"] is None
    assert "takes one plain mail address" in found["rules"][0]["fault"]
    assert found["faults"] == [found["rules"][0]["fault"]]


def test_the_active_policy_can_be_tried_too(held: Desk, write: Any) -> None:
    call = write({"tool": "pay", "args": {"amount": 5}, "person": {"id": "ana", "groups": []}}, "call.json")
    found = held.json("policy", "test", "active", call, *OF_DESK)
    assert (found["effect"], [each["rule"] for each in found["rules"]]) == ("hold", ["money"])


@pytest.mark.parametrize(
    "call",
    [
        '{"tol": "pay"}',
        '{"tool": 5}',
        '{"tool": "pay", "args": []}',
        '{"tool": "pay", "person": {"name": "x"}}',
        "[]",
        "{",
        '{"tool": "pay", "args": {"a": 1, "a": 2}}',
    ],
)
def test_what_is_no_call_is_refused(held: Desk, write: Any, call: str) -> None:
    done = held.run("policy", "test", "active", write(call, "call.json"), *OF_DESK)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_a_simulation_says_what_would_change(held: Desk, write: Any) -> None:
    found = held.json("policy", "simulate", write(FILE), "--since", "1d", *OF_DESK)
    assert found["calls"] == 2
    assert found["today"]["effects"] == {"allow": 0, "hold": 2, "deny": 0}
    assert found["today"]["rules"] == {"mail": 1, "money": 1}
    assert found["then"] == {"effects": {"allow": 2, "hold": 0, "deny": 0}, "rules": {}, "faults": 0}
    assert {"tool": "pay", "today": "hold", "then": "allow", "calls": 1} in found["changes"]
    drawn = held.run("policy", "simulate", write(FILE), *OF_DESK).stdout
    assert "2 calls" in drawn
    assert "pay: hold → allow" in drawn


def test_a_simulation_wants_a_time(held: Desk, write: Any) -> None:
    done = held.run("policy", "simulate", write(FILE), "--since", "yesterday", *OF_DESK)
    assert done.exit_code == 2
    assert "no time such as" in done.stderr


def test_an_applied_policy_is_shown_as_it_was_written_and_can_be_taken_back(held: Desk, write: Any) -> None:
    path = write(FILE)
    applied = held.json("policy", "apply", path, *OF_DESK)
    assert (applied["program"], applied["changed"]) == ("desk", True)
    assert held.json("policy", "apply", path, *OF_DESK)["changed"] is False
    assert held.run("policy", "show", *OF_DESK).stdout == FILE
    shown = held.json("policy", "show", *OF_DESK)
    assert (shown["text"], shown["source"], shown["version"]) == (FILE, "applied", applied["version"])
    found = held.json("policy", "history", *OF_DESK)["policies"]
    assert [(each["number"], each["source"]) for each in found] == [(2, "applied"), (1, "code")]
    assert "from a file, since" in held.run("policy", "history", *OF_DESK).stdout
    back = held.json("policy", "reset", *OF_DESK)
    assert back["version"] == found[1]["version"]
    assert json.loads(held.run("policy", "show", *OF_DESK).stdout)["default"] == "hold"


def test_a_file_does_not_replace_a_policy_that_became_active_meanwhile(held: Desk, write: Any) -> None:
    seen = held.json("policy", "show", *OF_DESK)["number"]
    ours = ("policy", "apply", write(FILE), *OF_DESK, "--instead-of", str(seen))
    assert held.json(*ours)["changed"] is True
    theirs = write(FILE.replace("4h", "2h"), "theirs.toml")
    done = held.run("policy", "apply", theirs, *OF_DESK, "--instead-of", str(seen))
    assert done.exit_code != 0
    assert "meanwhile" in done.stderr
    assert "4h" in held.json("policy", "show", *OF_DESK)["text"]


def test_only_an_admin_applies(held: Desk, write: Any) -> None:
    held.add(Person("rita", "Rita", role=Role.OPERATOR))
    done = held.run("policy", "apply", write(FILE), *OF_DESK, person="rita")
    assert done.exit_code == 6
    assert "Only an admin changes the policy" in done.stderr


def test_a_program_without_a_policy_is_not_found(held: Desk) -> None:
    done = held.run("policy", "show", "--program", "other")
    assert done.exit_code == 4
    assert "There are desk." in done.stderr


def test_a_file_that_cannot_be_read_is_said(held: Desk, tmp_path: Path) -> None:
    assert held.run("policy", "check", str(tmp_path / "no.toml")).exit_code == 4
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    done = held.run("policy", "check", str(tmp_path / "bytes.toml"))
    assert done.exit_code == 2
    assert "no text in UTF-8" in done.stderr
