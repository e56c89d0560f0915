"""Stepping up: what is decided at high or critical risk needs a sign-in that is fresh.

A page shows what `wanted` says, and decides by `decide_fresh`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar
from urllib.parse import quote

from clearance.errors import ForbiddenError, FreshSignInError
from clearance.people import FRESH, needs_fresh
from clearance.policy import Risk
from clearance.signing_in import confirm
from clearance.store import passwords, sessions
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Viewer
from clearance.workspace import Clearance

Done = TypeVar("Done")

FIELD = "password"
"""The field of the decision's own form into which a password is typed."""


class StepUp(StrEnum):
    """How a sign-in becomes fresh: it need not, by a password in the same form, or at `/login?again=1`."""

    NONE = "none"
    PASSWORD = "password"
    SIGN_IN = "sign-in"


class StepUpNeededError(ForbiddenError):
    """A decision needs a fresh sign-in; nothing was done. The page shows its form again.

    `how` says by what, `risk` for what; `where` is the address for `StepUp.SIGN_IN`. `wrong`: a password
    came, and was not right.
    """

    def __init__(self, message: str, how: StepUp, *, risk: Risk, where: str, wrong: bool = False) -> None:
        super().__init__(message)
        self.how, self.risk, self.where, self.wrong = how, risk, where, wrong


def wanted(viewer: Viewer, risk: Risk, here: Clearance) -> StepUp:
    """Return what a decision at this risk will need from this viewer."""
    with here.database.read() as tx:
        now = here.database.now(tx)
        if not needs_fresh(risk, fresh_at=viewer.fresh_at, now=now):
            return StepUp.NONE
        if passwords.of(tx, viewer.person.id) is not None:
            return StepUp.PASSWORD
        # Signed in by somebody else's word: it counts once, and not for long.
        fresh = (
            sessions.is_unspent(tx, viewer.session_id) and viewer.fresh_at <= now < viewer.fresh_at + FRESH
        )
        return StepUp.NONE if fresh else StepUp.SIGN_IN


def decide_fresh(
    viewer: Viewer,
    risk: Risk,
    submitted: Submitted,
    here: Clearance,
    decide: Callable[[Risk], Done],
    *,
    back: str = "/",
) -> Done:
    """Decide what has this risk, as a viewer whose sign-in is fresh enough for all that it may become.

    `decide` gets the risk for which the sign-in is fresh enough, and hands it to `gate.decide`. What an edit
    makes riskier is not done before the sign-in is fresh for that, too. Raises what `require_fresh` does.
    """
    while True:
        require_fresh(viewer, risk, submitted, here, back=back)
        try:
            return decide(risk)
        except FreshSignInError as error:
            risk = error.risk


def require_fresh(
    viewer: Viewer, risk: Risk, submitted: Submitted, here: Clearance, *, back: str = "/"
) -> None:
    """Return when this viewer may decide at this risk now, and raise `StepUpNeededError` when not.

    The field `password` of the decision's form makes a sign-in fresh. For critical risk each decision needs
    one of its own: call this once for each. `back` is the page that the decision is on. Raises
    `TooManyTriesError` when the password was wrong too often.
    """
    where = f"/login?again=1&next={quote(back, safe='/')}"
    match wanted(viewer, risk, here):
        case StepUp.PASSWORD:
            _check_password(viewer, submitted.get(FIELD, ""), risk, here, where=where)
        case StepUp.SIGN_IN:
            raise StepUpNeededError(_reason(risk), StepUp.SIGN_IN, risk=risk, where=where)
        case StepUp.NONE if risk is Risk.CRITICAL:
            with here.database.write() as tx:
                spent = sessions.spend(tx, viewer.session_id, now=here.database.now(tx))
            if not spent:
                raise StepUpNeededError(_reason(risk), StepUp.SIGN_IN, risk=risk, where=where)
        case _:
            return


def _check_password(viewer: Viewer, password: str, risk: Risk, here: Clearance, *, where: str) -> None:
    if not password:
        raise StepUpNeededError(_reason(risk), StepUp.PASSWORD, risk=risk, where=where)
    try:
        confirm(here.database, viewer.person, password, session_id=viewer.session_id, at="decision")
    except ForbiddenError as error:
        raise StepUpNeededError(str(error), StepUp.PASSWORD, risk=risk, where=where, wrong=True) from None


def _reason(risk: Risk) -> str:
    when = "each time" if risk is Risk.CRITICAL else f"within {FRESH.seconds // 60} minutes of a sign-in"
    return f"What has {risk} risk is decided {when}. Show once more that it is you; nothing was done yet."
