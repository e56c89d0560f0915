"""The sections of the settings: who may open which, how they are shown, and what is wrong in their fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from clearance.errors import ClearanceError, ForbiddenError, TooManyTriesError
from clearance.people import Role, has_role
from clearance.policy import Risk
from clearance.web.pages.rendering import render
from clearance.web.pages.stepping_up import FIELD, StepUp, StepUpNeededError, require_fresh
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import CSRF_FIELD, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Section:
    """One part of the settings, open to people of a role and of those above it."""

    label: str
    path: str
    about: str
    role: Role


SECTIONS = (
    Section(
        "Policies",
        "/settings/policies",
        "The rules that say which calls run, which wait for people, and for whom.",
        Role.VIEWER,
    ),
    Section(
        "People",
        "/settings/people",
        "Who belongs to this workspace, what they may do, and the agents that act for them.",
        Role.OPERATOR,
    ),
    Section(
        "Channels",
        "/settings/channels",
        "Where people are told that something waits for them.",
        Role.OPERATOR,
    ),
    Section(
        "Keys",
        "/settings/keys",
        "How programs, agents and the command line are known over HTTP.",
        Role.VIEWER,
    ),
    Section(
        "Standing rules",
        "/settings/rules",
        "Calls that people let run again without being asked, as often and as long as they said.",
        Role.VIEWER,
    ),
)


@router.get("/settings")
def overview(request: Request, viewer: Signed) -> Response:
    """Say what there is to be set."""
    return show(request, viewer, "overview.html")


def show(request: Request, viewer: Viewer, template: str, *, status: int = 200, **context: Any) -> Response:
    """Return a page of the settings, with the sections that its viewer may open."""
    open_to = [each for each in SECTIONS if has_role(viewer.person, each.role)]
    return render(request, f"settings/{template}", viewer=viewer, status=status, sections=open_to, **context)


def admit(viewer: Viewer, role: Role, what: str) -> None:
    """Raise `ForbiddenError` unless the viewer has this role; `what` says who may."""
    if not has_role(viewer.person, role):
        raise ForbiddenError(f"{what}; you are a {viewer.person.role} here. Ask an admin.")


def unless_fresh(
    request: Request, here: Clearance, viewer: Viewer, form: Submitted, *, back: str
) -> Response | None:
    """Return the page that asks the viewer who they are, with all that they sent; None when it is known.

    For what would let somebody decide later, by a key or a link, without being asked so.
    """
    try:
        require_fresh(viewer, Risk.HIGH, form, here, back=back)
    except (StepUpNeededError, TooManyTriesError) as error:
        kept = [pair for pair in form.multi_items() if pair[0] not in (CSRF_FIELD, FIELD)]
        where = error.where if isinstance(error, StepUpNeededError) and error.how is StepUp.SIGN_IN else ""
        return show(
            request,
            viewer,
            "confirm.html",
            status=error.status,
            target=quote(request.scope["path"]),
            kept=kept,
            sign_in=where,
            error=str(error),
        )
    return None


def wrong(checks: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """Run the checks of a form's fields, and return what each that failed says, by field."""
    found: dict[str, str] = {}
    for field, check in checks.items():
        try:
            check()
        except ClearanceError as error:
            found[field] = str(error)
    return found


def words(text: str) -> str:
    """Return a text that was typed as every database keeps it: without null characters."""
    return text.replace("\0", "")
