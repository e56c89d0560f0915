"""A plan in the making: steps are added one by one, each with the steps that make what it needs."""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from clearance.apps.research.errors import PlanError
from clearance.apps.research.estimates import estimate, size_of, sizes, timeout
from clearance.apps.research.methods.cards import Card, InputSlot
from clearance.apps.research.plan import Budget, Output, Risk, Step, Template
from clearance.apps.research.plan_checks import fits
from clearance.apps.research.plan_request import OVERVIEW, PlanRequest
from clearance.apps.research.sources.literature import objective_terms
from clearance.errors import InvalidInputError

_VARIANT = re.compile(
    r"(?<![\w.])c\.[0-9]+(?:_[0-9]+)?(?:[ACGT]>[ACGT]|delins[ACGT]+|del[ACGT]*|dup[ACGT]*|ins[ACGT]+)"
)
_ONLY_COMPUTES = ("compute",)


class LeftOutError(Exception):
    """A method that cannot be in this plan; the message says why."""


class Draft:
    """The steps so far, by id, in an order in which they can run. A step has its method's id."""

    def __init__(
        self,
        request: PlanRequest,
        cards: Mapping[str, Card],
        *,
        exclude: Collection[str] = (),
        params: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.steps: dict[str, Step] = {}
        self._request = request
        self.cards = cards
        self._exclude = exclude
        self._params = params or {}
        self._parts = {each.id: each.note or "" for each in request.inputs if each.partial}

    @property
    def warnings(self) -> list[str]:
        """What a reader must know: the steps that see only a part of what their input promises."""
        parts: dict[str, list[str]] = {}
        for step in self.steps.values():
            if (note := self._part(step.inputs)) is not None:
                parts.setdefault(note, []).append(step.id)
        return [f"Of a part only ({note}): {', '.join(steps)}." for note, steps in parts.items()]

    def add(self, method: str, *, reason: str, budget: Budget) -> None:
        """Add a method with what it needs; nothing changes when it raises `LeftOutError`.

        Raises `PlanError` where parameters that a person gave do not fit.
        """
        before = dict(self.steps)
        try:
            self._add(method, reason=reason, above=())
            self._check_budget(budget)
        except LeftOutError:
            self.steps = before
            raise

    def _check_budget(self, budget: Budget) -> None:
        cost = sum((Decimal(step.estimate.cost) for step in self.steps.values()), Decimal(0))
        seconds = sum((Decimal(step.estimate.cpu_s) for step in self.steps.values()), Decimal(0))
        if cost > Decimal(budget.max_cost):
            raise LeftOutError(f"The budget of {budget.max_cost} {budget.currency} does not reach for it.")
        if seconds > Decimal(budget.cpu_hours) * 3600:
            raise LeftOutError(f"The budget of {budget.cpu_hours} CPU hours does not reach for it.")

    def _add(self, method: str, *, reason: str, above: tuple[str, ...]) -> None:
        if method in self.steps:
            return
        if method in self._exclude:
            raise LeftOutError(f"{method} was excluded by a person.")
        card = self.cards[method]
        inputs = self._inputs(card, above=(*above, method))
        params = self._filled(card, inputs)
        expected = estimate(card, size_of(inputs, sizes(self._request.inputs, self.steps.values())))
        needs = dict.fromkeys(
            reference.partition("/")[0] for reference in inputs.values() if "/" in reference
        )
        self.steps[method] = Step(
            id=method,
            method=method,
            template=Template(card.template.name, card.template.sha256, card.version),
            executor=self._request.executor,
            params=params,
            needs=tuple(needs),
            inputs=inputs,
            outputs=tuple(Output(output.name, output.media_type) for output in card.outputs),
            estimate=expected,
            risk=Risk(card.risk.level, card.risk.effects),
            rationale=reason,
            timeout_s=timeout(expected),
            # A step that only computes may be run again; any other may have had its effect.
            retries=1 if card.risk.effects == _ONLY_COMPUTES else 0,
            workflow_template=self._request.workflow_template,
        )

    def _inputs(self, card: Card, *, above: tuple[str, ...]) -> dict[str, str]:
        """Return a reference for each input of a method. No two inputs get the same one."""
        chosen: dict[str, str] = {}
        kinds: Collection[str] | None = self._wished_kinds(card)
        for slot in card.inputs:
            reference = next(
                (
                    each
                    for each in self._candidates(slot, kinds=kinds, above=above)
                    if each not in chosen.values()
                ),
                None,
            )
            if reference is not None:
                chosen[slot.name] = reference
                if "alphabet" in card.params.get("properties", {}):
                    # Its inputs are compared with each other: all of one alphabet.
                    kinds = ("protein",) if self._kind(reference) == "protein" else ("dna",)
            elif slot.required:
                raise LeftOutError(f"It needs {slot.name} ({' or '.join(slot.kinds)}), which is not there.")
        return chosen

    def _wished_kinds(self, card: Card) -> Collection[str] | None:
        alphabet = self._params.get(card.id, {}).get("alphabet")
        return None if alphabet is None else (str(alphabet),)

    def _candidates(
        self, slot: InputSlot, *, kinds: Collection[str] | None, above: tuple[str, ...]
    ) -> Iterator[str]:
        """Return what could be an input: whole records, then parts, then what another method makes."""
        for kind in slot.kinds:
            if kinds is not None and kind not in kinds:
                continue
            at_hand = [each for each in self._request.inputs if fits(each.kind, (kind,))]
            yield from (each.id for each in sorted(at_hand, key=lambda each: bool(each.partial)))
            yield from self._made(kind, slot=slot, above=above)

    def _made(self, kind: str, *, slot: InputSlot, above: tuple[str, ...]) -> Iterator[str]:
        for method, card in self.cards.items():
            for output in card.outputs:
                if method in above or not slot.required or not fits(output.kind, (kind,)):
                    continue
                before = dict(self.steps)
                try:
                    self._add(method, reason=f"It makes the {output.kind} for {above[-1]}.", above=above)
                except LeftOutError:
                    self.steps = before
                    continue
                if output.required or self._part(self.steps[method].inputs) is None:
                    yield f"{method}/{output.name}"
                else:
                    self.steps = before

    def _filled(self, card: Card, inputs: Mapping[str, str]) -> dict[str, Any]:
        """Return a method's parameters: a person's, else what the run itself says, else the defaults."""
        known = card.params.get("properties", {})
        wished = dict(self._params.get(card.id, {}))
        params = {name: value for name, value in self._said(inputs).items() if name in known} | wished
        missing = [name for name in card.params.get("required", ()) if name not in params]
        missing += [
            slot.name
            for slot in card.inputs
            if slot.name in known and {slot.name}.isdisjoint({*params, *inputs})
        ]
        if missing:
            raise LeftOutError(f"It needs {' and '.join(missing)}, which only a person can name.")
        if params.get("alphabet") == "dna" and "pattern" in known and "pattern" not in wished:
            raise LeftOutError("It needs a pattern for DNA, which only a person can name.")
        try:
            return card.check_params(params)
        except InvalidInputError as error:
            raise PlanError(f"The parameters of {card.id} do not fit.", faults=error.faults) from None

    def _said(self, inputs: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters that follow from gene, objective and inputs."""
        request, said = self._request, dict[str, Any]()
        tables = {each.id for each in request.inputs if each.uri.endswith(".tsv")}
        if not tables.isdisjoint(inputs.values()):
            said["symbol"] = request.subject.symbol
        if inputs:
            first = self._kind(next(iter(inputs.values())))
            said["alphabet"] = "protein" if first == "protein" else "dna"
        if variants := list(dict.fromkeys(_VARIANT.findall(request.objective))):
            said["variants"] = variants
        terms = objective_terms(request.subject.symbol, request.objective)
        if terms and request.objective != OVERVIEW:
            said["terms"] = [request.subject.symbol, *terms]
        return said

    def _kind(self, reference: str) -> str:
        method, _, name = reference.partition("/")
        if name:
            return next(output.kind for output in self.cards[method].outputs if output.name == name)
        return next(each.kind for each in self._request.inputs if each.id == reference)

    def _part(self, inputs: Mapping[str, str]) -> str | None:
        """Return of what a step sees a part only; None when it sees the whole."""
        for reference in inputs.values():
            method, _, name = reference.partition("/")
            note = self._part(self.steps[method].inputs) if name else self._parts.get(reference)
            if note is not None:
                return note
        return None
