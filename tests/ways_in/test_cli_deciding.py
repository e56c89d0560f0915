"""Deciding from the command line: what is meant happens, exactly, or nothing does."""

import json
import stat
import threading
from pathlib import Path

import pytest

from clearance import turns
from clearance.people import Person, Role
from clearance.policy import Effect, Policy
from clearance.program import Program
from clearance.run import Run, RunState
from clearance.store import listing, people
from clearance.toolcall import Tool, ToolCall
from tests.ways_in.desk import PERSON, TWO_PEOPLE, Desk, answers, error

MAIL = '{"to":"bo@example.org","body":"Hi"}'
PAY = '{"amount":123456789012345678901234567890,"note":"48250.00"}'


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["approve"], "approved"),
        (["reject", "-m", "no"], "rejected"),
        (["respond", "--text", "done by hand"], "responded"),
    ],
)
def test_a_short_form_answers_every_call_alike(desk: Desk, words: list[str], answer: str) -> None:
    review = desk.hold(("send_email", MAIL), ("wipe", "{}"))
    done = desk.run(words[0], review.id, *words[1:])
    assert done.exit_code == 0, done.output
    assert answers(desk.review(review.id)) == [answer, answer]
    assert "send_email (call 1)" in done.stdout
    assert "wipe (call 2)" in done.stdout


def test_a_review_of_many_calls_is_decided_in_one_go(desk: Desk, tmp_path: Path) -> None:
    review = desk.hold(("send_email", MAIL), ("pay", PAY), ("wipe", "{}"), ("wipe", '{"really":true}'))
    (tmp_path / "pay.json").write_text('{"amount": 7.0}')
    (tmp_path / "answer.txt").write_text("It was wiped\nyesterday.")
    done = desk.run(
        "decide", review.id, "--approve", "1", "--edit", f"2={tmp_path}/pay.json", "--reject", "3",
        "--respond", f"4={tmp_path}/answer.txt", "-m", "not this one",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    after = desk.review(review.id)
    assert answers(after) == ["approved", "approved", "rejected", "responded"]
    assert after.calls[1].arguments == '{"amount":7.0}'
    messages = [call.decisions[0].message for call in after.calls]
    assert messages == ["", "", "not this one", "It was wiped\nyesterday."]


def test_decisions_may_come_from_standard_input(desk: Desk) -> None:
    review = desk.hold(("pay", PAY))
    done = desk.run("edit", review.id, "--args", "-", typed='{"amount": 1}')
    assert done.exit_code == 0, done.output
    assert desk.review(review.id).calls[0].arguments == '{"amount":1}'


def test_every_decision_answers_in_json(desk: Desk) -> None:
    for words in (["approve"], ["reject"], ["respond", "--text", "x"], ["decide", "--approve", "1"]):
        review = desk.hold(("wipe", "{}"))
        found = desk.json(words[0], review.id, *words[1:])
        assert found["decided"] is True
        assert found["review"]["status"] == "settled"
        assert found["worker_running"] is False
        assert found["run"]["state"] == "queued"


def _editor(folder: Path, body: str) -> str:
    """Return an editor that changes a file as `body`, a shell script, says."""
    script = folder / "editor"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_the_editor_shows_exact_json_and_what_it_leaves_alone_stays(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = json.dumps({"amount": 123456789012345678901234567890, "note": "a\u202eb\tc", "fee": 7.0})
    review = desk.hold(("pay", arguments))
    seen = tmp_path / "seen"
    body = f'cp "$1" {seen}; printf \'%s\' "$(sed s/7.0/8.0/ "$1")" > "$1"'
    monkeypatch.setenv("EDITOR", _editor(tmp_path, body))
    done = desk.run("edit", review.id)
    assert done.exit_code == 0, done.output
    assert "123456789012345678901234567890" in seen.read_text()
    assert r"a\u202eb\tc" in seen.read_text()
    after = json.loads(desk.review(review.id).calls[0].arguments)
    assert after == {**json.loads(arguments), "fee": 8.0}


@pytest.mark.parametrize("body", ["true", 'printf "\\n\\n" >> "$1"', 'touch "$1"'])
def test_a_file_whose_values_are_unchanged_decides_nothing(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    review = desk.hold(("pay", PAY))
    monkeypatch.setenv("EDITOR", _editor(tmp_path, body))
    done = desk.run("edit", review.id)
    assert (done.exit_code, done.stdout) == (0, "Nothing was changed, so nothing was decided.\n")
    assert desk.json("edit", review.id) == {"decided": False}
    assert answers(desk.review(review.id)) == ["waiting"]


BAD_EDITS = [
    ('printf "{" > "$1"', 2, "are not JSON"),
    ('printf "[1]" > "$1"', 2, "must be a JSON object"),
    ('printf \'{"a":NaN}\' > "$1"', 2, "NaN"),
    ('printf \'{"a":1,"a":2}\' > "$1"', 2, "give a key twice"),
    ('printf \'{"amount":"many"}\' > "$1"', 2, "/amount"),
    ('printf "\\377" > "$1"', 2, "not UTF-8"),
    ('rm "$1"', 2, "cannot be read"),
    ("exit 3", 2, "ended with code 3"),
]


@pytest.mark.parametrize(("body", "code", "part"), BAD_EDITS)
def test_a_bad_edit_decides_nothing_and_a_good_one_still_can(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, code: int, part: str
) -> None:
    review = desk.hold(("pay", PAY))
    monkeypatch.setenv("EDITOR", _editor(tmp_path, body))
    done = desk.run("edit", review.id)
    assert done.exit_code == code
    assert part in done.stderr
    assert answers(desk.review(review.id)) == ["waiting"]
    monkeypatch.setenv("EDITOR", _editor(tmp_path, 'printf \'{"amount":1}\' > "$1"'))
    assert desk.run("edit", review.id).exit_code == 0


def test_an_editor_that_does_not_exist_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    review = desk.hold(("pay", PAY))
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    done = desk.run("edit", review.id)
    assert done.exit_code == 12
    assert "'/nowhere/editor' cannot be started" in done.stderr


BAD_INPUT = [
    (["decide"], "Say what is decided"),
    (["decide", "--approve", "1"], "2 calls wait and 1 decisions came"),
    (["decide", "--approve", "1", "--reject", "1"], "answered twice"),
    (["decide", "--approve", "1", "--approve", "1/0"], "answered twice"),
    (["decide", "--edit", "1"], "CALL=FILE"),
    (["decide", "--edit", "=x"], "CALL=FILE"),
    (["decide", "--edit", "1=/nowhere/file"], "cannot be read"),
    (["decide", "--respond", "1=/"], "cannot be read"),
    (["approve", "1"], "2 calls of this review wait"),
    (["edit", "1"], "2 calls of this review wait"),
    (["respond"], "--text or --file"),
    (["respond", "--text", "a", "--file", "b"], "--text or --file"),
    (["respond", "--text", " "], "/message"),
    (["approve", "--version", "0"], "--version"),
    (["approve", "--wait", "-1"], "--wait"),
    (["approve", "--nonsense"], "--nonsense"),
    (["approve", "1", "2"], "unexpected extra argument"),
]


@pytest.mark.parametrize(("words", "part"), BAD_INPUT)
def test_bad_input_is_refused_whole(desk: Desk, words: list[str], part: str) -> None:
    review = desk.hold(("pay", PAY), ("wipe", "{}"))
    command, *more = words
    done = desk.run(command, review.id, *more, "--json")
    assert done.exit_code == 2
    assert part in done.stderr
    error(done)
    assert answers(desk.review(review.id)) == ["waiting", "waiting"]
    assert desk.run("approve", review.id).exit_code == 0


def test_every_fault_of_an_edit_is_named_at_its_place(desk: Desk, tmp_path: Path) -> None:
    review = desk.hold(("send_email", MAIL))
    file = tmp_path / "a.json"
    file.write_text('{"to": 3, "extra": 1}')
    found = error(desk.run("edit", review.id, "--args", str(file), "--json"))
    assert found["error"] == "invalid_review_decision"
    pointers = {fault["pointer"] for fault in found["faults"]}
    assert pointers == {f"/0/edited_action/args/{name}" for name in ("to", "body", "extra")}


def test_the_second_decision_is_told_who_was_first(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    assert desk.run("reject", review.id).exit_code == 0
    done = desk.run("approve", review.id, "--json")
    assert done.exit_code == 5
    assert error(done)["error"] == "review_conflict"
    assert "ana: reject wipe" in error(done)["message"]


def test_a_review_that_changed_is_decided_only_by_the_version_that_was_seen(desk: Desk) -> None:
    desk.open().close()
    desk.add(*(Person(id=name, name=name, role=Role.REVIEWER) for name in ("bo", "cy", "di")))
    review = desk.hold(("pay", PAY), policy=TWO_PEOPLE)
    first = desk.run("approve", review.id, person="bo")
    assert first.exit_code == 0
    assert "Others must decide too" in first.stdout
    assert desk.run("approve", review.id, person="cy").exit_code == 5
    assert desk.run("approve", review.id, "--version", "1", person="cy").exit_code == 5
    assert "--version 2" in desk.run("show", review.id, person="cy").stdout
    assert "1 of 2" in desk.run("show", review.id).stdout
    assert desk.run("approve", review.id, "--version", "2", person="cy").exit_code == 0
    assert answers(desk.review(review.id)) == ["approved"]


@pytest.mark.parametrize(("person", "code"), [("nobody", 4), ("viewer", 6), ("ana", 6), ("reviewer", 0)])
def test_who_decides_must_be_entitled(desk: Desk, person: str, code: int) -> None:
    review = desk.hold(("wipe", "{}"))
    desk.add(Person(id="viewer", name="V"), Person(id="reviewer", name="R", role=Role.REVIEWER))
    done = desk.run("approve", review.id, person=person)
    assert done.exit_code == code, done.output
    assert answers(desk.review(review.id)) == (["approved"] if code == 0 else ["waiting"])


def test_the_person_comes_from_the_environment_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from clearance.cli import build

    review = desk.hold(("wipe", "{}"))
    monkeypatch.setenv("CLEARANCE_PERSON", "ana")
    monkeypatch.setenv("CLEARANCE_HOME", str(desk.home))
    assert CliRunner().invoke(build(), ["approve", review.id]).exit_code == 0
    assert desk.review(review.id).calls[0].decisions[0].by == "ana"


def test_who_goes_on_is_said(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    assert "application that has the agent 'desk'" in desk.run("approve", review.id).stdout


def test_a_wait_that_ends_before_the_run_says_so_and_keeps_the_decision(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    done = desk.run("approve", review.id, "--wait", "0.1", "--json")
    assert done.exit_code == 10
    assert json.loads(done.stdout)["review"]["status"] == "settled"
    assert json.loads(done.stderr)["error"] == "run_unfinished"


def _uncertain(desk: Desk) -> str:
    """Have a call pass its time limit, and return the review that asks what became of it."""
    # It never ends: its own result, however late, would answer the question.
    hang = Tool("hang", {"type": "object"}, run=lambda *_: threading.Event().wait(), timeout=0.05)
    with desk.open() as c:
        program = Program("desk", tools={"hang": hang}, policy=Policy(default=Effect.ALLOW))
        c.register(program)
        with c.database.read() as tx:
            now = c.database.now(tx)
        by_hand = Run("r", "t", "desk", RunState.RUNNING, requester="ana", input=None, created_at=now)
        call = ToolCall("r/1/0", "hang", '{"x":1}')
        run = turns.start_by_caller(c.ledger, by_hand)
        c.execution.execute(run, [call], message=1, tools=program.tools, fence=None)
        with c.database.read() as tx:
            (review,) = listing.inbox(tx)
    return review.id


@pytest.mark.parametrize(
    ("words", "answer"),
    [(["approve"], "approved"), (["reject"], "rejected"), (["respond", "--text", "sent"], "responded")],
)
def test_an_unknown_outcome_is_asked_about_and_answered(desk: Desk, words: list[str], answer: str) -> None:
    review = _uncertain(desk)
    shown = desk.run("show", review).stdout
    assert "nobody knows whether it happened" in shown
    assert "if approved    it did not happen: hang runs again, with exactly these arguments." in shown
    done = desk.run(words[0], review, *words[1:], "--wait", "1")
    assert done.exit_code == 0, done.output
    assert "enters the conversation with its next message" in done.stdout
    assert answers(desk.review(review)) == [answer]


# --- who is looking at it ---


def test_a_claim_is_said_shown_and_given_back(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":1}'))
    assert "You are looking at it until" in desk.run("claim", review.id).stdout
    assert f"claimed by     {PERSON}, until" in desk.run("show", review.id).stdout
    assert desk.json("claim", review.id)["claim"]["by"] == PERSON
    assert desk.run("release", review.id).stdout == "Others see that it is free.\n"
    assert desk.run("release", review.id).stdout == "You had not claimed it.\n"
    assert desk.json("release", review.id)["claim"] is None


def test_what_somebody_else_claimed_is_taken_over_only_when_that_is_said(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":1}'))
    with desk.open() as c, c.database.write() as tx:
        now = c.database.now(tx)
        people.add(tx, Person("ben", "Ben", Role.REVIEWER), now=now)
        people.add(tx, Person("eva", "Eva", Role.REVIEWER), now=now)
    assert desk.run("claim", review.id, person="ben").exit_code == 0
    refused = desk.run("claim", review.id, person="eva")
    assert (refused.exit_code, "ben is looking at review" in refused.stderr) == (5, True)
    assert desk.run("claim", review.id, "--take-over", person="eva").exit_code == 0
