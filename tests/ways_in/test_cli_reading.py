"""`inbox`, `show` and `runs`: everything is there, exactly, and nothing foreign passes as the product's."""

import json
from pathlib import Path

import pytest

from clearance.cli.options import SINGLE_USER
from clearance.people import Person, Role
from tests.ways_in.desk import PERSON, Desk, error

MAIL = '{"to":"bo@example.org","body":"Hi"}'


def test_an_inbox_lists_the_highest_risk_first(desk: Desk) -> None:
    mail, money, wipe = (desk.hold(call) for call in (("send_email", MAIL), ("pay", "{}"), ("wipe", "{}")))
    shown = desk.run("inbox").stdout
    places = [shown.index(review.id) for review in (wipe, money, mail)]
    assert places == sorted(places)
    assert "▲▲ critical risk  wipe" in shown
    assert "3 reviews wait." in shown


def test_an_inbox_says_that_there_is_more_than_it_shows(desk: Desk) -> None:
    for _ in range(3):
        desk.hold(("wipe", "{}"))
    assert "3 reviews wait. Shown: 2" in desk.run("inbox", "--limit", "2").stdout
    assert len(desk.json("inbox", "--limit", "2")["reviews"]) == 2


def test_an_empty_inbox_says_so(desk: Desk) -> None:
    desk.open().close()
    assert desk.run("inbox").stdout == "Nothing waits for a decision.\n"
    assert desk.json("inbox") == {"waiting": 0, "reviews": []}


@pytest.mark.parametrize("command", ["inbox", "show", "approve"])
def test_a_single_user_workspace_says_so_but_not_to_programs(desk: Desk, command: str) -> None:
    review = desk.hold(("send_email", MAIL))
    named = () if command == "inbox" else (review.id,)
    assert desk.run(command, *named, "--json").stderr == ""
    if command == "approve":
        review = desk.hold(("send_email", MAIL))
        named = (review.id,)
    assert "Single-user workspace" in desk.run(command, *named).stderr


SAYING = [
    ("inbox",),
    ("runs",),
    ("keys", "list"),
    ("people", "list"),
    ("people", "show", PERSON),
    ("audit", "list"),
    ("audit", "verify"),
    ("policy", "show"),
    ("policy", "history"),
    ("rules", "list"),
    ("channels", "list"),
    ("doctor",),
]


@pytest.mark.parametrize("words", SAYING, ids=" ".join)
def test_every_command_says_once_that_the_workspace_is_of_a_single_user(
    desk: Desk, words: tuple[str, ...]
) -> None:
    desk.hold(("send_email", MAIL))
    said = desk.run(*words)
    assert (said.stderr.count(SINGLE_USER), SINGLE_USER in said.stdout) == (1, False)
    assert SINGLE_USER not in desk.run(*words, "--json").stderr
    desk.add(Person(id="bo", name="Bo", role=Role.REVIEWER))
    assert SINGLE_USER not in desk.run(*words).stderr


def test_a_workspace_of_several_people_says_nothing_of_a_single_user(desk: Desk) -> None:
    desk.hold(("send_email", MAIL))
    desk.add(Person(id="bo", name="Bo", role=Role.REVIEWER))
    assert desk.run("inbox").stderr == ""


EXACT = [
    pytest.param('{"n":123456789012345678901234567890}', "123456789012345678901234567890", id="big-integer"),
    pytest.param('{"n":9007199254740993}', "9007199254740993", id="beyond-2-to-53"),
    pytest.param('{"n":7.0}', "7.0", id="float-that-is-whole"),
    pytest.param('{"n":7}', "  n  7\n", id="integer"),
    pytest.param('{"n":"7"}', '  n  "7"\n', id="text-of-digits"),
    pytest.param('{"n":null,"m":true}', "  n  null\n", id="null"),
    pytest.param('{"n":[1,{"a":[]}]}', '"a": []', id="nested"),
    pytest.param('{"n":"a \\u202e b"}', '"a <U+202E> b"', id="right-to-left-override"),
    pytest.param('{"n":"a\\u200bb"}', '"a<U+200B>b"', id="zero-width"),
    pytest.param('{"n":"\\u001b[31mred"}', '"<U+001B>[31mred"', id="terminal-escape"),
    pytest.param('{"n":"p\\u0430ypal.com"}', '"p<U+0430>ypal.com"', id="cyrillic-a"),
    pytest.param('{"n":"[bold]x[/bold] :smile:"}', '"[bold]x[/bold] :smile:"', id="markup"),
    pytest.param('{"\\u202en":1}', "<U+202E>n  1", id="argument-name"),
    pytest.param('{"n":" a "}', '" a "', id="spaces"),
    pytest.param('{"n":""}', '""', id="empty-text"),
    pytest.param("{}", "no arguments", id="no-arguments"),
]


@pytest.mark.parametrize(("arguments", "drawn"), EXACT)
def test_an_argument_is_drawn_exactly(desk: Desk, arguments: str, drawn: str) -> None:
    review = desk.hold(("wipe", arguments))
    assert drawn in desk.run("show", review.id).stdout


@pytest.mark.parametrize("arguments", [case.values[0] for case in EXACT])
def test_arguments_come_as_text_beside_their_values(desk: Desk, arguments: str) -> None:
    review = desk.hold(("wipe", arguments))
    (call,) = desk.json("show", review.id)["calls"]
    assert call["arguments"] == arguments or json.loads(call["arguments"]) == json.loads(arguments)
    assert json.dumps(call["args"]) == json.dumps(json.loads(arguments))


def test_a_long_value_in_a_pipe_is_one_unbroken_line(desk: Desk) -> None:
    value = "".join(f"{number:08} " for number in range(20_000)) + "end"
    review = desk.hold(("wipe", json.dumps({"text": value})))
    assert f'"{value}"\n' in desk.run("show", review.id).stdout


def test_a_text_of_many_lines_is_drawn_line_for_line(desk: Desk) -> None:
    lines = ["Dear Bo,", "", "  indented", "ends in spaces  ", "Call 2  send_email", "│ a rule of its own"]
    review = desk.hold(("wipe", json.dumps({"text": "\n".join(lines)})))
    shown = desk.run("show", review.id).stdout
    drawn = [line.lstrip(" ")[2:] for line in shown.splitlines() if line.lstrip(" ").startswith("│ ")]
    assert drawn[: len(lines)] == [*lines[:3], "ends in spaces<U+0020><U+0020>", *lines[4:]]


def test_nothing_that_controls_a_terminal_is_written_into_a_pipe(desk: Desk) -> None:
    everything = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xFEFF, 0xE0041]))
    review = desk.hold(
        ("wipe", json.dumps({"text": everything, everything: 1})), message=f"do {everything[1:]}"
    )
    for words in (["show", review.id], ["inbox"], ["runs"]):
        written = desk.run(*words).stdout.replace("\n", "")
        assert written.isprintable(), words


def test_a_flagged_argument_is_pointed_out_with_the_reason(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":48250.0,"note":"x"}'))
    shown = desk.run("show", review.id).stdout
    assert "▲ amount  48250.0\n" in shown
    assert "▲ money goes out\n" in shown


def test_a_review_says_what_it_is_about_and_what_follows(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":1}'), thread="thread-9")
    shown = desk.run("show", review.id).stdout
    for part in (
        "▲ high risk", "pending, version 1", "ana, just now", "thread-9", "rule: money", "0 of 1",
        "none: it waits until somebody decides", "pay runs once, with exactly these arguments.",
        f"clearance --home {desk.home} --person ana approve {review.id}",
    ):  # fmt: skip
        assert part in shown, part


def test_what_people_wrote_stands_below_the_arguments_and_is_marked(desk: Desk) -> None:
    review = desk.hold(("pay", '{"amount":1}'), message="Already approved by the boss!")
    shown = desk.run("show", review.id).stdout
    assert shown.index("amount") < shown.index("Not checked by anybody") < shown.index("Already approved")


def test_a_decided_review_shows_who_decided_what_and_each_change(desk: Desk, tmp_path: Path) -> None:
    review = desk.hold(("pay", '{"amount":48250.0,"note":"rent"}'))
    file = tmp_path / "arguments.json"
    file.write_text('{"amount": 12.5, "note": "rent", "more": [1]}')
    assert desk.run("edit", review.id, "--args", str(file), "-m", "too much").exit_code == 0
    shown = desk.run("show", review.id).stdout
    for part in (
        "settled, version 2",
        "ana, just now",
        ": edit",
        "│ too much",
        "- 48250.0",
        "+ 12.5",
        "more",
    ):
        assert part in shown, part
    assert '- "rent"' not in shown
    (call,) = desk.json("show", review.id)["calls"]
    assert [(item["by"], item["type"], item["message"]) for item in call["decisions"]] == [
        ("ana", "edit", "too much")
    ]
    assert json.loads(call["proposed"]["arguments"])["amount"] == 48250.0


def test_runs_are_listed_by_state(desk: Desk) -> None:
    waiting = desk.hold(("wipe", "{}"))
    queued = desk.hold(("wipe", "{}"))
    desk.run("approve", queued.id)
    assert [run["run_id"] for run in desk.json("runs", "--state", "waiting")["runs"]] == [waiting.run_id]
    assert len(desk.json("runs")["runs"]) == 2
    shown = desk.run("runs").stdout
    assert waiting.run_id in shown
    assert "queued" in shown
    assert desk.run("runs", "--state", "failed").stdout == "There are no runs in that state.\n"


def test_a_reader_in_the_wrong_folder_makes_no_workspace(desk: Desk) -> None:
    for words in (["inbox"], ["show", "x"], ["runs"], ["approve", "x"]):
        done = desk.run(*words, "--json")
        assert done.exit_code == 4
        assert error(done)["error"] == "not_found"
    assert not desk.home.exists()
