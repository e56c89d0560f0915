"""How soon a page can be used: a real Chromium on a slow network and processor, and the server's own time."""

import time
from dataclasses import dataclass
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, sync_playwright

from benchmarks import parked
from benchmarks.figures import NAMES, Aim, Figure, Surroundings, median
from tests.browser.site import WIDE, cookie_of, launched
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
MOST_USABLE, MOST_SENT, MOST_SERVER = Aim(1200.0), Aim(60.0), Aim(50.0)


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
    return figures


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
