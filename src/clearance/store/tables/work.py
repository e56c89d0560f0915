"""The tables of work: threads, runs, reviews, calls, and what programs keep."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    text,
)

from clearance.store.columns import Instant, Json
from clearance.store.tables.metadata import metadata

# One conversation. `wanted` counts what was asked of it, `done` what a segment has seen to its end;
# `fence` rises with every claim. A caller-driven thread is advanced by its own caller, never by a worker.
threads = Table(
    "threads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("program", Text, nullable=False),
    Column("caller_driven", Boolean, nullable=False),
    Column("wanted", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("owner", Text),
    Column("created_at", Instant, nullable=False),
    # Closed by retention, which is through with it at `emptied_at`.
    Column("closed_at", Instant),
    Column("emptied_at", Instant),
)
Index(
    "threads_wanted",
    threads.c.program,
    sqlite_where=text("wanted > done"),
    postgresql_where=text("wanted > done"),
)
Index(
    "threads_owner",
    threads.c.owner,
    sqlite_where=text("owner IS NOT NULL"),
    postgresql_where=text("owner IS NOT NULL"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("threads.id"), nullable=False),
    Column("program", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("input", Text),
    Column("answer", Text),
    Column("reason", Text),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("redacted_at", Instant),
)
Index(
    "threads_half_emptied",
    threads.c.id,
    sqlite_where=text("closed_at IS NOT NULL AND emptied_at IS NULL"),
    postgresql_where=text("closed_at IS NOT NULL AND emptied_at IS NULL"),
)
_OPEN = text("state IN ('queued', 'running', 'waiting')")
Index("runs_one_open", runs.c.thread_id, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)
Index("runs_by_thread", runs.c.thread_id, runs.c.created_at)
Index("runs_by_state", runs.c.state, runs.c.created_at)

reviews = Table(
    "reviews",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Integer, nullable=False),
    Column("round", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("requester", Text, nullable=False),
    Column("asked_at", Instant, nullable=False),
    Column("deadline", Instant),
    Column("ended_at", Instant),
    Column("risk", Integer, nullable=False),
    Column("reason", Text),
)
_PENDING = text("status = 'pending'")
Index(
    "reviews_inbox",
    reviews.c.risk.desc(),
    reviews.c.deadline,
    reviews.c.asked_at,
    reviews.c.id,
    sqlite_where=_PENDING,
    postgresql_where=_PENDING,
)
Index(
    "reviews_due",
    reviews.c.deadline,
    sqlite_where=text("status = 'pending' AND deadline IS NOT NULL"),
    postgresql_where=text("status = 'pending' AND deadline IS NOT NULL"),
)
Index(
    "reviews_ended",
    reviews.c.ended_at,
    reviews.c.id,
    sqlite_where=text("ended_at IS NOT NULL"),
    postgresql_where=text("ended_at IS NOT NULL"),
)
Index("reviews_by_run", reviews.c.run_id, reviews.c.message, reviews.c.round)
Index("reviews_by_thread", reviews.c.thread_id, reviews.c.asked_at)

# What people saw of each call, and what it became. `proposed` stays as it came; `arguments` is the revision.
reviewed_calls = Table(
    "reviewed_calls",
    metadata,
    Column("review_id", Text, ForeignKey("reviews.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("tool_call_id", Text, nullable=False),
    Column("proposed_tool", Text, nullable=False),
    Column("proposed", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("schema_hash", Text, nullable=False),
    Column("salt", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("verdict", Json, nullable=False),
    Column("since", Instant),
)
Index("reviewed_calls_by_key", reviewed_calls.c.key)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("review_id", Text, ForeignKey("reviews.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("message", Text),
    Column("tool", Text),
    Column("arguments", Text),
    Column("counted", Json),
    Column("standing", Text),
)
Index("decisions_by_review", decisions.c.review_id, decisions.c.at)

clearances = Table(
    "clearances",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("review_id", Text, ForeignKey("reviews.id"), nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("minted_at", Instant, nullable=False),
    Column("used_at", Instant),
)
# At most one clearance of a call can be open: two would be the right to run it twice.
Index(
    "clearances_one_open",
    clearances.c.key,
    unique=True,
    sqlite_where=text("status = 'open'"),
    postgresql_where=text("status = 'open'"),
)

# The ledger: one row for each call that was held, started or refused, and how it ended.
calls = Table(
    "calls",
    metadata,
    Column("key", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("worker", Text),
    Column("started_at", Instant),
    Column("due_at", Instant),
    Column("ended_at", Instant),
    Column("result", Text),
    Column("artifact", Text),
)
Index("calls_by_run", calls.c.run_id)
_UNFINISHED = text("state IN ('started', 'uncertain')")
Index(
    "calls_unfinished",
    calls.c.state,
    calls.c.key,
    sqlite_where=_UNFINISHED,
    postgresql_where=_UNFINISHED,
)

# What was too large for the model, kept whole.
artifacts = Table(
    "artifacts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

# Answers that became known after their turn had ended; the thread's next message brings them in.
late_answers = Table(
    "late_answers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("taken_by", Text),
    Column("at", Instant, nullable=False),
)
Index(
    "late_answers_open",
    late_answers.c.thread_id,
    sqlite_where=text("taken_by IS NULL"),
    postgresql_where=text("taken_by IS NULL"),
)

schemas = Table(
    "schemas",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("schema", Json, nullable=False),
)
tools = Table(
    "tools",
    metadata,
    Column("program", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("schema_hash", Text, ForeignKey("schemas.hash"), nullable=False),
    Column("description", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
)
policies = Table(
    "policies",
    metadata,
    Column("program", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("version", Text, nullable=False),
    Column("policy", Json, nullable=False),
    Column("active_since", Instant, nullable=False),
    Column("source", Text, nullable=False, server_default="code"),
    Column("text", Text),
)

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Json, nullable=False),
)

# What was answered to a request that carried a key of its own, so that a repetition gets the same answer.
answers = Table(
    "answers",
    metadata,
    Column("person", Text, primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", Instant, nullable=False),
)
Index("answers_by_age", answers.c.at)

# What a run says while it works: text as the model speaks. Not audited; gone when the run has ended.
stream = Table(
    "stream",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("attempt", BigInteger, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("text", Text, nullable=False),
)

# Where a caller wants to be told that its call was decided, and whether it was.
callbacks = Table(
    "callbacks",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("due_at", Instant),
    Column("tries", Integer, nullable=False),
    Column("delivered_at", Instant),
    Column("error", Text),
)
Index(
    "callbacks_due",
    callbacks.c.due_at,
    sqlite_where=text("due_at IS NOT NULL"),
    postgresql_where=text("due_at IS NOT NULL"),
)

# What a pipeline found and made: immutable files of a run, and how far it has come.
run_files = Table(
    "run_files",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("at", Instant, nullable=False),
)
run_stages = Table(
    "run_stages",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("state", Json, nullable=False),
    Column("at", Instant, nullable=False),
)
