"""Answering: what the decision fragment sent, read into decisions, or into what is wrong at which field."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import Connection

from clearance.errors import Fault, InvalidInputError
from clearance.form.changing import change
from clearance.form.composing import checked
from clearance.form.differences import differences
from clearance.form.field import State, lines, read_state
from clearance.policy import DecisionType
from clearance.redaction import unmasked
from clearance.review import Review, ReviewedCall, ReviewKind
from clearance.veil import veiled
from clearance.web.pages.deciding import Draft, form_of, page_before, schema_of
from clearance.web.pages.submitted import Submitted

MOST_VERSION_DIGITS = 9


@dataclass(frozen=True)
class Answers:
    """What a person wants: the payload for the gate, or None with the errors in `draft`.

    `calls` are the numbers of the calls that the payload's decisions are about, in its order.
    """

    draft: Draft
    payload: list[dict[str, Any]] | None
    calls: tuple[int, ...] = ()

    def with_faults(self, error: InvalidInputError) -> Draft:
        """Return the draft with the faults that the gate found, each at its field."""
        errors = dict(self.draft.errors)
        for fault in error.faults:
            name, said = self._field_of(fault)
            errors.setdefault(name, said)
        return replace(self.draft, errors=errors or {"": str(error)})

    def _field_of(self, fault: Fault) -> tuple[str, str]:
        number, _, rest = fault.pointer.removeprefix("/").partition("/")
        place = self.calls[int(number)] if number.isdecimal() and int(number) < len(self.calls) else 0
        if rest == "message":
            return f"c{place}", fault.message
        if rest.startswith("edited_action/args"):
            return f"t{place}{rest.removeprefix('edited_action/args')}", fault.message
        return f"d{place}", fault.message


def version_of(form: Submitted) -> int:
    """Return the version that was seen. Raises `InvalidInputError` for a form that does not say it."""
    text = form.get("version", "")
    if not (text.isascii() and text.isdecimal()) or len(text) > MOST_VERSION_DIGITS:
        raise InvalidInputError("The form does not say which version was seen. Load the page again.")
    return int(text)


def read_draft(form: Submitted, review: Review) -> Draft:
    """Return what was filled in and chosen, without looking at whether it is right."""
    places = range(1, len(review.calls) + 1)
    one = form.get("decision", "")
    chosen = {place: form.get(f"d{place}", "") for place in places}
    if one in tuple(DecisionType):
        chosen = dict.fromkeys(places, one)
    return Draft(
        editing=form.get("mode") in ("edit", "raw"),
        raw=form.get("mode") == "raw",
        states={place: _state(form, place) for place in places},
        chosen=chosen,
        comments={place: lines(form.get(f"c{place}", "")) for place in places},
        back=page_before(form.get("back", "")),
    )


def changed(tx: Connection, review: Review, draft: Draft, *, form: Submitted) -> Draft:
    """Return the draft after a button of a form was pressed: `do` is the call's number and what to do."""
    number, _, command = unquote(form.get("do", "")).partition(" ")
    if number == "check":
        return checked_draft(tx, review, draft)
    place = int(number) if number.isdecimal() and len(number) < MOST_VERSION_DIGITS else 0
    if not draft.editing or not 0 < place <= len(review.calls):
        raise InvalidInputError("That button is not known here. Load the page again.")
    call = veiled(review).calls[place - 1]
    state = draft.states[place]
    shown = form_of(schema_of(tx, review, call), call, draft, place=place)
    try:
        after = change(shown, state, command, entry=lambda name: form.get(f"k{place}{quote(name)}", ""))
    except InvalidInputError as error:
        return replace(draft, errors={f"s{place}": str(error)})
    return replace(draft, states={**draft.states, place: after})


def checked_draft(tx: Connection, review: Review, draft: Draft) -> Draft:
    """Return the draft with everything that is wrong in its fields."""
    errors: dict[str, str] = {}
    for place, call in enumerate(review.calls, 1):
        if call in review.waiting and DecisionType.EDIT in call.verdict.decisions:
            errors.update(_edited(tx, review, draft, place=place)[1])
    return replace(draft, errors=errors)


def answers(tx: Connection, review: Review, draft: Draft) -> Answers:
    """Return the decisions that a draft stands for. `review` is as the store has it, secrets and all.

    Approving what was changed is an edit; what was left as it is is approved as it is.
    """
    if review.kind is ReviewKind.PLAN:
        return _of_plan(review, draft)
    errors: dict[str, str] = {}
    payload = []
    waiting = [place for place, call in enumerate(review.calls, 1) if call in review.waiting]
    for place in waiting:
        call = review.calls[place - 1]
        answer, found = _answer(tx, review, draft, call, place=place)
        errors.update(found)
        payload.append({**answer, "call": call.key})
    if errors:
        return Answers(replace(draft, errors=errors), None)
    return Answers(draft, payload, tuple(waiting))


def _of_plan(review: Review, draft: Draft) -> Answers:
    chosen, comment = draft.chosen.get(1, ""), draft.comments.get(1, "")
    errors = _faults(chosen, comment, review.calls, place=1)
    if errors:
        return Answers(replace(draft, errors=errors), None)
    return Answers(draft, [_with_message({"type": chosen}, comment)], (1,))


def _answer(
    tx: Connection, review: Review, draft: Draft, call: ReviewedCall, *, place: int
) -> tuple[dict[str, Any], dict[str, str]]:
    chosen, comment = draft.chosen.get(place, ""), draft.comments.get(place, "")
    errors = _faults(chosen, comment, [call], place=place)
    answer: dict[str, Any] = {"type": chosen}
    editable = draft.editing and DecisionType.EDIT in call.verdict.decisions
    if chosen == DecisionType.APPROVE and editable:
        text, found = _edited(tx, review, draft, place=place)
        errors.update(found)
        if text is not None and differences(veiled(review).calls[place - 1].arguments, text):
            answer = {"type": "edit", "edited_action": {"name": call.tool, "args": text}}
    return _with_message(answer, comment), errors


def _faults(chosen: str, comment: str, calls: Sequence[ReviewedCall], *, place: int) -> dict[str, str]:
    """Return what is wrong with a choice and its comment; the gate has the last word on both."""
    allowed = {item for call in calls for item in call.verdict.decisions}
    said = bool(comment.strip())
    match chosen:
        case "":
            return {f"d{place}": "Choose what is to become of this call."}
        case DecisionType.REJECT if not said and any(call.verdict.reason for call in calls):
            return {f"c{place}": "Say why: a rejection of this needs a reason, and the agent is told."}
        case DecisionType.REVISE if not said:
            return {f"c{place}": "Say what is to be changed: the planner is told."}
        case DecisionType.RESPOND if not said:
            return {f"c{place}": "Write what the agent gets as the result."}
        case DecisionType.APPROVE if not allowed & {DecisionType.APPROVE, DecisionType.EDIT}:
            return {f"d{place}": "This cannot be approved."}
    return {}


def _edited(tx: Connection, review: Review, draft: Draft, *, place: int) -> tuple[str | None, dict[str, str]]:
    """Return the arguments that the form of a call stands for, and what is wrong with them by field."""
    call, shown = review.calls[place - 1], veiled(review).calls[place - 1]
    schema = schema_of(tx, review, call)
    form = form_of(schema, shown, draft, place=place)
    made = checked(
        form,
        tool=call.tool,
        schema=schema,
        restored=lambda text: unmasked(text, before=call.arguments, pointers=call.verdict.secret),
    )
    errors: dict[str, str] = {}
    for fault in made.faults:
        errors.setdefault(f"t{place}{fault.pointer}", fault.message)
    return (None if errors else made.text), errors


def _with_message(decision: dict[str, Any], comment: str) -> dict[str, Any]:
    return {**decision, "message": comment} if comment.strip() else decision


def _state(form: Submitted, place: int) -> State:
    """Return what was filled in for one call: fields `t1/to`, boxes `b1/to`, and the shape `s1`.

    Names are percent-encoded in the page: browsers change the ends of lines in them.
    """
    texts: dict[str, str] = {}
    boxes: set[str] = set()
    for sent, text in form.multi_items():
        name = unquote(sent)
        if name == f"t{place}" or name.startswith(f"t{place}/"):
            texts[name.removeprefix(f"t{place}")] = text
        elif name.startswith(f"b{place}"):
            boxes.add("null" + name.removeprefix(f"b{place}"))
    return read_state(texts, frozenset(boxes), form.get(f"s{place}", ""))
