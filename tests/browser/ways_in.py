"""The pages by which people come in, and those that follow what they did there or elsewhere."""

from datetime import timedelta

from playwright.sync_api import Page
from sqlalchemy import update

from clearance.membership import add_person
from clearance.passwords import hashed
from clearance.people import Role
from clearance.store import passwords
from clearance.store.tables import sessions
from tests.browser.site import OWNER, Site
from tests.notices.visiting import link_to
from tests.web.asked import ask

PASSWORD = "a long way over the hills"
LONG_AGO = timedelta(days=40)


def with_password(site: Site, path: str) -> str:
    """Let the owner have a password, and return the address."""
    database = site.workspace.database
    with database.write() as tx:
        passwords.put(tx, OWNER, hashed(PASSWORD), now=database.now(tx))
    return path


def wrong_password(_: Site, page: Page) -> None:
    """Try to come in with a password that is none."""
    page.get_by_label("Id or name").fill(OWNER)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("do not belong together").wait_for()


def welcome(site: Site) -> str:
    """The link by which somebody comes in for the first time."""
    added = add_person(site.workspace.database, "eva", name=None, role=Role.REVIEWER, groups=(), by=OWNER)
    return added[1].path


def new_key(site: Site, page: Page) -> None:
    """Ask for a key with a session that is not fresh: it has to be shown once more who it is."""
    with site.workspace.database.write() as tx:
        tx.execute(update(sessions).values(fresh_at=site.workspace.database.now(tx) - LONG_AGO))
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make key").click()
    page.get_by_role("heading", name="Show that it is you").wait_for()


def similar(site: Site) -> str:
    """Several reviews that are decided together."""
    for number in range(3):
        ask(site.workspace, ("note", f'{{"text":"<b>{number}\\u202e{"x" * 200}"}}'), by=f"agent-{number}")
    return "/"


def decide_together(_: Site, page: Page) -> None:
    """Approve what is listed, in one go; who comes second has nothing left to approve."""
    boxes = page.locator("input[name=item]")
    if boxes.count():
        for box in boxes.all():
            box.check(force=True)
        page.get_by_role("button", name="Approve all").click()
        page.locator(".outcome").first.wait_for()


def link(site: Site) -> str:
    """A link in a message."""
    review = ask(site.workspace)
    return f"/l/{link_to(site.workspace, review, person=site.add('ben'))}"


def press_it(_: Site, page: Page) -> None:
    """Press the button of a link, as long as it has one."""
    if page.get_by_role("button", name="Approve").count():
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("link", name="Open the review").wait_for()


def old_link(site: Site) -> str:
    """A link in a message of long ago."""
    review, ben = ask(site.workspace), site.add("ben")
    with site.workspace.database.read() as tx:
        now = site.workspace.database.now(tx)
    return f"/l/{link_to(site.workspace, review, person=ben, now=now - LONG_AGO)}"
