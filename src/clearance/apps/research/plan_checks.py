"""What must hold in a plan beyond its schema. A plan with a fault never reaches a person."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter

from clearance.apps.research.errors import PlanError
from clearance.apps.research.estimates import estimate, size_of, sizes
from clearance.apps.research.knowledge import REFINES
from clearance.apps.research.methods.cards import Card
from clearance.apps.research.plan import RISK_LEVELS, Plan, Step, plan_schema
from clearance.errors import Fault, InvalidInputError
from clearance.schema import faults


def check_plan(plan: Plan, *, cards: Mapping[str, Card], references: Collection[str]) -> None:
    """Raise `PlanError` with every fault of a plan. `references` are the publications that may be cited."""
    found = plan_faults(plan, cards=cards, references=references)
    if found:
        raise PlanError("The plan cannot be used.", faults=found)


def plan_faults(plan: Plan, *, cards: Mapping[str, Card], references: Collection[str]) -> tuple[Fault, ...]:
    """Return what is wrong: schema, names, order, inputs, parameters, templates, estimates, budget, sources.

    `cards` are the knowledge base as it is now: a step whose template has another hash there is a fault, too.
    """
    broken = faults(plan_schema(), plan.document())
    if broken:
        return broken
    found = [*_names(plan), *_order(plan), *_citations(plan, references)]
    known = {} if found else sizes(plan.inputs, plan.steps)
    for at, step in enumerate(plan.steps):
        card = cards.get(step.method)
        if card is None:
            found.append(Fault(f"/steps/{at}/method", "is not a method of the knowledge base"))
            continue
        found += [Fault(f"/steps/{at}{each.pointer}", each.message) for each in _step(step, card)]
        found += [
            Fault(f"/steps/{at}{each.pointer}", each.message)
            for each in _inputs(plan, step, card, cards=cards)
        ]
        if known and step.estimate != estimate(card, size_of(step.inputs, known)):
            found.append(
                Fault(f"/steps/{at}/estimate", "is not what the method's card says for these inputs")
            )
    return (*found, *_budget(plan))


def fits(kind: str, wanted: Collection[str]) -> bool:
    """Return whether data of a kind is of one of the wanted kinds: a coding sequence is DNA, too."""
    own: str | None = kind
    while own is not None:
        if own in wanted:
            return True
        own = REFINES.get(own)
    return False


def _names(plan: Plan) -> Iterator[Fault]:
    for place, names in (
        ("inputs", [each.id for each in plan.inputs]),
        ("steps", [each.id for each in plan.steps]),
    ):
        for at, name in enumerate(names):
            if name in names[:at]:
                yield Fault(f"/{place}/{at}/id", "is used before")
    if (plan.version == 1) != (plan.parent_sha256 is None):
        yield Fault("/parent_sha256", "is missing in a later version, or given in the first")


def _order(plan: Plan) -> Iterator[Fault]:
    """Find steps that need unknown steps or each other, and steps that stand before one that they need."""
    graph = {step.id: step.needs for step in plan.steps}
    unknown = [(at, need) for at, step in enumerate(plan.steps) for need in step.needs if need not in graph]
    for at, need in unknown:
        yield Fault(f"/steps/{at}/needs", f"names {need}, which is no step")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        yield Fault("/steps", "need each other in a circle")
        return
    before: set[str] = set()
    for at, step in enumerate(plan.steps):
        if not unknown and not set(step.needs) <= before:
            yield Fault(f"/steps/{at}", "stands before a step that it needs")
        before.add(step.id)


def _citations(plan: Plan, references: Collection[str]) -> Iterator[Fault]:
    for at, each in enumerate(plan.evidence):
        if each.ref not in references:
            yield Fault(f"/evidence/{at}/ref", f"{each.ref} is not in the run's literature, or was retracted")


def _step(step: Step, card: Card) -> Iterator[Fault]:
    template = step.template
    if (template.name, template.sha256) != (card.template.name, card.template.sha256):
        yield Fault("/template", "is not the method's template as it is now")
    if template.version != card.version:
        yield Fault("/template/version", f"is not {card.version}, the version of the card")
    try:
        if card.check_params(step.params) != dict(step.params):
            yield Fault("/params", "lack parameters that have a default; write them down")
    except InvalidInputError as error:
        yield from (Fault(f"/params{each.pointer}", each.message) for each in error.faults)
    yield from (Fault(pointer, "must be written as text, such as '0.5'") for pointer in _floats(step.params))
    allowed = {(output.name, output.media_type) for output in card.outputs}
    if {(output.name, output.media_type) for output in step.outputs} != allowed:
        yield Fault("/outputs", "are not those of the method's card")
    if RISK_LEVELS.index(step.risk.level) < RISK_LEVELS.index(card.risk.level):
        yield Fault("/risk/level", f"is lower than the card's, {card.risk.level}")
    if not set(card.risk.effects) <= set(step.risk.effects):
        yield Fault("/risk/effects", "leave out effects of the card")


def _inputs(plan: Plan, step: Step, card: Card, *, cards: Mapping[str, Card]) -> Iterator[Fault]:
    slots = {slot.name: slot for slot in card.inputs}
    for name in slots:
        if slots[name].required and name not in step.inputs:
            yield Fault(f"/inputs/{name}", "is missing")
    for name, reference in step.inputs.items():
        kind = _kind(plan, reference, cards=cards)
        if name not in slots:
            yield Fault(f"/inputs/{name}", "is no input of the method")
        elif kind is None:
            yield Fault(f"/inputs/{name}", f"{reference} is neither an input nor an output of a step")
        elif not fits(kind, slots[name].kinds):
            yield Fault(f"/inputs/{name}", f"is {kind}, and must be {' or '.join(slots[name].kinds)}")
        if "/" in reference and reference.partition("/")[0] not in step.needs:
            yield Fault("/needs", f"lacks the step that makes {reference}")


def _kind(plan: Plan, reference: str, *, cards: Mapping[str, Card]) -> str | None:
    """Return the kind of what a reference names; None when there is no such thing."""
    step_id, _, output = reference.partition("/")
    if not output:
        return next((each.kind for each in plan.inputs if each.id == reference), None)
    method = next((step.method for step in plan.steps if step.id == step_id), "")
    outputs = cards[method].outputs if method in cards else ()
    return next((each.kind for each in outputs if each.name == output), None)


def _floats(value: object, pointer: str = "/params") -> Iterator[str]:
    if isinstance(value, float):
        yield pointer
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _floats(item, f"{pointer}/{name}")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _floats(item, f"{pointer}/{at}")


def _budget(plan: Plan) -> Iterator[Fault]:
    total = plan.total
    if total.cost > Decimal(plan.budget.max_cost):
        yield Fault("/budget/max_cost", f"is less than the steps cost, {total.cost}")
    if total.cpu_s > Decimal(plan.budget.cpu_hours) * 3600:
        yield Fault("/budget/cpu_hours", f"is less than the steps take, {total.cpu_s} s")
