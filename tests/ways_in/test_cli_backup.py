"""`backup` and `restore` as commands: what they say, answer and refuse."""

from pathlib import Path

import pytest

from tests.databases import Databases
from tests.ways_in.desk import Desk, error


@pytest.fixture
def other(tmp_path: Path) -> Desk:
    """Another folder."""
    return Desk(tmp_path / "other")


def test_a_backup_is_answered_with_its_folder_and_the_way_back(desk: Desk, tmp_path: Path) -> None:
    desk.hold(("wipe", "{}"))
    done = desk.run("backup", str(tmp_path / "first"))
    assert done.exit_code == 0
    assert str(tmp_path / "first") in done.stdout.replace("\n", "")
    assert "restore" in done.stderr
    assert desk.json("backup", str(tmp_path / "second")) == {"backup": str(tmp_path / "second")}


def test_a_restore_says_what_it_called_into_question(desk: Desk, other: Desk, tmp_path: Path) -> None:
    desk.hold(("wipe", "{}"), ("pay", '{"amount":1}'))
    desk.json("backup", str(tmp_path / "backup"))
    said = other.run("restore", str(tmp_path / "backup"))
    assert said.exit_code == 0
    assert said.stdout.splitlines() == [
        "The workspace is back.",
        "2 calls are uncertain, and may have run since the backup. Answer in: clearance inbox",
        "1 run has ended; the thread takes the next message.",
    ]
    assert other.json("inbox")["waiting"] == 2


def test_a_restore_answers_in_json(desk: Desk, other: Desk, tmp_path: Path) -> None:
    desk.hold(("wipe", "{}"))
    desk.json("backup", str(tmp_path / "backup"))
    assert other.json("restore", str(tmp_path / "backup")) == {"uncertain_calls": 1, "ended_runs": 1}


def test_a_workspace_that_was_brought_back_is_marked(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    assert desk.json("restore", "--mark") == {"uncertain_calls": 1, "ended_runs": 1}
    assert desk.run("approve", review.id).exit_code == 5


def test_a_restored_question_can_be_answered_from_the_command_line(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":48250.0}'))
    desk.json("restore", "--mark")
    [question] = desk.json("inbox")["reviews"]
    [call] = question["calls"]
    assert (question["kind"], call["call"], call["arguments"]) == (
        "outcome",
        review.calls[0].key,
        '{"amount":48250.0}',
    )
    answered = desk.json("respond", question["review_id"], "--text", "it was paid")
    assert answered["review"]["status"] == "settled"


@pytest.mark.parametrize("words", [[], ["folder", "--mark"]], ids=["neither", "both"])
def test_a_restore_needs_a_folder_or_the_mark(desk: Desk, words: list[str]) -> None:
    desk.open().close()
    refused = desk.run("restore", *words, "--json")
    assert (refused.exit_code, error(refused)["error"]) == (2, "usage")


def test_a_folder_becomes_no_database_by_url(desk: Desk, tmp_path: Path) -> None:
    desk.open().close()
    desk.json("backup", str(tmp_path / "backup"))
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    refused = desk.run("--database", url, "restore", str(tmp_path / "backup"), "--json")
    assert (refused.exit_code, error(refused)["error"]) == (12, "settings")
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_workspace_on_a_server_is_backed_up_by_the_server(
    desk: Desk, databases: Databases, tmp_path: Path
) -> None:
    url = databases.migrated("postgresql", tmp_path)
    try:
        refused = desk.run("--database", url, "backup", str(tmp_path / "backup"), "--json")
        assert refused.exit_code == 12
        assert "pg_dump" in error(refused)["message"]
        marked = desk.run("--database", url, "restore", "--mark")
        assert (marked.exit_code, marked.stdout) == (0, "The workspace is back.\n")
    finally:
        databases.drop(url)


@pytest.mark.parametrize("words", [["backup", "b"], ["restore", "--mark"], ["restore", "missing"]])
def test_what_is_not_there_makes_no_workspace(desk: Desk, words: list[str]) -> None:
    assert desk.run(*words).exit_code in (4, 12)
    assert not desk.home.exists()
