"""`demo` and `chat` as somebody sees them: real processes, a real worker, real mail in a folder."""

import json
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from clearance.cli.options import Options
from clearance.cli.supervisor import Supervisor
from clearance.cli.worker import worker_command
from tests.house.sources import ROOT
from tests.pages.site import Page
from tests.ways_in.terminal import LONG, Terminal, run, terminal

OURS = {"Sec-Fetch-Site": "same-origin"}
HELD = "[a]pprove  [e]dit  [r]eject  re[s]pond  [l]ater > "


def _mails(home: Path) -> list[EmailMessage]:
    files = sorted((home / "outbox").glob("*.eml")) if (home / "outbox").exists() else []
    return [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]


def _json(home: Path, *words: str) -> Any:
    done = run(home, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _ended(shown: Terminal) -> None:
    """End a demo that stays open for its inbox."""
    shown.wait_for("Ctrl-C ends both")
    shown.interrupt()
    assert shown.wait() == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace that the demo has made, with a worker that stays."""
    folder = tmp_path_factory.mktemp("demo") / "workspace"
    done = run(folder, "demo")
    assert done.returncode == 0, done.stderr
    worker = Supervisor(worker_command(Options(home=folder), model=None), log=folder / "worker.log")
    worker.start()
    assert worker.wait_ready(LONG)
    yield folder
    worker.stop()


def test_the_commands_of_the_documentation_do_what_they_say(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (session,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = re.findall(r"^\$ (clearance .*)$", session, re.MULTILINE)
    script = [f'clearance() {{ {shlex.join([sys.executable, "-m", "clearance"])} "$@"; }}', *commands]
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=2 * LONG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Without a terminal the call was held, and the inbox showed it; then it was approved, and ran once.
    assert "The call is held" in done.stdout
    assert "2 reviews wait." in done.stdout
    assert "Approved: send_email (call 1)." in done.stdout
    (mail,) = _mails(tmp_path / "workspace")
    assert (mail["to"], mail["subject"]) == ("ana@example.org", "your lamp")
    assert mail.get_content().strip() == "It ships today."


def test_a_demo_without_a_terminal_says_how_to_decide(home: Path) -> None:
    before = len(_mails(home))
    done = run(home, "demo")
    assert done.returncode == 0, done.stderr
    assert "Offline model: fixed rules, no AI." in done.stdout
    assert "\x1b" not in done.stdout
    assert "Single-user workspace" in done.stderr
    newest = _json(home, "runs", "--state", "waiting", "--limit", "1")["runs"][0]
    assert re.search(rf"clearance .*approve {newest['run_id']}/1/1\n", done.stdout)
    assert re.search(r"clearance .*pipeline show brca1-\w+\n", done.stdout)
    assert len(_mails(home)) == before


def test_a_demo_for_a_program_answers_in_json(home: Path) -> None:
    found = _json(home, "demo")
    assert found["model"] == "offline"
    assert "Typical for Jakarta" in found["answer"]
    assert (found["research"]["gene_symbol"], found["research"]["stage"]) == ("BRCA1", "hitl_plan_pending")
    (call,) = found["pending_review"]["calls"]
    assert call["args"] == {"to": "ana@example.org", "subject": "your lamp", "body": "It ships today."}


@pytest.mark.parametrize("columns", [80, 120])
def test_a_call_that_is_approved_in_the_demo_runs_once(home: Path, columns: int) -> None:
    before = len(_mails(home))
    with terminal(home, "demo", columns=columns) as shown:
        shown.wait_for(HELD)
        assert '"ana@example.org"' in shown.text
        assert "medium risk" in shown.text
        shown.type("a")
        shown.wait_for("The mail is a real file now:")
        _ended(shown)
        lines = [line for line in shown.text.splitlines() if "clearance" not in line]
        assert all(len(line) <= columns for line in lines if "/welcome/" not in line)
    assert len(_mails(home)) == before + 1


def test_a_call_that_is_edited_in_the_demo_runs_as_edited(home: Path) -> None:
    before = len(_mails(home))
    with terminal(home, "demo", more={"EDITOR": "sed -i -e s/today/tomorrow/"}) as shown:
        shown.wait_for(HELD)
        shown.type("e")
        _ended(shown)
    mails = _mails(home)
    assert len(mails) == before + 1
    assert [mail for mail in mails if "tomorrow" in mail.get_content()]


def test_a_call_that_is_rejected_in_the_demo_never_runs(home: Path) -> None:
    before = len(_mails(home))
    with terminal(home, "demo") as shown:
        shown.wait_for(HELD)
        shown.type("nonsense")
        shown.wait_for(HELD)
        shown.type("r")
        shown.wait_for("Why?")
        shown.type("the lamp is broken")
        shown.wait_for("the lamp is broken")
        shown.wait_for("No mail was written.")
        _ended(shown)
    assert len(_mails(home)) == before


@pytest.mark.parametrize("how", ["later", "end of input"])
def test_a_call_that_is_left_for_later_waits(home: Path, how: str) -> None:
    with terminal(home, "demo") as shown:
        shown.wait_for(HELD)
        if how == "later":
            shown.type("l")
        else:
            shown.end_of_input()
        shown.wait_for("Decide it")
        _ended(shown)
    newest = _json(home, "runs", "--limit", "1")["runs"][0]
    assert newest["state"] == "waiting"


def test_the_link_of_the_demo_signs_in_at_once_and_a_decision_there_counts_here(home: Path) -> None:
    before = len(_mails(home))
    with terminal(home, "demo") as shown:
        shown.wait_for(HELD)
        (link,) = re.findall(r"^(http://127\.0\.0\.1:\d+/welcome/\S+)$", shown.text, re.MULTILINE)
        with httpx.Client(headers=OURS, follow_redirects=True, timeout=LONG) as browser:
            assert "Sign in as " in browser.get(link).text
            inbox = browser.post(link, data={"person": "whoever"})
            (review,) = re.findall(r"medium risk  review (mail-\w+/1/1)$", shown.text, re.MULTILINE)
            assert f'href="/reviews/{review}' in inbox.text
            page = Page(browser.get(str(inbox.url.join(f"/reviews/{review}"))).text)
            (form,) = [each for each in page.forms if each.action.endswith("/decide")]
            done = browser.post(str(inbox.url.join(form.action)), data=dict(form.with_(decision="approve")))
            assert done.status_code == 200, done.text
            assert browser.post(link, data={"person": "whoever"}).status_code == 404
        shown.wait_for("It was decided elsewhere meanwhile.")
        shown.wait_for("The mail is a real file now:")
        _ended(shown)
    assert len(_mails(home)) == before + 1


def test_a_call_that_was_left_is_told_of_when_it_is_decided_at_last(home: Path) -> None:
    with terminal(home, "demo") as shown:
        shown.wait_for(HELD)
        shown.type("l")
        shown.wait_for("Ctrl-C ends both")
        newest = next(
            run for run in _json(home, "runs", "--state", "waiting")["runs"] if "mail" in run["run_id"]
        )
        assert run(home, "approve", f"{newest['run_id']}/1/1").returncode == 0
        shown.wait_for("The mail is a real file now:")
        shown.interrupt()
        assert shown.wait() == 0


def _take(taken: socket.socket, address: tuple[str, int]) -> None:
    """Take a port, when the demo of another test beside this one has let go of it."""
    until = time.monotonic() + LONG
    while True:
        try:
            taken.bind(address)
            taken.listen()
            return
        except OSError:
            assert time.monotonic() < until
            threading.Event().wait(0.1)


def test_the_demo_takes_another_port_where_the_usual_one_is_taken(home: Path) -> None:
    from clearance.cli.demo_inbox import HOST, PORT

    with closing(socket.socket()) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _take(taken, (HOST, PORT))
        with terminal(home, "demo") as shown:
            shown.wait_for("/welcome/")
            (port,) = re.findall(r"^http://127\.0\.0\.1:(\d+)/welcome/", shown.text, re.MULTILINE)
            shown.wait_for(HELD)
            shown.interrupt()
            shown.wait_for("Ended.")
            assert shown.wait() == 0
    assert int(port) != PORT


def test_the_demo_takes_no_workspace_that_is_in_use_for_something_else(tmp_path: Path) -> None:
    from tests.ways_in.desk import Desk

    desk = Desk(tmp_path / "workspace")
    desk.hold(("wipe", "{}"))
    done = run(desk.home, "demo", "--json")
    assert done.returncode == 5
    assert "in use for something else" in json.loads(done.stderr)["message"]


def test_a_conversation_goes_on_where_it_was_left(home: Path) -> None:
    with terminal(home, "chat", "--thread", "kept") as shown:
        shown.wait_for("no AI")
        shown.wait_for("you > ")
        shown.type("Delete customer CU-1005")
        shown.wait_for("[l]ater > ")
        assert "critical risk" in shown.text
        shown.type("l")
        assert shown.wait() == 0
    with terminal(home, "chat", "--thread", "kept") as shown:
        shown.wait_for("The last turn was:")
        shown.wait_for("Delete customer CU-1005")
        shown.wait_for("[l]ater > ")
        shown.type("r")
        shown.wait_for("Why?")
        shown.type("Tom stays")
        shown.wait_for("Tom stays")
        shown.wait_for("you > ")
        shown.end_of_input()
        assert shown.wait() == 0


def test_lines_of_a_pipe_are_messages_until_a_review_is_asked(home: Path) -> None:
    typed = "What is the weather in Jakarta?\n\nDelete customer CU-1004\nWhat is the weather in Oslo?\n"
    done = run(home, "chat", "--json", typed=typed)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert "Typical for Jakarta" in first["answer"]
    assert first["pending_review"] is None
    assert second["answer"] is None
    assert second["pending_review"]["risk"] == "critical"


def test_a_message_while_a_review_waits_is_refused(home: Path) -> None:
    first = run(home, "chat", "--thread", "busy", typed="Delete customer CU-1002\n")
    assert first.returncode == 0, first.stderr
    assert "Decide it" in first.stdout
    again = run(home, "chat", "--thread", "busy", "--json", typed="Hello\n")
    assert again.returncode == 0
    (only,) = (json.loads(line) for line in again.stdout.splitlines())
    assert only["pending_review"]["status"] == "pending"


def test_the_graph_is_drawn_as_the_three_nodes(tmp_path: Path) -> None:
    drawn = run(tmp_path, "chat", "graph").stdout
    for node in ("llm_call", "human_review", "tool_node"):
        assert node in drawn
    assert json.loads(run(tmp_path, "chat", "graph", "--json").stdout)["mermaid"] == drawn.removesuffix("\n")
    assert list(tmp_path.iterdir()) == []


def test_the_demo_and_what_comes_after_it_work_on_postgresql(
    new_postgres_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_postgres_database()
    done = run(tmp_path, "--database", url, "demo", "--json")
    assert done.returncode == 0, done.stderr
    review = json.loads(done.stdout)["pending_review"]["review_id"]
    done = run(tmp_path, "--database", url, "approve", review, "--wait", str(LONG), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["worker_running"] is False
    assert found["run"]["state"] == "done"
    assert len(_mails(tmp_path)) == 1
