"""The first sign-in: `serve` gives a link where a person or a program reads it, and keeps it from logs."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from clearance.signing_in import Client, accept
from tests.ways_in.desk import PERSON, Desk
from tests.ways_in.terminal import LONG, command, terminal

PASSWORD = "four words in a row"
SERVE = ("--person", PERSON, "serve", "--no-worker", "--port", "0")


@contextmanager
def _serving(
    desk: Desk, *words: str, more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command(desk.home, *words, *SERVE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(more or {})},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=LONG)


def _events(process: "subprocess.Popen[str]", *, until: str) -> list[dict[str, str]]:
    assert process.stdout is not None
    found: list[dict[str, str]] = []
    for line in process.stdout:
        found.append(json.loads(line))
        if found[-1]["event"] == until:
            return found
    raise AssertionError(f"{until} never came")


def _set_password(desk: Desk) -> None:
    link = desk.json("people", "link", PERSON)["link"]
    with desk.open() as c:
        token = link.rpartition("/")[2]
        accept(c.database, token, PASSWORD, client=Client("127.0.0.1"), limits=c.session_limits)


def test_a_program_gets_the_link_as_an_event_and_it_signs_the_admin_in(desk: Desk) -> None:
    with _serving(desk, "--json") as process:
        events = _events(process, until="sign-in")
        assert events[-1]["person"] == PERSON
        url = events[-1]["url"]
        assert url.startswith(f"{events[0]['url']}/welcome/")
        shown = httpx.get(url)
        assert (shown.status_code, "Set your password" in shown.text) == (200, True)
        form = {"password": PASSWORD, "repeated": PASSWORD}
        done = httpx.post(url, data=form, headers={"Sec-Fetch-Site": "same-origin"})
        assert (done.status_code, done.headers["location"]) == (303, "/")
        assert done.headers["set-cookie"].startswith("clearance=")
    with _serving(desk, "--json") as process:
        assert [each["event"] for each in _events(process, until="serving")] == ["serving"]


def test_at_a_terminal_the_link_stands_alone_on_a_line(desk: Desk) -> None:
    with terminal(desk.home, *SERVE, columns=60) as shown:
        shown.wait_for("within a day:")
        shown.wait_for("\n")
        shown.wait_for("\n")
        assert re.search(r"^http://127\.0\.0\.1:\d+/welcome/[\w-]{43}$", shown.text, re.MULTILINE)


def test_in_a_pipe_only_the_command_is_named_that_makes_a_link(desk: Desk) -> None:
    with _serving(desk) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(4)]
        assert f"people link {PERSON}" in lines[3]
        assert "/welcome/" not in "".join(lines)


def test_the_link_leads_to_where_people_reach_the_pages(desk: Desk) -> None:
    more = {"CLEARANCE_PUBLIC_URL": "https://clearance.example.org"}
    with _serving(desk, "--json", more=more) as process:
        [*_, event] = _events(process, until="sign-in")
    assert event["url"].startswith("https://clearance.example.org/welcome/")


def test_whoever_can_sign_in_already_gets_no_link(desk: Desk) -> None:
    desk.open().close()
    _set_password(desk)
    with _serving(desk) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        process.terminate()
        rest = process.stderr.read()
    assert "sign in" not in f"{lines}{rest}"
