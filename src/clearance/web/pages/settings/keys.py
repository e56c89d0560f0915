"""The page of keys: one's own and those of one's agents, or for admins all; made, shown once, and revoked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance.credential import EVERY_SCOPE, Scope, in_words
from clearance.errors import ConflictError, InvalidInputError, NotFoundError
from clearance.keyring import add_agent, add_key, check_name, new_credential, revoke_key
from clearance.people import Kind, Person, Role, has_role
from clearance.store import keys, people
from clearance.store.keys import Key
from clearance.web.access import Workspace
from clearance.web.pages.settings.sections import show, unless_fresh, words, wrong
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

PATH = "/settings/keys"
NEW_AGENT = "agent"
"""Whose a key is when its agent is made with it."""
_CHOICES = (
    (Scope.PROPOSE, "propose calls, say something, take back one's own"),
    (Scope.DECIDE, "decide"),
    (Scope.MANAGE, "manage: whatever else changes something"),
)


@dataclass(frozen=True)
class Typed:
    """What was typed into the form for a new key, and what was wrong with it by field.

    `whose` is a person's or agent's id behind `of:`, or `agent` for a new one, which acts for `behind`. With
    no `scopes` it only reads.
    """

    name: str = ""
    whose: str = ""
    behind: str = ""
    scopes: Collection[Scope] = EVERY_SCOPE
    errors: Mapping[str, str] = field(default_factory=dict)


@router.get(PATH)
def list_keys(request: Request, here: Workspace, viewer: Signed, done: str = "") -> Response:
    """List keys."""
    return _page(request, here, viewer, done=done)


@router.post(PATH)
def act(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Make a key and show it, this once; or revoke one."""
    match form.get("do"):
        case "add":
            return _added(request, here, viewer, form)
        case "revoke":
            with here.database.read() as tx:
                name = _mine(tx, viewer, words(form.get("key", ""))).id
            revoke_key(here.database, name, by=viewer.person.id)
            return RedirectResponse(f"{PATH}?done=revoked", 303)
        case _:
            raise InvalidInputError("The form says not what to do. Load the page again.")


def _added(request: Request, here: Clearance, viewer: Viewer, form: Submitted) -> Response:
    sent = {name: words(form.get(name, "")).strip() for name in ("name", "whose", "behind")}
    scopes = frozenset(each for each in Scope if each in form.getlist("scope"))
    by = viewer.person.id
    with here.database.read() as tx:
        choices = [each.id for each in _owners(tx, viewer)]
    owner = sent["whose"].removeprefix("of:")
    errors = wrong({"name": lambda: check_name(sent["name"])})
    if sent["whose"] != NEW_AGENT and (owner not in choices or owner == sent["whose"]):
        errors["whose"] = "Choose whose key it is."
    if errors:
        return _page(request, here, viewer, typed=Typed(**sent, scopes=scopes, errors=errors), status=422)
    if sent["whose"] != NEW_AGENT:
        asked = unless_fresh(request, here, viewer, form, back=PATH)
        if asked is not None:
            return asked
    made = new_credential()
    try:
        if sent["whose"] == NEW_AGENT:
            owner = add_agent(here.database, sent["name"], behind=sent["behind"] or by, by=by).id
        key = add_key(here.database, sent["name"], person=owner, by=by, made=made, scopes=scopes)
    except ConflictError as error:
        wrong_one = Typed(**sent, scopes=scopes, errors={"name": str(error)})
        return _page(request, here, viewer, typed=wrong_one, status=error.status)
    except NotFoundError as error:
        wrong_one = Typed(**sent, scopes=scopes, errors={"behind": str(error)})
        return _page(request, here, viewer, typed=wrong_one, status=422)
    return _page(request, here, viewer, made=(key, made.text), status=201)


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    *,
    typed: Typed | None = None,
    made: tuple[Key, str] | None = None,
    done: str = "",
    status: int = 200,
) -> Response:
    with here.database.read() as tx:
        found = _seen(tx, viewer)
        owners = _owners(tx, viewer)
        now = here.database.now(tx)
    return show(
        request,
        viewer,
        "keys.html",
        status=status,
        usable=[key for key in found if key.revoked_at is None],
        revoked=[key for key in found if key.revoked_at is not None],
        owners=owners,
        persons=[each for each in owners if each.kind is Kind.PERSON],
        now=now,
        choices=_CHOICES,
        in_words=in_words,
        typed=typed or Typed(),
        made=made,
        done=done,
    )


def _owners(tx: Connection, viewer: Viewer) -> list[Person]:
    """Return those for whom the viewer may make keys, the viewer first."""
    me = viewer.person
    everybody = [each for each in people.listed(tx, disabled=False) if each.id != me.id]
    return [me, *(each for each in everybody if has_role(me, Role.ADMIN) or each.behind == me.id)]


def _seen(tx: Connection, viewer: Viewer) -> list[Key]:
    """Return the keys that the viewer may see, the newest first."""
    found = list(reversed(keys.listed(tx)))
    if has_role(viewer.person, Role.ADMIN):
        return found
    own = {each.id for each in people.listed(tx) if viewer.person.id in (each.id, each.behind)}
    return [key for key in found if key.person in own]


def _mine(tx: Connection, viewer: Viewer, key_id: str) -> Key:
    """Return a key that the viewer may see; for the others there is none."""
    found = [key for key in _seen(tx, viewer) if key.id == key_id]
    if not found:
        raise NotFoundError("There is no such key.")
    return found[0]
