"""Every mix of decisions on three parallel calls goes back to each provider as a history that it takes."""

import json
from itertools import product
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall

from tests.apps.conftest import Desk
from tests.providers.conftest import Open, Wire

DECISIONS = ("approve", "edit", "reject", "respond")
ACCOUNTS = ("DE-1", "DE-2", "DE-3")
CALLS = tuple(ToolCall("pay", {"account": account, "amount_cents": 120000}) for account in ACCOUNTS)


def _decision(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    decided: dict[str, Any] = {"type": kind, "call": request["call"]}
    if kind == "edit":
        edited = {**request["args"], "amount_cents": 5}
        return {**decided, "edited_action": {"name": "pay", "args": edited}}
    return (
        decided if kind == "approve" else {**decided, "message": f"Because of {request['args']['account']}."}
    )


def _expected(kind: str, account: str) -> list[str]:
    """Return what the result of a call must say."""
    return {
        "approve": ["paid 120000"],
        "edit": ["paid 5", "changed this call", f'"account":"{account}"', '"amount_cents":5'],
        "reject": [f"Because of {account}."],
        "respond": [f"Because of {account}."],
    }[kind]


@pytest.mark.parametrize("first", DECISIONS)
def test_every_mix_of_three_parallel_calls(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk, first: str
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    for mix in product([first], DECISIONS, DECISIONS):
        provider.add(Reply(text="I pay.", tool_calls=CALLS))
        thread = "-".join(mix)
        pending = chat.send_message(thread, "Pay the three.")["pending_review"]
        assert pending is not None
        decisions = [
            _decision(kind, each) for kind, each in zip(mix, pending["action_requests"], strict=True)
        ]
        desk.payments.clear()
        assert chat.submit_review(thread, decisions)["answer"]
        _check(wire, provider.last_request.body, mix, desk)


def _check(wire: Wire, body: dict[str, Any], mix: tuple[str, ...], desk: Desk) -> None:
    assert wire.faults(body) == []
    results = wire.results(body)
    assert len(results) == 3
    for kind, account, result in zip(mix, ACCOUNTS, results, strict=True):
        assert all(part in result for part in _expected(kind, account)), (kind, result)
    ran = {"approve": 120000, "edit": 5}
    paid = {(each["account"], each["amount_cents"]) for each in desk.payments}
    pairs = zip(mix, ACCOUNTS, strict=True)
    assert paid == {(account, ran[kind]) for kind, account in pairs if kind in ran}
    assert len(desk.payments) == len(paid)


def test_a_rejection_is_marked_as_an_error_where_the_format_has_a_mark(
    provider: LLMock, wire: Wire, open_chat: Open
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.add(Reply(tool_calls=CALLS[:1]))
    chat.send_message("t", "Pay.")
    chat.submit_review("t", [{"type": "reject", "message": "No."}])
    body = json.dumps(provider.last_request.body)
    assert ('"is_error": true' in body) == (wire.name == "anthropic")


def test_an_edit_is_seen_in_the_call_itself_where_that_reaches_the_provider(
    provider: LLMock, wire: Wire, streamed: bool, open_chat: Open
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider), streamed=streamed)
    provider.add(Reply(tool_calls=CALLS[:1]))
    pending = chat.send_message("t", "Pay.")["pending_review"]
    assert pending is not None
    chat.submit_review("t", [_decision("edit", pending["action_requests"][0])])
    body = provider.last_request.body
    sent = [item for item in body[wire.history] if "120000" in json.dumps(item)]
    # Content in blocks stays as it came; the result says what ran, in every format.
    assert bool(sent) == (wire.name != "chat")
    assert '"amount_cents":5' in wire.results(body)[0]
