"""The gate in the middle of a workflow: only a signed clearance for this place and time opens it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.executors.argo_client import ArgoRefusedError
from clearance.apps.research.executors.argo_gate import GateClearance, check, main, pass_gate, signed
from clearance.errors import ConflictError, InvalidInputError, NotFoundError
from clearance.notary import SigningKey
from tests.research.argo.conftest import Site

PLAN = "a" * 64
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
# The step behind the gate is a process of its own, with the true time.
SOON = datetime.now(UTC) + timedelta(hours=1)
SELECTOR = "inputs.parameters.gate.value=publish"


def _waiting(site: Site, name: str = "w1", *, plan: str = PLAN) -> GateClearance:
    """Create a workflow that waits at its gate, and return the clearance that it needs."""
    workflow: dict[str, Any] = {
        "metadata": {"name": name, "annotations": {"clearance-plan-sha256": plan}},
        "spec": {
            "workflowTemplateRef": {"name": "clearance-gate"},
            "arguments": {"parameters": [{"name": "gate", "value": "publish"}]},
        },
    }
    uid = site.client().create(workflow)["metadata"]["uid"]
    return GateClearance("publish", uid, plan, SOON)


def _phase(site: Site, name: str = "w1") -> str:
    return str(site.cluster.workflows[name]["status"]["phase"])


def _supply(site: Site, text: str) -> None:
    client = site.client()
    client.set_outputs("w1", selector=SELECTOR, outputs={"clearance": text})
    client.resume("w1", selector=SELECTOR)


def test_a_clearance_opens_its_gate(site: Site) -> None:
    clearance = _waiting(site)
    assert _phase(site) == "Running"
    pass_gate(site.client(), "w1", clearance, sign=site.key.sign)
    assert _phase(site) == "Succeeded"
    assert site.cluster.logs["w1"] == [f"Gate publish is passed, for plan {PLAN}."]


@pytest.mark.parametrize("selector", ["", SELECTOR])
def test_a_bare_resume_opens_nothing(selector: str, site: Site) -> None:
    _waiting(site)
    with pytest.raises(ArgoRefusedError):
        site.client().resume("w1", selector=selector)
    assert _phase(site) == "Running"


@pytest.mark.parametrize("text", ["", "YES", "approved=true", "a.b", "....", "é", "-----", "a" * 5000])
def test_a_resume_with_anything_else_fails_closed(text: str, site: Site) -> None:
    _waiting(site)
    _supply(site, text)
    assert _phase(site) == "Failed"
    assert site.cluster.logs["w1"] == [
        "The gate stays shut. This is no clearance. The workflow was resumed without one."
    ]


def test_a_clearance_of_another_workflow_fails_closed(site: Site) -> None:
    _waiting(site)
    other = _waiting(site, "w2")
    _supply(site, signed(other, site.key.sign))
    assert _phase(site) == "Failed"
    assert _phase(site, "w2") == "Running"


def test_a_clearance_is_of_use_once(site: Site) -> None:
    clearance = _waiting(site)
    pass_gate(site.client(), "w1", clearance, sign=site.key.sign)
    with pytest.raises(ArgoRefusedError):
        pass_gate(site.client(), "w1", clearance, sign=site.key.sign)
    site.cluster.delete("w1")
    _waiting(site)
    with pytest.raises(ConflictError, match="not the one that was cleared"):
        pass_gate(site.client(), "w1", clearance, sign=site.key.sign)
    _supply(site, signed(clearance, site.key.sign))
    assert _phase(site) == "Failed"


def test_a_workflow_of_another_plan_is_not_resumed(site: Site) -> None:
    clearance = _waiting(site)
    with pytest.raises(ConflictError):
        pass_gate(site.client(), "w1", replace(clearance, plan_sha256="b" * 64), sign=site.key.sign)
    with pytest.raises(NotFoundError):
        pass_gate(site.client(), "w2", clearance, sign=site.key.sign)
    assert _phase(site) == "Running"


CLEARANCE = GateClearance("publish", "uid-1", PLAN, NOW + timedelta(hours=1))


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    """The key of a workspace."""
    return SigningKey.load_or_create(tmp_path / "notary.key")


def test_a_good_clearance_is_returned(key: SigningKey) -> None:
    text = signed(CLEARANCE, key.sign)
    found = check(text, gate="publish", workflow_uid="uid-1", keys=key.public_pem, now=NOW)
    assert found == CLEARANCE


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"gate": "other"}, "for another gate or another workflow"),
        ({"workflow_uid": "uid-2"}, "for another gate or another workflow"),
        ({"now": NOW + timedelta(hours=1)}, "its time is over"),
    ],
)
def test_a_clearance_for_another_place_or_time_is_refused(
    changed: dict[str, Any], error: str, key: SigningKey
) -> None:
    given: dict[str, Any] = {
        "gate": "publish",
        "workflow_uid": "uid-1",
        "keys": key.public_pem,
        "now": NOW,
    } | changed
    with pytest.raises(InvalidInputError, match=error):
        check(signed(CLEARANCE, key.sign), **given)


def test_a_clearance_that_was_changed_or_is_signed_by_somebody_else_is_refused(
    key: SigningKey, tmp_path: Path
) -> None:
    good = signed(CLEARANCE, key.sign)
    later = signed(replace(CLEARANCE, until=NOW + timedelta(days=9)), key.sign)
    other = SigningKey.load_or_create(tmp_path / "other.key")
    mixed = f"{later.partition('.')[0]}.{good.partition('.')[2]}"
    for text in (mixed, signed(CLEARANCE, other.sign)):
        with pytest.raises(InvalidInputError, match="not signed with a key that this gate knows"):
            check(text, gate="publish", workflow_uid="uid-1", keys=key.public_pem, now=NOW)


def test_what_the_key_signs_for_another_purpose_opens_nothing(key: SigningKey) -> None:
    text = signed(CLEARANCE, lambda content: key.sign(content.partition(b"\n")[2]))
    with pytest.raises(InvalidInputError, match="not signed"):
        check(text, gate="publish", workflow_uid="uid-1", keys=key.public_pem, now=NOW)


def test_a_gate_that_could_select_more_than_itself_is_refused(key: SigningKey) -> None:
    for name in ("", "A", "a,phase=Running", "a b", "a" * 27):
        with pytest.raises(InvalidInputError, match="small letters"):
            signed(replace(CLEARANCE, gate=name), key.sign)


@pytest.mark.parametrize("arguments", [[], ["publish", "uid"], ["publish", "uid", "/none", "text"]])
def test_a_wrong_command_fails_closed_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "The gate stays shut. Say GATE UID KEYS CLEARANCE.\n"
