"""What waits, as a list shows it: one row for each review, and similar ones of small risk together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection

from clearance.decision import why_not
from clearance.people import Person
from clearance.policy import Risk
from clearance.reading import Whole, every, summary_of
from clearance.review import Decision, Review, ReviewedCall, ReviewKind, ReviewStatus, standing
from clearance.store import people, reviews
from clearance.store.database import Database
from clearance.store.listing import ReviewFilter, Waiting, waiting_reviews
from clearance.store.pages import Page
from clearance.summary import call_in_short

LOOK_AT = 500
"""Reviews that a page looks into, at most, for a filter that only what is shown can answer."""
_SMALL = (Risk.LOW, Risk.MEDIUM)


@dataclass(frozen=True)
class Row:
    """One review in a list. `why_not` is why the viewer may not decide it; None when they may."""

    found: Whole
    why_not: str | None

    @property
    def review(self) -> Review:
        """The review."""
        return self.found.review

    @cached_property
    def title(self) -> str:
        """What it is about, in words of the product and of the policy, never of the model."""
        return title(self.review)

    def address(self, places: Sequence[tuple[str, str]]) -> str:
        """Return where it is read and decided: a plan beside its run, where that is among the places."""
        if self.review.kind is ReviewKind.PLAN and any(path == "/pipeline" for _, path in places):
            return f"/pipeline/{quote(self.review.run_id, safe='')}"
        return f"/reviews/{quote(self.review.id)}"

    @property
    def said(self) -> list[Decision]:
        """What people said, each once: to a plan they say the same to all of its steps."""
        found = [item for call in self.review.calls for item in call.decisions]
        return list({(item.by, item.type, item.message): item for item in found}.values())

    @property
    def outcome(self) -> str:
        """What became of it, in a word: of all of its calls alike, or of the review."""
        states = {call.state.value for call in self.review.calls}
        settled = self.review.status is ReviewStatus.SETTLED and len(states) == 1
        return states.pop() if settled else self.review.status.value

    @property
    def item(self) -> str:
        """What a form sends to name it, as it was seen."""
        return json.dumps([[self.review.id, self.review.version]], ensure_ascii=False)

    @cached_property
    def tools(self) -> str:
        """The tools of its calls."""
        return ", ".join(dict.fromkeys(call.tool for call in self.review.calls))

    @property
    def reasons(self) -> str:
        """Which rules hold it, and what they point out."""
        calls = self.review.waiting or self.review.calls
        rules = dict.fromkeys(rule for call in calls for rule in call.verdict.rules)
        flags = dict.fromkeys(why for call in calls for why in call.verdict.flags.values())
        return ": ".join(filter(None, [", ".join(rules) or "no rule lets it run", "; ".join(flags)]))

    @property
    def approvals(self) -> list[str]:
        """How far each demand is on the first call that waits: `0 of 2 approvals`, `1 of 2 from finance`."""
        if not self.review.waiting:
            return []
        found = standing(self.review.waiting[0], self.found.people)
        return [
            f"{have} of {each.approve} from {each.group}"
            if each.group
            else f"{have} of {each.approve} approvals"
            for each, have in found
            if each.group or each.approve > 1 or have
        ]

    @property
    def kind(self) -> str | None:
        """What it can be decided together with: others of the same kind; None: with nothing."""
        return (
            None if one_by_one(self.review) else json.dumps([self.review.program, self.review.calls[0].tool])
        )

    @property
    def alone(self) -> str | None:
        """Why it is decided alone."""
        return one_by_one(self.review)


@dataclass(frozen=True)
class Group:
    """Rows that stand together: one, or several that are similar."""

    rows: tuple[Row, ...]

    @property
    def item(self) -> str:
        """What a form sends to name all of them."""
        return json.dumps([[row.review.id, row.review.version] for row in self.rows], ensure_ascii=False)


@dataclass(frozen=True)
class Found:
    """The rows of a page, and where the next begins; None at the end. `looked_at` counts what was read."""

    rows: list[Row]
    after: Waiting | None
    looked_at: int


def title(review: Review) -> str:
    """Return what a review is about: the first call's summary, or else its tool and arguments in short."""
    first, more = review.calls[0], len(review.calls) - 1
    if review.kind is ReviewKind.PLAN:
        return f"Plan of {review.run_id}: {more + 1} {'steps' if more else 'step'}"
    said = summary_of(first) or call_in_short(first.tool, first.arguments)
    if more:
        said += f" and {more} more {'call' if more == 1 else 'calls'}"
    return f"Did it happen? {said}" if review.kind is ReviewKind.OUTCOME else said


def one_by_one(review: Review) -> str | None:
    """Return why a review is not decided together with others, or None when it may be."""
    if review.kind is not ReviewKind.CALLS:
        return "Plans and outcomes are decided one at a time."
    if review.risk not in _SMALL:
        return "High and critical risk is decided one at a time."
    if len({call.tool for call in review.calls}) > 1:
        return "A review of several tools is decided on its own page."
    return None


def waiting(
    database: Database,
    tx: Connection,
    wanted: ReviewFilter,
    *,
    viewer: Person,
    mine: bool,
    after: Waiting | None,
    limit: int,
) -> Found:
    """Return the next rows; with `mine` only those that wait for the viewer.

    Words are looked for in what the viewer sees, so that nobody guesses at what is masked.
    """
    rows: list[Row] = []
    looked = 0
    while True:
        page: Page[Waiting] = waiting_reviews(tx, wanted, after=after, limit=limit - len(rows))
        found = rows_of(database, tx, reviews.by_id(tx, page.ids), viewer=viewer)
        rows += [row for row in found if shows(row.review, wanted.words) and not (mine and row.why_not)]
        after, looked = page.after, looked + page.looked_at
        if after is None or len(rows) == limit or looked >= LOOK_AT or not page.ids:
            return Found(rows, after, looked)


def rows_of(database: Database, tx: Connection, found: Sequence[Review], *, viewer: Person) -> list[Row]:
    """Return reviews as rows for a viewer."""
    shown = every(database, tx, found)
    parties = {name: people.party(tx, name) for name in {review.requester for review in found}}
    return [
        Row(
            each,
            why_not(each.review, viewer, mode=each.mode, party=parties[each.review.requester], now=each.now),
        )
        for each in shown
    ]


def shows(review: Review, words: Sequence[str]) -> bool:
    """Whether each of the words stands in what is shown of a review."""
    if not words:
        return True
    calls = [text for call in review.calls for text in _texts(call)]
    text = " ".join([review.id, review.requester, title(review), *calls]).casefold()
    return all(word.casefold() in text for word in words)


def grouped(rows: Sequence[Row]) -> list[Group]:
    """Return the rows in their order, those that are similar at the place of the first of them.

    Similar are questions of the same program, tool, rules and requester about one call each, of the same
    small risk.
    """
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(_likeness(row), []).append(row)
    return [Group(tuple(each)) for each in found.values()]


def _likeness(row: Row) -> tuple[object, ...]:
    review = row.review
    if row.kind is None or len(review.calls) > 1 or row.why_not:
        return (review.id,)
    verdict = review.calls[0].verdict
    return row.kind, review.requester, review.risk, verdict.rules, verdict.summaries


def _texts(call: ReviewedCall) -> tuple[str, ...]:
    return call.tool, call.proposed_tool, call.arguments, *call.verdict.rules
