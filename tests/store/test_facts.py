"""What a workspace remembers about itself, and reviews found by a part of their id; on both databases."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from clearance.policy import Effect, Risk, Threshold, Verdict
from clearance.review import Review, ReviewedCall, ReviewKind, ReviewStatus
from clearance.run import Run, RunState
from clearance.store import facts, reviews, runs
from clearance.store.database import Database

NOW = datetime(2030, 1, 2, tzinfo=UTC)
VERDICT = Verdict(Effect.HOLD, Risk.LOW, (), (Threshold(),), (), "p")


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    opened = Database(migrated_database_url)
    yield opened
    opened.close()


def test_a_fact_is_remembered_until_it_is_replaced(database: Database) -> None:
    with database.write() as tx:
        assert facts.get(tx, facts.CHAT_MODEL) is None
        facts.put(tx, facts.CHAT_MODEL, "offline")
    with database.write() as tx:
        assert facts.get(tx, facts.CHAT_MODEL) == "offline"
        facts.put(tx, facts.CHAT_MODEL, {"any": [2**70, 7.0]})
    with database.read() as tx:
        assert facts.get(tx, facts.CHAT_MODEL) == {"any": [2**70, 7.0]}
        assert facts.get(tx, "other") is None


def _keep(database: Database, run_id: str, *review_ids: str) -> None:
    with database.write() as tx:
        runs.ensure_thread(tx, run_id, program="p", now=NOW)
        runs.insert_run(tx, Run(run_id, run_id, "p", RunState.WAITING, "ana", "x", NOW))
        for number, review_id in enumerate(review_ids, start=1):
            call = ReviewedCall(review_id, "", "t", "{}", "t", "{}", "h", "s", "f", VERDICT)
            reviews.insert_review(
                tx,
                Review(
                    review_id, run_id, run_id, "p", ReviewKind.CALLS, 1, number, ReviewStatus.PENDING, 1,
                    "ana", NOW, None, (call,),
                ),
            )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abc/1/1", {"abc/1/1"}),
        ("abc", {"abc/1/1", "abc/1/2"}),
        ("ABC", {"ABC/1/1"}),
        ("1/2", {"abc/1/2"}),
        ("/1/2", set()),
        ("bc/1/1", set()),
        ("a_c", {"a_c/1/1"}),
        ("a%", set()),
        ("", {"abc/1/1", "abc/1/2", "ABC/1/1", "a_c/1/1"}),
    ],
)
def test_reviews_are_found_by_the_beginning_or_the_end_of_their_id(
    database: Database, text: str, found: set[str]
) -> None:
    _keep(database, "abc", "abc/1/1", "abc/1/2")
    _keep(database, "ABC", "ABC/1/1")
    _keep(database, "a_c", "a_c/1/1")
    with database.read() as tx:
        assert set(reviews.ids_like(tx, text, limit=10)) == found
        assert reviews.waiting_count(tx) == 4
