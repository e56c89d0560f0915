"""The page of people and agents: who may do what here, for admins; and agents that are let go on again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance import breaker, membership
from clearance.errors import ConflictError, InvalidInputError
from clearance.keyring import check_id
from clearance.membership import Link, checked_groups, checked_name
from clearance.people import Kind, Person, Role, has_role
from clearance.store import identities, keys, parking, passwords, people, sessions
from clearance.store.parking import Parked
from clearance.web.access import Workspace
from clearance.web.pages.settings.sections import admit, show, unless_fresh, words, wrong
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

PATH = "/settings/people"
_OPENS = ("role", "groups", "link", "enable")
"""What lets somebody decide who could not before."""
_OPERATORS = "People are for operators and admins"


@dataclass(frozen=True)
class Member:
    """Somebody of the workspace: when they were last here, and whether the breaker holds them."""

    person: Person
    seen: datetime | None
    parked: Parked | None = None


@dataclass(frozen=True)
class Typed:
    """What was typed into the form for somebody new, and what was wrong with it by field."""

    id: str = ""
    name: str = ""
    role: str = Role.REVIEWER.value
    groups: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)


@router.get(PATH)
def list_people(request: Request, here: Workspace, viewer: Signed) -> Response:
    """List everybody."""
    return _list(request, here, viewer)


@router.post(PATH)
def add(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Let somebody in, and show the link by which they set their password, this once."""
    admit(viewer, Role.ADMIN, "Only admins let people in")
    sent = {name: words(form.get(name, "")).strip() for name in ("id", "name", "role", "groups")}
    errors = wrong(
        {
            "id": lambda: check_id(sent["id"]),
            "name": lambda: checked_name(sent["name"] or sent["id"] or "-"),
            "role": lambda: _role(sent["role"]),
            "groups": lambda: checked_groups(_groups(sent["groups"])),
        }
    )
    if errors:
        return _list(request, here, viewer, typed=Typed(**sent, errors=errors), status=422)
    asked = unless_fresh(request, here, viewer, form, back=PATH)
    if asked is not None:
        return asked
    try:
        _, link = membership.add_person(
            here.database,
            sent["id"],
            name=sent["name"] or None,
            role=_role(sent["role"]),
            groups=_groups(sent["groups"]),
            by=viewer.person.id,
        )
    except ConflictError as error:
        return _list(request, here, viewer, typed=Typed(**sent, errors={"id": str(error)}), status=409)
    return _list(request, here, viewer, link=link, status=201)


@router.get(PATH + "/{person_id}")
def one(request: Request, here: Workspace, viewer: Signed, person_id: str, done: str = "") -> Response:
    """Show somebody, and what can be changed about them."""
    return _one(request, here, viewer, person_id, done=done)


@router.post(PATH + "/{person_id}")
def change(request: Request, here: Workspace, viewer: Signed, form: Form, person_id: str) -> Response:
    """Change somebody, as the button that was pressed says."""
    admit(viewer, Role.OPERATOR, _OPERATORS)
    do, person_id = form.get("do", ""), words(person_id)
    asked = unless_fresh(request, here, viewer, form, back=PATH) if do in _OPENS else None
    if asked is not None:
        return asked
    try:
        link = _changed(here, person_id, do, form, by=viewer.person.id)
    except (ConflictError, InvalidInputError) as error:
        sent = {name: words(form[name]) for name in ("role", "groups") if name in form}
        return _one(request, here, viewer, person_id, sent=sent, errors={do: str(error)}, status=error.status)
    if link is not None:
        return _one(request, here, viewer, person_id, link=link, status=201)
    if do == "resume":
        return RedirectResponse(PATH, 303)
    return RedirectResponse(f"{PATH}/{quote(person_id, safe='')}?done={do}", 303)


def _changed(here: Clearance, person_id: str, do: str, form: Submitted, *, by: str) -> Link | None:
    match do:
        case "role":
            membership.set_role(here.database, person_id, _role(form.get("role", "")), by=by)
        case "groups":
            groups = _groups(words(form.get("groups", "")))
            membership.set_groups(here.database, person_id, groups, by=by)
        case "disable":
            membership.disable(here.database, person_id, by=by)
        case "enable":
            membership.enable(here.database, person_id, by=by)
        case "link":
            return membership.invite(here.database, person_id, by=by)
        case "resume":
            breaker.resume(here.database, person_id, by=by)
        case _:
            raise InvalidInputError("The form says not what to do. Load the page again.")
    return None


def _list(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    *,
    typed: Typed | None = None,
    link: Link | None = None,
    status: int = 200,
) -> Response:
    admit(viewer, Role.OPERATOR, _OPERATORS)
    with here.database.read() as tx:
        found = _members(tx)
        mode, now = people.mode(tx), here.database.now(tx)
    return show(
        request,
        viewer,
        "people.html",
        status=status,
        people=[each for each in found if each.person.kind is Kind.PERSON],
        agents=[each for each in found if each.person.kind is Kind.AGENT],
        groups=sorted({group for each in found for group in each.person.groups}),
        single=mode.value == "single-user",
        now=now,
        roles=list(Role),
        may_change=has_role(viewer.person, Role.ADMIN),
        typed=typed or Typed(),
        link=link,
        address=_address(request, here, link),
    )


def _one(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    person_id: str,
    *,
    sent: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    link: Link | None = None,
    done: str = "",
    status: int = 200,
) -> Response:
    admit(viewer, Role.OPERATOR, _OPERATORS)
    person_id = words(person_id)
    with here.database.read() as tx:
        person = people.person(tx, person_id)
        now = here.database.now(tx)
        open_sessions = sessions.open_of(tx, person_id, now=now, idle=here.session_limits.idle)
        context = {
            "member": Member(person, _seen(tx).get(person_id), parking.parked(tx, person_id)),
            "has_password": person_id in passwords.those_with(tx),
            "has_provider": person_id in identities.those_with(tx),
            "sessions": len(open_sessions),
            "keys": [key for key in keys.listed(tx) if key.person == person_id and key.revoked_at is None],
            "now": now,
        }
    return show(
        request,
        viewer,
        "person.html",
        status=status,
        **context,
        roles=list(Role),
        may_change=has_role(viewer.person, Role.ADMIN),
        sent={"role": person.role.value, "groups": ", ".join(person.groups), **(sent or {})},
        errors=errors or {},
        done=done,
        link=link,
        address=_address(request, here, link),
    )


def _members(tx: Connection) -> list[Member]:
    seen = _seen(tx)
    parked = {each.agent: each for each in parking.every(tx)}
    return [Member(each, seen.get(each.id), parked.get(each.id)) for each in people.listed(tx)]


def _seen(tx: Connection) -> dict[str, datetime]:
    """Return when people were here last: by a session, or by a key."""
    found = sessions.last_used(tx)
    for key in keys.listed(tx):
        if key.used_at is not None:
            found[key.person] = max(key.used_at, found.get(key.person, key.used_at))
    return found


def _address(request: Request, here: Clearance, link: Link | None) -> str:
    """Return the whole address of a link, on the host where people reach the pages."""
    return "" if link is None else (here.public_url or str(request.base_url)).rstrip("/") + link.path


def _role(text: str) -> Role:
    if text not in tuple(Role):
        raise InvalidInputError(f"A role is one of {', '.join(Role)}.")
    return Role(text)


def _groups(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
