"""The research plan: what is cleared, byte for byte.

A plan is a value. Its `text` is canonical JSON (docs/canonical-json.md), its `sha256` the hash of that text,
and what is stored are exactly these bytes. The hash covers the sha256 of every input and of every step's
template: clearing a plan clears its data, code and parameters together. Versions are immutable; a change is
a new one.
"""

import hashlib
import json
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from clearance.apps.research.errors import PlanError
from clearance.errors import InvalidArgumentsError
from clearance.schema import faults
from clearance.toolcall import canonical, parse_arguments

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = "research_plan.v1"
LARGEST_PLAN = 1024 * 1024
RISK_LEVELS = ("low", "medium", "high")
Amount = int | str
"""A number of hours or seconds: an integer or a decimal text, because floats have no place in the hash."""


@dataclass(frozen=True)
class Subject:
    """The gene that the plan is about."""

    symbol: str
    organism: str
    taxon: int
    ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Input:
    """A file of the run by its hash (hex), kind and origin. `uri` is its name among the run's inputs."""

    id: str
    kind: str
    uri: str
    sha256: str
    size: int
    source: str
    accession: str
    licence: str
    retrieved_at: str
    note: str | None = None
    partial: bool | None = None
    stale: bool | None = None


@dataclass(frozen=True)
class Template:
    """The code of a step: a template of the knowledge base, by its hash (hex) and its card's version."""

    name: str
    sha256: str
    version: str


@dataclass(frozen=True)
class WorkflowTemplate:
    """What a step on a cluster runs by: a WorkflowTemplate there, with the hash (hex) of its spec."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Output:
    """A file that a step gives."""

    name: str
    media_type: str


@dataclass(frozen=True)
class Estimate:
    """What a step may take: processor seconds, memory, money (a decimal text in the budget's currency)."""

    cpu_s: Amount
    mem_mb: int
    cost: str
    gpu_s: Amount | None = None


@dataclass(frozen=True)
class Risk:
    """How much may go wrong, and what a step does to the world."""

    level: str
    effects: tuple[str, ...]
    reason: str | None = None


@dataclass(frozen=True)
class Step:
    """One run of a method. `inputs` name, for each input of the method, an input's id or `STEP/OUTPUT`."""

    id: str
    method: str
    template: Template
    executor: str
    params: Mapping[str, Any]
    needs: tuple[str, ...]
    inputs: Mapping[str, str]
    outputs: tuple[Output, ...]
    estimate: Estimate
    risk: Risk
    rationale: str
    timeout_s: int
    retries: int
    workflow_template: WorkflowTemplate | None = None


@dataclass(frozen=True)
class Budget:
    """What all steps together may take. Money is a decimal text."""

    cpu_hours: Amount
    currency: str
    max_cost: str
    gpu_hours: Amount | None = None


@dataclass(frozen=True)
class Evidence:
    """A publication of the run's literature that the plan rests on."""

    ref: str
    claim: str | None = None
    quote: str | None = None


@dataclass(frozen=True)
class LeftOut:
    """A method that is not in the plan, and why."""

    method: str
    reason: str


@dataclass(frozen=True)
class Wishes:
    """What a person wants changed: the rule planner obeys all but the comment, which is kept and shown."""

    comment: str | None = None
    exclude: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    max_cost: str | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def structured(self) -> bool:
        """Whether there is anything that rules can obey."""
        return bool(self.exclude or self.require or self.max_cost is not None or self.params)


@dataclass(frozen=True)
class Author:
    """Who made a version: `rule`, `agent` (then with its model) or `human`."""

    kind: str
    name: str
    model: str | None = None


@dataclass(frozen=True)
class Total:
    """What all steps take together; memory is that of the largest."""

    cpu_s: Decimal
    cost: Decimal
    mem_mb: int


@dataclass(frozen=True)
class Plan:
    """One version of a plan."""

    plan_id: str
    version: int
    parent_sha256: str | None
    run_id: str
    subject: Subject
    objective: str
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    budget: Budget
    created_by: Author
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    wishes: Wishes | None = None

    def document(self) -> dict[str, Any]:
        """Return the plan as a JSON document; absent facts are left out, no parent is null."""
        document: dict[str, Any] = _document(self)
        return {"schema": SCHEMA, "parent_sha256": None, **document}

    @cached_property
    def text(self) -> str:
        """The canonical JSON: what is hashed, and, as UTF-8, what is stored."""
        return canonical(self.document())

    @cached_property
    def sha256(self) -> str:
        """The sha256 (hex) of `text`: what people clear."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def total(self) -> Total:
        """What the steps take together, by their estimates."""
        return Total(
            cpu_s=sum((Decimal(step.estimate.cpu_s) for step in self.steps), Decimal(0)),
            cost=sum((Decimal(step.estimate.cost) for step in self.steps), Decimal(0)),
            mem_mb=max(step.estimate.mem_mb for step in self.steps),
        )

    @property
    def risk(self) -> str:
        """The highest level of any step."""
        return max((step.risk.level for step in self.steps), key=RISK_LEVELS.index)

    @property
    def effects(self) -> tuple[str, ...]:
        """What the steps do to the world, sorted."""
        return tuple(sorted({effect for step in self.steps for effect in step.risk.effects}))

    @property
    def summary(self) -> str:
        """The plan in one line."""
        total = self.total
        steps = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        return (
            f"{self.subject.symbol}: {steps} ({', '.join(step.id for step in self.steps)}), "
            f"{total.cpu_s} CPU s, {total.cost} {self.budget.currency}, risk {self.risk}"
        )


def plan_id(run_id: str) -> str:
    """Return the id that all versions of a run's plan have."""
    return "pl_" + b32encode(hashlib.sha256(run_id.encode()).digest()).decode().lower()[:26]


@cache
def plan_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (2020-12) of plans."""
    name = "research_plan.v1.schema.json"
    schema: dict[str, Any] = json.loads(files("clearance.apps.research").joinpath(name).read_bytes())
    return schema


def read_plan(content: bytes | str) -> Plan:
    """Return the plan that is written in JSON, which need not be canonical.

    Raises `PlanError` for text that is no JSON object, is larger than 1 MiB, or breaks the schema.
    """
    try:
        text = content if isinstance(content, str) else content.decode()
        document = parse_arguments(text, limit=LARGEST_PLAN)
    except UnicodeDecodeError:
        raise PlanError("The plan is not UTF-8 text.") from None
    except InvalidArgumentsError as error:
        raise PlanError(
            f"The plan cannot be read: {error}".replace("The arguments", "its contents")
        ) from None
    return plan_of(document)


def plan_of(document: Mapping[str, Any]) -> Plan:
    """Return the plan of a parsed document. Raises `PlanError` with every fault in it."""
    found = faults(plan_schema(), document)
    if found:
        raise PlanError(f"The plan does not fit {SCHEMA}.", faults=found)
    return _adapter().validate_python({name: item for name, item in document.items() if name != "schema"})


def wishes_of(document: Mapping[str, Any]) -> Wishes:
    """Return the wishes of a parsed document, as a form or a request has them; every member may be absent.

    Raises `PlanError` with every fault where it breaks the schema of a plan's `wishes`.
    """
    schema = {**plan_schema()["properties"]["wishes"], "$defs": plan_schema()["$defs"]}
    found = faults(schema, document)
    if found:
        raise PlanError("The wishes for the plan do not fit.", faults=found)
    return Wishes(
        comment=document.get("comment"),
        exclude=tuple(document.get("exclude", ())),
        require=tuple(document.get("require", ())),
        max_cost=document.get("max_cost"),
        params=document.get("params", {}),
    )


@cache
def _adapter() -> "TypeAdapter[Plan]":
    from pydantic import TypeAdapter

    return TypeAdapter(Plan)


def _document(value: Any) -> Any:
    """Return a value as JSON has it, without the fields of a dataclass that are None."""
    if is_dataclass(value):
        items = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: _document(item) for name, item in items if item is not None}
    if isinstance(value, Mapping):
        return {name: _document(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_document(item) for item in value]
    return value
