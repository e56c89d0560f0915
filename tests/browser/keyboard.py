"""The keyboard of somebody who has nothing else: Tab to where it is needed, and a key there."""

from playwright.sync_api import Locator, Page, expect

_MOST_TABS = 120
"""More than any page takes from its top to its last button."""


def reach(page: Page, wanted: Locator) -> None:
    """Go on by Tab until this has the focus."""
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if wanted.evaluate("(each) => each === document.activeElement"):
            break
    expect(wanted).to_be_focused()


def press(page: Page, role: str, name: str) -> None:
    """Go by Tab to a link or button, press it, and wait for the page that follows."""
    reach(page, page.get_by_role(role, name=name))  # type: ignore[arg-type]
    with page.expect_navigation():
        page.keyboard.press("Enter")


def write(page: Page, label: str, text: str) -> None:
    """Go by Tab to a field, and type."""
    reach(page, page.get_by_label(label, exact=True))
    page.keyboard.type(text)
