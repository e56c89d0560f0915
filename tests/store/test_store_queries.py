"""The queries that run all the time find their rows by an index, however much else there is."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event

from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store import around_runs, audit, calls, people, policies, reviews, runs
from clearance.store.counting import counts
from clearance.store.database import Database
from clearance.store.listing import ReviewFilter, RunFilter, ended_reviews, newest_runs, waiting_reviews
from clearance.store.looking_back import EntryFilter, newest_entries

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
MANY = 5_000
"""Threads with a run, a review and a call each; one in fifty waits."""
ENTRIES = 30_000

_NUMBERS = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {many})",
    "postgresql": "WITH s(n) AS (SELECT generate_series(1, {many}))",
}
# `wide` makes rows as wide as real ones: else a whole table is read sooner than an index.
_ROWS = """
INSERT INTO threads (id, program, caller_driven, wanted, done, fence, owner, created_at) {s} SELECT
    't' || n, 'chat', {false}, 1, CASE n % 100 WHEN 0 THEN 0 ELSE 1 END, 1, NULL, n FROM s;
INSERT INTO runs (id, thread_id, program, state, requester, input, answer, reason, created_at, ended_at) {s}
    SELECT
    'r' || n, 't' || n, 'chat', CASE n % 50 WHEN 0 THEN 'waiting' ELSE 'done' END, 'tom', {wide}, NULL, NULL,
    n, NULL FROM s;
INSERT INTO reviews {s} SELECT
    'r' || n || '/1/1', 'r' || n, 't' || n, 'calls', 1, 1,
    CASE n % 50 WHEN 0 THEN 'pending' ELSE 'settled' END, 1, 'tom', n,
    CASE n % 100 WHEN 0 THEN n ELSE NULL END, NULL, n % 4, {wide} FROM s;
INSERT INTO reviewed_calls {s} SELECT
    'r' || n || '/1/1', 'r' || n || '/1/0', 0, '', 'pay', '{{}}', 'pay', {wide}, '', '', '', 1, 'waiting',
    '{verdict}', NULL FROM s;
INSERT INTO decisions {s} SELECT
    'd' || n, 'r' || n || '/1/1', 'r' || n || '/1/0', 1, 'approve', 'rita', n, {wide}, NULL, NULL,
    NULL, NULL FROM s;
INSERT INTO clearances {s} SELECT
    'c' || n, 'r' || n || '/1/0', 'r' || n || '/1/1', {wide}, 1,
    CASE n % 50 WHEN 0 THEN 'open' ELSE 'used' END, n, NULL FROM s;
INSERT INTO calls {s} SELECT
    'r' || n || '/1/0', 'r' || n, 'pay', {wide}, '', 'executed', 1, 1, NULL, NULL, NULL, NULL, NULL, NULL
    FROM s;
INSERT INTO entries {s_entries} SELECT
    'e' || n, CASE WHEN n <= {entries} - 50 THEN n ELSE NULL END, n, 'run:done', 'r' || n, 'tom', '{{}}',
    {wide} FROM s;
UPDATE notary SET last_seq = {entries} - 50
"""
_VERDICT = (
    '{"decisions":["approve"],"effect":"hold","expire":null,"faults":[],"flags":{},"policy":"","reason":false,'
    '"risk":"low","rules":[],"who":[]}'
)


@dataclass(frozen=True)
class Query:
    """A query of the product, and the index by which it finds its rows."""

    run: Callable[[Connection], object]
    table: str
    index: str


QUERIES = {
    "inbox page": Query(
        lambda tx: waiting_reviews(tx, ReviewFilter(), after=None, limit=50), "reviews", "reviews_inbox"
    ),
    "next inbox page": Query(
        lambda tx: waiting_reviews(tx, ReviewFilter(), after=(2, NOW, NOW, "r"), limit=50),
        "reviews",
        "reviews_inbox",
    ),
    "inbox page after the last with a deadline": Query(
        lambda tx: waiting_reviews(tx, ReviewFilter(), after=(2, None, NOW, "r"), limit=50),
        "reviews",
        "reviews_inbox",
    ),
    "page of reviews that wait": Query(
        lambda tx: waiting_reviews(tx, ReviewFilter(program="no"), after=(1, None, NOW, "r"), limit=50),
        "reviews",
        "reviews_inbox",
    ),
    "page of reviews with words": Query(
        lambda tx: waiting_reviews(
            tx, ReviewFilter(words=("no",), agent="no", undecided_by="rita"), after=None, limit=50
        ),
        "reviews",
        "reviews_inbox",
    ),
    "page of reviews that have ended": Query(
        lambda tx: ended_reviews(
            tx, ReviewFilter(), statuses=[ReviewStatus.SETTLED], after=(NOW, "r"), limit=50
        ),
        "reviews",
        "reviews_ended",
    ),
    "page of the reviews of a thread": Query(
        lambda tx: waiting_reviews(tx, ReviewFilter(thread_id="t500"), after=None, limit=50),
        "reviews",
        "reviews_by_thread",
    ),
    "page of runs": Query(
        lambda tx: newest_runs(tx, RunFilter(requester="no"), states=(), after=(NOW, "r"), limit=50),
        "runs",
        "runs_by_state",
    ),
    "counts of what waits": Query(counts, "reviews", "reviews_"),
    "due reviews": Query(lambda tx: reviews.due(tx, now=NOW, limit=100), "reviews", "reviews_due"),
    "pending review of a thread": Query(
        lambda tx: reviews.pending(tx, "t500"), "reviews", "reviews_by_thread"
    ),
    "reviews of a message": Query(lambda tx: reviews.of_message(tx, "r500", 1), "reviews", "reviews_by_run"),
    "reviews of a call": Query(
        lambda tx: reviews.of_call(tx, "r500/1/0"), "reviewed_calls", "reviewed_calls_by_key"
    ),
    "decisions of a review": Query(
        lambda tx: reviews.review(tx, "r500/1/1"), "decisions", "decisions_by_review"
    ),
    "due threads": Query(
        lambda tx: runs.due_threads(tx, programs=("chat",), limit=10), "threads", "threads_wanted"
    ),
    "open run of a thread": Query(lambda tx: runs.open_run(tx, "t500"), "runs", "runs_"),
    "runs that wait": Query(
        lambda tx: runs.list_runs(tx, states=(RunState.QUEUED,)), "runs", "runs_by_state"
    ),
    "calls of a run": Query(lambda tx: calls.of_run(tx, "r500"), "calls", "calls_by_run"),
    "entries of a number": Query(lambda tx: audit.read_after(tx, 4900, limit=10), "entries", "seq"),
    "unnumbered entries": Query(lambda tx: audit.standing(tx, since=NOW), "entries", "entries_"),
    "numbering": Query(lambda tx: audit.number(tx), "entries", "entries_unnumbered"),
    "newest entries": Query(
        lambda tx: newest_entries(tx, EntryFilter(actor="no"), below=4000, limit=50), "entries", "seq"
    ),
    "entries of a day": Query(
        lambda tx: newest_entries(
            tx, EntryFilter(since=NOW - timedelta(days=1), before=NOW), below=None, limit=50
        ),
        "entries",
        "seq",
    ),
    "newest entries about something": Query(
        lambda tx: newest_entries(tx, EntryFilter(subject="r500"), below=None, limit=50),
        "entries",
        "entries_by_subject",
    ),
    "entries about a run": Query(
        lambda tx: around_runs.entries_about(tx, ["r500", "r500/1/1", "r500/1/0"], most=200),
        "entries",
        "entries_by_subject",
    ),
    "reviews of a run": Query(lambda tx: reviews.of_run(tx, "r500"), "reviews", "reviews_by_run"),
    "what runs wait for": Query(
        lambda tx: around_runs.stops(tx, ["r500", "r501"]), "reviews", "reviews_by_run"
    ),
    "how long runs have waited": Query(
        lambda tx: around_runs.waited(tx, ["r500", "r501"], now=NOW), "reviews", "reviews_by_run"
    ),
    "who decided of runs": Query(
        lambda tx: around_runs.deciders(tx, ["r500", "r501"]), "decisions", "decisions_by_review"
    ),
    "open clearance": Query(
        lambda tx: calls.use(tx, "r500/1/0", attempt=1, fingerprint="", now=NOW),
        "clearances",
        "clearances_one_open",
    ),
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def full(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, databases: Any
) -> Iterator[Database]:
    """A database with much in it, whose statistics are those of a database in use."""
    kind = str(request.param)
    url = databases.migrated(kind, tmp_path_factory.mktemp("full"))
    database = Database(url)
    sqlite = database.is_sqlite
    values = {
        "s": _NUMBERS[kind].format(many=MANY),
        "s_entries": _NUMBERS[kind].format(many=ENTRIES),
        "entries": ENTRIES,
        "false": 0 if sqlite else "false",
        "wide": "printf('%.*c', 200, 'x')" if sqlite else "repeat('x', 200)",
        "verdict": _VERDICT,
    }
    with database.write() as tx:
        for statement in _ROWS.format(**values).split(";"):
            tx.exec_driver_sql(statement.replace("%", "%%") if not sqlite else statement)
        tx.exec_driver_sql("ANALYZE")
    yield database
    database.close()
    if not sqlite:
        databases.drop(url)


def plans(database: Database, query: Query, *, first: str | None = None) -> str:
    """Return how the database carries out every statement of a query; what it changes is rolled back.

    `first` is a statement that comes before.
    """
    said: list[tuple[str, Any]] = []
    found: list[str] = []

    class Back(Exception):
        """The way out of the transaction."""

    explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
    try:
        with database.write() as tx:
            if first is not None:
                tx.exec_driver_sql(first)

            @event.listens_for(tx, "before_cursor_execute")
            def _(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
                if not statement.startswith(explain):
                    said.append((statement, parameters))

            query.run(tx)
            for statement, parameters in list(said):
                if query.table in statement and not statement.startswith("SET"):
                    found += [str(row[-1]) for row in tx.exec_driver_sql(explain + statement, parameters)]
            raise Back
    except Back:
        return "\n".join(found)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_query_that_runs_all_the_time_finds_its_rows_by_an_index(full: Database, query: Query) -> None:
    plan = plans(full, query)
    assert query.index in plan, plan
    assert f"SCAN {query.table}\n" not in plan + "\n", plan
    assert f"Seq Scan on {query.table}" not in plan, plan


@pytest.mark.parametrize("name", ["inbox page", "next inbox page", "page of reviews with words"])
def test_an_inbox_page_is_put_together_from_lists_that_are_in_order_already(
    full: Database, name: str
) -> None:
    # Few rows wait here, and PostgreSQL would rather sort so few: it is asked how it reads many.
    many = None if full.is_sqlite else "SET LOCAL enable_bitmapscan = off"
    plan = plans(full, QUERIES[name], first=many)
    pages = len(re.findall(r"COMPOUND QUERY|-> +Append", plan))
    sorts = len(re.findall(r"USE TEMP B-TREE|(?m:^ *(?:-> +)?(?:Incremental )?Sort +\()", plan))
    # The beginnings of the lists, once they are together, and then what is left of them.
    assert 0 < sorts <= 2 * pages, plan


def test_the_same_query_finds_its_rows_by_the_index_when_it_has_run_often(full: Database) -> None:
    for name in ("inbox page", "due threads", "pending review of a thread"):
        query = QUERIES[name]
        for _ in range(12):
            with full.read() as tx:
                query.run(tx)
        assert query.index in plans(full, query)


def test_rows_are_found_and_read_as_they_are(full: Database) -> None:
    with full.read() as tx:
        assert len(waiting_reviews(tx, ReviewFilter(), after=None, limit=50).ids) == 50
        assert reviews.due(tx, now=NOW + timedelta(days=1), limit=10)
        assert len(runs.due_threads(tx, programs=("chat",), limit=1000)) == MANY // 100
        assert people.nobody(tx)
        assert policies.active_version(tx, "chat") is None
