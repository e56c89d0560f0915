"""What the process loads that all others are forked from: everything that a worker ever needs.

It is imported there and nowhere else.
"""

import gc
import importlib

# Some of it is loaded only when it is needed.
for name in (
    "alembic.autogenerate",
    "alembic.migration",
    "clearance.adapters.checkpoints_postgres",
    "clearance.adapters.checkpoints_sqlite",
    "clearance.apps.research.report.pages",
    "clearance.engine.lookout",
    "clearance.engine.procrastinate",
    "clearance.settings",
    "clearance.store.migrations",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.serialization",
    "jinja2",
    "jsonschema",
    "langchain_core.messages.block_translators.langchain_v0",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "procrastinate.builtin_tasks",
    "sqlalchemy.dialects.postgresql.psycopg",
    "tests.journeys.cases.site",
    "tests.journeys.program",
    "tests.research.workers",
):
    importlib.import_module(name)

# What is there now stays: a fork that looks through it, again and again, would copy it.
gc.collect()
gc.freeze()
