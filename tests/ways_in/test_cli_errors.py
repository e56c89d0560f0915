"""Errors at the command line: one sentence, the right code, and never a traceback for a user's mistake."""

import json
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from clearance.cli import build
from tests.ways_in.desk import Desk, error


def _run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(build(), list(words), prog_name="clearance")
    return done.exit_code, done.stderr


BAD_INPUT = [
    (["nonsense"], 2, "No such command 'nonsense'"),
    (["inbx"], 2, "Did you mean 'inbox'?"),
    (["--nonsense"], 2, "No such option: --nonsense. See: clearance --help"),
    (["inbox", "--limit", "0"], 2, "--limit"),
    (["inbox", "--limit", "many"], 2, "--limit"),
    (["show"], 2, "Missing argument 'REVIEW'"),
    (["runs", "--state", "asleep"], 2, "asleep"),
    (["--database", "mysql://x", "inbox"], 12, "mysql is neither"),
    (["--database", "nonsense", "inbox"], 12, "cannot be read"),
    (["--database", "sqlite://", "inbox"], 12, "name a file"),
    (["--database", "sqlite:////nowhere/x.db", "inbox"], 4, "/nowhere/x.db does not exist"),
    (["--home", "/nowhere", "inbox"], 4, "There is no workspace here"),
    (["--home", "/nowhere", "chat"], 12, "No model is set"),
    (["--home", "/nowhere", "chat", "--model", "gpt"], 12, "'gpt' names no model"),
    (["--home", "/nowhere", "worker", "--child"], 12, "No model is set"),
    (["--home", "/dev/null/x", "demo"], 12, "cannot be made"),
]


@pytest.mark.parametrize(("words", "code", "part"), BAD_INPUT)
def test_a_mistake_is_one_sentence_with_its_code(words: list[str], code: int, part: str) -> None:
    found, said = _run(*words)
    assert found == code, said
    assert part in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("words", "code", "part"), BAD_INPUT)
def test_a_mistake_is_one_object_in_json(words: list[str], code: int, part: str) -> None:
    found, said = _run("--json", *words)
    assert found == code
    told = json.loads(said)
    assert set(told) == {"error", "message", "faults"}
    assert part in told["message"]


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("CLEARANCE_SEGMENTS", "many", "CLEARANCE_SEGMENTS"),
        ("CLEARANCE_SEGMENTS", "0", "CLEARANCE_SEGMENTS"),
        ("CLEARANCE_LOG_LEVEL", "LOUD", "CLEARANCE_LOG_LEVEL"),
    ],
)
def test_a_wrong_setting_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, value: str, part: str
) -> None:
    desk.open().close()
    monkeypatch.setenv(name, value)
    done = desk.run("inbox", "--json")
    assert done.exit_code == 12
    assert part in error(done)["message"]


def test_a_file_that_is_no_database_is_the_users_to_mend(desk: Desk) -> None:
    desk.home.mkdir()
    (desk.home / "clearance.db").write_text("not a database" * 100)
    done = desk.run("inbox")
    assert done.exit_code == 13
    assert "The database cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_of_ours_is_called_one_and_shows_its_place_on_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = desk.hold(("wipe", "{}"))
    with sqlite3.connect(desk.home / "clearance.db") as connection:
        connection.execute("UPDATE reviewed_calls SET state = 'impossible'")
    connection.close()
    done = desk.run("show", review.id)
    assert done.exit_code == 1
    assert "wrong inside clearance (ValueError)" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("CLEARANCE_DEBUG", "1")
    assert "Traceback" in desk.run("show", review.id).stderr


def test_the_version_is_said() -> None:
    done = CliRunner().invoke(build(), ["--version"])
    assert done.stdout == "clearance 0.1.0\n"


def test_a_program_without_a_command_shows_its_help() -> None:
    done = CliRunner().invoke(build(), [])
    assert done.exit_code == 0
    assert "inbox" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(desk: Desk) -> None:
    review = desk.hold(("wipe", json.dumps({"text": "x" * 250_000})))
    command = [
        sys.executable,
        "-m",
        "clearance",
        "--home",
        str(desk.home),
        "--person",
        "ana",
        "show",
        review.id,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "wrong inside" not in said


def test_the_help_is_there_at_once_and_loads_no_framework() -> None:
    code = (
        "import sys, time\nstart = time.process_time()\nfrom clearance.cli import build\n"
        "try: build()(['--help'], prog_name='clearance')\nexcept SystemExit: pass\n"
        "heavy = {'sqlalchemy', 'alembic', 'langgraph', 'langchain_core', 'pydantic', 'psycopg'}\n"
        "print(time.process_time() - start, sorted(heavy & set(sys.modules)))"
    )
    # 0.2 s where nothing else runs. Time of the processor, the best of a few, and twice what it may take:
    # a busy machine is no failure.
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    last = [run.splitlines()[-1].partition(" ") for run in runs]
    assert {loaded for _, _, loaded in last} == {"[]"}
    assert min(float(seconds) for seconds, _, _ in last) < 0.8
