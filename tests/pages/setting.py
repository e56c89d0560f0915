"""The settings as a browser uses them: forms sent with the token of the session, and what the trail says."""

from collections.abc import Mapping, Sequence

from httpx2 import Response
from sqlalchemy import select

from clearance.people import Role
from clearance.store.tables import entries
from clearance.web.pages.viewer import csrf_of
from tests.pages.reviewing import posted, signed_in
from tests.pages.site import OWNER, Browser, Site

ROLES = tuple(Role)
WHO: Mapping[Role, str] = {
    Role.VIEWER: "vic",
    Role.REVIEWER: "ben",
    Role.OPERATOR: "olga",
    Role.ADMIN: OWNER,
}


def crowd(site: Site) -> dict[Role, Browser]:
    """Let one person of each role in, and return their browsers."""
    for role, name in WHO.items():
        if name != OWNER:
            site.add(name, role=role)
    return {role: signed_in(site, name) for role, name in WHO.items()}


def press(browser: Browser, path: str, *pairs: tuple[str, str], **typed: str) -> Response:
    """Send a form of the session to an address."""
    token = browser.token
    assert token is not None
    return posted(browser, path, [("csrf", csrf_of(token)), *pairs, *typed.items()])


def trail(site: Site, *kinds: str) -> Sequence[tuple[str, str, str]]:
    """Return kind, subject and actor of the entries of these kinds, in their order."""
    query = select(entries.c.kind, entries.c.subject, entries.c.actor).where(entries.c.kind.in_(kinds))
    with site.workspace.database.read() as tx:
        return [(row.kind, row.subject, row.actor) for row in tx.execute(query.order_by(entries.c.id))]
