"""Retention: the values of finished threads are gone from every byte; what happened can still be proved."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

import clearance
from clearance import worker
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.research.setup import open_research
from clearance.audit import AuditKind, Entry, salted_hash
from clearance.cli import build
from clearance.errors import ConflictError, ForbiddenError, NotFoundError, ThreadClosedError
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Rule
from clearance.run import RunState
from clearance.store import audit, retention, runs
from tests.scripted import ScriptedModel, Step, calls
from tests.web.asked import ask
from tests.web.researching import start as start_research
from tests.web.served import OWNER, Served
from tests.web.talking import Office

MARK = "MARK-of-a-value"
POLICY = Policy(rules=(Rule("send_email", decisions=(*DEFAULT_DECISIONS, DecisionType.RESPOND)),))
NOW = timedelta(0)


@dataclass
class Finished:
    """A served workspace with a finished chat `t1`, a finished call `k1` of `bot`, and an open chat `t2`."""

    served: Served
    run_id: str
    review_id: str
    bot: dict[str, str]

    def get(self, path: str) -> Any:
        """Return the API's answer, as its owner."""
        return self.served.http.get(f"/api/v1/{path}", headers=self.served.key())

    def command(self, *words: str) -> list[str]:
        """Return the options that lead a command to this workspace."""
        workspace = self.served.workspace
        url = workspace.database.url.render_as_string(hide_password=False)
        return ["--home", str(workspace.home), "--database", url, "--person", OWNER, *words]

    def cli(self, *words: str) -> Result:
        """Run a command in this process."""
        return CliRunner().invoke(build(), self.command(*words), prog_name="clearance")

    def apply(self) -> Any:
        """Empty what has ended, and return what the command says of it."""
        done = self.cli("retention", "apply", "--older-than", "0s", "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def entries(self) -> list[Entry]:
        """Return the trail, as far as it is numbered."""
        with self.served.workspace.database.read() as tx:
            return audit.read_after(tx, 0, limit=500)

    def kinds(self) -> list[str]:
        """Return the kinds of every entry in the trail."""
        with self.served.workspace.database.read() as tx:
            return [row.kind for row in tx.execute(text("SELECT kind FROM entries"))]


@pytest.fixture
def finished(served: Served) -> Finished:
    """See `Finished`; the marker stands wherever a value can stand."""
    arguments = {"to": MARK}
    script: list[Step] = [
        calls(("send_email", arguments), text=f"{MARK}?"),
        f"I told {MARK}.",
        calls(("send_email", arguments)),
    ]
    agent = create_reviewed_agent(
        ScriptedModel(script), Office([]).tools(), policy=POLICY, using=served.workspace
    )
    ReviewedChat(agent)

    def post(path: str, body: Any, key: dict[str, str] | None = None, *, once: str = "") -> Any:
        headers = {**(key or served.key()), **({"Idempotency-Key": once} if once else {})}
        found = served.http.post(f"/api/v1/{path}", json=body, headers=headers)
        assert found.status_code in (200, 202), found.text
        return found.json()

    turn = post("threads/t1/messages", {"text": f"Mail {MARK}."}, once="one")
    review = turn["pending_review"]
    edit = {"name": "send_email", "args": {"to": f"{MARK}@corp"}}
    said = {
        "type": "edit",
        "edited_action": edit,
        "message": f"not {MARK}",
        "call": review["action_requests"][0]["call"],
    }
    body = {"decisions": [said], "review_id": review["review_id"]}
    done = post("threads/t1/review", body, once="two")
    assert done["answer"] == f"I told {MARK}."
    bot = served.key(served.add_agent("bot"))
    proposal = {"key": "k1", "tool": "t", "arguments": arguments}
    call = post("calls", proposal, bot)
    approve = {"decisions": [{"type": "approve", "message": MARK}], "version": 1}
    post(f"reviews/{call['review_id']}/decide", approve, once="three")
    post("calls/k1/take", None, bot)
    post("calls/k1/outcome", {"attempt": 1, "ok": True, "result": f"{MARK} done"}, bot)
    withdrawn = ask(served, ("note", json.dumps(arguments)), thread="t3")
    post(f"reviews/{withdrawn.id}/withdraw", {"reason": f"no {MARK}"})
    post(f"runs/{withdrawn.run_id}/cancel", {"reason": f"no {MARK}"})
    post("threads/t2/messages", {"text": "Mail once more."})
    return Finished(served, turn["run_id"], review["review_id"], bot)


def places(finished: Finished) -> list[str]:
    """Return where the marker stands: files of the workspace, or tables of PostgreSQL."""
    workspace = finished.served.workspace
    if workspace.database.is_sqlite:
        files = [file for file in workspace.home.rglob("*") if file.is_file()]
        return sorted(file.name for file in files if MARK.encode() in file.read_bytes())
    with workspace.database.read() as tx:
        names = (
            tx.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        )
        like = {
            name: f'SELECT count(*) FROM "{name}" AS row WHERE row::text LIKE :mark OR row::text LIKE :bytes'
            for name in names
        }
        found = {"mark": f"%{MARK}%", "bytes": f"%{MARK.encode().hex()}%"}
        return sorted(name for name, query in like.items() if tx.execute(text(query), found).scalar())


@pytest.fixture
def alone(finished: Finished) -> Finished:
    """The same, with the open chat brought to its end, so that no value is left to stay."""
    pending = finished.get("threads/t2").json()["pending_review"]
    body = {"decisions": [{"type": "reject"}], "review_id": pending["review_id"]}
    done = finished.served.http.post("/api/v1/threads/t2/review", json=body, headers=finished.served.key())
    assert done.status_code == 200, done.text
    return finished


def test_every_byte_of_the_values_is_gone(alone: Finished) -> None:
    assert places(alone)
    done = alone.apply()
    assert sorted(each["thread_id"] for each in done["threads"]) == ["bot:k1", "t1", "t2", "t3"]
    assert done["files_rewritten"]
    assert places(alone) == []


def test_what_happened_is_kept_and_still_verifies(alone: Finished, tmp_path: Path) -> None:
    before = alone.entries()
    states = {(each["run_id"], each["state"]) for each in alone.get("runs").json()["runs"]}
    alone.apply()
    assert before
    assert alone.entries()[: len(before)] == before
    assert {(each["run_id"], each["state"]) for each in alone.get("runs").json()["runs"]} == states
    assert alone.get("audit/verify").json()["ok"]
    export, key = tmp_path / "trail.jsonl", tmp_path / "key.pem"
    export.write_bytes(alone.get("audit/export").content)
    assert MARK.encode() not in export.read_bytes()
    key.write_text(alone.cli("audit", "key").stdout)
    checked = CliRunner().invoke(build(), ["audit", "verify", str(export), "--key", str(key)])
    assert checked.exit_code == 0, checked.output


def test_what_people_wrote_stands_in_the_trail_as_salted_hashes(alone: Finished) -> None:
    with alone.served.workspace.database.read() as tx:
        query = "SELECT facts FROM entries WHERE kind IN ('review:decided', 'review:withdrawn')"
        facts = [str(row.facts) for row in tx.execute(text(query))]
        salts = [str(row.salt) for row in tx.execute(text("SELECT salt FROM reviewed_calls"))]
    assert not any(MARK in each for each in facts)
    for said in (f"not {MARK}", MARK, f"no {MARK}"):
        assert any(salted_hash(said, salt=salt) in each for salt in salts for each in facts)


def test_the_trail_says_who_had_values_removed_and_how_many(alone: Finished) -> None:
    alone.apply()
    with alone.served.workspace.database.read() as tx:
        query = text("SELECT actor, facts FROM entries WHERE kind = :kind AND subject = 't1'")
        ((actor, facts),) = tx.execute(query, {"kind": AuditKind.THREAD_REDACTED}).all()
    assert actor == OWNER
    told = json.loads(facts) if isinstance(facts, str) else facts
    assert (told["runs"], told["reviews"], told["calls"], told["decisions"]) == (1, 1, 1, 1)


DOORS = {
    "reviews": "reviews?status=settled",
    "review": "reviews/{review}",
    "runs": "runs",
    "run": "runs/{run}",
    "stream": "runs/{run}/stream",
    "thread": "threads/t1",
    "messages": "threads/t1/messages",
    "call": "calls/k1?agent=bot",
}


@pytest.mark.sqlite_by_day
def test_every_door_says_that_the_values_were_removed(alone: Finished) -> None:
    alone.apply()
    found = {}
    for door, path in DOORS.items():
        found[door] = answer = alone.get(path.format(review=alone.review_id, run=alone.run_id))
        assert (answer.status_code, MARK in answer.text) == (200, False), door
        if door != "stream":
            assert time.strftime("%Y-", time.gmtime()) in answer.text, door
            assert '_at":null}' not in answer.text, door
    assert found["review"].json()["redacted_at"]
    (call,) = found["review"].json()["calls"]
    assert (call["args"], call["arguments"], call["proposed"]["arguments"]) == (None, None, None)
    assert (call["decisions"][0]["by"], call["decisions"][0]["message"]) == (OWNER, None)
    messages, elsewhere = found["messages"].json(), found["call"].json()
    assert (messages["messages"], bool(messages["closed_at"])) == ([], True)
    assert (elsewhere["args"], bool(elsewhere["redacted_at"])) == (None, True)


COMMANDS = {
    "show": ("show", "{review}"),
    "runs": ("runs",),
    "inbox": ("inbox",),
    "audit": ("audit", "verify"),
}


@pytest.mark.sqlite_by_day
@pytest.mark.parametrize("as_json", [False, True])
def test_every_command_reads_what_is_left(alone: Finished, as_json: bool) -> None:
    alone.apply()
    for name, command in COMMANDS.items():
        words = [word.format(review=alone.review_id) for word in command]
        done = alone.cli(*words, *(["--json"] if as_json else []))
        assert (done.exit_code, MARK in done.output) == (0, False), done.output
        if name in ("show", "runs"):
            assert ("redacted_at" if as_json else "removed by retention on 20") in done.output


def test_a_closed_thread_takes_no_message(alone: Finished) -> None:
    alone.apply()
    http, key = alone.served.http, alone.served.key()
    refused = http.post("/api/v1/threads/t1/messages", json={"text": "Hello?"}, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (410, "thread_closed")
    assert "removed by retention on" in refused.json()["detail"]
    proposal = {"key": "k1", "tool": "t", "arguments": {}}
    for path, body in (("calls", proposal), ("calls/k1/take", None)):
        again = http.post(f"/api/v1/{path}", json=body, headers=alone.bot)
        assert (again.status_code, again.json()["code"]) == (410, "thread_closed"), again.text


def test_what_has_not_ended_is_left_out_by_age_and_refused_by_name(finished: Finished) -> None:
    done = finished.apply()
    assert "t2" not in [each["thread_id"] for each in done["threads"]]
    assert finished.get("threads/t2").json()["state"] == "waiting"
    refused = finished.cli("retention", "apply", "--thread", "t2")
    assert refused.exit_code == ConflictError.exit_code
    assert "has a run that has not ended" in refused.stderr
    assert finished.cli("retention", "apply", "--thread", "t9").exit_code == NotFoundError.exit_code


def test_only_what_ended_long_enough_ago_is_emptied(finished: Finished) -> None:
    done = finished.served.workspace.retention.apply(older_than=timedelta(days=1), by=OWNER)
    assert done.threads == ()
    assert finished.get(f"runs/{finished.run_id}").json()["answer"] == f"I told {MARK}."


def test_a_thread_that_is_named_goes_alone(finished: Finished) -> None:
    done = finished.cli("retention", "apply", "--thread", "t1")
    assert done.exit_code == 0, done.output
    assert "The values of 1 thread are removed. Backups still have them." in done.stdout
    assert finished.get("calls/k1?agent=bot").json()["args"] == {"to": MARK}
    again = finished.cli("retention", "apply", "--thread", "t1")
    assert "closed already" in again.stdout


def test_a_dry_run_changes_nothing(finished: Finished) -> None:
    before = finished.kinds()
    done = finished.cli("retention", "apply", "--older-than", "0s", "--dry-run")
    assert "t1: 1 runs, 1 reviews, 1 calls, 1 decisions" in done.stdout
    assert "Nothing was changed" in done.stdout
    assert finished.kinds() == before
    assert finished.get(f"runs/{finished.run_id}").json()["answer"] == f"I told {MARK}."


@pytest.mark.sqlite_by_day
@pytest.mark.parametrize(
    "words",
    [(), ("--older-than", "90d", "--thread", "t1"), ("--older-than", "soon"), ("--older-than", "-1d")],
)
def test_what_is_to_be_removed_must_be_said_clearly(finished: Finished, words: tuple[str, ...]) -> None:
    assert finished.cli("retention", "apply", *words).exit_code == 2


def test_only_an_admin_has_values_removed(finished: Finished) -> None:
    finished.served.add("rob")
    with pytest.raises(ForbiddenError):
        finished.served.workspace.retention.apply(older_than=NOW, by="rob")


@pytest.mark.parametrize("place", ["in-redact", "redacted", "checkpoints-gone"])
def test_whoever_dies_on_the_way_leaves_nothing_half(alone: Finished, place: str) -> None:
    words = alone.command("retention", "apply", "--older-than", "0s")
    environment = {**os.environ, "CLEARANCE_KILL_AT": place}
    dead = subprocess.run(
        [sys.executable, "-m", "clearance", *words],
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert dead.returncode == -9, dead.stderr
    with alone.served.workspace.database.read() as tx:
        half = retention.half_emptied(tx, limit=10)
    assert len(half) == (0 if place == "in-redact" else 1)
    assert alone.kinds().count(AuditKind.THREAD_REDACTED) == len(half)
    alone.apply()
    assert places(alone) == []
    assert alone.kinds().count(AuditKind.THREAD_REDACTED) == 4
    assert alone.get("audit/verify").json()["ok"]


def test_a_worker_empties_what_ended_long_enough_ago(
    alone: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETAIN_AGAIN", 0.01)
    monkeypatch.setattr(worker, "AT_ONCE", 1)
    workspace = alone.served.workspace
    url = workspace.database.url.render_as_string(hide_password=False)
    with clearance.open(url, home=workspace.home, person=OWNER, worker=False) as second:
        second.worker.retention, second.worker.retain = second.retention, NOW
        second.worker.start()
        until(lambda: places(alone) == [])
    with workspace.database.read() as tx:
        found = runs.thread(tx, "t1")
        assert found is not None
        assert found.closed_at is not None
    until(lambda: AuditKind.THREAD_REDACTED in {entry.kind for entry in alone.entries()})
    assert {entry.actor for entry in alone.entries() if entry.kind == AuditKind.THREAD_REDACTED} == {
        "clearance"
    }


def test_nothing_is_removed_unless_a_time_is_set(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clearance.open(migrated_database_url, home=tmp_path, worker=False) as opened:
        assert opened.worker.retention is None
    monkeypatch.setenv("CLEARANCE_RETENTION_DAYS", "90")
    with clearance.open(migrated_database_url, home=tmp_path, worker=False) as opened:
        assert opened.worker.retain == timedelta(days=90)


@pytest.fixture
def laboratory(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """A workspace that is served with the routes of research runs."""
    with Served.open(migrated_database_url, home=tmp_path, research=True) as found:
        yield found


def test_a_research_run_loses_its_files_and_its_folder(laboratory: Served) -> None:
    run_id = start_research(laboratory)
    workspace = laboratory.workspace
    laboratory.http.post(
        f"/api/v1/pipeline/{run_id}/cancel", json={"reason": "enough"}, headers=laboratory.key()
    )
    folder = workspace.home / "runs" / run_id
    assert folder.is_dir()
    until(lambda: bool(workspace.retention.apply(thread=run_id, by=OWNER).threads))
    assert not folder.exists()
    found = laboratory.http.get(f"/api/v1/pipeline/{run_id}", headers=laboratory.key())
    assert (found.status_code, found.json()["code"]) == (410, "thread_closed")
    listed = laboratory.http.get("/api/v1/pipeline", headers=laboratory.key())
    assert "removed by retention on" in listed.text
    with pytest.raises(ThreadClosedError):
        open_research(workspace).state(run_id)
    with workspace.database.read() as tx:
        assert runs.run(tx, run_id).state is RunState.CANCELLED


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; a conflict is: not yet."""
    ends = time.monotonic() + 60
    while True:
        try:
            if holds():
                return
        except ConflictError:
            pass
        assert time.monotonic() < ends
        time.sleep(0.02)
