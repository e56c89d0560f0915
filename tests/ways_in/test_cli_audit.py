"""`audit`: the trail is listed, exported and checked; what was tampered with is found, and where."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clearance.cli.options import SINGLE_USER
from tests.ways_in.desk import Desk, error


@pytest.fixture
def sealed(desk: Desk) -> Desk:
    """A desk whose trail tells of a decided call and is sealed in three ranges."""
    for _ in range(3):
        review = desk.hold(("pay", '{"amount":48250.0}'))
        desk.json("approve", review.id, "-m", "a secret comment")
        _seal(desk)
    return desk


@pytest.fixture
def export(sealed: Desk, tmp_path: Path) -> Path:
    """An export of that trail."""
    file = tmp_path / "trail.jsonl"
    assert sealed.run("audit", "export", str(file)).exit_code == 0
    return file


@pytest.fixture
def key(sealed: Desk, tmp_path: Path) -> Path:
    """The public key, kept outside."""
    file = tmp_path / "notary.pub"
    file.write_text(sealed.run("audit", "key").stdout)
    return file


def _seal(desk: Desk) -> None:
    with desk.open() as c:
        assert c.worker.notary is not None
        c.worker.notary.seal_now()


def _tamper(desk: Desk, statement: str) -> None:
    with closing(sqlite3.connect(desk.home / "clearance.db")) as connection, connection:
        assert connection.execute(statement).rowcount > 0


# --- list ---


def test_entries_are_listed_in_their_order(sealed: Desk) -> None:
    found = sealed.json("audit", "list", "--limit", "1000")
    assert [entry["seq"] for entry in found] == list(range(1, len(found) + 1))
    kinds = [entry["kind"] for entry in found]
    assert kinds.index("run:queued") < kinds.index("review:asked") < kinds.index("clearance:minted")


def test_a_list_can_be_read_page_by_page(sealed: Desk) -> None:
    everything = sealed.json("audit", "list", "--limit", "1000")
    first = sealed.json("audit", "list", "--limit", "3")
    rest = sealed.json("audit", "list", "--limit", "1000", "--after", str(first[-1]["seq"]))
    assert first + rest == everything


def test_a_list_may_be_about_one_subject(sealed: Desk) -> None:
    asked = [entry for entry in sealed.json("audit", "list") if entry["kind"] == "review:asked"]
    about = sealed.json("audit", "list", "--subject", asked[0]["subject"])
    assert [entry["kind"] for entry in about] == ["review:asked", "review:decided", "review:settled"]
    assert sealed.run("audit", "list", "--subject", "nobody").stdout == "There are no such entries.\n"


def test_a_list_for_people_says_what_happened_to_what_and_by_whom(sealed: Desk) -> None:
    asked = [entry for entry in sealed.json("audit", "list") if entry["kind"] == "review:asked"]
    lines = sealed.run("audit", "list").stdout.splitlines()
    [line] = [line for line in lines if "review:asked" in line and asked[0]["subject"] in line]
    assert line.split()[0] == str(asked[0]["seq"])
    assert line.endswith("ana")


def test_entries_without_a_number_are_not_listed_and_that_is_said(desk: Desk) -> None:
    desk.hold(("wipe", "{}"))
    done = desk.run("audit", "list")
    assert done.stdout == "There are no such entries.\n"
    assert "no number yet" in done.stderr


def test_nothing_in_the_trail_tells_arguments_or_comments(sealed: Desk, export: Path) -> None:
    for text in (sealed.run("audit", "list", "--json").stdout, export.read_text()):
        assert "48250" not in text
        assert "secret" not in text


# --- verify ---


def test_a_trail_that_was_not_changed_verifies(sealed: Desk) -> None:
    report = sealed.json("audit", "verify")
    assert (report["ok"], report["authenticated"], report["problems"], report["found"]) == (True, True, [], 0)
    assert report["sealed_to"] == report["entries"] > 0
    assert report["head"].startswith("3:")


def test_checking_with_the_workspaces_own_key_is_said_to_prove_less(sealed: Desk, key: Path) -> None:
    own, outside = sealed.run("audit", "verify"), sealed.run("audit", "verify", "--key", str(key))
    assert "keep `clearance audit key` elsewhere" in own.stderr.replace("\n", " ")
    assert (outside.exit_code, outside.stderr) == (0, f"{SINGLE_USER}\n")
    assert "authenticated" in outside.stdout


TAMPERING = {
    "altered": ("UPDATE entries SET actor = 'mallory' WHERE seq = 4", "Entry 4 "),
    "deleted": ("DELETE FROM entries WHERE seq = 4", "4 "),
    "moved": ("UPDATE entries SET seq = seq + 1000 WHERE seq = 4", "4 "),
    "cut off": ("DELETE FROM entries WHERE seq > 6", "7 "),
    "a seal altered": ("UPDATE seals SET last_seq = last_seq + 1 WHERE number = 1", "Seal 1 "),
    "a seal deleted": ("DELETE FROM seals WHERE number = 2", "2 "),
}


@pytest.mark.parametrize(("statement", "place"), TAMPERING.values(), ids=TAMPERING)
def test_tampering_is_found_and_located(sealed: Desk, statement: str, place: str) -> None:
    _tamper(sealed, statement)
    done = sealed.run("audit", "verify", "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["ok"], report["authenticated"]) == (1, False, False)
    assert place in report["problems"][0]["message"]
    assert report["found"] >= len(report["problems"]) > 0
    people = sealed.run("audit", "verify")
    assert people.exit_code == 1
    assert people.stdout.startswith("✗ The trail was changed. ")
    assert report["problems"][0]["message"] in people.stdout.replace("\n", " ")


def test_a_trail_that_was_made_anew_is_not_the_one_that_was_noted(sealed: Desk) -> None:
    head = sealed.json("audit", "verify")["head"]
    assert sealed.json("audit", "verify", "--expect-head", head)["ok"]
    other = f"{head.partition(':')[0]}:{'0' * 64}"
    assert sealed.run("audit", "verify", "--expect-head", other).exit_code == 1


# --- an export, far from the workspace ---


def test_an_export_is_checked_without_the_workspace(export: Path, key: Path, tmp_path: Path) -> None:
    elsewhere = Desk(tmp_path / "elsewhere")
    report = elsewhere.json("audit", "verify", str(export), "--key", str(key))
    assert (report["ok"], report["authenticated"]) == (True, True)
    assert not elsewhere.home.exists()


def test_an_export_without_a_key_is_consistent_and_no_more(export: Path, tmp_path: Path) -> None:
    elsewhere = Desk(tmp_path / "elsewhere")
    report = elsewhere.json("audit", "verify", str(export))
    assert (report["ok"], report["authenticated"]) == (True, False)
    assert "consistent, not authenticated" in elsewhere.run("audit", "verify", str(export)).stdout


def test_an_export_goes_to_standard_output_as_well(sealed: Desk, export: Path) -> None:
    assert sealed.run("audit", "export").stdout == export.read_text()
    assert sealed.json("audit", "export", str(export)) == {"export": str(export)}


def test_an_altered_export_is_found_with_its_line(export: Path, key: Path, desk: Desk) -> None:
    lines = export.read_text().splitlines(keepends=True)
    lines[4] = lines[4].replace('"actor":"ana"', '"actor":"bob"').replace('"time":"20', '"time":"21')
    export.write_text("".join(lines))
    done = desk.run("audit", "verify", str(export), "--key", str(key), "--json")
    assert done.exit_code == 1
    [problem, *_] = json.loads(done.stdout)["problems"]
    assert (problem["kind"], problem["seq"], problem["line"]) == ("altered", 4, 5)
    assert "(line 5)" in desk.run("audit", "verify", str(export)).stdout


def test_an_export_that_was_cut_off_is_found(export: Path, key: Path, desk: Desk) -> None:
    export.write_text("".join(export.read_text().splitlines(keepends=True)[:-2]))
    assert desk.run("audit", "verify", str(export), "--key", str(key)).exit_code == 1


def test_seals_of_somebody_elses_key_are_not_authentic(export: Path, tmp_path: Path) -> None:
    other = Desk(tmp_path / "other")
    other.open().close()
    key = tmp_path / "other.pub"
    key.write_text(other.run("audit", "key").stdout)
    assert other.run("audit", "verify", str(export), "--key", str(key)).exit_code == 1


def test_the_key_is_public_and_named_as_in_the_seals(sealed: Desk, key: Path, export: Path) -> None:
    told = sealed.json("audit", "key")
    assert told["pem"] == key.read_text()
    assert "PRIVATE" not in told["pem"]
    seals = [json.loads(line) for line in export.read_text().splitlines() if '"signature"' in line]
    assert {seal["key_id"] for seal in seals} == set(told["key_ids"])


# --- what cannot be taken ---

REFUSED = {
    "no such export": (["verify", "missing.jsonl"], 4, "not_found"),
    "no such key": (["verify", "--key", "missing.pub"], 4, "not_found"),
    "a key that is none": (["verify", "--key", "here"], 2, "invalid_input"),
    "a head that is none": (["verify", "--expect-head", "yesterday"], 2, "invalid_input"),
    "a folder as the export": (["verify", "."], 4, "not_found"),
    "an export into nowhere": (["export", "missing/trail.jsonl"], 12, "settings"),
    "a list after nothing": (["list", "--after", "-1"], 2, "usage"),
}


@pytest.mark.parametrize(("words", "code", "name"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_is_said_in_a_sentence(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").write_text("hello")
    desk.open().close()
    refused = desk.run("--json", "audit", *words)
    assert (refused.exit_code, error(refused)["error"]) == (code, name)


@pytest.mark.parametrize("command", ["list", "verify", "export", "key"])
def test_a_reader_in_the_wrong_folder_makes_no_workspace(desk: Desk, command: str) -> None:
    assert desk.run("audit", command).exit_code == 4
    assert not desk.home.exists()
