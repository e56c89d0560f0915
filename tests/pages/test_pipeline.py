"""The list of research runs, the form that starts one, and what the page of a run shows."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from clearance.apps.research.plan_diff import diff
from clearance.apps.research.research_request import MAX_FASTA, ResearchRequest
from clearance.people import Role
from clearance.store.tables import run_files
from clearance.turns import start as start_turn
from tests.pages.researching import RUN, Bench, picture, read, section

pytestmark = pytest.mark.sqlite_by_day

FASTA = ">own\nATGGCCAAATTTGGGCCCATGTAA\n"


@pytest.fixture
def bench(migrated_database_url: str, tmp_path: Path) -> Iterator[Bench]:
    """Give a served workspace with the pipeline and a worker."""
    with Bench.open(migrated_database_url, home=tmp_path) as opened:
        yield opened


@pytest.fixture
def idle(migrated_database_url: str, tmp_path: Path) -> Iterator[Bench]:
    """Give the same without a worker."""
    with Bench.open(migrated_database_url, home=tmp_path, worker=False) as opened:
        yield opened


# --- the list and its form ---


def test_the_list_says_how_each_run_stands_and_where_it_waits(bench: Bench) -> None:
    bench.lab.start("run1")
    bench.lab.start("run2", objective="")
    bench.lab.decide("reject", "run2", message="no")
    text = bench.text("/pipeline")
    assert text.index("Rejected BRCA1") < text.index("Waiting BRCA1: base composition and codon usage")
    assert "waits for people · by ann" in text
    assert "S4_plan" in text
    assert "codon usage" not in bench.text("/pipeline?state=done")
    assert "Waiting BRCA1" in bench.text("/pipeline?state=waiting")


def test_a_part_is_rendered_alone_when_scripts_ask_for_it(bench: Bench) -> None:
    bench.lab.start()
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    for path, part in (("/pipeline", '<section id="runs"'), (RUN, '<div id="run"')):
        answer = bench.browser.get(path, headers=headers)
        assert answer.status_code == 200
        assert answer.text.lstrip().startswith(part)
        assert "BRCA1" in answer.text


def test_an_empty_list_opens_the_form(idle: Bench) -> None:
    assert "There are no research runs yet" in idle.text("/pipeline")
    assert '<details class="card" open>' in idle.browser.get("/pipeline").text


def test_the_form_starts_a_run_and_leads_to_its_page(bench: Bench) -> None:
    answer = bench.browser.send(
        "/pipeline", "/pipeline/new", symbol="BRCA1", objective="codon usage", offline="1"
    )
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    run_id = path.removeprefix("/pipeline/")
    assert bench.wait(run_id) == "hitl_plan_pending"
    assert "BRCA1: codon usage" in bench.text(path)
    assert bench.lab.research.run(run_id).requester == "ann"


def test_the_form_that_is_sent_twice_starts_one_run(idle: Bench) -> None:
    form = idle.browser.page("/pipeline").form("/pipeline/new")
    data = dict(form.with_(symbol="BRCA1", offline="1"))
    first, second = (idle.browser.post("/pipeline/new", data) for _ in range(2))
    assert first.headers["location"] == second.headers["location"]
    assert len(idle.lab.research.newest(limit=5)) == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"symbol": "BR CA1"}, "A gene symbol has 1 to 32 letters, digits and hyphens"),
        ({"symbol": "BRCA1", "organism": "unicorn"}, "The organism 'unicorn' is not known"),
        ({"symbol": "BRCA1", "objective": "x" * 2001}, "more than 2000 characters"),
        ({"symbol": "BRCA1", "fasta": "not FASTA at all !"}, "FASTA"),
        ({"symbol": "BRCA1", "fasta": ">x\n" + "A" * MAX_FASTA}, "larger than 512 KiB"),
        ({"symbol": "BRCA1", "objective": "a\0b"}, "a null character"),
    ],
)
def test_what_could_never_run_is_said_at_its_field_with_what_was_typed(
    idle: Bench, typed: dict[str, str], said: str
) -> None:
    answer = idle.browser.send("/pipeline", "/pipeline/new", headers=None, **typed)
    assert answer.status_code == 422
    assert said in read(answer)
    assert f'value="{typed["symbol"]}"' in answer.text
    assert idle.lab.research.newest(limit=5) == []


def test_a_sequence_comes_as_a_file_or_as_text(idle: Bench) -> None:
    token = dict(idle.browser.page("/pipeline").form("/pipeline/new").values)["csrf"]
    for data, files in (
        ({"fasta": ""}, {"file": ("own.fa", FASTA.encode())}),
        ({"fasta": FASTA.replace("\n", "\r\n")}, {"file": ("", b"")}),
    ):
        answer = idle.browser.http.post(
            "/pipeline/new",
            data={"csrf": token, "symbol": "OWN", **data},
            files=files,
            headers={"Sec-Fetch-Site": "same-origin"},
            follow_redirects=False,
        )
        assert answer.status_code == 303, answer.text
        [newest] = idle.lab.research.newest(limit=1)
        assert "ATGGCCAAA" in str(idle.lab.research.request(newest.id).fasta)


def test_a_file_that_is_no_text_starts_nothing(idle: Bench) -> None:
    token = dict(idle.browser.page("/pipeline").form("/pipeline/new").values)["csrf"]
    answer = idle.browser.http.post(
        "/pipeline/new",
        data={"csrf": token, "symbol": "OWN"},
        files={"file": ("own.fa", b"\xff\xfe\x00")},
        headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"},
    )
    assert (answer.status_code, "no text in UTF-8" in answer.text) == (422, True)
    assert idle.lab.research.newest(limit=5) == []


def test_a_symbol_that_names_no_gene_offers_those_that_are_near(bench: Bench) -> None:
    bench.lab.start(symbol="BRAC1", objective="codon usage")
    answer = bench.browser.get(RUN)
    assert "No gene BRAC1 was found" in read(answer)
    assert "sequence: failed; literature: to come" in picture(answer.text)
    assert (
        'href="/pipeline?symbol=BRCA1&amp;objective=codon+usage&amp;organism=human&amp;offline=1"'
        in answer.text
    )
    again = bench.browser.get("/pipeline?symbol=BRCA1&objective=codon+usage&organism=human&offline=1").text
    assert 'value="BRCA1"' in again
    assert ">\ncodon usage</textarea>" in again


# --- the page of a run ---


def test_the_picture_and_the_list_say_the_same_of_each_stage(bench: Bench) -> None:
    bench.lab.start()
    answer = bench.browser.get(RUN).text
    said = (
        "sequence: done; literature: done; method_kb: done; planner: done; "
        "hitl_plan (gate S4_plan): waits for people; hitl_execute (gate S5_execute): to come; "
        "analyst: to come; reporter: to come."
    )
    assert picture(answer) == said
    listed = section(answer, "Stage by stage")
    for phrase in said.rstrip(".").replace("gate ", "").split("; "):
        assert phrase in listed.replace(" :", ":")
    assert answer.count('role="img"') == 2
    bench.lab.decide("approve")
    assert picture(bench.browser.get(RUN).text) == said.replace("waits for people", "done").replace(
        "hitl_execute (gate S5_execute): to come; analyst: to come; reporter: to come",
        "hitl_execute (gate S5_execute): not needed; analyst: done; reporter: done",
    )


def test_without_a_worker_the_page_says_what_is_waited_for_and_offers_a_reload(idle: Bench) -> None:
    idle.lab.research.start(ResearchRequest("BRCA1", offline=True), run_id="run1", by="ann")
    answer = idle.browser.get(RUN).text
    assert "sequence: waits for a worker" in picture(answer)
    assert f'<noscript><p class="bar"><a class="button" href="{RUN}">Reload</a>' in answer


def test_the_plan_is_shown_step_by_step_and_exactly(bench: Bench) -> None:
    bench.lab.start(objective="<b>codon</b> usage\u202e")
    plan = bench.lab.waiting().plan
    answer = bench.browser.get(RUN)
    text = read(answer)
    for step in plan.steps:
        assert f"{step.id}" in text
        assert step.template.sha256 in text
        assert f"{step.estimate.cpu_s} CPU s, {step.estimate.mem_mb} MB" in text
    for each in plan.evidence:
        assert each.ref in text
    assert plan.sha256 in text
    assert "<b>codon</b> usage<U+202E>" in text
    exact = [value for value in bench.shown().values if value.startswith("{")]
    assert "".join(exact[0].split()).replace("<U+202E>", "\u202e") == "".join(plan.text.split())


def test_the_difference_to_the_version_that_one_decided_on_is_shown_in_words(bench: Bench) -> None:
    bench.site.add("eva")
    bench.lab.start()
    bench.lab.decide(
        "revise", changes={"exclude": ["gc-profile"], "params": {"orf-scan": {"min_aa": 60}}}, by="eva"
    )
    bench.lab.decide("revise", changes={"require": ["motif-scan"]}, by="eva")
    store = bench.lab.research.store
    first, second, third = (store.plan("run1", version) for version in (1, 2, 3))
    words = {"+": "+ added", "-": "− removed", "~": "~ changed"}

    def told(since: int, browser_text: str) -> None:
        changed = diff({1: first, 2: second}[since], third)
        expected = [f"{words[line[0]]} {line[2:]}" for line in changed.lines()]
        shown = section(browser_text, f"Changes since v{since}")
        assert shown == " ".join(" ".join(expected).split())

    told(2, bench.site.signed_in("eva").get(RUN).text)
    told(2, bench.browser.get(RUN).text)


def test_the_page_says_who_did_what(bench: Bench) -> None:
    bench.lab.start()
    bench.lab.decide("reject", message="not <b>now</b>")
    happened = section(bench.browser.get(RUN).text + "<h2>", "What happened")
    assert "ann began the run" in happened
    assert "ann rejected “not <b>now</b>”" in happened
    assert "hitl_plan (gate S4_plan): rejected" in picture(bench.browser.get(RUN).text)


def test_a_block_is_said_in_words_with_what_helps(migrated_database_url: str, tmp_path: Path) -> None:
    with Bench.open(migrated_database_url, home=tmp_path) as bench:
        bench.lab.start()
    with Bench.open(migrated_database_url, home=tmp_path, worker=False) as bench:
        bench.decide("approve")
        changed = bench.lab.research.store.plan("run1", 1).text.replace('"retries":1', '"retries":2').encode()
        with bench.lab.workspace.database.write() as tx:
            tx.execute(update(run_files).where(run_files.c.name == "plan.v1.json").values(content=changed))
        bench.lab.workspace.worker.start()
        assert bench.wait() == "blocked_hitl"
        text = bench.text()
        assert "Blocked: hash_mismatch." in text
        assert "is not, byte for byte, the one that people saw. Find out who changed it" in text
        assert "Blocked BRCA1" in bench.text("/pipeline")


def test_there_is_no_page_of_what_is_no_research_run(bench: Bench) -> None:
    workspace = bench.site.workspace
    start_turn(workspace.ledger, "chat", "hello", run_id="chat", program="chat", by="ann")
    for path in (
        "chat",
        "nothing",
        "a%00b",
        "nothing/events",
        "nothing/files/plan.v1.json",
        "nothing/look/x",
    ):
        assert bench.browser.get(f"/pipeline/{path}").status_code == 404, path


# --- files ---


def test_files_are_saved_byte_for_byte_and_a_report_is_opened_where_it_can_run_nothing(bench: Bench) -> None:
    bench.lab.start()
    bench.lab.decide("approve")
    store = bench.lab.research.store
    text = bench.text()
    for file in store.files("run1"):
        assert file.name in text
        assert file.sha256 in text
        answer = bench.browser.get(f"{RUN}/files/{file.name}")
        assert answer.content == store.read("run1", file.name)
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    report = bench.browser.get(f"{RUN}/files/report.html?open=1")
    assert report.headers["content-disposition"].startswith("inline;")
    assert report.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert f'href="{RUN}/files/report.html?open=1"' in bench.browser.get(RUN).text
    data = bench.browser.get(f"{RUN}/files/analysis.json?open=1")
    assert data.headers["content-disposition"].startswith("attachment;")


def test_a_text_is_shown_up_to_a_limit(bench: Bench) -> None:
    bench.lab.start()
    store = bench.lab.research.store
    content = "a\u202e\n" * 30_000
    store.put("run1", "long.txt", content, media_type="text/plain", fence=None)
    store.put("run1", "odd.bin", b"\0\1", media_type="application/octet-stream", fence=None)
    store.put("run1", "plot.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", media_type="image/svg+xml")
    shown = bench.shown(f"{RUN}/look/long.txt")
    assert shown.values[0].startswith("a<U+202E>\na<U+202E>")
    assert "bytes more are in the file" in shown.text
    assert len(shown.text) < 500_000
    assert (
        f'<img src="{RUN}/files/plot.svg" alt="plot.svg">' in bench.browser.get(f"{RUN}/look/plot.svg").text
    )
    assert bench.browser.get(f"{RUN}/look/odd.bin").status_code == 404
    assert bench.browser.get(f"{RUN}/files/odd.bin").content == b"\0\1"


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/meta.json",
        "meta.json",
        "/etc/passwd",
        "plan.v1.json%00",
        "plan.v1.json/",
        "",
    ],
)
@pytest.mark.parametrize("how", ["files", "look"])
def test_a_name_that_is_none_of_a_file_gives_nothing(bench: Bench, how: str, name: str) -> None:
    bench.lab.start()
    assert bench.browser.get(f"{RUN}/{how}/{name}").status_code == 404


# --- ending a run ---


def test_a_run_is_cancelled_by_who_asked_or_an_operator_and_by_nobody_else(bench: Bench) -> None:
    bench.site.add("eva")
    bench.site.add("omar", role=Role.OPERATOR)
    eva, omar = bench.site.signed_in("eva"), bench.site.signed_in("omar")
    bench.lab.start()
    assert "Cancel run" not in read(eva.get(RUN))
    token = dict(eva.page("/me/sessions").form("/logout").values)["csrf"]
    refused = eva.post(f"{RUN}/cancel", {"csrf": token, "reason": "mine"})
    assert refused.status_code == 403
    assert "Only who asked for this run, or an operator" in read(refused)
    assert omar.send(RUN, f"{RUN}/cancel", reason="too <b>late</b>").status_code == 303
    text = bench.text()
    assert "too <b>late</b>" in text
    assert "Cancelled" in text
    assert bench.lab.executed() == []
    assert "Cancel run" not in text


# --- what is seen first ---


def test_waiting_is_no_risk(bench: Bench) -> None:
    bench.lab.start()
    for path in ("/pipeline", RUN):
        html = bench.browser.get(path).text
        assert '<b class="state waits">' in html
        assert "risk medium" not in html
    assert "--warn" not in bench.browser.get(RUN).text


def test_the_decision_stands_beside_the_plan_and_after_it_in_reading_order(bench: Bench) -> None:
    bench.lab.start()
    html = bench.browser.get(RUN).text
    plan, gate, stages = (
        html.index(each) for each in ('id="plan-title"', 'id="gate-title"', "Stage by stage")
    )
    assert plan < html.index("<aside") < gate < stages
    assert 'class="button main narrow" href="#gate-title"' in html
    # Whoever edits the plan has the wide column for it.
    html = bench.browser.get(f"{RUN}?edit=1").text
    assert html.index('id="gate-title"') < html.index('id="plan-title"') < html.index("<aside")


def test_json_is_shown_on_lines_and_saved_as_it_is(bench: Bench) -> None:
    bench.lab.start()
    saved = bench.browser.get(f"{RUN}/files/plan.v1.json").text
    [shown] = bench.shown(f"{RUN}/look/plan.v1.json").values
    assert shown.startswith('{\n  "')
    assert json.loads(shown) == json.loads(saved)
    assert "\n" not in saved.strip()


@pytest.mark.parametrize("text", ["{", "[" * 20_000, '{"a":1}\n{"a":2}'])
def test_what_is_no_json_is_shown_as_it_is(bench: Bench, text: str) -> None:
    bench.lab.start()
    bench.lab.research.store.put("run1", "odd.json", text, media_type="application/json", fence=None)
    assert bench.shown(f"{RUN}/look/odd.json").values == [text]


def test_the_first_warnings_are_read_at_once_and_more_of_them_are_folded(bench: Bench) -> None:
    bench.lab.start()
    warnings = bench.lab.waiting().plan.warnings
    assert len(warnings) > 3
    html = bench.browser.get(RUN).text
    assert f"And {len(warnings) - 3} more" in html
    text = bench.text()
    assert [each for each in warnings if each not in text] == []
