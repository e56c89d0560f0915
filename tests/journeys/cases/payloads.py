"""Decisions as the cases write them, put into the words of the API."""

from typing import Any

from clearance.review import Review
from tests.journeys.cases.pages_door import UNTOUCHED
from tests.journeys.cases.world import Scope, World


def sent_forms(world: World, scope: Scope, review: Review, payload: Any) -> list[Any]:
    """Return what is sent for a payload of a case; what is no list of decisions is sent in two ways.

    A label becomes the product's own key. A label that stands for no call is sent as it is.
    """
    if not isinstance(payload, list):
        inner = payload.get("decisions") if isinstance(payload, dict) else payload
        return [payload] if inner is payload else [payload, inner]
    return [[_item(world, scope, review, item) for item in payload]]


def has_untouched_form(payload: Any) -> bool:
    """Whether a payload says that a form is sent as it was found, which a page alone can do."""
    items = payload if isinstance(payload, list) else []
    return any(isinstance(item, dict) and UNTOUCHED in (item.get("args") or {}) for item in items)


def _item(world: World, scope: Scope, review: Review, item: Any) -> Any:
    if isinstance(item, list):
        return [_item(world, scope, review, inner) for inner in item]
    if not isinstance(item, dict):
        return item
    sent = {name: value for name, value in item.items() if name not in ("args", "tool", "nth", "call")}
    if "nth" in item:
        sent["call"] = review.calls[item["nth"] - 1].key
    elif "call" in item:
        sent["call"] = world.key_of(item["call"], scope) or item["call"]
    if "args" in item or "tool" in item:
        sent["edited_action"] = {
            name: item[given] for name, given in (("name", "tool"), ("args", "args")) if given in item
        }
    return sent
