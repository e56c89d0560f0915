"""What people say to a plan: checked before it is taken, so that what nobody could obey uses no round up."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clearance.apps.research.errors import PlanError
from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.plan import Wishes
from clearance.apps.research.planning import RULES, read_wishes
from clearance.errors import Fault, InvalidReviewDecisionError
from clearance.schema import faults, pointer


def check_revision(comment: str, changes: Mapping[str, Any], *, planner: str) -> None:
    """Refuse wishes that the planner could not even read, or that name what there is not.

    Raises `PlanError` with every fault of them, each with its place in what a door was sent.
    """
    try:
        wishes = read_wishes(comment, changes)
        _check_wishes(wishes)
    except PlanError as error:
        error.point_below("/changes")
        raise
    if planner == RULES and not wishes.structured:
        refused = PlanError(
            "The rule planner cannot read a comment. Say what to change: exclude, require, max_cost or "
            "params. Or start the run with a model as planner."
        )
        refused.point_below("/message")
        raise refused


def about_the_plan(error: InvalidReviewDecisionError) -> InvalidReviewDecisionError:
    """Return what is wrong with one decision on a plan, which the gate says of each of its steps."""
    said = {(re.sub(r"^/[0-9]+", "", fault.pointer), fault.message): None for fault in error.faults}
    found = [Fault("/decision" if place == "/type" else place, why) for place, why in said]
    return InvalidReviewDecisionError(error.message, faults=found)


def _check_wishes(wishes: Wishes) -> None:
    """Refuse wishes that no planner could meet, whatever the plan; `PlanError` with every fault of them."""
    cards = {card.id: card for card in load_cards()}
    known = ", ".join(sorted(cards))
    found = [
        Fault(where, f"there is no method {name}; name some of: {known}")
        for where, name in _named(wishes)
        if name not in cards
    ]
    required = {*wishes.require, *wishes.params}
    found += [
        Fault(pointer(["exclude", str(at)]), f"{name} is required as well")
        for at, name in enumerate(wishes.exclude)
        if name in required
    ]
    for name, params in wishes.params.items():
        if name in cards:
            # What is missing here the run itself may say.
            schema = {**cards[name].params, "required": []}
            found += [
                Fault(f"{pointer(['params', name])}{fault.pointer}", fault.message)
                for fault in faults(schema, params)
            ]
    if found:
        raise PlanError("The plan cannot be changed so.", faults=found)


def _named(wishes: Wishes) -> Iterator[tuple[str, str]]:
    """Return the methods that wishes name, each with its place."""
    for where in ("exclude", "require"):
        for at, name in enumerate(getattr(wishes, where)):
            yield pointer([where, str(at)]), name
    yield from ((pointer(["params", name]), name) for name in wishes.params)
