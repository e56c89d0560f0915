"""The interpreter of the cases: it fails what it does not know, and what is not so."""

import json
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from tests.databases import Databases
from tests.journeys.cases.__main__ import main
from tests.journeys.cases.loading import TOLD, Case, CaseError, expand, forms, load, load_fixtures
from tests.journeys.cases.running import Place, Report, run_case
from tests.journeys.cases.waiting import DOORS, MCP, answers

PAY: dict[str, Any] = {"id": "c1", "tool": "pay", "args": {"account": "A-1", "amount_cents": 5}}
UNTOUCHED = {"$untouched_form": "r1/c1"}
START: list[dict[str, Any]] = [
    {"op": "configure", "policy": "P0"},
    {"op": "propose", "thread": "t1", "calls": [PAY]},
]
APPROVE: dict[str, Any] = {
    "op": "decide",
    "by": "rita",
    "review": "r1",
    "decisions": [{"call": "c1", "type": "approve"}],
}


@pytest.fixture
def place(databases: Databases, tmp_path: Path, fork_server: ForkServerContext) -> Place:
    """An empty workspace."""
    return Place(databases.migrated("sqlite", tmp_path), tmp_path, fork_server, load_fixtures())


def run(place: Place, steps: list[dict[str, Any]], *expected: dict[str, Any]) -> Report:
    return run_case(Case("T", "", steps, list(expected)), place)


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([{"op": "teleport"}], "teleport"),
        ([{"op": TOLD, "text": "sing a song"}], "sing a song"),
        ([{"op": "configure", "policy": "P0", "moon": 1}], "moon"),
        ([{"op": "configure", "policy": "P9"}], "P9"),
        ([{"op": "configure", "override": ["pay"]}], "form"),
        ([*START, {"op": "view", "review": "r1"}], "surface"),
        ([*START, {**APPROVE, "via": "pigeon"}], "pigeon"),
        ([START[0], {**START[1], "model": "sings"}], "sings"),
        ([*START, {"op": "crash", "at": "noon"}], "noon"),
        ([{"op": "pipeline", "what": "dance"}], "dance"),
        ([{"op": "pipeline", "what": "start", "flow": ["analyst", "planner"]}], "analyst, planner"),
        ([{"op": "store", "delete": "moon of t1"}], "moon"),
        ([{"op": "configure", "policy": "P0", "notify": ["pigeon"]}], "pigeon"),
        ([{"op": "configure", "policy": "P0", "secrets": ["moon"]}], "moon"),
        ([{"op": "configure", "policy": "P0", "links": {"slack:U1": "u-9"}}], "u-9"),
        ([START[0], {"op": "admin", "what": "paint rita"}], "paint rita"),
        ([START[0], {"op": "email_server", "state": "sleepy"}], "sleepy"),
        ([START[0], {"op": "propose_nested", "thread": "t1", "path": ["a"], "calls": [PAY]}], "way along a"),
        (
            [*START, {**APPROVE, "decisions": [{"call": "c1", "type": "edit", "args": UNTOUCHED}]}],
            "untouched",
        ),
    ],
)
def test_a_step_that_is_not_known_fails_and_is_named(
    place: Place, steps: list[dict[str, Any]], named: str
) -> None:
    report = run(place, steps, {"check": "history_valid"})
    assert report.verdict == "failed"
    [reason] = report.failures
    assert named in reason
    assert "no " in reason, reason


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"check": "karma"}, "karma"),
    ({"check": "property", "text": "all is well"}, "all is well"),
    ({"check": "audit", "must": "all is told"}, "all is told"),
    ({"check": "audit"}, "must"),
    ({"check": "review", "ref": "r1", "state": "happy"}, "happy"),
    ({"check": "step", "n": 2, "outcome": "applauded"}, "applauded"),
    ({"check": "step", "n": 9, "outcome": "accepted"}, "step 9"),
    ({"check": "step", "n": "all", "outcome": "accepted"}, "all"),
    ({"check": "executed", "exactly": [], "soon": True}, "soon"),
    ({"check": "model_told", "call": "c1", "kind": "poem"}, "poem"),
]


def test_a_check_that_is_not_known_fails_and_is_named(place: Place) -> None:
    report = run(place, START, *(check for check, _ in UNKNOWN))
    for reason, (_, named) in zip(report.failures, UNKNOWN, strict=True):
        assert named in reason
        assert "no " in reason, reason


WRONG: list[dict[str, Any]] = [
    {"check": "executed", "exactly": []},
    {"check": "executed", "exactly": [{"call": "c1"}, {"call": "c1"}]},
    {"check": "executed", "exactly": [{"tool": "pay", "args": {"account": "A-1", "amount_cents": 5.0}}]},
    {"check": "not_executed", "tool": "pay"},
    {"check": "not_executed", "tool": "pay", "args": {"amount_cents": 5}},
    {"check": "times", "call": "c1", "min": 2, "max": 2},
    {"check": "times", "call": "c7", "min": 0, "max": 1},
    {"check": "step", "n": 3, "outcome": "refused"},
    {"check": "review", "ref": "r1", "state": "pending"},
    {"check": "review", "ref": "r1", "state": "pending until step 2"},
    {"check": "review", "ref": "r2", "state": "settled"},
    {"check": "model_told", "call": "c1", "kind": "rejection"},
    {"check": "property", "text": "t1: at most 3 reviews, then the turn ends with an answer to the user; "
     "never executed"},
    {"check": "audit", "must": "expiry by the system, no person named"},
    {"check": "audit", "must": "proposed(digest A), decided(u-1002, approve, digest A)"},
    {"check": "audit", "must": "proposed(digest A), decided(u-1001, approve, digest B)"},
    {"check": "audit", "must": "proposed(digest A), decided(u-1001, edit, digest A)"},
    {"check": "audit", "must": "outcome, proposed(digest A)"},
]  # fmt: skip


def test_what_is_not_so_fails(place: Place) -> None:
    report = run(place, [*START, APPROVE], *WRONG)
    assert len(report.failures) == len(WRONG), report.failures


def test_what_is_not_so_of_a_pipeline_fails(place: Place) -> None:
    gate = {"by": "rita", "review": "S4_plan rev 1"}
    flow = ["planner", "check", "gate:S4_plan", "analyst", "reporter"]
    steps: list[dict[str, Any]] = [
        {"op": "pipeline", "what": "start", "flow": flow},
        {"op": "decide", **gate, "decisions": [{"type": "revise", "message": "shorter"}]},
    ]
    ran = "run1: planner and check ran {}, with the remark as input; "
    ran += "analyst once, reporter once, after the gate"
    wrong: list[dict[str, Any]] = [
        {"check": "property", "text": "run1: analyst and reporter never run; final state rejected"},
        {"check": "property", "text": ran.format("twice")},
        {"check": "property", "text": ran.format("three times")},
        {"check": "property", "text": "round 1: refused, the run ends or is escalated"},
        {"check": "review", "ref": "run1 S4_plan rev 1", "state": "pending"},
        {"check": "review", "ref": "S4_plan rev 2", "state": "settled"},
        {"check": "review", "ref": "S5_execute rev 1", "state": "settled"},
        {"check": "step", "n": 2, "outcome": "refused"},
    ]
    so = {"check": "review", "ref": "run1 S4_plan rev 2", "state": "pending"}
    report = run(place, steps, *wrong, so)
    assert len(report.failures) == len(wrong), report.failures


def test_what_is_so_passes(place: Place) -> None:
    steps = [*START, APPROVE, {"op": "message", "by": "tom", "thread": "t1", "text": "thanks"}]
    report = run(
        place,
        steps,
        {"check": "executed", "exactly": [{"tool": "pay", "args": PAY["args"]}]},
        {"check": "not_executed", "tool": "pay", "args": {"amount_cents": 6}},
        {"check": "times", "call": "c1", "min": 1, "max": 1},
        {"check": "step", "n": "3-4", "outcome": "accepted"},
        {"check": "review", "ref": "r1", "state": "pending until step 3"},
        {"check": "review", "ref": "r1", "state": "settled"},
        {"check": "history_valid"},
        {"check": "audit", "must": "proposed(digest A), decided(u-1001, approve, digest A), outcome"},
        {"check": "property", "text": "replaying the records alone gives the state of every review"},
    )
    assert report.failures == []


def test_a_case_whose_door_is_not_there_waits_for_it(place: Place) -> None:
    step = {"op": "mcp_call", "by": "dev-bot", "tool": "approve_review"}
    assert run(place, [step], {"check": "history_valid"}).verdict == f"waits for {MCP}"


def test_a_door_is_found_where_it_is() -> None:
    assert answers("/api/v1/reviews")
    assert not answers("/api/v1/nothing-of-that-name")
    assert all(isinstance(is_there(), bool) for is_there in DOORS.values())


def test_a_case_is_run_in_each_of_its_forms() -> None:
    found = {case.id: [form.name for form in forms(case)] for case in load()}
    assert found["A4"] == [f"A4 (variant {number})" for number in (1, 2, 3, 4)]
    assert found["E10"] == ["E10 (before the gate)", "E10 (behind the gate)"]
    assert found["A1"] == ["A1"]


def test_tagged_values_stand_for_what_they_name() -> None:
    assert expand({"$join": ["a", {"$repeat": ["b", 3]}]}) == "abbb"
    assert expand([{"$py": "bytes", "v": "00ff"}]) == [b"\x00\xff"]
    assert expand({"$raw": "{'x'"}) == {"$raw": "{'x'"}
    with pytest.raises(CaseError, match="complex"):
        expand({"$py": "complex", "v": "1"})


def test_a_file_of_cases_is_told_of_in_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paid = {"check": "executed", "exactly": [{"call": "c1"}]}
    mcp = {"op": "mcp_call", "by": "dev-bot", "tool": "approve_review"}
    cases = [
        {"id": "X1", "title": "runs", "steps": [*START, APPROVE], "expected": [paid]},
        {"id": "X2", "title": "does not run", "steps": START, "expected": [paid]},
        {"id": "X3", "title": "cannot run yet", "steps": [mcp], "expected": [paid]},
    ]
    file = tmp_path / "others.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    assert main([str(file)]) == 1
    first, second, reason, third = capsys.readouterr().out.splitlines()
    assert first == "X1     ok: runs"
    assert second == "X2     failed: does not run"
    assert reason.startswith("      executed ")
    assert "did not run" in reason
    assert third == f"X3     waits for {MCP}: cannot run yet"
    assert main([str(file), "--only", "X3"]) == 0


def test_a_file_that_holds_no_cases_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "others.jsonl"
    file.write_text('{"id": "X1"}\n')
    assert main([str(file)]) == 2
    assert "others.jsonl:1" in capsys.readouterr().err
