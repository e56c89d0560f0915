"""The tables, as SQLAlchemy sees them. `migrations/` makes them; a test compares the two."""

from clearance.store.tables.metadata import metadata
from clearance.store.tables.people import (
    keys,
    people,
)
from clearance.store.tables.trail import (
    entries,
    notary,
    seals,
)
from clearance.store.tables.work import (
    answers,
    artifacts,
    callbacks,
    calls,
    clearances,
    decisions,
    facts,
    late_answers,
    policies,
    reviewed_calls,
    reviews,
    run_files,
    run_stages,
    runs,
    schemas,
    stream,
    threads,
    tools,
)

__all__ = [
    "answers",
    "artifacts",
    "callbacks",
    "calls",
    "clearances",
    "decisions",
    "entries",
    "facts",
    "keys",
    "late_answers",
    "metadata",
    "notary",
    "people",
    "policies",
    "reviewed_calls",
    "reviews",
    "run_files",
    "run_stages",
    "runs",
    "schemas",
    "seals",
    "stream",
    "threads",
    "tools",
]
