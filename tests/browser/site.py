"""A served workspace as a real browser uses it, and what every page has to hold at any time."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

import clearance
from clearance.apps.research.routes import routers_of
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.setup import open_research
from clearance.people import Person, Role
from clearance.signing_in import Client, start_session
from clearance.store import people
from clearance.workspace import Clearance
from tests.web.live import serving

OWNER = "ann"
WIDE, NARROW = (1360, 900), (390, 844)
MOST_SENT = 60_000
"""Bytes of bodies that one page may need, scripts and style with it."""
HOW_TO_GET = (
    "No Chromium is here for the tests of the pages. Install one (Debian, Ubuntu: apt install chromium), "
    "name one in CLEARANCE_TEST_CHROMIUM, or run: .venv/bin/playwright install chromium"
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The browser says itself what its policy kept from the page; this says it in words that a test can find.
_TELL = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


def launched(playwright: Playwright) -> Browser:
    """Start Chromium: the one that is named, else one on the path, else Playwright's own."""
    found = os.environ.get("CLEARANCE_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    own = Path(playwright.chromium.executable_path)
    if found is None and not own.exists():
        raise RuntimeError(HOW_TO_GET)
    # Its sandbox does not start for root, and only for root it is left out.
    return playwright.chromium.launch(executable_path=found or own, chromium_sandbox=os.geteuid() != 0)


def cookie_of(workspace: Clearance, name: str) -> str:
    """Begin a session of somebody, and return what its cookie holds."""
    database = workspace.database
    with database.write() as tx:
        limits, client = workspace.session_limits, Client("127.0.0.1", "a test")
        person = people.person(tx, name)
        return start_session(database, tx, person, client=client, limits=limits, how="password").token


@dataclass
class Site:
    """A workspace that is served on a loopback port. `ann` is its first person, an admin."""

    workspace: Clearance
    url: str
    research: ResearchRuns

    @classmethod
    @contextmanager
    def open(cls, database_url: str, *, home: Path) -> Iterator["Site"]:
        """Open the workspace with a worker, and serve it from a thread of this process."""
        with clearance.open(database_url, home=home, person=OWNER, worker=True) as workspace:
            research = open_research(workspace)
            with serving(workspace, routers=routers_of(research)) as url:
                yield cls(workspace, url, research)

    def add(self, name: str, *, role: Role = Role.REVIEWER, groups: tuple[str, ...] = ()) -> str:
        """Let another person in, and return their name."""
        database = self.workspace.database
        with database.write() as tx:
            people.add(tx, Person(name, name, role=role, groups=groups), now=database.now(tx))
        return name

    def sign_in(self, page: Page, name: str = OWNER) -> None:
        """Begin a session of somebody, and show its cookie in the page's browser."""
        token = cookie_of(self.workspace, name)
        page.context.add_cookies([{"name": "clearance", "value": token, "url": self.url}])


@dataclass
class Tab:
    """A tab of a browser of its own, and what it complained about."""

    page: Page
    site: Site
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: BrowserContext, site: Site) -> "Tab":
        """Open a tab; every complaint of its pages is noted."""
        context.add_init_script(_TELL)
        tab = cls(context.new_page(), site)
        tab.page.on("console", lambda said: tab.complaints.append(said.text) if _is_bad(said.type) else None)
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        return tab

    def open(self, path: str = "/") -> Page:
        """Go to a page of the site, and return the tab's page."""
        self.page.goto(self.site.url + path)
        return self.page

    def live(self, path: str = "/") -> Page:
        """Go to a page, and wait until it is told what happens."""
        with self.page.expect_response(lambda answer: "/events" in answer.url):
            self.open(path)
        return self.page


def _is_bad(kind: str) -> bool:
    return kind in ("error", "warning")


Open = Callable[..., Tab]
"""Opens another tab: `open_tab(width_and_height, javascript=True, colors="light")`."""


def barriers(page: Page, *, rules: Sequence[str] = ()) -> list[str]:
    """Return what keeps people from using the page, in its present colours; by all rules, or by these."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {[node['html'] for node in each['nodes']][:3]}" for each in found]


def check(page: Page) -> None:
    """Check that the page can be used in light and dark, and does not go sideways, at its present width."""
    schemes: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
    for colors in schemes:
        page.emulate_media(color_scheme=colors)
        # What else axe looks at does not depend on the colours.
        found = barriers(page, rules=() if colors == "light" else ("color-contrast",))
        assert not found, (colors, found)
    page.emulate_media(color_scheme="light")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page goes sideways"


def sent(page: Page, go: Callable[[], Any]) -> int:
    """Return how many bytes of bodies came for a page, as they were sent."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda told: sizes.append(int(told["encodedDataLength"])))
    go()
    page.wait_for_load_state("load")
    expect(page.locator("main")).to_be_visible()
    session.detach()
    return sum(sizes)
