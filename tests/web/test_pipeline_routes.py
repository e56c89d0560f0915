"""Research runs over HTTP: streams, decisions bound to a plan, and files that stay inside."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from clearance.apps.research.wire import PipelineRecord, PlanRecord
from tests.web.researching import API, BRCA1, start, wait
from tests.web.served import OWNER, Served
from tests.web.talking import Frame, frames

pytestmark = pytest.mark.sqlite_by_day

STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def lab(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """Give a served workspace with research runs, and a worker that advances them."""
    with Served.open(migrated_database_url, home=tmp_path, research=True) as served:
        yield served


def _get(lab: Served, path: str, *, by: str = OWNER, **headers: str) -> Any:
    return lab.http.get(f"{API}/{path}", headers={**lab.key(by), **headers})


def _post(lab: Served, path: str, body: Any, *, by: str = OWNER, **headers: str) -> Any:
    return lab.http.post(path, json=body, headers={**lab.key(by), **headers})


def _resume(lab: Served, run_id: str, **body: Any) -> Any:
    return _post(lab, f"{API}/{run_id}/resume", body)


def _sha256(lab: Served, run_id: str) -> str:
    found: str = _get(lab, f"{run_id}/plan").json()["plan_sha256"]
    return found


def _events(lab: Served, run_id: str, *, after: str | None = None) -> list[Frame]:
    """Follow a run that comes to its end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    answer = _get(lab, f"{run_id}/events", **headers)
    assert answer.status_code == 200, answer.text
    return list(frames(answer))


def _kinds(heard: list[Frame]) -> list[str]:
    return [frame.data["stage"] if frame.kind == "stage" else frame.kind for frame in heard]


def test_a_started_run_tells_its_stages_its_plan_and_its_files(lab: Served) -> None:
    run_id = start(lab)
    found = PipelineRecord.model_validate_json(_get(lab, run_id).text)
    assert (found.gene_symbol, found.gate, found.plan_version) == ("BRCA1", "S4_plan", 1)
    assert [each.stage for each in found.stages][-2:] == ["planner", "hitl_plan_pending"]
    assert "BRCA1" in next(each.line for each in found.stages if each.stage == "sequence")
    answer = _get(lab, f"{run_id}/plan")
    plan = PlanRecord.model_validate_json(answer.text)
    assert plan.plan_sha256 == found.plan_sha256 == answer.headers["etag"].strip('"')
    assert [each["run_id"] for each in _get(lab, "").json()["runs"]] == [run_id]


def test_the_stream_of_a_start_ends_where_people_must_decide(lab: Served) -> None:
    heard = list(frames(_post(lab, "/pipeline/start", BRCA1)))
    assert _kinds(heard) == [
        "started", "sequence", "literature", "method_kb", "planner", "hitl_plan_pending", "hitl_pending",
    ]  # fmt: skip
    last = heard[-1].data
    assert (last["type"], last["gate"]) == ("hitl_pending", "S4_plan")
    assert last["summary"].startswith("BRCA1: ")
    assert last["plan_sha256"] == _sha256(lab, last["run_id"])
    assert len({frame.id for frame in heard}) == len(heard)


def test_the_stream_of_a_resume_ends_with_the_report(lab: Served) -> None:
    run_id = start(lab)
    heard = list(frames(_post(lab, f"/pipeline/{run_id}/resume", {"decision": "approve"})))
    assert _kinds(heard) == [
        "hitl_plan_approved", "hitl_execute_approved", "analyst", "reporter", "done", "done",
    ]  # fmt: skip
    done = heard[-1].data
    assert (done["type"], done["stage"]) == ("done", "done")
    report = _get(lab, f"{run_id}/artifacts/{done['report_artifact_path']}")
    assert report.status_code == 200
    assert report.content


def test_a_stream_goes_on_where_it_was_lost(lab: Served) -> None:
    run_id = start(lab)
    assert _resume(lab, run_id, decision="reject", message="another gene").status_code == 200
    whole = _events(lab, run_id)
    assert whole[-1].data["stage"] == "hitl_rejected"
    for number, frame in enumerate(whole[:-1]):
        assert _events(lab, run_id, after=frame.id) == whole[number + 1 :]
    assert _get(lab, f"{run_id}/events", **{"Last-Event-ID": whole[-1].id}).status_code == 204


def test_a_stream_of_a_gate_that_was_told_of_waits_for_what_follows(lab: Served) -> None:
    *_, gate = frames(_post(lab, "/pipeline/start", BRCA1))
    run_id = gate.data["run_id"]
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(_events, lab, run_id, after=gate.id)
        _resume(lab, run_id, decision="reject", message="another gene")
        assert _kinds(heard.result(60)) == ["hitl_rejected", "done"]


def test_a_file_comes_as_it_was_kept_and_is_not_opened(lab: Served) -> None:
    run_id = start(lab)
    answer = _get(lab, f"{run_id}/artifacts/sequence.json")
    (listed,) = [
        each for each in _get(lab, f"{run_id}/artifacts").json()["files"] if each["name"] == "sequence.json"
    ]
    assert hashlib.sha256(answer.content).hexdigest() == listed["sha256"]
    assert answer.headers["etag"] == f'"{listed["sha256"]}"'
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = _get(lab, f"{run_id}/artifacts/sequence.json", **{"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "meta.json",
        "nothing.json",
        "../clearance.db",
        "..%2fclearance.db",
        "%2e%2e/%2e%2e/clearance.db",
        "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "/etc/passwd",
        "..%5cclearance.db",
        "./sequence.json",
        "sequence.json/",
        "steps/../sequence.json",
        "SEQUENCE.JSON",
    ],
)
def test_no_other_name_leads_to_a_file(lab: Served, name: str) -> None:
    run_id = start(lab) if name == "meta.json" else "none"
    url = lab.http.base_url.copy_with(raw_path=f"{API}/{run_id}/artifacts/{name}".encode())
    assert lab.http.get(url, headers=lab.key()).status_code == 404


def test_a_revised_plan_is_decided_by_its_hash_alone(lab: Served) -> None:
    run_id = start(lab)
    first = _get(lab, f"{run_id}/plan").json()
    assert _get(lab, f"{run_id}/diff").json()["diff"] is None
    left_out = first["plan"]["steps"][0]["method"]
    told = _resume(lab, run_id, decision="revise", message="less", changes={"exclude": [left_out]})
    assert told.status_code == 200
    assert wait(lab, run_id)["plan_version"] == 2
    assert left_out in _get(lab, f"{run_id}/diff").json()["diff"]["removed"]
    assert _get(lab, f"{run_id}/plan?version=1").json() == first
    for stale in ({}, {"plan_sha256": first["plan_sha256"]}):
        refused = _resume(lab, run_id, decision="approve", **stale)
        assert (refused.status_code, refused.json()["code"]) == (409, "review_conflict")
    assert _resume(lab, run_id, decision="approve", plan_sha256=_sha256(lab, run_id)).status_code == 200
    assert wait(lab, run_id)["state"] == "done"


def test_an_edited_plan_is_carried_out_as_its_editors(lab: Served) -> None:
    run_id = start(lab)
    plan = _get(lab, f"{run_id}/plan").json()
    kept = [step for step in plan["plan"]["steps"] if not step["needs"]][:1]
    body = {"decision": "edit", "plan_sha256": plan["plan_sha256"], "plan": {**plan["plan"], "steps": kept}}
    heard = list(frames(_post(lab, f"/pipeline/{run_id}/resume", body)))
    assert heard[-1].kind == "done"
    made = _get(lab, f"{run_id}/plan").json()["plan"]
    assert [step["id"] for step in made["steps"]] == [step["id"] for step in kept]


def test_two_who_decide_at_once_decide_once(lab: Served) -> None:
    run_id = start(lab)
    names = [lab.add("eva"), lab.add("max")]
    both = Barrier(2)
    body = {"decision": "approve", "plan_sha256": _sha256(lab, run_id)}
    for name in names:
        lab.key(name)

    def decide(name: str) -> int:
        both.wait()
        return int(_post(lab, f"{API}/{run_id}/resume", body, by=name).status_code)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(decide, names)) == [200, 409]
    found = wait(lab, run_id)
    assert [each["stage"] for each in found["stages"]].count("hitl_plan_approved") == 1


def test_a_run_is_decided_by_another_process_than_the_one_that_started_it(
    migrated_database_url: str, tmp_path: Path
) -> None:
    with Served.open(migrated_database_url, home=tmp_path, research=True) as first:
        run_id = start(first)
        headers = first.key()
    with Served.open(migrated_database_url, home=tmp_path, research=True) as second:
        answer = second.http.post(f"/pipeline/{run_id}/resume", json={"decision": "approve"}, headers=headers)
        assert list(frames(answer))[-1].kind == "done"


def test_a_run_that_has_ended_takes_no_decision(lab: Served) -> None:
    run_id = start(lab)
    assert _resume(lab, run_id, decision="reject", message="no").status_code == 200
    assert wait(lab, run_id)["stage"] == "hitl_rejected"
    refused = _resume(lab, run_id, decision="approve")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "waits for no decision" in refused.json()["detail"]
    assert _get(lab, run_id).json()["report_artifact_path"] == ""


def test_a_cancelled_run_ends_its_streams_and_is_not_cancelled_twice(lab: Served) -> None:
    run_id = start(lab)
    assert _post(lab, f"{API}/{run_id}/cancel", {"reason": "enough"}).json()["state"] == "cancelled"
    last = _events(lab, run_id)[-1]
    assert (last.kind, last.data["state"], last.data["error"]) == ("error", "cancelled", "enough")
    assert _post(lab, f"{API}/{run_id}/cancel", {}).status_code == 409


def test_a_gene_that_nobody_knows_ends_the_stream_with_near_ones(lab: Served) -> None:
    *_, last = frames(_post(lab, "/pipeline/start", {"symbol": "BRCA9", "offline": True}))
    assert last.kind == "error"
    assert "BRCA1" in last.data["error"]


def test_an_agent_starts_and_sees_its_own_runs_and_decides_none(lab: Served) -> None:
    lab.add_agent("bot")
    foreign, own = start(lab), start(lab, by="bot")
    assert [each["run_id"] for each in _get(lab, "", by="bot").json()["runs"]] == [own]
    assert _get(lab, own, by="bot").status_code == 200
    assert _get(lab, foreign, by="bot").status_code == 404
    refused = _post(lab, f"{API}/{own}/resume", {"decision": "approve"}, by="bot")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert _get(lab, own).json()["interrupted"]


def test_a_start_that_is_sent_again_is_one_run(lab: Served) -> None:
    ids = [_post(lab, API, BRCA1, **{"Idempotency-Key": "k1"}).json()["run_id"] for _ in range(2)]
    assert ids[0] == ids[1]
    assert len(_get(lab, "").json()["runs"]) == 1


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({}, ["/symbol"]),
        ({"symbol": ""}, ["/symbol"]),
        ({"symbol": "../x"}, ["/symbol"]),
        ({"symbol": "BRCA1\u0000"}, ["/symbol"]),
        ({"symbol": "BRCA1", "organism": "unicorn"}, ["/organism"]),
        ({"symbol": "../x", "organism": "unicorn"}, ["/symbol", "/organism"]),
        ({"symbol": "BRCA1", "fasta": ""}, ["/fasta"]),
        ({"symbol": "BRCA1", "fasta": ">x\nAC1T"}, ["/fasta"]),
        ({"fasta": ">x\nAC1T"}, ["/fasta"]),
        ({"fasta": ">x\nMEEPQ", "fasta_kind": "dna"}, ["/fasta"]),
        ({"symbol": "BRCA1", "fasta_kind": "dna"}, ["/fasta"]),
        ({"symbol": "BRCA1", "fasta": ">x\n" + "A" * 600_000}, ["/fasta"]),
        ({"symbol": "BRCA1", "executor": "elsewhere"}, ["/executor"]),
        ({"symbol": "BRCA1", "executor": "argo"}, ["/executor"]),
        ({"symbol": "BRCA1", "offline": "yes"}, ["/offline"]),
        ({"symbol": "BRCA1", "approved": True}, ["/approved"]),
    ],
    ids=lambda given: str(given)[:60],
)
def test_what_could_never_become_a_run_is_refused_before_there_is_one(
    lab: Served, body: dict[str, Any], places: list[str]
) -> None:
    refused = _post(lab, API, body)
    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.json()["errors"]] == places
    assert _get(lab, "").json()["runs"] == []


def test_a_sequence_needs_no_symbol_and_is_named_as_its_owners(lab: Served) -> None:
    body = {"fasta": f">mine of somebody\n{'ATGGCC' * 40}TAA\n", "objective": "composition", "offline": True}
    *_, last = frames(_post(lab, "/pipeline/start", body))
    assert last.kind == "hitl_pending", last
    (found,) = _get(lab, "").json()["runs"]
    assert found["gene_symbol"] == "own-sequence"
    plan = _get(lab, f"{found['run_id']}/plan").json()["plan"]
    assert [each["accession"] for each in plan["inputs"]] == ["mine"]
    assert any("no literature was searched" in each for each in plan["warnings"])
    *_, last = frames(_post(lab, f"/pipeline/{found['run_id']}/resume", {"decision": "approve"}))
    assert (last.kind, last.data["stage"]) == ("done", "done")


def test_a_wish_that_no_plan_could_meet_is_refused_at_its_place(lab: Served) -> None:
    run_id = start(lab)
    plan = _get(lab, f"{run_id}/plan").json()["plan"]
    for body, places in (
        ({"decision": "revise", "message": "m", "changes": {"exclude": ["x"]}}, ["/changes/exclude/0"]),
        ({"decision": "revise", "message": "m"}, ["/message"]),
        ({"decision": "reject"}, ["/message"]),
        ({"decision": "edit"}, ["/plan"]),
        ({"decision": "edit", "plan": {**plan, "title": "x"}}, ["/plan/title"]),
        ({"decision": "edit", "plan": {**plan, "run_id": "x"}}, ["/plan"]),
    ):
        refused = _resume(lab, run_id, **body)
        assert refused.status_code == 422
        assert [each["pointer"] for each in refused.json()["errors"]] == places


def test_after_five_revisions_the_sixth_is_refused_at_its_place(lab: Served) -> None:
    run_id = start(lab)
    for number in range(6):
        body = {"decision": "revise", "message": "m", "changes": {"max_cost": f"0.9{number}"}}
        answer = _resume(lab, run_id, plan_sha256=_sha256(lab, run_id), **body)
        wait(lab, run_id)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/decision"]
    assert _get(lab, run_id).json()["plan_version"] == 6


def test_what_is_no_decision_changes_nothing(lab: Served) -> None:
    run_id = start(lab)
    for body in (
        {},
        {"decision": "no"},
        {"decision": "reject"},
        {"decision": "reject", "message": " "},
        {"decision": "revise"},
        {"decision": "revise", "message": "make it better"},
        {"decision": "edit"},
        {"decision": "edit", "plan": {}},
        {"decision": "approve", "plan": {}},
        {"decision": "approve", "changes": {"exclude": ["orf-scan"]}},
        {"decision": "approve", "approved": True},
    ):
        assert _post(lab, f"{API}/{run_id}/resume", body).status_code == 422, body
    wrong = _resume(lab, run_id, decision="approve", plan_sha256="0" * 64)
    assert wrong.status_code == 409
    found = _get(lab, run_id).json()
    assert (found["interrupted"], found["plan_version"]) == (True, 1)
