"""The rule planner: from ranked methods to a plan. The same request always gives the same plan.

The methods that fit the objective best are taken, each with the methods that make its inputs. One that cannot
run on what is there is left out with the reason. A part of a sequence is never passed off as the whole: what
may be missing in a part, such as the complete coding sequence in one exon, is not built on.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

from clearance.apps.research.errors import PlanError
from clearance.apps.research.knowledge import KnowledgeBase, RankedCard
from clearance.apps.research.methods.cards import Card, load_cards
from clearance.apps.research.plan import Author, Budget, LeftOut, Plan, Wishes, plan_id
from clearance.apps.research.plan_checks import check_plan
from clearance.apps.research.plan_diff import diff
from clearance.apps.research.plan_draft import Draft, LeftOutError
from clearance.apps.research.plan_request import OVERVIEW, PlanRequest

MOST_METHODS = 8
RULES = Author(kind="rule", name="rule planner")
_LEAST_RELEVANCE = 0.25
"""Of the most relevant method's score: what is below shares a common word with the objective and no more."""
_NO_WORD = "No method has a word in common with the objective; an overview is planned instead."


def plan_by_rules(request: PlanRequest, *, wishes: Wishes | None = None) -> Plan:
    """Return the first version of a run's plan.

    Raises `NoMethodError` when no method fits the data, and `PlanError` when nothing can be planned within
    the budget, or a wish names an unknown method or cannot be met.
    """
    cards = {card.id: card for card in load_cards()}
    with closing(KnowledgeBase(cards.values())) as base:
        kinds = {each.kind for each in request.inputs}
        fitting = _fitting(base.rank(kinds, request.objective))
        if not fitting:
            fitting = _fitting(base.rank(kinds, OVERVIEW))
            request = replace(request, warnings=(*request.warnings, _NO_WORD))
    wishes = wishes or Wishes()
    return plan_of_methods(
        request, fitting, params=wishes.params, wishes=wishes, author=RULES, cards=cards, parent=None
    )


def revise_by_rules(plan: Plan, request: PlanRequest, *, wishes: Wishes) -> Plan:
    """Return the next version: the methods and parameters of this one, changed as a person wishes.

    Raises `PlanError` when there is only a comment, which rules cannot read; when a wish names an unknown
    method or cannot be met; and when the wishes change nothing.
    """
    if not wishes.structured:
        raise PlanError(
            "The rule planner cannot read a comment. Say what to change with exclude, require, max_cost or "
            "params, or use a model as planner."
        )
    kept = {step.method: {**step.params, **wishes.params.get(step.method, {})} for step in plan.steps}
    return plan_of_methods(
        replace(request, objective=plan.objective, budget=plan.budget),
        {step.method: step.rationale for step in plan.steps},
        params={**wishes.params, **kept},
        wishes=wishes,
        author=RULES,
        cards={card.id: card for card in load_cards()},
        parent=plan,
    )


def plan_of_methods(
    request: PlanRequest,
    methods: Mapping[str, str],
    *,
    params: Mapping[str, Mapping[str, Any]],
    wishes: Wishes,
    author: Author,
    cards: Mapping[str, Card],
    parent: Plan | None,
) -> Plan:
    """Return the plan of these methods, each with the reason for it, best first: every planner ends here.

    What the wishes require stands before them; what they exclude is left out. A method that cannot run, or
    that the budget does not reach for, is left out, too, unless it is required. With `parent` the plan is its
    next version. Raises `PlanError` for unknown methods, required ones that cannot run, parameters that do
    not fit, a plan without steps, and a version that changes nothing.
    """
    required = tuple(dict.fromkeys([*wishes.require, *wishes.params]))
    _check_names([*methods, *wishes.exclude, *required], cards)
    if both := sorted(set(wishes.exclude) & set(required)):
        raise PlanError(f"{', '.join(both)} cannot be both excluded and required.")
    budget = _budget(request.budget, wishes)
    draft = Draft(request, cards, exclude=wishes.exclude, params=params)
    left_out = _absent(request, cards, parent=parent)
    left_out |= dict.fromkeys(wishes.exclude, "A person excluded it.")
    for method in dict.fromkeys([*required, *methods]):
        try:
            draft.add(method, reason=methods.get(method, "A person requires it."), budget=budget)
        except LeftOutError as error:
            if method in required:
                raise PlanError(f"{method} is required and cannot be planned. {error}") from None
            left_out.setdefault(method, str(error))
    if not draft.steps:
        reasons = " ".join(f"{method}: {left_out[method]}" for method in methods if method in left_out)
        raise PlanError(f"Nothing can be planned. {reasons}")
    plan = _plan(request, draft, budget=budget, wishes=wishes, author=author, left_out=left_out)
    if parent is not None:
        plan = replace(plan, version=parent.version + 1, parent_sha256=parent.sha256)
    check_plan(plan, cards=cards, references=request.references)
    if parent is not None and diff(parent, plan).empty:
        raise PlanError(
            "The wishes change nothing in the plan. Approve or reject it, or wish for something else."
        )
    return plan


def _fitting(ranked: Iterable[RankedCard]) -> dict[str, str]:
    """Return the methods that fit the objective, best first, each with what speaks for it."""
    matching = [each for each in ranked if each.score > 0]
    least = matching[0].score * _LEAST_RELEVANCE if matching else 0.0
    fitting = [each for each in matching if each.score >= least][:MOST_METHODS]
    return {each.card.id: f"{each.reasons[0]} {each.card.when_to_use}" for each in fitting}


def _absent(request: PlanRequest, cards: Mapping[str, Card], *, parent: Plan | None) -> dict[str, str]:
    """Return the methods that cannot run on the data, with the reason; in a revision, also the parent's."""
    with closing(KnowledgeBase(cards.values())) as base:
        absent = base.left_out({each.kind for each in request.inputs})
    known = {each.method: each.reason for each in parent.left_out} if parent else {}
    return {**known, **{each.card.id: each.reason for each in absent}}


def _plan(
    request: PlanRequest,
    draft: Draft,
    *,
    budget: Budget,
    wishes: Wishes,
    author: Author,
    left_out: Mapping[str, str],
) -> Plan:
    steps = draft.steps
    used = {reference for step in steps.values() for reference in step.inputs.values()}
    others = dict.fromkeys(draft.cards, "It does not fit the objective as well as the others.")
    reasons = {**others, **left_out}
    return Plan(
        plan_id=plan_id(request.run_id),
        version=1,
        parent_sha256=None,
        run_id=request.run_id,
        subject=request.subject,
        objective=request.objective,
        inputs=tuple(each for each in request.inputs if each.id in used),
        steps=tuple(steps.values()),
        budget=budget,
        created_by=author,
        evidence=request.evidence,
        warnings=tuple(dict.fromkeys([*request.warnings, *draft.warnings])),
        left_out=tuple(LeftOut(name, reasons[name]) for name in sorted(reasons) if name not in steps),
        wishes=None if wishes == Wishes() else wishes,
    )


def _check_names(named: Iterable[str], cards: Mapping[str, Card]) -> None:
    unknown = sorted(set(named) - set(cards))
    if unknown:
        raise PlanError(f"There is no method {', '.join(unknown)}. Name some of: {', '.join(sorted(cards))}.")


def _budget(budget: Budget, wishes: Wishes) -> Budget:
    if wishes.max_cost is None:
        return budget
    try:
        wished = Decimal(wishes.max_cost)
    except ArithmeticError:
        wished = Decimal("NaN")
    if not wished.is_finite() or not 0 <= wished < 10**12:
        raise PlanError("max_cost must be an amount such as 0.50.")
    return replace(budget, max_cost=str(wished.quantize(Decimal("0.0001"))))
