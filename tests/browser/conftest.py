"""A real Chromium, a served workspace, and tabs whose complaints fail the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.site import WIDE, Open, Site, Tab, launched
from tests.databases import Databases


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give the browser; each test has profiles of its own in it."""
    with sync_playwright() as playwright:
        found = launched(playwright)
        yield found
        found.close()


@pytest.fixture
def site(databases: Databases, tmp_path: Path) -> Iterator[Site]:
    """Give a served workspace on SQLite: what the databases do differently is tested without a browser."""
    url = databases.migrated("sqlite", tmp_path)
    with Site.open(url, home=tmp_path) as found:
        yield found


@pytest.fixture
def open_tab(browser: Browser, site: Site) -> Iterator[Open]:
    """Give what opens tabs, each in a profile of its own; a complaint of any of them fails the test."""
    tabs: list[Tab] = []

    def opened(
        size: tuple[int, int] = WIDE,
        *,
        person: str | None = "ann",
        javascript: bool = True,
        colors: Literal["light", "dark"] = "light",
    ) -> Tab:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            java_script_enabled=javascript,
            color_scheme=colors,
            reduced_motion="reduce",
        )
        context.set_default_timeout(30_000)
        tab = Tab.of(context, site)
        if person is not None:
            site.sign_in(tab.page, person)
        tabs.append(tab)
        return tab

    yield opened
    for tab in tabs:
        tab.page.context.close()
    complaints = [said for tab in tabs for said in tab.complaints]
    assert complaints == []


@pytest.fixture
def tab(open_tab: Open) -> Tab:
    """Give a tab in which `ann` is signed in."""
    return open_tab()


@pytest.fixture
def page(tab: Tab) -> Page:
    """Give the page of that tab."""
    return tab.page
