"""The page of standing rules: what runs again without being asked, and how a call becomes one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance import remembering
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from clearance.ledger import new_id
from clearance.people import Role, has_role, may_see, sees_only
from clearance.policy import Risk
from clearance.review import Review, ReviewedCall, ReviewStatus
from clearance.schema import with_defaults
from clearance.standing import LONGEST, MOST_USES, StandingState, Terms, equal_arguments, may_stand
from clearance.store import policies, reviews, standing
from clearance.toolcall import parse_arguments
from clearance.veil import veiled
from clearance.web.access import Workspace
from clearance.web.pages.answering import version_of
from clearance.web.pages.deciding import address
from clearance.web.pages.settings.sections import show, words
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.paging import PAGE
from clearance.web.reviews import seen
from clearance.web.standing import lasting
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

PATH = "/settings/rules"
_MOST_DIGITS = 9


@dataclass(frozen=True)
class Typed:
    """What was typed into the form that remembers a call, and what was wrong with it by field."""

    uses: str = "10"
    lasts: str = "8h"
    free: tuple[str, ...] = ()
    when: str = ""
    where: str = "thread"
    errors: Mapping[str, str] = field(default_factory=dict)


@router.get(PATH)
def list_rules(
    request: Request, here: Workspace, viewer: Signed, every: str = "", done: str = ""
) -> Response:
    """List the rules that are open, or all."""
    with here.database.read() as tx:
        found = standing.page(tx, every=bool(every), limit=PAGE, requesters=sees_only(viewer.person))
        now = here.database.now(tx)
    return show(
        request,
        viewer,
        "rules.html",
        rules=found,
        now=now,
        every=bool(every),
        done=done,
        may_approve=has_role(viewer.person, Role.REVIEWER),
        may_revoke=has_role(viewer.person, Role.OPERATOR),
        drafted=StandingState.DRAFTED,
    )


@router.post(PATH)
def act(here: Workspace, viewer: Signed, form: Form) -> Response:
    """Approve of a rule, or revoke it."""
    rule_id, by = words(form.get("rule", "")), viewer.person.id
    with here.database.read() as tx:
        if not may_see(viewer.person, requester=standing.rule(tx, rule_id).requester):
            raise NotFoundError(f"There is no standing rule {rule_id}.")
    match form.get("do"):
        case "approve":
            found = remembering.approve(here.database, rule_id, by=by)
            return RedirectResponse(f"{PATH}?done={found.state}", 303)
        case "revoke":
            remembering.revoke(here.database, rule_id, by=by)
            return RedirectResponse(f"{PATH}?done=revoked", 303)
        case _:
            raise InvalidInputError("The form says not what to do. Load the page again.")


@router.get(PATH + "/new")
def new(request: Request, here: Workspace, viewer: Signed, review: str = "", call: str = "") -> Response:
    """Show the form that remembers a call: every argument as it was, until somebody frees it."""
    return _form(request, here, viewer, words(review), words(call))


@router.post(PATH + "/new")
def draft(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Remember a call; with `do` = `approve`, approve the call itself too."""
    review_id, call = words(form.get("review", "")), words(form.get("call", ""))
    with here.database.read() as tx:
        review, _ = _found(tx, viewer, review_id, call)
    typed = Typed(
        uses=form.get("uses", ""),
        lasts=form.get("for", ""),
        free=tuple(words(each) for each in form.getlist("any")),
        when=form.get("when", ""),
        where=form.get("where", "thread"),
    )
    try:
        terms = _terms(typed)
        made = remembering.draft(
            here.database, review_id, terms, by=viewer.person.id, rule_id=new_id(), call=call or None
        )
    except InvalidInputError as error:
        typed = replace(typed, errors=_by_field(error))
        return _form(request, here, viewer, review_id, call, typed=typed, status=422)
    except ForbiddenError as error:
        typed = replace(typed, errors={"": str(error)})
        return _form(request, here, viewer, review_id, call, typed=typed, status=403)
    if form.get("do") != "approve":
        return RedirectResponse(f"{PATH}?done={made.state}", 303)
    return _approved(here, viewer, form, review)


def _approved(here: Clearance, viewer: Viewer, form: Submitted, review: Review) -> Response:
    """Approve the call that a rule was just made from; its risk is one that needs no fresh sign-in."""
    try:
        here.gate.decide(
            review.id,
            [{"type": "approve"}],
            by=viewer.person.id,
            version=version_of(form),
            fresh_for=Risk.MEDIUM,
        )
    except ConflictError as error:
        raise ConflictError(f"The call is remembered, but was not approved by you: {error}") from None
    return RedirectResponse(address(review), 303)


def _form(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    review_id: str,
    key: str,
    *,
    typed: Typed | None = None,
    status: int = 200,
) -> Response:
    with here.database.read() as tx:
        review, call = _found(tx, viewer, review_id, key)
        why_not = _why_not(review, call)
        schema = policies.schema(tx, call.schema_hash)
    return show(
        request,
        viewer,
        "rule.html",
        status=status,
        review=review,
        where_decided=address(review),
        call=call,
        arguments=_arguments(review, call, schema) if why_not is None else {},
        why_not=why_not,
        pending=review.status is ReviewStatus.PENDING and len(review.calls) == 1,
        typed=typed or Typed(),
        most_uses=MOST_USES,
        longest=LONGEST.days,
    )


def _found(tx: Connection, viewer: Viewer, review_id: str, key: str) -> tuple[Review, ReviewedCall]:
    """Return a review that the viewer may see, and the call of it."""
    review = seen(reviews.review(tx, review_id), by=viewer.person)
    call = review.calls[0] if not key and len(review.calls) == 1 else review.call(key)
    if call is None:
        raise NotFoundError("This review has no such call. Go on from the review.")
    return review, call


def _why_not(review: Review, call: ReviewedCall) -> str | None:
    if call.verdict.secret:
        return "The call has secret arguments, which a standing rule would keep."
    return may_stand(call.verdict, kind=review.kind)


def _arguments(review: Review, call: ReviewedCall, schema: Mapping[str, object]) -> dict[str, str]:
    """Return what each argument of a call must be, as the rule would keep it."""
    shown = next(each for each in veiled(review).calls if each.key == call.key)
    return equal_arguments(with_defaults(schema, parse_arguments(shown.arguments)), free=())


def _terms(typed: Typed) -> Terms:
    uses = typed.uses.strip()
    # What is no number of uses is refused as one that is too small is.
    count = int(uses) if uses.isascii() and uses.isdecimal() and len(uses) <= _MOST_DIGITS else 0
    return Terms(
        count,
        lasting(typed.lasts.strip()),
        free=typed.free,
        when=words(typed.when).strip() or None,
        thread_only=typed.where != "program",
    )


def _by_field(error: InvalidInputError) -> dict[str, str]:
    found: dict[str, str] = {}
    for fault in error.faults:
        found.setdefault(fault.pointer.strip("/"), fault.message)
    return found or {"": str(error)}
