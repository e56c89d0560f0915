"""A review as clients get it: LangChain's words, with everything added that a careful client wants.

One shape serves LangChain's own clients, the LangGraph front ends and AG-UI. `args` is the parsed object;
`arguments` is the same as JSON text, for clients whose numbers are not exact.
"""

from collections.abc import Mapping
from typing import Any

from clearance.policy import DecisionType
from clearance.review import Review, ReviewedCall
from clearance.toolcall import parse_arguments
from clearance.veil import veiled


def build_review_request(
    review: Review, *, schemas: Mapping[str, Mapping[str, Any]], address: str | None = None
) -> dict[str, Any]:
    """Return the question of a review: its waiting calls, what may be answered to each, and until when.

    `schemas` are the tools' JSON Schemas by `schema_hash`; `address` is where people decide it.
    """
    waiting = veiled(review).waiting
    first = waiting[0] if len(waiting) == 1 else None
    return {
        "action_requests": [_request(call) for call in waiting],
        "review_configs": [_config(call, schemas.get(call.schema_hash, {})) for call in waiting],
        "reason": "tool_approval" if review.kind == "calls" else review.kind.value,
        "message": _sentence(review),
        "tool_call_id": first.tool_call_id if first else None,
        "response_schema": RESPONSE_SCHEMA,
        "expires_at": None if review.deadline is None else review.deadline.isoformat(),
        "review_id": review.id,
        "review_url": address or f"clearance show {review.id}",
        "version": review.version,
        "thread_id": review.thread_id,
        "run_id": review.run_id,
    }


def _request(call: ReviewedCall) -> dict[str, Any]:
    return {
        "call": call.key,
        "tool_call_id": call.tool_call_id,
        "name": call.tool,
        "args": parse_arguments(call.arguments),
        "arguments": call.arguments,
        "description": describe(call),
        "risk": call.verdict.risk.value,
        "flags": dict(call.verdict.flags),
        "faults": list(call.verdict.faults),
        "revision": call.revision,
    }


def _config(call: ReviewedCall, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "action_name": call.tool,
        "call": call.key,
        "allowed_decisions": [item.value for item in call.verdict.decisions],
        "args_schema": dict(schema),
    }


def describe(call: ReviewedCall) -> str:
    """Return one line that says what the call is, in the product's words and never in the model's."""
    why = f" ({', '.join(call.verdict.rules)})" if call.verdict.rules else ""
    return f"{call.tool} waits for a decision{why}"


def _sentence(review: Review) -> str:
    names = ", ".join(call.tool for call in review.waiting)
    if review.kind == "outcome":
        return f"{names} was started and its outcome is unknown. Did it happen?"
    return f"{names} runs only if you approve."


RESPONSE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["decisions"],
    "properties": {
        "decisions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": [item.value for item in DecisionType]},
                    "call": {"type": "string"},
                    "message": {"type": "string"},
                    "changes": {"type": "object"},
                    "edited_action": {
                        "type": "object",
                        "required": ["args"],
                        "additionalProperties": False,
                        "properties": {"name": {"type": "string"}, "args": {"type": ["object", "string"]}},
                    },
                },
            },
        }
    },
}
