"""What a model signed or sealed goes back byte for byte, whatever people decided about its calls."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.apps.conftest import Desk
from tests.providers.conftest import ANTHROPIC, RESPONSES, Open, Wire
from tests.providers.history import Body
from tests.providers.loopback import Answer, answering, plain, stream
from tests.providers.spoken import claude, claude_pieces, response, response_pieces

ARGUMENTS = '{"account":  "DE-1", "amount_cents": 120000}'
EDIT = {"name": "pay", "args": {"account": "DE-1", "amount_cents": 5}}
DECISIONS = [
    {"type": "approve"},
    {"type": "edit", "edited_action": EDIT},
    {"type": "reject", "message": "No."},
    {"type": "respond", "message": "I paid in cash."},
]

THINKING = {"type": "thinking", "thinking": "Is it due?  It is.", "signature": "c2lnbmVk=="}
SEALED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
TEXT = {"type": "text", "text": "I pay."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": json.loads(ARGUMENTS)}
CALLED = {**USE, "caller": {"type": "direct"}}

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "It is due."}],
    "encrypted_content": "b3BhcXVl",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "pay",
    "arguments": ARGUMENTS,
    "status": "completed",
}


def _done(wire: Wire) -> Answer:
    if wire is ANTHROPIC:
        return plain(claude(TEXT, end="end_turn"))
    content = [{"type": "output_text", "text": "Done.", "annotations": []}]
    said = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}
    return plain(response(said))


def _done_in_pieces(wire: Wire) -> Answer:
    if wire is ANTHROPIC:
        return claude_pieces(TEXT, end="end_turn")
    return stream({"type": "response.completed", "sequence_number": 0, "response": response()})


CASES = [
    pytest.param(ANTHROPIC, [THINKING, SEALED, TEXT, USE], id="anthropic"),
    pytest.param(ANTHROPIC, [THINKING, CALLED], id="anthropic-with-a-caller"),
    pytest.param(RESPONSES, [REASONING, CALL], id="responses"),
]
MADE: dict[tuple[str, bool], Callable[..., Any]] = {
    (ANTHROPIC.name, True): claude_pieces,
    (ANTHROPIC.name, False): lambda *blocks: plain(claude(*blocks)),
    (RESPONSES.name, True): response_pieces,
    (RESPONSES.name, False): lambda *items: plain(response(*items)),
}


def _sent_back(wire: Wire, body: Body) -> list[Body]:
    """Return what the model said, as it was sent back to it."""
    if wire is ANTHROPIC:
        (turn,) = [turn for turn in body["messages"] if turn["role"] == "assistant"]
        blocks: list[Body] = turn["content"]
        return blocks
    return [item for item in body["input"] if item.get("type") in ("reasoning", "function_call")]


def _bytes(items: list[Body]) -> list[str]:
    """Return the items as text, without what only frames them on the way."""
    framing = ("status", "toolset_name")
    return [
        json.dumps({name: value for name, value in item.items() if name not in framing}, sort_keys=True)
        for item in items
    ]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision["type"])
@pytest.mark.parametrize(("wire", "said"), CASES)
def test_a_message_with_sealed_parts_goes_back_as_it_came(
    wire: Wire, said: list[Body], streamed: bool, decision: Body, open_chat: Open, desk: Desk
) -> None:
    first = MADE[wire.name, streamed](*said)
    second = _done_in_pieces(wire) if streamed else _done(wire)
    with answering(first, second) as peer:
        chat = open_chat(wire, peer.url, streamed=streamed)
        chat.send_message("t", "Pay.")
        chat.submit_review("t", [decision])
    body = peer.bodies[1]
    assert wire.faults(body) == []
    assert _bytes(_sent_back(wire, body)) == _bytes(said)
    (result,) = wire.results(body)
    assert ('"amount_cents":5' in result) == (decision["type"] == "edit")
    amounts = {"approve": [120000], "edit": [5]}.get(decision["type"], [])
    assert [paid["amount_cents"] for paid in desk.payments] == amounts
