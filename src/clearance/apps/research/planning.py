"""Planning: the first version of a plan, and the next one after people sent it back."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.plan import Plan, Wishes, plan_of, wishes_of
from clearance.apps.research.plan_changes import edit_plan
from clearance.apps.research.plan_request import PlanRequest
from clearance.apps.research.planner import plan_by_rules, revise_by_rules
from clearance.errors import InvalidInputError
from clearance.policy import DecisionType
from clearance.review import Decision, Review, latest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

RULES = "rules"
MAX_REVISIONS = 5
EDITED = "edited_plan"
"""The change that holds a whole plan, as a person edited it."""
_UNMET = "The wish could not be met, so the plan is the same."


class Planning:
    """Makes plans. `model_named` returns a chat model, for runs that ask for one as planner."""

    def __init__(self, model_named: "Callable[[str], BaseChatModel]") -> None:
        self._model_named = model_named

    def first(self, request: PlanRequest, *, planner: str) -> Plan:
        """Return the first version. Raises `PlanError`, `NoMethodError`."""
        if planner == RULES:
            return plan_by_rules(request)
        from clearance.apps.research.llm_planner import plan_by_model

        return plan_by_model(self._model_named(planner), request, name=planner)

    def next(self, plan: Plan, request: PlanRequest, *, review: Review, planner: str) -> Plan:
        """Return the next version, as the people wish who sent this one back.

        A wish that cannot be met gives the same plan again, with the reason among its warnings: it is theirs
        to decide anew, and the run is not lost by it.
        """
        said = _last(review)
        changes: dict[str, Any] = json.loads(said.arguments or "{}")
        wishes = Wishes()
        try:
            if EDITED in changes:
                return self.edited(plan, plan_of(changes[EDITED]), by=said.by, request=request)
            wishes = read_wishes(said.message, changes)
            if planner == RULES:
                return revise_by_rules(plan, request, wishes=wishes)
            from clearance.apps.research.llm_planner import plan_by_model

            model = self._model_named(planner)
            return plan_by_model(model, request, name=planner, parent=plan, wishes=wishes)
        except InvalidInputError as error:
            return _unchanged(plan, wishes, reason=str(error))

    def edited(self, plan: Plan, edited: Plan, *, by: str, request: PlanRequest) -> Plan:
        """Return the next version as a person edited it; `PlanError` with every fault of the edit."""
        cards = {card.id: card for card in load_cards()}
        after = edit_plan(plan, edited, by=by, cards=cards, references=request.references)
        return replace(after, warnings=_without_unmet(plan))


def read_wishes(comment: str, changes: Mapping[str, Any]) -> Wishes:
    """Return what a person wants changed; `PlanError` for changes that are none."""
    return wishes_of({**changes, **({"comment": comment} if comment else {})})


def _last(review: Review) -> Decision:
    said = [item for call in review.calls for item in latest(call).values()]
    revised = [item for item in said if item.type is DecisionType.REVISE]
    return max(revised, key=lambda item: (item.at, item.id))


def _unchanged(plan: Plan, wishes: Wishes, *, reason: str) -> Plan:
    warning = f"{_UNMET} {reason}"
    return replace(
        plan,
        version=plan.version + 1,
        parent_sha256=plan.sha256,
        warnings=(*_without_unmet(plan), warning[:1000]),
        wishes=wishes,
    )


def _without_unmet(plan: Plan) -> tuple[str, ...]:
    """Return a plan's warnings but for that of an earlier round, which says nothing of the next version."""
    return tuple(warning for warning in plan.warnings if not warning.startswith(_UNMET))
