"""The page behind a link in a message: it shows what waits, and decides only when its button is pressed.

Programs open links too: scanners of mail, previews of chats, browsers that load ahead. Whatever only looks
changes nothing. The token is a secret: it stands in no log, no error and no `Referer`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from sqlalchemy import Connection
from starlette.exceptions import HTTPException

from clearance import links
from clearance.deadline import is_over
from clearance.decision import outcome, why_not
from clearance.errors import (
    ConflictError,
    ForbiddenError,
    IdempotencyKeyReusedError,
    InvalidReviewDecisionError,
    NotFoundError,
    ReviewConflictError,
)
from clearance.links import Link, Standing
from clearance.once import Once, Repeated
from clearance.people import Person, may_see
from clearance.policy import DecisionType
from clearance.reading import Whole, summary_of, whole
from clearance.review import Review
from clearance.store import channels, people, reviews
from clearance.store import links as rows
from clearance.web.access import Workspace
from clearance.web.pages.arguments import arguments_of
from clearance.web.pages.rendering import render
from clearance.web.pages.submitted import Submitted, read_form
from clearance.workspace import Clearance

PER_MINUTE = 20
"""How often an address may press a button of such a page in a minute."""
_SEEN = RateLimitItemPerMinute(PER_MINUTE)
_PRIVATE = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
_SHUT = "The channel that it was sent by is not in use any more."
_OVER = {
    Standing.USED: (410, "This link was used", "A link works once."),
    Standing.CLOSED: (410, "This waits no more", "Nothing was done now."),
    Standing.EXPIRED: (410, "This link has expired", "Nothing was done. Decide it on its page."),
    Standing.SHUT: (410, "This link works no more", f"{_SHUT} Nothing was done. Decide it on its page."),
    Standing.CHANGED: (409, "This changed since you were told", "Nothing was done. Look at it as it is now."),
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Opened:
    """What a link leads to, as of one instant. `refusal` says why its person may not decide it."""

    link: Link
    person: Person
    review: Review
    whole: Whole
    standing: Standing
    refusal: str | None


@router.api_route("/l/{token}", methods=["GET", "HEAD"])
def look(request: Request, here: Workspace, token: str) -> Response:
    """Show what waits, and the buttons. Changes nothing, however often it is asked and by whom."""
    return _page(request, _open(here, token))


async def _sent(request: Request) -> Submitted:
    """Return what the form sent; 429 for who presses its button too often."""
    who = "" if request.client is None else request.client.host
    if not _limiter(request.app).hit(_SEEN, who):
        raise HTTPException(429, headers={"Retry-After": "60", **_PRIVATE})
    return await read_form(request)


@router.post("/l/{token}")
def decide(
    request: Request, here: Workspace, token: str, form: Annotated[Submitted, Depends(_sent)]
) -> Response:
    """Decide as the person of the link, once."""
    opened = _open(here, token)
    if opened.standing is not Standing.GOOD or opened.refusal is not None:
        return _page(request, opened)
    said, message = form.get("answer", ""), form.get("message", "").replace("\r\n", "\n").strip()
    if said not in links.answers(opened.review):
        return _page(request, opened, status=422, fault="Press one of the buttons.", message=message)
    try:
        after = _decided(here, opened, DecisionType(said), message=message)
    except InvalidReviewDecisionError as error:
        return _page(request, opened, status=422, fault=str(error), message=message)
    except (Repeated, IdempotencyKeyReusedError, ReviewConflictError, ConflictError, ForbiddenError):
        return _page(request, _open(here, token), moved=True)
    context = {"title": "Your decision was taken", "words": outcome(after), "review": after}
    return _rendered(request, 200, person=opened.person, **context)


def _open(here: Clearance, token: str) -> Opened:
    """Return what a token leads to; `NotFoundError` for one that is not ours."""
    with here.database.read() as tx:
        now = here.database.now(tx)
        link = here.worker.messenger.linking.find(tx, token)
        review = reviews.review(tx, link.review_id)
        person = people.with_sight(tx, people.person(tx, link.person))
        if not may_see(person, requester=review.requester):
            raise NotFoundError("There is nothing under this address.")
        return Opened(
            link=link,
            person=person,
            review=review,
            whole=whole(here.database, tx, review),
            standing=links.standing(link, review, now=now, in_use=_in_use(tx, link)),
            refusal=_refusal(tx, review, person, now=now),
        )


def _in_use(tx: Connection, link: Link) -> bool:
    """Whether the channel that a link was sent by is used: its messages may reach somebody else by now."""
    return link.channel is not None and channels.in_use(tx, link.channel)


def _refusal(tx: Connection, review: Review, person: Person, *, now: datetime) -> str | None:
    party = people.party(tx, review.requester)
    return why_not(review, person, mode=people.mode(tx), party=party, now=now)


def _decided(here: Clearance, opened: Opened, said: DecisionType, *, message: str) -> Review:
    """Take the decision and use the link up, both or neither."""
    link, database = opened.link, here.database

    def used(tx: Connection, _: Review) -> str:
        # Judged where the decision is taken: who waited for the lock may come too late.
        now = database.now(tx)
        over = is_over(link.expires_at, now=now) or not _in_use(tx, link)
        if over or not rows.use(tx, link.id, now=now):
            raise ConflictError("This link was used, or is over.")
        return ""

    payload: list[dict[str, Any]] = [
        {"type": said.value, "call": call.key, **({"message": message} if message else {})}
        for call in opened.review.waiting
    ]
    once = Once(link.person, "link", link.id, "", used)
    return here.gate.decide(opened.review.id, payload, by=link.person, version=link.version, once=once)


def _page(
    request: Request,
    opened: Opened,
    *,
    status: int = 200,
    fault: str | None = None,
    message: str = "",
    moved: bool = False,
) -> Response:
    """Return the page as a link stands; `moved`: it was good a moment ago, and somebody was faster."""
    standing, review = opened.standing, opened.review
    if standing is Standing.BARRED:
        return RedirectResponse(f"/reviews/{quote(review.id)}", 303, headers=_PRIVATE)
    if standing in _OVER:
        code, title, words = _OVER[standing]
        words = words if standing in (Standing.EXPIRED, Standing.SHUT) else f"{words} {outcome(review)}"
        return _rendered(request, code, person=opened.person, title=title, words=words, review=review)
    if opened.refusal is not None:
        return _rendered(
            request,
            403,
            person=opened.person,
            title="This link decides nothing",
            words=opened.refusal,
            review=review,
        )
    if moved:
        fault = "Nothing was done. Look once more, then press again."
    shown = opened.whole
    return _rendered(
        request,
        409 if moved else status,
        person=opened.person,
        title="Decide",
        review=shown.review,
        shown=shown,
        calls=[(call, summary_of(call), *arguments_of(call)) for call in shown.review.waiting],
        answers=[answer.value for answer in links.answers(review)],
        reason_required=any(call.verdict.reason for call in review.waiting),
        expires_at=opened.link.expires_at,
        fault=fault,
        message=message,
    )


def _rendered(request: Request, status: int, *, person: Person, **context: Any) -> Response:
    values = {"shown": None, "words": "", **context}
    answer = render(request, "link.html", status=status, person=person, **values)
    answer.headers.update(_PRIVATE)
    return answer


def _limiter(app: FastAPI) -> MovingWindowRateLimiter:
    found: MovingWindowRateLimiter | None = getattr(app.state, "link_limiter", None)
    if found is None:
        found = app.state.link_limiter = MovingWindowRateLimiter(MemoryStorage())
    return found
