"""Deciding: all that the decision fragment shows, for the page of a review, a chat and a pipeline alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection

from clearance.decision import why_not
from clearance.errors import InvalidArgumentsError
from clearance.form.building import build_form, raw_form
from clearance.form.composing import compose
from clearance.form.field import UNTOUCHED, Field, State
from clearance.people import Person
from clearance.policy import DecisionType, Risk
from clearance.reading import Whole, summary_of, whole
from clearance.review import (
    Answer,
    Review,
    ReviewedCall,
    ReviewKind,
    ReviewStatus,
    latest,
    standing,
)
from clearance.standing import may_stand
from clearance.store import people, policies
from clearance.store.calls import LedgerRow
from clearance.web.pages.arguments import Argument, Change, arguments_of, changes_between
from clearance.web.pages.stepping_up import StepUp, wanted
from clearance.web.pages.viewer import Viewer, local
from clearance.workspace import Clearance

_BEFORE = ("/chat/", "/pipeline/")


@dataclass(frozen=True)
class Draft:
    """What a person did on the page so far; nothing of it is decided.

    `states`, `chosen` and `comments` are by the number of the call. `errors` are by the names of fields;
    the one of no field is about all of it. `back` is the page that they go back to; empty: the review's own.
    `risk` is what their edits were judged to have, where that is more than before.
    """

    editing: bool = False
    raw: bool = False
    states: Mapping[int, State] = field(default_factory=dict)
    chosen: Mapping[int, str] = field(default_factory=dict)
    comments: Mapping[int, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    back: str = ""
    risk: Risk | None = None


@dataclass(frozen=True)
class Approval:
    """How far one threshold is: who counted for it, and what it waits for (empty: for nothing)."""

    have: int
    need: int
    group: str | None
    names: tuple[str, ...]
    waits: str
    escalates: tuple[tuple[str, datetime], ...] = ()


@dataclass(frozen=True)
class Said:
    """One decision that was made, and what it changed, if it was an edit."""

    who: str
    type: DecisionType
    at: datetime
    message: str
    changes: list[Change]
    counts: bool


@dataclass(frozen=True)
class CallCard:
    """One call of a review. `form` is there while it is edited; `changes` are what was changed so far.

    `may_stand` is whether a standing rule can be made from it.
    """

    place: int
    call: ReviewedCall
    title: str
    description: str
    flagged: list[Argument]
    others: list[Argument]
    choices: tuple[DecisionType, ...]
    consequences: tuple[tuple[DecisionType, str], ...]
    approvals: list[Approval]
    said: list[Said]
    ledger: LedgerRow | None
    waits: bool
    form: Field | None = None
    changes: list[Change] | None = None
    since_proposed: list[Change] = field(default_factory=list)
    may_stand: bool = False


@dataclass(frozen=True)
class Card:
    """A review as a person decides it. `refused` is why they may not; `mine` what they said before.

    `risk` is what the sign-in must be fresh for, as far as that is known.
    """

    review: Review
    now: datetime
    calls: tuple[CallCard, ...]
    draft: Draft
    token: str
    refused: str | None
    mine: DecisionType | None
    names: Mapping[str, str]
    looking: str | None
    risk: Risk
    step_up: StepUp
    where: str

    @property
    def open(self) -> bool:
        """Whether it waits, and this person may decide it."""
        return self.review.status is ReviewStatus.PENDING and self.refused is None

    @property
    def waiting(self) -> tuple[CallCard, ...]:
        """The calls that need decisions."""
        return tuple(each for each in self.calls if each.waits)

    @property
    def is_plan(self) -> bool:
        """Whether it is decided whole."""
        return self.review.kind is ReviewKind.PLAN

    @property
    def choices(self) -> tuple[DecisionType, ...]:
        """What can be answered by one button: to the one call that waits, or to a whole plan."""
        waiting = self.waiting
        if not waiting or (len(waiting) > 1 and not self.is_plan):
            return ()
        return tuple(item for item in DecisionType if all(item in each.choices for each in waiting))

    @property
    def can_edit(self) -> bool:
        """Whether any call that waits takes other arguments."""
        return not self.is_plan and any(DecisionType.EDIT in each.choices for each in self.waiting)

    @property
    def edits(self) -> int:
        """How many changes there are so far."""
        return sum(len(each.changes or ()) for each in self.calls)


def decision_card(
    tx: Connection,
    here: Clearance,
    review: Review,
    viewer: Viewer,
    *,
    token: str,
    draft: Draft | None = None,
    found: Whole | None = None,
) -> dict[str, Any]:
    """Return what `parts/decision.html` needs: `card`, to be decided by this viewer.

    `review` is as the store has it, secrets and all. `token` is fresh for each page: what is sent twice with
    the same is decided once. `draft` is what was typed before, and what was wrong with it.
    """
    found = found or whole(here.database, tx, review)
    draft = draft or Draft()
    party = people.party(tx, review.requester)
    refused = why_not(review, viewer.person, mode=found.mode, party=party, now=found.now)
    deciders = {each.by for call in review.calls for each in call.decisions}
    names = {each: found.people[each].name if each in found.people else each for each in deciders}
    cards = tuple(_call_card(tx, found, call, draft=draft, names=names) for call in found.review.calls)
    claim = found.claim
    risk = max(review.risk, draft.risk or review.risk, key=tuple(Risk).index)
    card = Card(
        review=found.review,
        now=found.now,
        calls=cards,
        draft=draft,
        token=token,
        refused=refused,
        mine=said_by(review, viewer.person),
        names=names,
        risk=risk,
        step_up=wanted(viewer, risk, here) if found.review.status is ReviewStatus.PENDING else StepUp.NONE,
        where=f"/login?again=1&next={quote(draft.back or address(review), safe='/')}",
        looking=claim.person if claim is not None and claim.person != viewer.person.id else None,
    )
    return {"card": card, "viewer": viewer}


def address(review: Review) -> str:
    """Return where a review is decided."""
    return f"/reviews/{quote(review.id)}"


def page_before(address: str) -> str:
    """Return the page to go back to after deciding: a conversation or a pipeline's run; else nothing."""
    return address if address.startswith(_BEFORE) and local(address) == address else ""


def said_by(review: Review, person: Person) -> DecisionType | None:
    """Return what a person said last, to any call of the review as it stands."""
    said = [found for call in review.calls if (found := latest(call).get(person.id)) is not None]
    return max(said, key=lambda each: each.at).type if said else None


def schema_of(tx: Connection, review: Review, call: ReviewedCall) -> Mapping[str, Any]:
    """Return the schema that an edit of a call is checked by."""
    found = policies.tool_schema(tx, review.program, call.tool)
    return found if found is not None else policies.schema(tx, call.schema_hash)


def form_of(schema: Mapping[str, Any], call: ReviewedCall, draft: Draft, *, place: int) -> Field:
    """Return the form of a call as it was filled in so far."""
    state = draft.states.get(place, UNTOUCHED)
    return raw_form(call.arguments, state) if draft.raw else build_form(schema, call.arguments, state)


def _call_card(
    tx: Connection, found: Whole, call: ReviewedCall, *, draft: Draft, names: Mapping[str, str]
) -> CallCard:
    place = found.place(call)
    waits = found.review.status is ReviewStatus.PENDING and call.state is Answer.WAITING
    choices = tuple(item for item in DecisionType if item in call.verdict.decisions) if waits else ()
    flagged, others = arguments_of(call)
    form, changes = None, None
    if draft.editing and DecisionType.EDIT in choices:
        form = form_of(schema_of(tx, found.review, call), call, draft, place=place)
        text = compose(form).text
        changes = None if text is None else _changes(call.arguments, text)
    return CallCard(
        place=place,
        call=call,
        title=summary_of(call) or call.tool,
        description=found.descriptions.get(call.tool, ""),
        flagged=flagged,
        others=others,
        choices=choices,
        consequences=tuple((item, found.consequence(call, item)) for item in choices),
        approvals=_approvals(found, call, names=names),
        said=_said(call, names=names),
        ledger=found.ledger.get(call.key),
        waits=waits,
        form=form,
        changes=changes,
        since_proposed=changes_between(call.proposed, call.arguments) if call.edited else [],
        may_stand=not call.verdict.secret and may_stand(call.verdict, kind=found.review.kind) is None,
    )


def _changes(before: str, text: str) -> list[Change] | None:
    try:
        return changes_between(before, text)
    except InvalidArgumentsError:
        return None


def _approvals(found: Whole, call: ReviewedCall, *, names: Mapping[str, str]) -> list[Approval]:
    approvers = [
        (item, found.people[item.by])
        for item in latest(call).values()
        if item.type in (DecisionType.APPROVE, DecisionType.EDIT) and item.by in found.people
    ]
    made = []
    for threshold, have in standing(call, found.people):
        counted = tuple(
            names[person.id]
            for item, person in approvers
            if any(each.group == threshold.group for each in item.counted)
        )
        left = threshold.approve - have
        of_group = f" of {threshold.group}" if threshold.group else ""
        waits = f"waiting for {left} {'person' if left == 1 else 'people'}{of_group}" if left > 0 else ""
        escalates = tuple(
            (each.to, call.since + each.after) for each in threshold.also if call.since is not None
        )
        made.append(Approval(have, threshold.approve, threshold.group, counted, waits, escalates))
    return made


def _said(call: ReviewedCall, *, names: Mapping[str, str]) -> list[Said]:
    """Return every decision on a call in order, each edit with what it changed in the call before it."""
    standing_last = {id(item) for item in latest(call).values()}
    arguments = call.proposed
    made = []
    for item in sorted(call.decisions, key=lambda each: (each.at, each.id)):
        changes: list[Change] = []
        if item.arguments is not None and item.type is DecisionType.EDIT:
            changes, arguments = changes_between(arguments, item.arguments), item.arguments
        who = names.get(item.by, item.by)
        made.append(Said(who, item.type, item.at, item.message, changes, id(item) in standing_last))
    return made
