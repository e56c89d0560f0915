"""`python -m tests.browser.images`: writes a picture of every page to `docs/images`, for README and docs."""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from clearance.store.database import Database
from tests.browser.every_page import numbered
from tests.browser.office import Office, furnish
from tests.browser.site import NARROW, OWNER, WIDE, Site, launched
from tests.web.talking import until

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 150_000
_COLORS = 128


@dataclass(frozen=True)
class Picture:
    """One picture: its name, the page, and how it is looked at. `click` is a button that is pressed first."""

    name: str
    address: str
    size: tuple[int, int] = WIDE
    colors: Literal["light", "dark"] = "light"
    person: str | None = OWNER
    click: str | None = None


def pictures(office: Office) -> list[Picture]:
    """Return what is taken."""
    review = f"/reviews/{quote(office.critical.id)}"
    return [
        Picture("inbox", "/"),
        Picture("inbox-dark", "/", colors="dark"),
        Picture("inbox-narrow", "/", size=NARROW),
        Picture("review", review, person="cleo"),
        Picture("review-edit", f"{review}?edit=1", person="cleo"),
        Picture("decided", f"/reviews/{quote(office.edited.id)}"),
        Picture("decided-list", "/?tab=decided"),
        Picture("link", office.link, person=None),
        Picture("chat", office.conversation),
        Picture("chat-list", "/chat", person="dan"),
        Picture("pipeline", office.plan),
        Picture("pipeline-edit", f"{office.plan}?edit=1"),
        Picture("pipeline-done", office.report),
        Picture("pipeline-list", "/pipeline"),
        Picture("report", f"{office.report}/files/report.html?open=1"),
        Picture("runs", "/runs"),
        Picture("run", f"/runs/{quote(office.edited.run_id)}"),
        Picture("audit", "/audit", size=(WIDE[0], 700), click="Verify"),
        Picture("settings", "/settings"),
        Picture("policies", "/settings/policies"),
        Picture("people", "/settings/people"),
        Picture("channels", "/settings/channels"),
        Picture("keys", "/settings/keys"),
        Picture("rules", "/settings/rules"),
        Picture("sessions", "/me/sessions"),
        Picture("login", "/login", person=None),
        Picture("not-found", "/no/such/page"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the pictures that are asked for; all, where none is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.images", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--to", type=Path, default=FOLDER, help="where to [docs/images]")
    asked = parser.parse_args(arguments)
    asked.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launched(playwright)
        for name, content in taken(browser, Path(folder), names=asked.names):
            (asked.to / f"{name}.png").write_bytes(content)
            print(f"{name}.png: {len(content) / 1000:.0f} kB")
        browser.close()


def taken(browser: Browser, home: Path, *, names: Sequence[str] = ()) -> list[tuple[str, bytes]]:
    """Return pictures of a workspace that is made for them, as PNG by their names."""
    url = f"sqlite:///{home / 'clearance.db'}"
    database = Database(url)
    database.migrate()
    database.close()
    # Workers are called by their machine, which is nobody's business.
    with patch("socket.gethostname", return_value="office"), Site.open(url, home=home) as site:
        office = furnish(site.workspace, site.research)
        wanted = [each for each in pictures(office) if not names or each.name in names]
        cookies = {who: _cookies(browser, site, who) for who in {each.person for each in wanted}}
        return [(each.name, _take(browser, site, each, cookies=cookies[each.person])) for each in wanted]


def _cookies(browser: Browser, site: Site, person: str | None) -> Any:
    """Return the cookies of one session for all pictures of a person: it is in the trail that is shown."""
    context = browser.new_context()
    if person is not None:
        site.sign_in(context.new_page(), person)
    found = context.cookies()
    context.close()
    return found


def _take(browser: Browser, site: Site, picture: Picture, *, cookies: Any) -> bytes:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=picture.colors,
        reduced_motion="reduce",
        device_scale_factor=1,
    )
    context.add_cookies(cookies)
    page = context.new_page()
    until(lambda: numbered(site))
    answer = page.goto(site.url + picture.address)
    if picture.click is not None:
        page.get_by_role("button", name=picture.click, exact=True).click()
        page.wait_for_load_state()
    assert answer is not None
    assert answer.ok or picture.name == "not-found", f"{picture.name}: {answer.status}"
    content = _small(_shot(page, height))
    context.close()
    return content


def _shot(page: Page, height: int) -> bytes:
    """Return the page as far as two screens show it."""
    whole: int = page.evaluate("document.documentElement.scrollHeight")
    width = page.viewport_size["width"] if page.viewport_size else WIDE[0]
    page.set_viewport_size({"width": width, "height": min(max(whole, height // 2), 2 * height)})
    return page.screenshot(animations="disabled")


def _small(png: bytes) -> bytes:
    """Return the picture with few colours: it is text on plain ground."""
    found = Image.open(BytesIO(png)).convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE)
    small = BytesIO()
    found.save(small, "PNG", optimize=True)
    return small.getvalue()


if __name__ == "__main__":
    main()
