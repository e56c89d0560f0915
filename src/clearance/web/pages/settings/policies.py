"""The page of policies: what holds in each program, and a text that is checked, tried, and then applied."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from clearance import applying
from clearance.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PolicyError,
    TooManyTriesError,
)
from clearance.form.field import lines
from clearance.people import Role, has_role
from clearance.policy import Effect, Policy, Risk
from clearance.policy_json import policy_from_json
from clearance.policy_writing import write_policy
from clearance.simulation import simulate
from clearance.store import policies
from clearance.store.policies import Activation
from clearance.web.access import Workspace
from clearance.web.pages.settings.sections import admit, show, words
from clearance.web.pages.settings.trying import Draft, changed_lines, placed, rows
from clearance.web.pages.stepping_up import FIELD, StepUpNeededError, require_fresh, wanted
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

PATH = "/settings/policies"
WITHIN = timedelta(days=30)
"""The runs of which time a policy is tried on."""
RISK = Risk.CRITICAL
"""What changing a policy is worth: each time, it is shown once more that it is the admin."""


@router.get(PATH)
def look(
    request: Request,
    here: Workspace,
    viewer: Signed,
    program: str = "",
    number: str = "",
    done: str = "",
) -> Response:
    """Show the active policy of a program; with `number` an earlier one stands in the box, to go on from."""
    with here.database.read() as tx:
        names = policies.programs(tx)
    program = words(program) or ("chat" if "chat" in names else next(iter(names), ""))
    if not names:
        return show(request, viewer, "no_policy.html")
    history = _history(here, program)
    chosen = next((each for each in history if str(each.number) == number), history[0])
    draft = Draft(text_of(chosen))
    return _page(request, here, viewer, program, draft=draft, opened=chosen.number, done=done)


@router.post(PATH)
def act(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Check a text, try it, show what it would change, or apply it once that was shown."""
    admit(viewer, Role.OPERATOR, "Policies are tried by operators, and applied by admins")
    program, do = words(form.get("program", "")), form.get("do", "")
    if do not in ("check", "test", "compare", "apply"):
        raise InvalidInputError("The form says not what to do. Load the page again.")
    if do in ("compare", "apply"):
        admit(viewer, Role.ADMIN, "Only an admin changes the policy")
    active = _history(here, program)[0]
    draft = _checked(here, program, Draft(lines(form.get("text", ""))))
    if draft.policy is None:
        return _page(request, here, viewer, program, draft=draft, status=422)
    if do == "test":
        draft = _tested(here, program, draft, draft.policy)
    elif do != "check":
        draft = _compared(program, draft, active)
    if do == "apply":
        return _applied(request, here, viewer, program, draft=draft, form=form, active=active)
    return _page(request, here, viewer, program, draft=draft)


def text_of(found: Activation) -> str:
    """Return a policy as a file: as it was applied, or what its code brought in other words."""
    return found.text if found.text is not None else write_policy(policy_from_json(found.policy))


def _applied(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    program: str,
    *,
    draft: Draft,
    form: Submitted,
    active: Activation,
) -> Response:
    if form.get("seen", "") != draft.seen:
        said = "Nothing was applied: this is not what was compared. Look at the difference as it is now."
        return _page(request, here, viewer, program, draft=replace(draft, errors={"": said}), status=409)
    try:
        require_fresh(viewer, RISK, form, here, back=_address(program))
        applying.apply(
            here.database, draft.text, program=program, by=viewer.person.id, instead_of=active.number
        )
    except (StepUpNeededError, TooManyTriesError) as error:
        refused = replace(draft, errors={FIELD: str(error)})
        return _page(request, here, viewer, program, draft=refused, status=error.status)
    except ConflictError as error:
        now = _history(here, program)[0]
        refused = replace(_compared(program, draft, now), errors={"": f"Nothing was applied. {error}"})
        return _page(request, here, viewer, program, draft=refused, status=error.status)
    return RedirectResponse(_address(program, done="applied"), 303)


def _checked(here: Clearance, program: str, draft: Draft) -> Draft:
    """Return the draft as a policy, or with everything that is wrong in it, each at its place."""
    with here.database.read() as tx:
        known = applying.known(tx, program)
    try:
        policy = known.read(draft.text)
    except PolicyError as error:
        found = tuple(placed(draft.text, fault.pointer, fault.message) for fault in error.faults)
        return replace(draft, faults=found)
    said = tuple(placed(draft.text, place, message) for place, message in known.warnings(policy, draft.text))
    return replace(draft, policy=policy, warnings=said)


def _tested(here: Clearance, program: str, draft: Draft, then: Policy) -> Draft:
    with here.database.read() as tx:
        today = policies.active(tx, program, known=here.programs.policies(program))
        since = here.database.now(tx) - WITHIN
        return replace(draft, found=simulate(tx, program, today=today, then=then, since=since))


def _compared(program: str, draft: Draft, active: Activation) -> Draft:
    """Return the draft with what it changes, and a mark of both texts: only what was shown is applied."""
    mark = hashlib.sha256(f"{program}\0{active.number}\0{draft.text}".encode()).hexdigest()[:32]
    return replace(draft, difference=changed_lines(text_of(active), draft.text), seen=mark)


def _history(here: Clearance, program: str) -> list[Activation]:
    with here.database.read() as tx:
        found = policies.history(tx, program)
    if not found:
        raise NotFoundError("There is no such program here.")
    return found


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    program: str,
    *,
    draft: Draft,
    opened: int | None = None,
    done: str = "",
    status: int = 200,
) -> Response:
    history = _history(here, program)
    with here.database.read() as tx:
        active = policies.active(tx, program, known=here.programs.policies(program))
        context = {
            "programs": policies.programs(tx),
            "by": policies.activated_by(tx, program),
            "now": here.database.now(tx),
        }
    may_apply = has_role(viewer.person, Role.ADMIN)
    return show(
        request,
        viewer,
        "policies.html",
        status=status,
        **context,
        program=program,
        history=history,
        default=active.default,
        rules=rows(active),
        effects=list(Effect),
        draft=draft,
        opened=opened,
        done=done,
        days=WITHIN.days,
        may_try=has_role(viewer.person, Role.OPERATOR),
        may_apply=may_apply,
        step_up=wanted(viewer, RISK, here) if may_apply and draft.seen else None,
        sign_in=f"/login?{urlencode({'again': '1', 'next': _address(program)})}",
    )


def _address(program: str, **more: str) -> str:
    return f"{PATH}?{urlencode({'program': program, **more})}"
