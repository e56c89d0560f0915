"""What models say, in the bytes of the providers that can seal, sign or number parts of it."""

import json

from tests.providers.history import Body
from tests.providers.loopback import Answer, stream


def claude(*blocks: Body, end: str = "tool_use") -> Body:
    """Return a message of Anthropic's as one piece of JSON."""
    return {
        "id": f"msg_{end}",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": list(blocks),
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def claude_pieces(*blocks: Body, end: str = "tool_use") -> Answer:
    """Return a message of Anthropic's as a stream."""
    start = {**claude(end=end), "stop_reason": None}
    events: list[Body] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        begun, deltas = _piecewise(block)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": end, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}})
    return stream(*events, {"type": "message_stop"})


def _piecewise(block: Body) -> tuple[Body, list[Body]]:
    """Return how a block begins and the pieces that complete it, cut in the middle."""
    match block["type"]:
        case "thinking":
            text, signed = block["thinking"], block["signature"]
            pieces = [{"type": "thinking_delta", "thinking": part} for part in (text[:5], text[5:])]
            return {**block, "thinking": "", "signature": ""}, [
                *pieces,
                {"type": "signature_delta", "signature": signed},
            ]
        case "tool_use":
            given = block["input"]
            text = given if isinstance(given, str) else json.dumps(given)
            parts = [text[:20], text[20:]]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": part} for part in parts
            ]
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case _:
            return block, []


def response(*items: Body, status: str = "completed") -> Body:
    """Return an answer of OpenAI's Responses as one piece of JSON."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "gpt-5-pro",
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_pieces(*items: Body) -> Answer:
    """Return an answer of OpenAI's Responses as a stream."""
    events: list[Body] = [{"type": "response.created", "response": response(status="in_progress")}]
    for index, item in enumerate(items):
        begun = {**item, "arguments": ""} if "arguments" in item else {**item, "summary": []}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        if "arguments" in item:
            events += [
                {
                    "type": "response.function_call_arguments.delta",
                    "item_id": item["id"],
                    "output_index": index,
                    "delta": part,
                }
                for part in (item["arguments"][:20], item["arguments"][20:])
            ]
        else:
            place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
            part = {"type": "summary_text", "text": ""}
            events.append({"type": "response.reasoning_summary_part.added", **place, "part": part})
            text = item["summary"][0]["text"]
            events.append({"type": "response.reasoning_summary_text.delta", **place, "delta": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response(*items)})
    return stream(*[{**event, "sequence_number": number} for number, event in enumerate(events)])


def chat_pieces(*calls: tuple[str, str]) -> Answer:
    """Return a message of OpenAI's chat completions as a stream: calls of `pay` by id and arguments."""
    deltas: list[Body] = [{"role": "assistant", "content": None}]
    for index, (name, arguments) in enumerate(calls):
        begun = {"name": "pay", "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": name, "type": "function", "function": begun}]})
        for part in (arguments[:20], arguments[20:]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return stream(*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
