"""`doctor`: each thing that can be wrong is found, with what to do about it, and the exit code says so."""

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from clearance import turns
from clearance.engine.slots import Slot, folder_of
from clearance.policy import Policy, Rule
from tests.ways_in.desk import PERSON, Desk

LONG_AGO = timedelta(hours=2)
SOON_OVER = Policy(rules=(Rule("*", expire=timedelta(hours=1)),))


def _look(desk: Desk) -> tuple[int, dict[str, list[Mapping[str, Any]]]]:
    """Return the exit code, and the findings by level."""
    done = desk.run("doctor", "--json")
    found: dict[str, list[Mapping[str, Any]]] = {"fault": [], "attention": [], "good": []}
    for finding in json.loads(done.stdout)["findings"]:
        found[finding["level"]].append(finding)
    return done.exit_code, found


def _age(desk: Desk, statement: str) -> None:
    """Bring instants of the past about: `:earlier` is so many microseconds."""
    micros = int(LONG_AGO.total_seconds() * 1_000_000)
    with closing(sqlite3.connect(desk.home / "clearance.db")) as connection, connection:
        assert connection.execute(statement, {"earlier": micros}).rowcount > 0


def test_a_workspace_in_order_has_no_findings_but_good_ones(desk: Desk) -> None:
    desk.open().close()
    code, found = _look(desk)
    assert (code, found["fault"], found["attention"]) == (0, [], [])
    assert found["good"]
    assert all(finding["advice"] == "" for finding in found["good"])


def test_reviews_that_wait_are_no_fault(desk: Desk) -> None:
    desk.hold(("wipe", "{}"))
    code, found = _look(desk)
    assert (code, found["fault"], found["attention"]) == (0, [], [])
    assert any("1 review waits" in finding["what"] for finding in found["good"])


# --- runs without a worker ---


def test_a_run_that_no_worker_takes_is_a_fault(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    desk.json("approve", review.id)
    _age(desk, "UPDATE runs SET created_at = created_at - :earlier")
    assert _look(desk)[0] == 0, "it was decided just now"
    _age(desk, "UPDATE reviews SET ended_at = ended_at - :earlier")
    code, found = _look(desk)
    [fault] = found["fault"]
    assert code == 1
    assert review.run_id in fault["what"]
    assert "clearance worker" in fault["advice"]


def test_the_longest_waiting_run_is_found_among_many_new_ones(desk: Desk) -> None:
    with desk.open() as c:
        turns.start(c.ledger, "old", "hello", run_id="old", program="desk", by=PERSON)
        for number in range(60):
            turns.start(c.ledger, f"t{number}", "hello", run_id=f"r{number}", program="desk", by=PERSON)
    _age(desk, "UPDATE runs SET created_at = created_at - :earlier WHERE id = 'old'")
    [fault] = _look(desk)[1]["fault"]
    assert "run old " in fault["what"]


def test_a_run_whose_worker_died_is_a_fault_while_no_other_works(desk: Desk) -> None:
    with desk.open() as c:
        turns.start(c.ledger, "t", "hello", run_id="r", program="desk", by=PERSON)
        assert turns.claim(c.ledger, "t", owner="slot-0") is not None
    _age(desk, "UPDATE runs SET created_at = created_at - :earlier")
    code, found = _look(desk)
    assert code == 1
    assert "run r " in found["fault"][0]["what"]
    slot = Slot(folder_of(desk.home / "clearance.db"))
    try:
        assert _look(desk)[0] == 0, "somebody works: it may be a long segment"
    finally:
        slot.close()


# --- calls ---


def test_an_uncertain_call_wants_attention_and_names_its_open_question(desk: Desk) -> None:
    desk.hold(("wipe", "{}"))
    for _ in range(2):
        desk.json("restore", "--mark")
    [question] = desk.json("inbox")["reviews"]
    code, found = _look(desk)
    [attention] = found["attention"]
    assert code == 0
    assert "uncertain" in attention["what"]
    name = attention["advice"].removeprefix("Find out, then answer: clearance show ")
    assert name == question["review_id"]
    assert desk.json("show", name)["status"] == "pending"


def test_an_uncertain_call_that_was_answered_waits_for_a_worker(desk: Desk) -> None:
    desk.hold(("wipe", "{}"))
    desk.json("restore", "--mark")
    [question] = desk.json("inbox")["reviews"]
    desk.json("approve", question["review_id"])
    [attention] = _look(desk)[1]["attention"]
    assert "clearance worker" in attention["advice"]


def test_a_started_call_past_its_time_limit_wants_attention(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    desk.json("approve", review.id)
    with closing(sqlite3.connect(desk.home / "clearance.db")) as connection, connection:
        connection.execute("UPDATE calls SET state = 'started', due_at = 1")
    code, found = _look(desk)
    [attention] = found["attention"]
    assert code == 0
    assert "time limit" in attention["what"]


# --- reviews, the trail, the key ---


def test_a_review_that_nobody_let_expire_is_a_fault(desk: Desk) -> None:
    desk.hold(("wipe", "{}"), policy=SOON_OVER)
    assert _look(desk)[0] == 0
    _age(desk, "UPDATE reviews SET deadline = deadline - :earlier")
    code, found = _look(desk)
    [fault] = found["fault"]
    assert code == 1
    assert "deadline" in fault["what"]
    assert "clearance worker" in fault["advice"]


def test_a_trail_that_is_not_sealed_any_more_wants_attention(desk: Desk) -> None:
    with desk.open() as c:
        assert c.worker.notary is not None
        c.worker.notary.seal_now()
    desk.hold(("wipe", "{}"))
    assert _look(desk)[1]["attention"] == []
    _age(desk, "UPDATE seals SET time = time - :earlier")
    code, found = _look(desk)
    [attention] = found["attention"]
    assert code == 0
    assert "not sealed" in attention["what"]


@pytest.mark.parametrize(("mode", "code", "level"), [(0o644, 1, "fault"), (0o640, 0, "attention")])
def test_a_key_that_others_may_read_is_found(desk: Desk, mode: int, code: int, level: str) -> None:
    desk.open().close()
    key = desk.home / ".clearance" / "notary.key"
    os.chmod(key, mode)
    found_code, found = _look(desk)
    [finding] = found[level]
    assert found_code == code
    assert f"chmod 600 {key}" in finding["what"] + finding["advice"]


def test_a_database_that_is_none_is_a_fault(desk: Desk) -> None:
    desk.home.mkdir()
    (desk.home / "clearance.db").write_text("hello " * 1000)
    code, found = _look(desk)
    assert code == 1
    assert found["fault"]


# --- what it says ---


def test_faults_come_first_with_a_word_each_and_the_advice_below(desk: Desk) -> None:
    desk.hold(("wipe", "{}"), policy=SOON_OVER)
    _age(desk, "UPDATE reviews SET deadline = deadline - :earlier")
    lines = desk.run("doctor").stdout.splitlines()
    assert "clearance.db" in lines[0]
    assert lines[1].startswith("✗ fault: ")
    assert lines[2].startswith("  → ")
    assert all(line.startswith(("✓ ", "  ")) for line in lines[3:])


def test_a_password_of_the_database_is_not_shown(desk: Desk) -> None:
    done = desk.run("--database", "postgresql://ann:hunter2@localhost:1/x", "doctor", "--json")
    assert done.exit_code == 1
    assert "hunter2" not in done.output


def test_there_is_nothing_to_look_at_in_the_wrong_folder(desk: Desk) -> None:
    assert desk.run("doctor").exit_code == 4
    assert not desk.home.exists()
