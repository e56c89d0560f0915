"""Servers in processes of their own: no open tab misses what another did, or what happened meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

import clearance
from clearance.apps.research.setup import open_research
from tests.browser.servers import server, tab_at
from tests.browser.site import OWNER, Site
from tests.databases import Databases
from tests.research.pipelines import Lab
from tests.web.asked import ask


def comes(page: Page, review_id: str) -> None:
    """Wait for a review to stand in the inbox, which was not loaded again meanwhile."""
    expect(page.locator(f"[id='{review_id}']")).to_be_attached(timeout=60_000)
    assert page.evaluate("window.same")


@pytest.fixture
def workspace_at(databases: Databases, tmp_path: Path) -> Iterator[dict[str, clearance.Clearance]]:
    """Give a workspace on each database, with a worker that numbers what happens."""
    with ExitStack() as stack:
        found = {}
        for kind in ("sqlite", "postgresql"):
            (home := tmp_path / kind).mkdir()
            url = databases.migrated(kind, home)
            found[kind] = stack.enter_context(clearance.open(url, home=home, person=OWNER, worker=True))
        yield found


def test_tabs_at_two_servers_of_one_postgresql_are_told_the_same(
    browser: Browser, workspace_at: dict[str, clearance.Clearance], tmp_path: Path
) -> None:
    workspace = workspace_at["postgresql"]
    url = workspace.database.url.render_as_string(hide_password=False)
    with ExitStack() as stack:
        addresses = [stack.enter_context(server(url, tmp_path / name)) for name in ("one", "two")]
        research = open_research(workspace)
        sites = [Site(workspace, address, research) for address in addresses]
        pages = [stack.enter_context(tab_at(browser, site)) for site in sites]
        review = ask(workspace, by="agent")
        for page in pages:
            comes(page, review.id)
        pages[0].locator(f"[id='{review.id}'] a.what").click()
        pages[0].get_by_role("button", name="Approve", exact=True).click()
        expect(pages[1].get_by_text("Nothing waits for you")).to_be_visible()


def test_a_server_that_was_killed_and_comes_again_tells_what_happened_meanwhile(
    browser: Browser, workspace_at: dict[str, clearance.Clearance], tmp_path: Path
) -> None:
    workspace = workspace_at["sqlite"]
    url, home = str(workspace.database.url), tmp_path / "sqlite"
    with ExitStack() as stack:
        with server(url, home) as address:
            page = stack.enter_context(tab_at(browser, Site(workspace, address, open_research(workspace))))
        review = ask(workspace, by="agent")
        stack.enter_context(server(url, home, port=urlsplit(address).port or 0))
        comes(page, review.id)


def test_a_plan_that_waits_is_approved_at_a_server_that_was_killed_and_comes_again(
    browser: Browser, workspace_at: dict[str, clearance.Clearance], tmp_path: Path
) -> None:
    workspace = workspace_at["sqlite"]
    url, home = str(workspace.database.url), tmp_path / "sqlite"
    lab = Lab(workspace, open_research(workspace))
    lab.start()
    with ExitStack() as stack:
        with server(url, home) as address:
            site = Site(workspace, address, lab.research)
            page = stack.enter_context(tab_at(browser, site))
            page.goto(f"{address}/pipeline/run1")
        stack.enter_context(server(url, home, port=urlsplit(address).port or 0))
        page.get_by_role("button", name="Approve plan").click()
        assert lab.research.wait_for("run1", wait=120).stage.value == "done"
    assert len(lab.executed()) == len(lab.research.store.plan("run1", 1).steps)
