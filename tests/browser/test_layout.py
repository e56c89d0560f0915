"""How pages are laid out: targets are tall enough, nothing is cut off, what is asked is seen at once."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.every_page import PAGES
from tests.browser.site import NARROW, WIDE, Open, Site
from tests.pages.reviewing import asked

LEAST = 36
_SMALL = """least => [...document.querySelectorAll(
    "button, .button, summary, nav a, .crumbs a, select, .check, input:not([type=checkbox], [type=radio])")]
  .filter(each => each.checkVisibility() && each.getBoundingClientRect().height < least - 0.5)
  .map(each => each.outerHTML.slice(0, 120))"""
_BOXES = """all => all.map(each => each.getBoundingClientRect()).map(({left, right, top, width}) =>
  ({left, right, top, width}))"""


def boxes(page: Page, selector: str) -> list[dict[str, Any]]:
    """Return where the elements of a page are, those that are there."""
    found: list[dict[str, Any]] = page.eval_on_selector_all(selector, _BOXES)
    assert found, selector
    return found


@pytest.mark.parametrize(
    "name",
    ["the trail", "a review that is edited", "a file of a research run", "the keys", "a plan that waits"],
)
def test_targets_are_tall_enough(open_tab: Open, site: Site, name: str) -> None:
    case = PAGES[name]
    tab = open_tab(person=case.person)
    page = tab.open(case.make(site))
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(_SMALL, LEAST) == []


def test_the_places_stand_on_one_line_in_a_narrow_window(open_tab: Open) -> None:
    page = open_tab().open("/settings/people")
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    assert len({each["top"] for each in boxes(page, ".side li a")}) == 1


def test_a_table_of_the_settings_is_whole_in_a_narrow_window(open_tab: Open, site: Site) -> None:
    page = open_tab().open(PAGES["the keys"].make(site))
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    assert all(each["right"] <= NARROW[0] for each in boxes(page, "td, td button"))


def test_the_highest_risk_fits_its_column(open_tab: Open, site: Site) -> None:
    asked(site.workspace, ("fire", "{}"))
    page = open_tab().open("/")
    [risk], [body] = boxes(page, ".row > .risk"), boxes(page, ".row .body")
    assert risk["right"] + 12 <= body["left"]


def test_the_fields_of_the_way_in_are_equally_wide(open_tab: Open) -> None:
    page = open_tab(person=None).open("/login")
    name, password = boxes(page, "#name, #password")
    [form] = boxes(page, "form")
    assert (name["left"], name["width"]) == (password["left"], password["width"])
    assert name["width"] > form["width"] * 0.8


def test_the_decision_on_a_plan_is_seen_at_once_beside_it(open_tab: Open, site: Site) -> None:
    case = PAGES["a plan that waits"]
    page = open_tab(person=case.person).open(case.make(site))
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    [gate], [plan] = boxes(page, "#gate-title"), boxes(page, "#plan-title")
    assert gate["top"] < 400
    assert gate["left"] > plan["right"]
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    [way] = boxes(page, "a[href='#gate-title']")
    assert way["top"] < 400
    page.get_by_role("link", name="To the decision").click()
    [gate] = boxes(page, "#gate-title")
    assert 0 <= gate["top"] < NARROW[1]
