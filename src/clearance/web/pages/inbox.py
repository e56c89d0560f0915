"""The inbox: what waits for people, the most urgent first, and what they have decided."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance.errors import InvalidInputError
from clearance.people import Kind, Person, Role, has_role, may_see, sees_only
from clearance.policy import DecisionType, Risk
from clearance.reading import every
from clearance.review import ReviewStatus
from clearance.store import people, policies, reviews
from clearance.store.listing import ReviewFilter, ended_reviews
from clearance.web.access import Workspace
from clearance.web.pages.bulk import claim_all, decide_all, seen_items
from clearance.web.pages.rendering import render
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.pages.waiting import Row, grouped, shows, title, waiting
from clearance.web.paging import DATED, PAGE, WAITING, Cursors
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

_WAITING = Cursors("waiting", WAITING)
_ENDED = Cursors("ended", DATED)
_OVER = tuple(status for status in ReviewStatus if status is not ReviewStatus.PENDING)
_MOST_WORDS = 8
MOST_COUNTED = 999
"""Reviews that are counted: to somebody who works through them, more are as many."""


@dataclass(frozen=True)
class Asked:
    """What a viewer wants to see, as the address says it; what is no word of it counts as not said."""

    q: str = ""
    risk: str = ""
    whose: str = ""
    agent: str = ""
    tab: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, query: str) -> "Asked":
        """Return what the query of an address says."""
        return cls(**{name: value for name, value in parse_qsl(query) if name in cls.__dataclass_fields__})

    @property
    def mine(self) -> bool:
        """Whether only what waits for the viewer is wanted."""
        return self.whose == "mine"

    @property
    def decided(self) -> bool:
        """Whether what was decided is wanted, in place of what waits."""
        return self.tab == "decided"

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.q or self.risk or self.whose or self.agent)

    def address(self, **changes: str) -> str:
        """Return the address of this list, with changes; without `cursor` its first page."""
        said = {**self.__dict__, "cursor": "", **changes}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/?{query}" if query else "/"

    def wanted(self, viewer: Viewer) -> ReviewFilter:
        """Return the filter of the store."""
        return ReviewFilter(
            asked_by=sees_only(viewer.person),
            risk=Risk(self.risk) if self.risk in tuple(Risk) else None,
            agent=self.agent.replace("\0", "") or None,
            words=tuple(self.q.replace("\0", " ").split()[:_MOST_WORDS]),
            undecided_by=viewer.person.id if self.mine and not self.decided else None,
        )


@router.get("/")
def inbox(request: Request, here: Workspace, viewer: Signed) -> Response:
    """Show the inbox."""
    asked = Asked.read(request.url.query)
    with here.database.read() as tx:
        found = _decided(here, tx, viewer, asked) if asked.decided else _waits(here, tx, viewer, asked)
        count = reviews.waiting_count(tx, most=MOST_COUNTED + 1, asked_by=sees_only(viewer.person))
        context = {
            "asked": asked,
            "count": f"{count - 1}+" if count > MOST_COUNTED else str(count),
            "agents": _agents(tx, viewer.person),
            "now": here.database.now(tx),
            "may_decide": has_role(viewer.person, Role.REVIEWER),
            "risks": [risk.value for risk in reversed(Risk)],
            **found,
        }
    return render(request, "inbox.html", viewer=viewer, part="inbox", **context)


@router.post("/inbox")
def act(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Decide what is selected, or claim it; each review for itself, and told for itself."""
    back = _back(form.get("back", ""))
    row = next((name for name in ("claim", "release") if name in form), None)
    items = seen_items(form.getlist(row or "item"))
    match row or form.get("do"):
        case "approve" | "reject" as do:
            comment = form.get("comment", "").strip()
            went = decide_all(here.gate, items, DecisionType(do), by=viewer.person, comment=comment)
        case "claim" | "release" as do:
            went = claim_all(here.gate, items, by=viewer.person, release=do == "release")
            if all(each.done for each in went):
                place = f"#{quote(went[0].review.id)}" if row else ""
                return RedirectResponse(back + place, 303)
        case _:
            raise InvalidInputError("The form says not what to do. Load the inbox again.")
    told = [(title(each.review), each) for each in went]
    return render(request, "decided.html", viewer=viewer, told=told, back=back)


def _waits(here: Clearance, tx: Connection, viewer: Viewer, asked: Asked) -> dict[str, Any]:
    found = waiting(
        here.database,
        tx,
        asked.wanted(viewer),
        viewer=viewer.person,
        mine=asked.mine,
        after=_WAITING.place(asked.cursor or None),
        limit=PAGE,
    )
    full = len(found.rows) == PAGE
    return {
        "groups": grouped(found.rows),
        "next": _next(asked, _WAITING.text(found.after)),
        "looked_at": None if full or found.after is None else found.looked_at,
    }


def _decided(here: Clearance, tx: Connection, viewer: Viewer, asked: Asked) -> dict[str, Any]:
    wanted = asked.wanted(viewer)
    place = _ENDED.place(asked.cursor or None)
    page = ended_reviews(tx, wanted, statuses=_OVER, after=place, limit=PAGE)
    found = every(here.database, tx, reviews.by_id(tx, page.ids))
    rows = [Row(each, None) for each in found if shows(each.review, wanted.words)]
    if asked.mine:
        rows = [row for row in rows if _said_by(row, viewer.person.id)]
    return {"rows": rows, "next": _next(asked, _ENDED.text(page.after))}


def _said_by(row: Row, person: str) -> bool:
    return any(item.by == person for call in row.review.calls for item in call.decisions)


def _next(asked: Asked, cursor: str | None) -> str | None:
    return None if cursor is None else asked.address(cursor=cursor)


def _agents(tx: Connection, by: Person) -> list[str]:
    """Return whose questions can be picked out: the programs that are known here, and the agents."""
    agents = [each.id for each in people.listed(tx, kind=Kind.AGENT) if may_see(by, requester=each.id)]
    return sorted({*policies.programs(tx), *agents})


def _back(query: str) -> str:
    """Return the address of the list that a form was on, made anew from what it said."""
    asked = Asked.read(query)
    return asked.address(cursor=asked.cursor)
