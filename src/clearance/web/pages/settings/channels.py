"""The page of channels, for operators: where people are told, and what could not be told to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from clearance.channel import DEFAULT_EVENTS, Channel, ChannelKind, Event, Serves
from clearance.errors import ConflictError, InvalidInputError
from clearance.ledger import new_id
from clearance.notices import channels as verbs
from clearance.people import Role
from clearance.policy import Risk
from clearance.store import channels, deliveries, people
from clearance.store.deliveries import DeliveryStatus
from clearance.web.access import Workspace
from clearance.web.pages.settings.sections import admit, show, unless_fresh, words, wrong
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

PATH = "/settings/channels"
MOST_FAILED = 50
"""How many messages that failed are shown, the newest."""
_OPERATORS = "Channels are for operators"


@dataclass(frozen=True)
class Typed:
    """What was typed into the form for a new channel, and what was wrong with it by field."""

    name: str = ""
    kind: str = ChannelKind.APPRISE.value
    address: str = ""
    serves: str = Serves.PERSON.value
    whom: str = ""
    min_risk: str = Risk.LOW.value
    events: tuple[str, ...] = tuple(event.value for event in DEFAULT_EVENTS)
    errors: Mapping[str, str] = field(default_factory=dict)


@router.get(PATH)
def list_channels(request: Request, here: Workspace, viewer: Signed, done: str = "") -> Response:
    """List the channels; of an address only its scheme is shown."""
    return _page(request, here, viewer, done=done)


@router.post(PATH)
def act(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Add a channel, or do to one what the button that was pressed says."""
    admit(viewer, Role.OPERATOR, _OPERATORS)
    do, name, by = form.get("do", ""), words(form.get("channel", "")), viewer.person.id
    match do:
        case "add":
            return _added(request, here, viewer, form)
        case "test":
            allowed = here.worker.messenger.allowed
            said = verbs.try_channel(here.database, name, by=by, id=new_id(), allowed=allowed)
            return _page(request, here, viewer, tried=(name, said))
        case "enable" | "disable":
            verbs.set_enabled(here.database, name, enabled=do == "enable", by=by)
        case "remove":
            verbs.remove_channel(here.database, name, by=by)
        case _:
            raise InvalidInputError("The form says not what to do. Load the page again.")
    return RedirectResponse(f"{PATH}?done={do}", 303)


def _added(request: Request, here: Clearance, viewer: Viewer, form: Submitted) -> Response:
    typed = _typed(form)
    errors = _errors(here, typed)
    if errors:
        return _page(request, here, viewer, typed=replace(typed, errors=errors), status=422)
    if typed.serves == Serves.PERSON:
        # Its messages may have links that decide.
        asked = unless_fresh(request, here, viewer, form, back=PATH)
        if asked is not None:
            return asked
    try:
        made = verbs.add_channel(
            here.database,
            typed.name,
            kind=ChannelKind(typed.kind),
            address=typed.address,
            serves=Serves(typed.serves),
            whom=typed.whom,
            by=viewer.person.id,
            id=new_id(),
            allowed=here.worker.messenger.allowed,
            events=[Event(each) for each in typed.events],
            min_risk=Risk(typed.min_risk),
        )
    except ConflictError as error:
        return _page(request, here, viewer, typed=replace(typed, errors={"name": str(error)}), status=409)
    return _page(request, here, viewer, made=made, status=201)


def _typed(form: Submitted) -> Typed:
    name, kind, address, serves, whom, min_risk = (
        words(form.get(each, "")).strip()
        for each in ("name", "kind", "address", "serves", "whom", "min_risk")
    )
    events = tuple(each for each in form.getlist("event") if each in tuple(Event))
    return Typed(name, kind, address, serves, whom, min_risk, events)


def _errors(here: Clearance, typed: Typed) -> dict[str, str]:
    """Return what is wrong in which field, as the verb would say it."""
    for name, known in (("kind", ChannelKind), ("serves", Serves), ("min_risk", Risk)):
        if getattr(typed, name) not in tuple(known):
            return {name: f"This is one of {', '.join(known)}."}
    kind, allowed = ChannelKind(typed.kind), here.worker.messenger.allowed
    with here.database.read() as tx:
        return wrong(
            {
                "name": lambda: verbs.check_name(typed.name),
                "whom": lambda: verbs.check_whom(tx, Serves(typed.serves), typed.whom),
                "address": lambda: verbs.check_target(typed.address, kind=kind, allowed=allowed),
                "events": lambda: verbs.check_events([Event(each) for each in typed.events]),
            }
        )


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    *,
    typed: Typed | None = None,
    made: Channel | None = None,
    tried: tuple[str, str | None] | None = None,
    done: str = "",
    status: int = 200,
) -> Response:
    admit(viewer, Role.OPERATOR, _OPERATORS)
    with here.database.read() as tx:
        verbs.operator(tx, viewer.person.id)
        found = channels.listed(tx)
        failed = deliveries.listed(tx, status=DeliveryStatus.UNDELIVERED, limit=MOST_FAILED)
        everybody = people.persons(tx)
        now = here.database.now(tx)
    return show(
        request,
        viewer,
        "channels.html",
        status=status,
        channels=found,
        names={each.id: each.name for each in found},
        failed=failed,
        known=sorted(
            {*(each.id for each in everybody), *(group for each in everybody for group in each.groups), *Role}
        ),
        now=now,
        kinds=list(ChannelKind),
        serves=list(Serves),
        risks=list(Risk),
        events=list(Event),
        typed=typed or Typed(),
        made=made,
        tried=tried,
        done=done,
    )
