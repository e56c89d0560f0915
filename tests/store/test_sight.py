"""Whose requests people see: everybody's, or of their groups; in lists, counts, decisions and messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clearance
from clearance.errors import NotFoundError
from clearance.membership import set_groups, set_sight
from clearance.notices.audience import everybody, may_decide
from clearance.people import Kind, Person, Role, Sight, may_see, sees_only
from clearance.settings import Settings
from clearance.store import people, reviews
from clearance.store.listing import ReviewFilter, RunFilter, newest_runs, waiting_reviews
from clearance.workspace import Clearance
from tests.web.asked import ask

OWNER = "ann"
PEOPLE = (
    Person("tom", "tom", role=Role.VIEWER, groups=("acme",)),
    Person("rita", "rita", role=Role.REVIEWER, groups=("acme", "night")),
    Person("mallory", "mallory", role=Role.REVIEWER, groups=("other",)),
    Person("olga", "olga", role=Role.OPERATOR, groups=("other",)),
    Person("lone", "lone", role=Role.REVIEWER),
    Person("bot", "bot", kind=Kind.AGENT, behind="tom"),
    Person("inner", "inner", kind=Kind.AGENT, behind="bot"),
    Person("round", "round", kind=Kind.AGENT, behind="round"),
)


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """Give a workspace of two groups of people who see nothing of each other."""
    with clearance.open(migrated_database_url, home=tmp_path, person=OWNER, worker=False) as found:
        with found.database.write() as tx:
            for person in PEOPLE:
                people.add(tx, person, now=found.database.now(tx))
        set_sight(found.database, Sight.OWN_GROUPS, by=OWNER)
        yield found


def _seen(workspace: Clearance, name: str) -> Person:
    with workspace.database.read() as tx:
        return people.with_sight(tx, people.person(tx, name))


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("tom", {"tom", "rita", "bot", "inner"}),
        ("rita", {"tom", "rita", "bot", "inner"}),
        ("mallory", {"mallory", "olga"}),
        ("lone", {"lone"}),
        ("olga", None),
        (OWNER, None),
        ("bot", {"bot"}),
    ],
)
def test_people_see_what_their_groups_asked_for(
    workspace: Clearance, name: str, sees: set[str] | None
) -> None:
    assert sees_only(_seen(workspace, name)) == sees


def test_everybody_sees_everything_until_it_is_set_otherwise(workspace: Clearance) -> None:
    set_sight(workspace.database, Sight.ALL, by=OWNER)
    assert sees_only(_seen(workspace, "mallory")) is None
    assert may_see(_seen(workspace, "mallory"), requester="tom")
    assert not may_see(_seen(workspace, "bot"), requester="tom")


def test_a_change_of_groups_counts_from_then_on(workspace: Clearance) -> None:
    assert not may_see(_seen(workspace, "mallory"), requester="inner")
    set_groups(workspace.database, "mallory", ["acme"], by=OWNER)
    assert may_see(_seen(workspace, "mallory"), requester="inner")


def test_lists_and_counts_leave_out_what_is_not_seen(workspace: Clearance) -> None:
    ours, theirs = ask(workspace, by="bot"), ask(workspace, by="mallory")
    with workspace.database.read() as tx:
        for name, found in [("rita", [ours]), ("mallory", [theirs]), ("lone", []), ("olga", [ours, theirs])]:
            only = sees_only(people.with_sight(tx, people.person(tx, name)))
            page = waiting_reviews(tx, ReviewFilter(asked_by=only), after=None, limit=10)
            assert page.ids == [each.id for each in found]
            assert reviews.waiting_count(tx, asked_by=only) == len(found)
            runs = newest_runs(tx, RunFilter(asked_by=only), states=(), after=None, limit=10)
            assert set(runs.ids) == {each.run_id for each in found}


def test_nobody_decides_what_they_do_not_see_by_any_door(workspace: Clearance) -> None:
    review = ask(workspace, by="bot")
    for name in ("mallory", "lone"):
        with pytest.raises(NotFoundError, match=f"There is no review {review.id}"):
            workspace.gate.decide(review.id, [{"type": "approve"}], by=name, version=1)
    after = workspace.gate.decide(review.id, [{"type": "approve"}], by="rita", version=1)
    assert [each.by for each in after.calls[0].decisions] == ["rita"]


def test_nobody_is_told_of_what_they_do_not_see(workspace: Clearance) -> None:
    review = ask(workspace, by="bot")
    with workspace.database.read() as tx:
        here = everybody(tx, now=workspace.database.now(tx))
        told = {each.id for each in here.persons if may_decide(tx, review, each, here=here)}
    assert told == {OWNER, "rita", "olga"}


def test_the_workspace_keeps_what_was_set(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARANCE_PEOPLE_SEE", "own-groups")
    assert Settings.read().people_see is Sight.OWN_GROUPS
    for _ in range(2):
        with clearance.open(migrated_database_url, home=tmp_path, person=OWNER, worker=False) as found:
            with found.database.write() as tx:
                people.add(tx, PEOPLE[2], now=found.database.now(tx))
            assert sees_only(_seen(found, "mallory")) == frozenset({"mallory"})
        monkeypatch.delenv("CLEARANCE_PEOPLE_SEE", raising=False)
