"""The parts of a report: words of ours, which have no digits, and facts."""

from dataclasses import dataclass

from markupsafe import Markup

from clearance.apps.research.report.facts import Fact
from clearance.apps.research.report.tables import Row, Table


@dataclass(frozen=True)
class Record:
    """One record of the gene. `stale`: its source could not confirm it now."""

    id: Fact
    kind: Fact
    accession: Fact
    source: Fact
    retrieved_at: Fact
    sha256: Fact
    licence: Fact
    file: Fact
    length: Fact | None
    description: Fact | None
    url: Fact | None
    partial: bool
    stale: bool
    note: Fact | None


@dataclass(frozen=True)
class Decided:
    """What one person said at a gate."""

    by: Fact
    type: Fact
    mark: str
    at: Fact
    reason: Fact | None
    edited: bool
    changes: tuple[tuple[Fact, Fact], ...]


@dataclass(frozen=True)
class Asked:
    """One question to people, and what they said. `about_outcome`: it asked what became of a step."""

    about_outcome: bool
    gate: Fact
    version: Fact
    sha256: Fact | None
    status: Fact
    answers: Fact
    asked_at: Fact
    ended_at: Fact
    decisions: tuple[Decided, ...]


@dataclass(frozen=True)
class Version:
    """One version of the plan, and how it differs from the one before."""

    number: Fact
    sha256: Fact
    author: Fact
    author_kind: Fact
    model: Fact | None
    steps: Fact
    steps_word: str
    cpu_s: Fact
    cost: Fact
    risk: Fact
    differences: tuple[Fact, ...]
    reviews: tuple[Asked, ...]


@dataclass(frozen=True)
class Spent:
    """What a step took, against what was told before; None where it never ran."""

    estimated: Fact
    used: Fact | None
    share: Fact | None
    estimated_cost: Fact
    cost: Fact | None
    wall: Fact | None
    estimated_memory: Fact
    memory: Fact | None
    tries: Fact | None


@dataclass(frozen=True)
class StepPart:
    """One step. `mark` is its state as a style, `state` in words; `anchor` is its place in the page."""

    id: Fact
    anchor: Markup
    title: str | Fact
    method: Fact
    mark: str
    state: str
    rationale: Fact
    headline: Fact | None
    error: Fact | None
    warnings: tuple[Fact, ...]
    inputs: tuple[tuple[Fact, Fact], ...]
    params: tuple[tuple[Fact, Fact], ...]
    numbers: tuple[Row, ...]
    figures: tuple[Markup, ...]
    tables: tuple[Table, ...]
    files: tuple[tuple[Fact, Fact], ...]
    template: Fact
    card_version: Fact
    template_sha256: Fact
    tools: tuple[tuple[Fact, Fact], ...]
    executor: Fact
    risk: Fact
    effects: Fact
    fingerprint: Fact | None
    spent: Spent


@dataclass(frozen=True)
class Publication:
    """One publication, as the source described it."""

    id: Fact
    title: Fact
    authors: Fact | None
    journal: Fact | None
    year: Fact | None
    doi: Fact | None
    pmcid: Fact | None
    url: Fact | None
    source: Fact
    retrieved_at: Fact
    retracted: bool
    stale: bool
    cited: bool


@dataclass(frozen=True)
class Totals:
    """All steps together."""

    estimated: Fact
    used: Fact | None
    share: Fact | None
    estimated_cost: Fact
    cost: Fact | None
    currency: Fact
    budget: Fact


@dataclass(frozen=True)
class Trail:
    """How far the trail was sealed when the report was written; `head` is None before the first seal."""

    head: Fact | None
    number: Fact
    hash: Fact
    sealed_to: Fact
    sealed_at: Fact
    not_sealed: Fact
    more: bool


@dataclass(frozen=True)
class Outline:
    """A whole report."""

    symbol: Fact
    organism: Fact
    taxon: Fact
    ids: tuple[tuple[Fact, Fact], ...]
    run_id: Fact
    requester: Fact
    started_at: Fact
    written_at: Fact
    objective: Fact | None
    planned_for: Fact
    planner: Fact
    offline: bool
    own_sequence: bool
    replay: Fact | None
    version: Fact
    plan_sha256: Fact
    all_steps: Fact
    steps_word: str
    counts: tuple[tuple[str, str, Fact], ...]
    records: tuple[Record, ...]
    versions: tuple[Version, ...]
    approvals: tuple[Asked, ...]
    cautions: tuple[Fact, ...]
    steps: tuple[StepPart, ...]
    left_out: tuple[tuple[Fact, Fact], ...]
    literature: tuple[Publication, ...]
    literature_source: Fact
    literature_query: Fact
    literature_warnings: tuple[Fact, ...]
    totals: Totals
    tools: tuple[tuple[Fact, Fact], ...]
    trail: Trail
    files: tuple[tuple[Fact, Fact, Fact], ...]
