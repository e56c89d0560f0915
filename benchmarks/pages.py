"""How soon a page can be used: a real Chromium on a slow network and processor, and the server's own time."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

import clearance
from benchmarks import parked
from benchmarks.figures import NAMES, Aim, Figure, Surroundings, median
from clearance.apps.research.setup import open_research
from tests.browser.servers import server, tab_at
from tests.browser.site import OWNER, WIDE, Site, cookie_of, launched
from tests.web.asked import ask
from tests.web.live import serving

LOOKS = 15
MOST_SAMPLES = 7
# Slow 4G, as Lighthouse has it: 1.6 Mbit/s down, 750 kbit/s up, 150 ms there and back.
_NETWORK = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
_SLOWER = 4
_NOTE_PAINTS = """
new PerformanceObserver((list) => { for (const each of list.getEntries()) window.painted = each.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
"""
_USABLE = """() => {
  const [gone] = performance.getEntriesByType("navigation");
  const ready = document.querySelector("[data-htmx-powered]") !== null;
  return ready && window.painted ? [gone.domContentLoadedEventEnd, window.painted] : null;
}"""
# Notes when each element came, by the machine's clock, which the tests' process reads, too.
_NOTE_ROWS = """() => { window.seen = {}; new MutationObserver(() => {
  for (const each of document.querySelectorAll("#inbox [id]")) window.seen[each.id] ??= Date.now();
}).observe(document.body, { childList: true, subtree: true }); }"""
MOST_USABLE, MOST_SENT, MOST_SERVER, MOST_UNSEEN = Aim(1200.0), Aim(60.0), Aim(50.0), Aim(1000.0)


@dataclass(frozen=True)
class Loaded:
    """One load of a page: when it was parsed and scripts ran, its largest paint (ms), bytes as sent."""

    parsed: float
    painted: float
    sent: int

    @property
    def usable(self) -> float:
        """When it could be used, in milliseconds from the click."""
        return max(self.parsed, self.painted)


def measure(here: Surroundings) -> list[Figure]:
    """Load the inbox and a review with many reviews waiting; ask the server alone on each database."""
    figures = []
    for kind in here.kinds:
        with parked.many(here, kind) as (front, copies), serving(front.opened) as url:
            cookie = cookie_of(front.opened, front.opened.person)
            figures.append(_server_time(here, url, cookie, kind=kind))
            if kind == here.kinds[0]:
                review = f"/reviews/{quote(copies[0].review)}"
                figures += _in_browser(here, url, cookie, pages={"inbox": "/", "review": review})
    return figures + [_until_seen(here, kind) for kind in here.kinds]


def _server_time(here: Surroundings, url: str, cookie: str, *, kind: str) -> Figure:
    here.tell(f"the inbox from the server, {NAMES[kind]}")
    with httpx.Client(base_url=url, cookies={"clearance": cookie}, timeout=60) as http:
        headers = {"Accept-Encoding": "gzip", "Sec-Fetch-Site": "none"}
        taken = []
        for _ in range(LOOKS):
            begun = time.perf_counter()
            answer = http.get("/", headers=headers)
            taken.append((time.perf_counter() - begun) * 1000)
            assert answer.status_code == 200
    what = f"inbox page from the server, {here.sizes.parked:,} waiting, {NAMES[kind]}"
    return Figure(what, median(taken), "ms", aim=MOST_SERVER)


def _in_browser(here: Surroundings, url: str, cookie: str, *, pages: dict[str, str]) -> list[Figure]:
    figures = []
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for name, path in pages.items():
            here.tell(f"the {name} in Chromium")
            loads = [
                _load(browser, url, path, cookie=cookie) for _ in range(min(here.sizes.samples, MOST_SAMPLES))
            ]
            usable, sent = median([each.usable for each in loads]), median([each.sent for each in loads])
            figures += [
                Figure(f"{name} usable, slow 4G and a processor 4 × slower", usable, "ms", aim=MOST_USABLE),
                Figure(f"{name} transferred", sent / 1000, "kB", aim=MOST_SENT),
            ]
        browser.close()
    return figures


def _until_seen(here: Surroundings, kind: str) -> Figure:
    """Ask while an inbox is open at every server: one with SQLite, two with PostgreSQL. The worst counts."""
    servers = 1 if kind == "sqlite" else 2
    here.tell(f"from asking to an open inbox, {NAMES[kind]}")
    folder = here.folder()
    url = here.database(kind, folder)
    with ExitStack() as stack:
        workspace = stack.enter_context(clearance.open(url, home=folder, person=OWNER, worker=True))
        browser = launched(stack.enter_context(sync_playwright()))
        research = open_research(workspace)
        sites = [
            Site(workspace, stack.enter_context(server(url, folder / f"server-{n}")), research)
            for n in range(servers)
        ]
        pages = [stack.enter_context(tab_at(browser, site)) for site in sites]
        for page in pages:
            page.evaluate(_NOTE_ROWS)
        taken = [_seen_after(workspace, pages) for _ in range(min(here.sizes.samples, LOOKS))]
    where = "an open inbox" if servers == 1 else f"open inboxes at {servers} servers"
    return Figure(f"asked → seen in {where}, {NAMES[kind]}, worst", max(taken), "ms", aim=MOST_UNSEEN)


def _seen_after(workspace: clearance.Clearance, pages: list[Page]) -> float:
    """Return after how many milliseconds a new review stood in all of these inboxes."""
    review = ask(workspace, by="agent")
    asked = time.time() * 1000
    seen = [page.wait_for_function("id => window.seen[id]", arg=review.id).json_value() for page in pages]
    return max(float(each) for each in seen) - asked


def _load(browser: Browser, url: str, path: str, *, cookie: str) -> Loaded:
    """Load a page in a profile of its own: nothing of it is known to the browser."""
    context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
    context.add_cookies([{"name": "clearance", "value": cookie, "url": url}])
    context.add_init_script(_NOTE_PAINTS)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", _NETWORK)
    session.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda told: sizes.append(int(told["encodedDataLength"])))
    page.goto(url + path, wait_until="load")
    parsed, painted = page.wait_for_function(_USABLE).json_value()
    context.close()
    return Loaded(parsed, painted, sum(sizes))
