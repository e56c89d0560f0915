"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table of the first release."""
    _threads()
    _runs()
    _reviews()
    _reviewed_calls()
    _decisions()
    _clearances()
    _calls()
    _artifacts()
    _late_answers()
    _schemas()
    _tools()
    _policies()
    _people()
    _facts()
    _entries()
    _seals()
    _notary()


def _threads() -> None:
    op.create_table(
        "threads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("caller_driven", sa.Boolean(), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "threads_owner",
        "threads",
        ["owner"],
        unique=False,
        sqlite_where=sa.text("owner IS NOT NULL"),
        postgresql_where=sa.text("owner IS NOT NULL"),
    )
    op.create_index(
        "threads_wanted",
        "threads",
        ["program"],
        unique=False,
        sqlite_where=sa.text("wanted > done"),
        postgresql_where=sa.text("wanted > done"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("runs_by_state", "runs", ["state", "created_at"], unique=False)
    op.create_index("runs_by_thread", "runs", ["thread_id", "created_at"], unique=False)
    op.create_index(
        "runs_one_open",
        "runs",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("state IN ('queued', 'running', 'waiting')"),
        postgresql_where=sa.text("state IN ('queued', 'running', 'waiting')"),
    )


def _reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("risk", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("reviews_by_run", "reviews", ["run_id", "message", "round"], unique=False)
    op.create_index("reviews_by_thread", "reviews", ["thread_id", "asked_at"], unique=False)
    op.create_index(
        "reviews_due",
        "reviews",
        ["deadline"],
        unique=False,
        sqlite_where=sa.text("status = 'pending' AND deadline IS NOT NULL"),
        postgresql_where=sa.text("status = 'pending' AND deadline IS NOT NULL"),
    )
    op.create_index(
        "reviews_inbox",
        "reviews",
        [sa.literal_column("risk DESC"), "asked_at", "id"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )


def _reviewed_calls() -> None:
    op.create_table(
        "reviewed_calls",
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("tool_call_id", sa.Text(), nullable=False),
        sa.Column("proposed_tool", sa.Text(), nullable=False),
        sa.Column("proposed", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("schema_hash", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["review_id"],
            ["reviews.id"],
        ),
        sa.PrimaryKeyConstraint("review_id", "key"),
    )
    op.create_index("reviewed_calls_by_key", "reviewed_calls", ["key"], unique=False)


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["review_id"],
            ["reviews.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("decisions_by_review", "decisions", ["review_id", "at"], unique=False)


def _clearances() -> None:
    op.create_table(
        "clearances",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("minted_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["review_id"],
            ["reviews.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "clearances_one_open",
        "clearances",
        ["key"],
        unique=True,
        sqlite_where=sa.text("status = 'open'"),
        postgresql_where=sa.text("status = 'open'"),
    )


def _calls() -> None:
    op.create_table(
        "calls",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("artifact", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("calls_by_run", "calls", ["run_id"], unique=False)
    op.create_index(
        "calls_unfinished",
        "calls",
        ["state", "key"],
        unique=False,
        sqlite_where=sa.text("state IN ('started', 'uncertain')"),
        postgresql_where=sa.text("state IN ('started', 'uncertain')"),
    )


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _late_answers() -> None:
    op.create_table(
        "late_answers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("taken_by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "late_answers_open",
        "late_answers",
        ["thread_id"],
        unique=False,
        sqlite_where=sa.text("taken_by IS NULL"),
        postgresql_where=sa.text("taken_by IS NULL"),
    )


def _schemas() -> None:
    op.create_table(
        "schemas",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )


def _tools() -> None:
    op.create_table(
        "tools",
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("schema_hash", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schema_hash"],
            ["schemas.hash"],
        ),
        sa.PrimaryKeyConstraint("program", "name"),
    )


def _policies() -> None:
    op.create_table(
        "policies",
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("active_since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("program", "number"),
    )


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.Column("behind", sa.Text(), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _facts() -> None:
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _entries() -> None:
    op.create_table(
        "entries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("seq"),
    )
    op.create_index("entries_by_subject", "entries", ["subject", "seq"], unique=False)
    op.create_index(
        "entries_unnumbered",
        "entries",
        ["time", "id"],
        unique=False,
        sqlite_where=sa.text("seq IS NULL"),
        postgresql_where=sa.text("seq IS NULL"),
    )


def _seals() -> None:
    op.create_table(
        "seals",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )


def _notary() -> None:
    op.create_table(
        "notary",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seal", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("INSERT INTO notary (id, last_seq, last_seal) VALUES (1, 0, 0)")
