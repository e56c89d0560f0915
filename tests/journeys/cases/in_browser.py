"""Pages in a real browser: what it shows, where it goes by itself, and what it would run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urljoin

from playwright.sync_api import BrowserContext, Dialog, sync_playwright

from tests.browser.site import launched

_MAIN = "main"
_ARGUMENTS = "main pre.value"
_FOREIGN = """
() => [...document.querySelectorAll("*")].filter((each) =>
  [...each.attributes].some((one) => one.name.startsWith("on")) ||
  (each.tagName === "SCRIPT" && !each.src) || (each.tagName === "STYLE") ||
  (["IMG", "IFRAME", "OBJECT", "EMBED"].includes(each.tagName) && each.closest("main"))
).map((each) => each.outerHTML.slice(0, 200))
"""


@dataclass(frozen=True)
class Looked:
    """What a browser made of a page. `foreign` are parts that could run or load something by themselves.

    `arguments` says for each exact value whether it can be seen.
    """

    text: str
    requests: tuple[str, ...]
    foreign: tuple[str, ...]
    arguments: tuple[bool, ...]
    dialogs: tuple[str, ...]


def look(address: str, *, cookie: str) -> Looked:
    """Open a page as whoever has this session."""
    # A thread of its own: the tests' own browser may be open in this one, and a thread takes only one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_look, address, cookie).result()


def _look(address: str, cookie: str) -> Looked:
    with sync_playwright() as playwright:
        browser = launched(playwright)
        try:
            context = browser.new_context(viewport={"width": 1360, "height": 900})
            context.add_cookies([{"name": "clearance", "value": cookie, "url": urljoin(address, "/")}])
            return _looked(context, address)
        finally:
            browser.close()


def _looked(context: BrowserContext, address: str) -> Looked:
    requests: list[str] = []
    dialogs: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page = context.new_page()
    page.on("request", lambda each: requests.append(each.url))
    page.on("dialog", dismissed)
    page.goto(address, wait_until="load")
    page.evaluate("() => document.querySelectorAll('main details').forEach((each) => (each.open = true))")
    shown = page.locator(_ARGUMENTS).all()
    return Looked(
        text=page.locator(_MAIN).inner_text(),
        requests=tuple(requests),
        foreign=tuple(page.evaluate(_FOREIGN)),
        arguments=tuple(each.is_visible() for each in shown),
        dialogs=tuple(dialogs),
    )
