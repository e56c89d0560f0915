"""Decided: what front ends send to go on with, read as decisions on the review that was shown.

Three forms are known: LangChain's `{"decisions": [...]}`; the same as Agent Inbox fills it, with `args`; and
the older list of `{"type": "accept" | "edit" | "response" | "ignore", "args"}`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from clearance.errors import InvalidReviewDecisionError
from clearance.policy import DecisionType
from clearance.review import Review, ReviewedCall
from clearance.toolcall import parse_arguments
from clearance.web.mending import mended

Schemas = Mapping[str, Mapping[str, Any]]

_FORM_STATE = frozenset({"args", "acceptAllowed", "editsMade"})
"""What a front end's own form leaves in an answer, beside what is meant."""


def decisions_of(answer: Any, review: Review, *, schemas: Schemas) -> list[Any]:
    """Return the decisions in an answer, one for each item of it, in its order.

    `schemas` are the tools' by `schema_hash`. What has another form than these is handed on as it is, to be
    refused with its fault; an answer that is no list of items raises `InvalidReviewDecisionError`.
    """
    items = answer.get("decisions") if isinstance(answer, Mapping) and "decisions" in answer else answer
    if isinstance(items, Mapping):
        items = [items]
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise InvalidReviewDecisionError(
            'Resume with decisions: {"decisions": [{"type": "approve"}]}, one for each call that waits.'
        )
    return [_decision(item, _meant(item, place, review), schemas=schemas) for place, item in enumerate(items)]


def _meant(item: Any, place: int, review: Review) -> ReviewedCall | None:
    """Return the call that an item is about; the gate says whether it may be meant without its name."""
    if isinstance(item, Mapping) and isinstance(item.get("call"), str):
        return review.call(item["call"])
    return review.waiting[place] if place < len(review.waiting) else None


def _decision(item: Any, call: ReviewedCall | None, *, schemas: Schemas) -> Any:
    if not isinstance(item, Mapping):
        return item
    args = item.get("args")
    kept = {name: value for name, value in item.items() if name not in _FORM_STATE and value is not None}
    match item.get("type"):
        case "accept" | "approve":
            # Whatever arguments come along: what runs is what is stored.
            kept.pop("edited_action", None)
            return {**kept, "type": "approve"}
        case "edit":
            action = kept.get("edited_action", args)
            return {**kept, "edited_action": _edited(action, call, schemas=schemas)}
        case "ignore":
            return {**kept, "type": "reject"}
        case "reject" if isinstance(args, str):
            return {"message": args, **kept}
        case "response":
            said = {"message": args, **kept} if args else kept
            return {**said, "type": _without_running(call)}
        case _:
            return kept


def _without_running(call: ReviewedCall | None) -> str:
    """Return what a written answer is: the call's result where the rules take one, else why it never runs."""
    takes = call is not None and DecisionType.RESPOND in call.verdict.decisions
    return (DecisionType.RESPOND if takes else DecisionType.REJECT).value


def _edited(action: Any, call: ReviewedCall | None, *, schemas: Schemas) -> Any:
    if not isinstance(action, Mapping):
        return action
    named = {("name" if name == "action" else name): value for name, value in action.items()}
    args = named.get("args")
    if call is None or not isinstance(args, Mapping) or named.get("name", call.tool) != call.tool:
        return named
    stored = parse_arguments(call.arguments)
    return {**named, "args": mended(args, stored=stored, schema=schemas.get(call.schema_hash, {}))}
