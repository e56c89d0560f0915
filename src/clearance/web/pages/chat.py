"""The chat: conversations with the agent, each decided about in the same place where it is held."""

import hashlib
import secrets
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from clearance import turns
from clearance.decision import outcome
from clearance.errors import (
    ClearanceError,
    ConflictError,
    IdempotencyKeyReusedError,
    InvalidInputError,
    NotFoundError,
    ReviewPendingError,
    ThreadBusyError,
    ThreadClosedError,
)
from clearance.ledger import new_id
from clearance.once import Once, Repeated
from clearance.people import Role, has_role, sees_only
from clearance.providers import NO_MODEL
from clearance.reading import whole
from clearance.run import Run, RunState
from clearance.store import runs
from clearance.store.conversations import latest_conversations
from clearance.web.access import Workspace
from clearance.web.pages.conversation import Conversation
from clearance.web.pages.deciding import Draft, decision_card
from clearance.web.pages.rendering import render
from clearance.web.pages.submitted import Submitted, token_of
from clearance.web.pages.talk import (
    Talk,
    conversation_seen,
    is_answered,
    is_offline,
    pending_review,
    sees_all,
    talk_of,
    title_of,
)
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.pages.waiting import title
from clearance.web.paging import DATED, PAGE, Cursors
from clearance.web.threads import PROGRAM, program_of
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

_LATEST = Cursors("conversations", DATED)
_EVERYONE = "everyone"
STATES = {
    RunState.QUEUED: "Queued",
    RunState.RUNNING: "Working",
    RunState.WAITING: "Waits for a decision",
    RunState.DONE: "Answered",
    RunState.FAILED: "Failed",
    RunState.CANCELLED: "Cancelled",
}


@router.get("/chat")
def conversations(
    request: Request, here: Workspace, viewer: Signed, *, whose: str = "", cursor: str = ""
) -> Response:
    """Show the viewer's conversations, or everyone's, the one written in last first."""
    return _list(request, here, viewer, whose=whose, cursor=cursor)


@router.post("/chat")
def begin(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Begin a conversation with a message."""
    thread_id = new_id()
    once: Once[Run] = _once(viewer, form, "pages/chat")
    try:
        thread_id = _started(here, viewer, thread_id, form, once=once).thread_id
    except Repeated as before:
        with here.database.read() as tx:
            thread_id = runs.run(tx, before.answer).thread_id
    except (InvalidInputError, ConflictError) as error:
        return _list(request, here, viewer, text=_text(form), fault=error)
    return _to(thread_id)


@router.get("/chat/{thread_id:path}")
def show(
    request: Request, here: Workspace, viewer: Signed, thread_id: str, *, all: bool = False, asked: str = ""
) -> Response:
    """Show a conversation. `asked` is the review, and its version, that an open page has."""
    return _page(request, here, viewer, thread_id, all=all, asked=asked)


@router.post("/chat/{thread_id:path}/say")
def say(request: Request, here: Workspace, viewer: Signed, form: Form, thread_id: str) -> Response:
    """Say something to the agent."""
    with here.database.read() as tx:
        conversation_seen(here, tx, thread_id, by=viewer.person)
    once: Once[Run] = _once(viewer, form, f"pages/chat/{thread_id}")
    try:
        _started(here, viewer, thread_id, form, once=once)
    except Repeated:
        pass
    except (InvalidInputError, ConflictError, ThreadClosedError) as error:
        return _page(request, here, viewer, thread_id, text=_text(form), fault=error)
    return _to(thread_id)


@router.post("/chat/{thread_id:path}/cancel")
def cancel(here: Workspace, viewer: Signed, form: Form, thread_id: str) -> Response:
    """End the turn that the page showed."""
    with here.database.read() as tx:
        conversation_seen(here, tx, thread_id, by=viewer.person)
        run = runs.run(tx, form.get("run", ""))
    if run.thread_id != thread_id:
        raise NotFoundError(f"There is no run {run.id} in this conversation.")
    with suppress(ConflictError):  # It had ended before: the page says how.
        turns.cancel(here.ledger, run.id, by=viewer.person.id, reason=f"{viewer.person.name} ended it.")
    return _to(thread_id)


def _started(here: Clearance, viewer: Viewer, thread_id: str, form: Submitted, *, once: Once[Run]) -> Run:
    by = viewer.person
    turns.check_message(_text(form))
    program = program_of(here, thread_id, None, by=by)
    return turns.start(
        here.ledger, thread_id, _text(form), run_id=new_id(), program=program, by=by.id, once=once
    )


def _once(viewer: Viewer, form: Submitted, route: str) -> Once[Run]:
    body = hashlib.sha256(_text(form).encode(errors="replace")).hexdigest()
    # A form without a token was not made by a page: it is sent once, as far as anybody can tell.
    return Once(viewer.person.id, route, token_of(form) or new_id(), body, lambda _, run: run.id)


def _text(form: Submitted) -> str:
    return form.get("text", "").replace("\r\n", "\n")


def _to(thread_id: str) -> Response:
    return RedirectResponse(f"{_address(thread_id)}#end", 303)


def _address(thread_id: str) -> str:
    return f"/chat/{quote(thread_id)}"


def _list(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    *,
    whose: str = "",
    cursor: str = "",
    text: str = "",
    fault: ClearanceError | None = None,
) -> Response:
    everyone = whose == _EVERYONE and sees_all(viewer.person)
    with here.database.read() as tx:
        found, after = latest_conversations(
            tx,
            with_person=None if everyone else viewer.person.id,
            asked_by=sees_only(viewer.person),
            without=here.programs.silent(),
            after=_LATEST.place(cursor or None),
            limit=PAGE,
        )
        context: dict[str, Any] = {
            "answered": is_answered(tx, PROGRAM),
            "offline": is_offline(tx),
            "now": here.database.now(tx),
        }
    next_page = _LATEST.text(after)
    query = f"whose={_EVERYONE}&" if everyone else ""
    return render(
        request,
        "chats.html",
        viewer=viewer,
        status=fault.status if fault is not None else 200,
        rows=[(title_of(each), each, STATES[each.newest.state]) for each in found],
        everyone=everyone,
        sees_all=sees_all(viewer.person),
        first=f"/chat?{query}" if cursor else None,
        next=f"/chat?{query}cursor={quote(next_page)}" if next_page else None,
        text=text,
        fault=_words(fault),
        token=secrets.token_urlsafe(18),
        no_model=NO_MODEL,
        **context,
    )


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    thread_id: str,
    *,
    all: bool = False,
    asked: str = "",
    text: str = "",
    fault: ClearanceError | None = None,
) -> Response:
    talk = talk_of(here, thread_id, by=viewer.person, all=all)
    context = _asked(here, viewer, talk, asked=asked)
    return render(
        request,
        "chat.html",
        viewer=viewer,
        status=fault.status if fault is not None else 200,
        part="talk",
        talk=talk,
        title=title_of(talk.conversation),
        address=_address(thread_id),
        all=all,
        off=_off(talk, viewer, card=context["card"]),
        may_cancel=talk.run.is_open
        and (talk.run.requester == viewer.person.id or has_role(viewer.person, Role.OPERATOR)),
        text=text,
        fault=_words(fault),
        at_field=isinstance(fault, InvalidInputError),
        token=secrets.token_urlsafe(18),
        **context,
    )


def _asked(here: Clearance, viewer: Viewer, talk: Talk, *, asked: str) -> dict[str, Any]:
    """Return what the page shows of the review that waits, if one does.

    `moved` is what happened to it where the page has an older version: that one is not changed under the
    hands of who decides it.
    """
    with here.database.read() as tx:
        review = pending_review(tx, talk.standing)
        if review is None:
            return {"card": None, "moved": None, "asked": "", "asked_title": ""}
        found = whole(here.database, tx, review)
        back = Draft(back=f"{_address(talk.conversation.id)}#end")
        made = decision_card(
            tx, here, review, viewer, token=secrets.token_urlsafe(18), draft=back, found=found
        )
    seen, _, version = asked.rpartition("@")
    return {
        "card": made["card"],
        "conversation": Conversation(()),
        "now": found.now,
        "asked": f"{review.id}@{review.version}",
        "asked_title": title(found.review),
        "moved": outcome(review) if seen == review.id and version != str(review.version) else None,
    }


def _off(talk: Talk, viewer: Viewer, *, card: Any) -> str | None:
    """Return why nothing can be said now; None where it can."""
    run = talk.run
    if talk.closed:
        return "This conversation is closed: retention has removed what was said in it. Begin another one."
    if card is not None and card.refused is None:
        return "Decide the request above first."
    if card is not None:
        return "The request above has to be decided first, by somebody who may."
    if not run.is_open:
        return None
    whose = "your message" if run.requester == viewer.person.id else f"a message of {run.requester}"
    if run.state is RunState.QUEUED:
        return f"A worker takes up {whose} next. If this stays so, see whether one runs: clearance doctor"
    return f"The agent works on {whose}. It takes the next one when this turn has ended."


def _words(fault: ClearanceError | None) -> str | None:
    """Return what to say about a message that was not taken."""
    match fault:
        case None:
            return None
        case ReviewPendingError():
            return "Your message was not sent: decide the request above first. It is kept below."
        case ThreadBusyError():
            return "Your message was not sent: the agent still works on an earlier one. It is kept below."
        case IdempotencyKeyReusedError():
            return "Another message was sent from this page before. Send this one from here, if you mean it."
        case _:
            return str(fault)
