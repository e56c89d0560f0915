"""`clearance pipeline` as somebody uses it: real processes, offline data, real steps and a real report."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from clearance.cli.options import Options
from clearance.cli.supervisor import Supervisor
from clearance.cli.worker import Program, worker_command
from clearance.keyring import add_key, new_credential
from clearance.outcome import CallState
from clearance.store import calls
from tests.research.pipelines import OBJECTIVE
from tests.ways_in.desk import PERSON, Desk, error
from tests.ways_in.terminal import LONG, run, terminal
from tests.ways_in.test_cli_serve import Server
from tests.web.talking import frames

START = ("pipeline", "start-hitl", "--symbol", "BRCA1", "--offline", "--objective", OBJECTIVE)
PENDING = re.compile(r"run_id=(\S+) interrupted=True stage=hitl_plan_pending")
HEAVY = ("matplotlib", "Bio", "numpy", "langgraph", "langchain_core", "pyhmmer", "rocrate", "fastapi")


def _last(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]


def _start(desk: Desk) -> str:
    """Start a run, and return its id once its plan waits."""
    done = desk.run(*START)
    assert done.exit_code == 0, done.output
    found = PENDING.fullmatch(_last(done.stdout))
    assert found is not None, done.output
    return found[1]


def _sha256(desk: Desk, run_id: str) -> str:
    found: str = desk.json("pipeline", "show", run_id)["plan_sha256"]
    return found


def _states(desk: Desk, run_id: str) -> list[CallState]:
    """Return how the calls of the steps that were carried out stand."""
    steps = desk.json("pipeline", "show", run_id)["plan"]["steps"]
    with desk.open() as c, c.database.read() as tx:
        rows = calls.of_run(tx, run_id)
    assert len(rows) == len(steps)
    return [row.state for row in rows]


def test_a_start_shows_each_stage_and_ends_where_the_plan_waits(tmp_path: Path) -> None:
    done = run(tmp_path, *START)
    assert done.returncode == 0, done.stderr
    found = PENDING.fullmatch(_last(done.stdout))
    assert found is not None
    assert "\x1b" not in done.stdout + done.stderr
    for stage, said in (
        ("sequence", "BRCA1: "),
        ("literature", "publications"),
        ("method_kb", "methods fit"),
        ("planner", "steps"),
        ("hitl_plan_pending", "people must decide"),
    ):
        assert re.search(rf"\d\d:\d\d:\d\d  {stage} +\S.*{said}|  {stage} +{said}", done.stderr), done.stderr
    for part in ("sha256", "CPU s", "low risk", "Read with care", f"pipeline resume {found[1]} --approve"):
        assert part in done.stdout
    assert (tmp_path / "runs" / found[1] / "meta.json").exists()


@pytest.mark.parametrize("columns", [50, 80])
def test_a_terminal_gets_lines_that_fit(tmp_path: Path, columns: int) -> None:
    with terminal(tmp_path, *START, columns=columns) as shown:
        assert shown.wait() == 0
        text = shown.text
    found = PENDING.search(text)
    assert found is not None
    with terminal(tmp_path, "pipeline", "show", found[1], columns=columns) as shown:
        assert shown.wait() == 0
        text += shown.text
    # Commands are there to be copied, and the last line is for programs.
    free = [line for line in text.splitlines() if "pipeline" not in line and "run_id=" not in line]
    assert [line for line in free if len(line.rstrip()) > columns] == []


def test_an_approved_plan_is_carried_out_and_its_report_is_there(desk: Desk) -> None:
    run_id = _start(desk)
    done = desk.run("pipeline", "resume", run_id, "--approve")
    assert done.exit_code == 0, done.output
    last = _last(done.stdout)
    assert re.fullmatch(r"stage=done analyst_summary=.+ report_artifact_path=\S+", last)
    report = desk.home / "runs" / run_id / last.rpartition("=")[2]
    assert report.read_bytes()
    assert "analyst" in done.stderr
    found = desk.json("pipeline", "show", run_id)
    assert (found["state"], found["stage"], found["interrupted"]) == ("done", "done", False)
    again = desk.run("pipeline", "resume", run_id, "--approve", "--json")
    assert (again.exit_code, error(again)["error"]) == (5, "conflict")


def test_a_revised_plan_is_approved_by_the_hash_that_was_seen(desk: Desk) -> None:
    run_id = _start(desk)
    assert "first version" in desk.run("pipeline", "diff", run_id).stdout
    method = desk.json("pipeline", "show", run_id)["plan"]["steps"][0]["method"]
    told = desk.run("pipeline", "resume", run_id, "--revise", "--exclude", method, "-m", "less")
    assert PENDING.fullmatch(_last(told.stdout)), told.output
    assert f"- {method}" in desk.run("pipeline", "diff", run_id).stdout
    blind = desk.run("pipeline", "resume", run_id, "--approve", "--json")
    assert (blind.exit_code, error(blind)["error"]) == (5, "review_conflict")
    done = desk.run("pipeline", "resume", run_id, "--approve", "--plan", _sha256(desk, run_id))
    assert _last(done.stdout).startswith("stage=done "), done.output


def test_an_edited_plan_is_carried_out_as_its_editors(desk: Desk, tmp_path: Path) -> None:
    run_id = _start(desk)
    plan = json.loads((desk.home / "runs" / run_id / "plan.v1.json").read_text())
    plan["steps"] = [step for step in plan["steps"] if not step["needs"]][:1]
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(plan))
    done = desk.run("pipeline", "resume", run_id, "--edit", str(mine))
    assert _last(done.stdout).startswith("stage=done analyst_summary=1 done"), done.output
    assert desk.json("pipeline", "show", run_id)["plan_version"] == 2


def test_a_plan_that_was_edited_in_place_is_not_taken_for_the_one_that_waits(desk: Desk) -> None:
    run_id = _start(desk)
    path = desk.home / "runs" / run_id / "plan.v1.json"
    plan = json.loads(path.read_text())
    plan["steps"] = [step for step in plan["steps"] if not step["needs"]][:1]
    path.write_text(json.dumps(plan))
    refused = desk.run("pipeline", "resume", run_id, "--approve", "--json")
    assert (refused.exit_code, error(refused)["error"]) == (5, "conflict")
    assert "--edit" in error(refused)["message"]
    assert desk.json("pipeline", "show", run_id)["interrupted"]
    assert json.loads(path.read_text()) == plan
    done = desk.run("pipeline", "resume", run_id, "--edit", str(path))
    assert _last(done.stdout).startswith("stage=done analyst_summary=1 done"), done.output


def test_a_folder_that_was_lost_is_there_again_when_its_run_is_shown(desk: Desk) -> None:
    run_id = _start(desk)
    folder = desk.home / "runs" / run_id
    kept = sorted(path.name for path in folder.iterdir() if path.is_file())
    shutil.rmtree(folder)
    desk.json("pipeline", "show", run_id)
    assert sorted(path.name for path in folder.iterdir()) == kept


def test_a_rejected_plan_ends_its_run(desk: Desk) -> None:
    run_id = _start(desk)
    done = desk.run("pipeline", "resume", run_id[:6], "--reject", "-m", "another gene")
    assert _last(done.stdout) == "stage=hitl_rejected analyst_summary= report_artifact_path="
    assert "another gene" in done.stderr


def test_a_cancelled_run_is_listed_as_such(desk: Desk) -> None:
    run_id = _start(desk)
    assert desk.json("pipeline", "cancel", run_id) == {"run_id": run_id, "state": "cancelled"}
    (listed,) = desk.json("pipeline", "list")["runs"]
    assert (listed["run_id"], listed["state"]) == (run_id, "cancelled")
    assert run_id in desk.run("pipeline", "list").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("start-hitl", "--symbol", "BRCA9", "--offline"), 11, "Did you mean BRCA"),
        (("start-hitl", "--symbol", "../x"), 2, "letters, digits and hyphens"),
        (("start-hitl", "--symbol", "BRCA1", "--organism", "unicorn"), 2, "human"),
        (("start-hitl", "--symbol", "BRCA1", "--fasta", "/nowhere.fa"), 2, "cannot be read"),
        (("start-hitl", "--symbol", "BRCA1", "--fasta", "FASTA"), 2, "--fasta"),
        (("start-hitl", "--offline"), 2, "For a sequence without a symbol give --fasta"),
        (("start-hitl", "--symbol", "BRCA1", "--kind", "dna"), 2, "Give one, or leave the kind out"),
        (("start-hitl", "--symbol", "BRCA1", "--planner", "nothing"), 12, "names no model"),
        (("start-hitl", "--symbol", "BRCA1", "--executor", "moon"), 2, "local or argo"),
        (("show", "nothing"), 4, "There is no research run nothing"),
        (("diff", "nothing"), 4, "There is no research run nothing"),
        (("cancel", "nothing"), 4, "There is no research run nothing"),
        (("resume", "nothing", "--approve"), 4, "There is no research run nothing"),
        (("resume", "x", "--approve", "--reject"), 2, "Say one of"),
        (("resume", "x", "--reject"), 2, "needs a reason"),
        (("resume", "x", "-m", "why"), 2, "Say what you decide"),
        (("resume", "x", "--approve", "--exclude", "orf-scan"), 2, "belong to --revise"),
        (("resume", "x", "--revise", "--params", "orf-scan"), 2, "METHOD=JSON"),
        (("resume", "x", "--edit", "/nowhere.json"), 2, "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    desk: Desk, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    wrong = tmp_path / "wrong.fa"
    wrong.write_text("ACGT")
    with desk.open():
        pass
    given = [str(wrong) if word == "FASTA" else word for word in words]
    done = desk.run("pipeline", *given, "--json")
    assert done.exit_code == code, done.output
    assert said in error(done)["message"]


def test_a_revision_needs_a_wish_that_the_planner_can_read(desk: Desk) -> None:
    run_id = _start(desk)
    for words, said in (
        (("--revise", "-m", "make it better"), "cannot read a comment"),
        (("--revise", "-m", "cheaper", "--max-cost", "a lot"), "max_cost"),
        ((), "waits for you"),
    ):
        done = desk.run("pipeline", "resume", run_id, *words, "--json")
        assert done.exit_code == 2, done.output
        found = error(done)
        assert said in found["message"] + str(found["faults"])
    assert desk.json("pipeline", "show", run_id)["plan_version"] == 1


def test_every_field_of_a_run_in_json_is_documented(desk: Desk) -> None:
    from tests.house.sources import ROOT

    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    run_id = _start(desk)
    found = desk.json("pipeline", "show", run_id)
    names = {*found, *found["stages"][0], *found["files"][0], *desk.json("pipeline", "diff", run_id)}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_a_run_that_was_interrupted_goes_on_when_it_is_resumed(desk: Desk) -> None:
    run_id = _start(desk)
    with terminal(desk.home, "--person", PERSON, "pipeline", "resume", run_id, "--approve") as shown:
        shown.wait_for("hitl_execute_approved")
        shown.process.send_signal(signal.SIGINT)
        assert shown.wait() == 130
        assert "Nothing is lost" in shown.text
    done = desk.run("pipeline", "resume", run_id)
    assert _last(done.stdout).startswith("stage=done analyst_summary="), done.output
    assert set(_states(desk, run_id)) == {CallState.EXECUTED}


def test_a_run_whose_process_was_killed_between_steps_is_finished_by_the_next(desk: Desk) -> None:
    run_id = _start(desk)
    words = ("--person", PERSON, "pipeline", "resume", run_id, "--approve")
    killed = run(desk.home, *words, more={"CLEARANCE_KILL_AT": "outcome-kept:1"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = desk.run("pipeline", "resume", run_id)
    assert _last(done.stdout).startswith("stage=done analyst_summary="), done.output
    assert set(_states(desk, run_id)) == {CallState.EXECUTED}


@pytest.fixture
def worker(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    """A worker for one program, as `clearance worker --only` starts it."""
    only: Program = request.param
    model = "offline" if only is Program.CHAT else None
    desk.home.mkdir()
    log = desk.home / "worker.log"
    found = Supervisor(worker_command(Options(home=desk.home), model=model, only=only), log=log)
    found.start()
    assert found.wait_ready(LONG), log.read_text()
    yield found
    found.stop()


@pytest.mark.parametrize("worker", [Program.RESEARCH], indirect=True)
def test_a_worker_for_research_needs_no_model_and_advances_runs(worker: Supervisor, desk: Desk) -> None:
    from clearance.apps.research.research_request import ResearchRequest
    from clearance.apps.research.setup import open_research

    assert not worker.ended.is_set()
    with desk.open() as c:
        research = open_research(c)
        research.start(ResearchRequest("BRCA1", OBJECTIVE, offline=True), run_id="r1", by=c.person)
        assert research.wait_for("r1", wait=LONG).stage == "hitl_plan_pending"


@pytest.mark.parametrize("worker", [Program.CHAT], indirect=True)
def test_a_run_is_advanced_even_where_the_worker_does_nothing_but_chat(
    worker: Supervisor, desk: Desk
) -> None:
    assert _start(desk)
    assert not worker.ended.is_set()


def test_a_worker_for_research_takes_no_model(desk: Desk) -> None:
    done = run(desk.home, "worker", "--only", "research", "--model", "offline")
    assert done.returncode == 2
    assert "--only research" in done.stderr
    assert not desk.home.exists()


def test_the_graph_shows_both_gates_whatever_is_asked(tmp_path: Path) -> None:
    drawn = run(tmp_path, "pipeline", "graph", "--full", "--hitl").stdout
    assert drawn == run(tmp_path, "pipeline", "graph").stdout
    for part in ("S4_plan", "S5_execute", "analyst --> reporter"):
        assert part in drawn
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("list",), ("show", "RUN")], ids=" ".join)
def test_looking_loads_nothing_heavy(desk: Desk, words: tuple[str, ...]) -> None:
    run_id = _start(desk)
    given = [run_id if word == "RUN" else word for word in words]
    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom clearance.cli import build\n"
        f"done = CliRunner().invoke(build(), {['--home', str(desk.home), 'pipeline', *given]!r})\n"
        f"print(done.exit_code, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG, check=True
    )
    assert done.stdout.strip() == "0 []"


def test_a_server_and_its_worker_bring_a_run_to_its_report(desk: Desk) -> None:
    server = Server(desk.home, "--only", "research")
    try:
        made = new_credential()
        with desk.open() as c:
            add_key(c.database, "mine", person=PERSON, by=PERSON, made=made)
        headers = {"Authorization": f"Bearer {made.text}"}
        gene = {"symbol": "BRCA1", "offline": True, "objective": OBJECTIVE}
        with httpx.Client(base_url=server.url, timeout=LONG, headers=headers) as http:
            with http.stream("POST", "/pipeline/start", json=gene) as answer:
                *_, gate = frames(answer)
            assert gate.kind == "hitl_pending"
            resume = f"/pipeline/{gate.data['run_id']}/resume"
            with http.stream("POST", resume, json={"decision": "approve"}) as answer:
                *_, last = frames(answer)
        assert (last.kind, last.data["stage"]) == ("done", "done")
    finally:
        server.close()
