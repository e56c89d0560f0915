"""Decisions at the gates of a run by its page: each once, on the plan that was seen, and on no other."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from clearance.apps.research.pages.planned import written
from clearance.apps.research.plan_calls import PROGRAM
from clearance.people import Role
from clearance.policy import Policy, Risk, Rule
from clearance.store import policies
from tests.pages.researching import RUN, Bench, picture, read
from tests.pages.site import PASSWORD

pytestmark = pytest.mark.sqlite_by_day


@pytest.fixture
def bench(migrated_database_url: str, tmp_path: Path) -> Iterator[Bench]:
    """Give a served workspace whose one run waits with its plan."""
    with Bench.open(migrated_database_url, home=tmp_path) as opened:
        opened.lab.start()
        yield opened


def _version(bench: Bench) -> int:
    return bench.lab.waiting().plan.version


def test_the_inbox_leads_to_the_plan_beside_its_run_and_tells_once_what_was_said_to_all_of_it(
    bench: Bench,
) -> None:
    review = bench.lab.waiting().review.id
    assert 'class="what" href="/pipeline/run1"' in bench.browser.get("/").text
    beside = 'href="/pipeline/run1">The plan, beside its run</a>'
    assert beside in bench.browser.get(f"/reviews/{review}").text
    bench.lab.decide("approve", message="as agreed")
    page = bench.browser.get("/?tab=decided")
    assert 'class="what" href="/pipeline/run1"' in page.text
    assert read(page).count("as agreed") == 1
    assert "Approved" in read(page)


def test_an_approval_carries_the_plan_out_once_however_often_it_is_sent(bench: Bench) -> None:
    shown = bench.shown()
    for _ in range(2):
        answer = bench.send(shown, "approve", c1="go")
        assert (answer.status_code, answer.headers["location"]) == (303, RUN)
    assert bench.wait() == "done"
    assert bench.send(shown, "approve", c1="go").status_code == 303
    ran = bench.lab.executed()
    assert len(ran) == len(set(ran)) == len(bench.lab.research.store.plan("run1", 1).steps)
    assert all(row.attempt == 1 for row in bench.lab.ledger())
    assert "ann approved “go”" in bench.text()


def test_a_plan_that_is_sent_back_comes_again_as_its_next_version(bench: Bench) -> None:
    answer = bench.decide(
        "revise",
        c1="without <b>GC</b>",
        exclude="gc-profile",
        max_cost=" 0.50 ",
        params='{"orf-scan":{"min_aa":60}}',
    )
    assert answer.status_code == 303, answer.text
    assert bench.wait() == "hitl_plan_pending"
    plan = bench.lab.waiting().plan
    assert plan.version == 2
    assert "gc-profile" not in [step.id for step in plan.steps]
    assert plan.wishes is not None
    assert (plan.wishes.comment, plan.wishes.max_cost) == ("without <b>GC</b>", "0.50")
    text = bench.text()
    assert "Changes since v1 − removed gc-profile" in text
    assert "~ changed orf-scan: params.min_aa: 100 → 60" in text
    assert bench.lab.executed() == []


def test_wishes_alone_send_a_plan_back(bench: Bench) -> None:
    assert bench.decide("revise", exclude="gc-profile").status_code == 303
    assert bench.wait() == "hitl_plan_pending"
    assert _version(bench) == 2


@pytest.mark.parametrize(
    ("decision", "typed", "said"),
    [
        ("reject", {}, "Say why: a rejection of this needs a reason"),
        ("revise", {}, "Say what is to be changed"),
        ("revise", {"c1": "shorter"}, "The rule planner cannot read a comment"),
        ("revise", {"c1": "x", "params": '{"orf-scan": '}, "The parameters"),
        ("revise", {"c1": "x", "max_cost": "cheap"}, "Wishes"),
        ("revise", {"c1": "x", "params": '{"orf-scn": {}}'}, "orf-scn: there is no method orf-scn"),
        ("approve", {"plan": '{"steps": ['}, "The plan cannot be read"),
    ],
)
def test_what_cannot_be_taken_is_said_at_its_field_and_nothing_is_decided(
    bench: Bench, decision: str, typed: dict[str, str], said: str
) -> None:
    shown = bench.shown(f"{RUN}?edit=1" if "plan" in typed else RUN)
    answer = bench.send(shown, decision, browser=None, **typed)
    assert answer.status_code == 422, answer.text
    assert said in read(answer)
    for text in typed.values():
        assert text in read(answer) or text in answer.text.replace("&#34;", '"')
    assert 'aria-invalid="true"' in answer.text or 'class="banner bad"' in answer.text
    assert _version(bench) == 1
    assert bench.lab.waiting().review.calls[0].decisions == ()


def test_a_rejection_ends_the_run_and_nothing_runs(bench: Bench) -> None:
    assert bench.decide("reject", c1="not this gene").status_code == 303
    assert bench.wait() == "hitl_rejected"
    assert bench.lab.executed() == []
    answer = bench.browser.get(RUN).text
    assert "hitl_plan (gate S4_plan): rejected; hitl_execute (gate S5_execute): to come" in picture(answer)
    assert 'id="decision"' not in answer


def test_a_plan_that_was_edited_by_hand_is_approved_as_its_editors(bench: Bench) -> None:
    plan = bench.lab.waiting().plan
    text = written(plan)
    assert json.loads(text) == plan.document()
    edited = text.replace('"min_aa": 100', '"min_aa": 75')
    assert edited != text
    answer = bench.decide("approve", page=f"{RUN}?edit=1", plan=edited)
    assert answer.status_code == 303, answer.text
    assert bench.wait() == "done"
    made = bench.lab.research.store.plan("run1", 2)
    assert (made.created_by.kind, made.created_by.name, made.parent_sha256) == ("human", "ann", plan.sha256)
    assert [step.params["min_aa"] for step in made.steps if step.id == "orf-scan"] == [75]
    assert len(bench.lab.executed()) == len(made.steps)


def test_a_plan_that_nobody_touched_is_approved_as_the_same_bytes(bench: Bench) -> None:
    assert bench.decide("approve", page=f"{RUN}?edit=1").status_code == 303
    state = bench.lab.research.wait_for("run1", wait=60)
    assert state.plan_version == 1


def test_who_comes_too_late_is_told_what_happened_and_decides_nothing(bench: Bench) -> None:
    bench.site.add("eva")
    bench.site.add("omar")
    omar = bench.site.signed_in("omar")
    shown = bench.shown(browser=omar)
    bench.lab.decide("revise", changes={"exclude": ["gc-profile"]}, by="eva")
    answer = bench.send(shown, "approve", browser=omar, c1="fine by me")
    assert answer.status_code == 409
    text = read(answer)
    assert "Your decision was not taken: this changed before it came. It is settled now." in text
    assert "eva" in text
    assert "fine by me" in text
    assert _version(bench) == 2
    assert bench.lab.executed() == []
    assert "It is settled now" in bench.text(f"{RUN}/gate?review=run1/1/1&version=1")


def test_a_form_that_names_another_plan_decides_nothing(bench: Bench) -> None:
    assert bench.decide("approve", plan_sha256="0" * 64).status_code == 409
    assert bench.decide("approve", review="run1/9/1").status_code == 409
    assert bench.lab.waiting().review.calls[0].decisions == ()


def test_a_viewer_reads_the_plan_and_cannot_decide(bench: Bench) -> None:
    bench.site.add("vera", role=Role.VIEWER)
    vera = bench.site.signed_in("vera")
    assert "deciding this needs the role reviewer. You can read it here." in read(vera.get(RUN))
    assert 'id="decision"' not in vera.get(RUN).text
    eva = bench.site.signed_in(bench.site.add("eva"))
    fields = dict(bench.shown(browser=eva).sent("decision", "approve"))
    fields["csrf"] = dict(vera.page("/me/sessions").form("/logout").values)["csrf"]
    refused = vera.post(f"{RUN}/decide", fields)
    assert refused.status_code == 403
    assert "deciding this needs the role reviewer" in read(refused)
    assert bench.lab.waiting().review.calls[0].decisions == ()


def test_the_form_of_another_session_decides_nothing(bench: Bench) -> None:
    assert bench.decide("approve", csrf="0" * 64).status_code == 403
    assert bench.lab.waiting().review.calls[0].decisions == ()


def test_who_asked_cannot_clear_their_own_plan_beside_others(bench: Bench) -> None:
    bench.site.add("eva")
    assert "nobody decides their own request" in bench.text()


def test_the_second_gate_asks_about_what_reaches_further_with_the_same_form(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearance.apps.research.plan_calls.REACHES_FURTHER", frozenset({"compute"}))
    late = bench.shown()
    assert bench.decide("approve").status_code == 303
    assert bench.wait() == "hitl_execute_pending"
    answer = bench.browser.get(RUN)
    assert "hitl_execute (gate S5_execute): waits for people" in picture(answer.text)
    assert "Waiting at S5_execute" in read(answer)
    assert "Send back to planner" not in read(answer)
    assert bench.send(late, "reject", c1="late").status_code == 409
    assert bench.lab.executed() == []
    assert bench.decide("approve").status_code == 303
    assert bench.wait() == "done"
    assert len(bench.lab.executed()) == len(bench.lab.research.store.plan("run1", 1).steps)


def test_a_plan_of_high_risk_needs_a_fresh_sign_in(migrated_database_url: str, tmp_path: Path) -> None:
    with Bench.open(migrated_database_url, home=tmp_path) as bench:
        database = bench.site.workspace.database
        with database.write() as tx:
            strict = Policy(rules=(Rule("*", risk=Risk.HIGH),))
            policies.activate(tx, PROGRAM, strict, now=database.now(tx))
        bench.lab.start()
        bench.site.stop_the_clock().pass_(minutes=6)
        shown = bench.shown()
        refused = bench.send(shown, "approve", c1="kept")
        assert refused.status_code == 403
        assert "kept" in read(refused)
        assert bench.lab.waiting().review.calls[0].decisions == ()
        assert bench.decide("approve", password=PASSWORD).status_code == 303
        assert bench.lab.research.waiting("run1") is None


def test_a_plan_that_waits_outlives_the_server(migrated_database_url: str, tmp_path: Path) -> None:
    with Bench.open(migrated_database_url, home=tmp_path) as bench:
        bench.lab.start()
        shown, token = bench.shown(), bench.browser.token
    with Bench.open(migrated_database_url, home=tmp_path) as bench:
        browser = bench.site.browser()
        browser.http.cookies.set("clearance", token or "")
        assert bench.send(shown, "approve", browser=browser).status_code == 303
        assert bench.wait() == "done"
        assert len(bench.lab.executed()) == len(bench.lab.research.store.plan("run1", 1).steps)


def test_an_expired_plan_is_ended_in_words(migrated_database_url: str, tmp_path: Path) -> None:
    with Bench.open(migrated_database_url, home=tmp_path) as bench:
        database = bench.site.workspace.database
        with database.write() as tx:
            soon = Policy(rules=(Rule("*", expire=timedelta(milliseconds=1)),))
            policies.activate(tx, PROGRAM, soon, now=database.now(tx))
        bench.lab.start()
        while bench.wait() == "hitl_plan_pending":
            pass
        assert "hitl_plan (gate S4_plan): expired" in picture(bench.browser.get(RUN).text)
