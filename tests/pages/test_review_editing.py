"""Editing a review: one field changes, the others stay as they were, and faults are said at their fields."""

import json

import pytest

from clearance.policy import DecisionType
from clearance.review import Answer
from tests.pages.reviewing import ARGUMENTS, Shown, asked, now, opened, posted, sent, signed_in
from tests.pages.site import Site

pytestmark = pytest.mark.sqlite_by_day


@pytest.mark.parametrize("mode", ["edit=1", "raw=1"])
def test_a_form_that_nobody_touched_approves_the_very_same_bytes(site: Site, mode: str) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    assert sent(browser, opened(browser, review, f"?{mode}"), "decision", "approve").status_code == 303
    [call] = now(site.workspace, review).calls
    assert (call.arguments, call.revision) == (ARGUMENTS, 1)


def test_an_edit_changes_one_argument_and_leaves_the_others_byte_equal(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review, "?edit=1")
    assert sent(browser, page, "decision", "approve", t1__lines="one\nthree").status_code == 303
    [call] = now(site.workspace, review).calls
    assert call.arguments == ARGUMENTS.replace("one\\ntwo", "one\\nthree")
    assert (call.state, call.decisions[0].type) == (Answer.APPROVED, DecisionType.EDIT)
    assert "one\nthree" in opened(browser, review).values


def test_what_was_changed_is_shown_before_it_is_approved(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    shown = sent(
        browser, opened(browser, review, "?edit=1"), "do", "check", t1__amount="1.50", t1__by='"card"'
    )
    page = Shown.read(shown.text)
    assert shown.status_code == 200
    assert "Approve with 2 edits" in page.text
    assert page.values[:4] == ["48250.0", "1.50", "bank", "card"]
    assert sent(browser, page, "decision", "approve").status_code == 303
    assert json.loads(now(site.workspace, review).calls[0].arguments)["amount"] == 1.5


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"t1__amount": "lots"}, "must be a number"),
        ({"t1__amount": "-1"}, "must be at least 0"),
        ({"t1__account": "1.5"}, "must be integer"),
        ({"t1__code": "no quotes"}, "is not JSON"),
    ],
)
def test_an_edit_that_does_not_fit_is_said_at_its_field_and_nothing_runs(
    site: Site, typed: dict[str, str], said: str
) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    answer = sent(
        browser,
        opened(browser, review, "?edit=1"),
        "decision",
        "approve",
        **typed,
        c1="keep\nme",
        t1__lines="kept",
    )
    [(name, text)] = typed.items()
    key = name.replace("__", "/")
    assert answer.status_code == 422
    assert f'id="{key}-error">{said}' in answer.text
    fields = dict(Shown.read(answer.text).fields)
    assert (fields[key], fields["c1"], fields["t1/lines"]) == (text, "keep\nme", "kept")
    assert now(site.workspace, review) == review


def test_parts_are_added_and_removed_by_buttons_and_nothing_is_decided_by_it(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review, "?edit=1")
    for button, typed in (
        ("1 add /tags", {"t1__amount": "9.90"}),
        ("1 remove /tags/0", {"t1__tags__n0": "z"}),
        ("1 set /copy", {}),
        ("1 remove /urgent", {}),
    ):
        answer = sent(browser, page, "do", button, **typed)
        assert answer.status_code == 200
        page = Shown.read(answer.text)
    assert now(site.workspace, review) == review
    assert sent(browser, page, "decision", "approve", t1__copy="c").status_code == 303
    changed = json.loads(now(site.workspace, review).calls[0].arguments)
    assert (changed["tags"], changed["copy"], changed["amount"]) == (["y", "z"], "c", 9.9)
    assert "urgent" not in changed
    assert changed["account"] == 2**64


@pytest.mark.parametrize(
    "button", ["x", "9 add /tags", "1 nothing /tags", "1 add /nowhere", "99999999999 add"]
)
def test_a_button_that_nobody_offered_does_nothing(site: Site, button: str) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review, "?edit=1")
    answer = posted(browser, page.action, [*page.sent(), ("do", button)])
    assert answer.status_code in (200, 422)
    assert now(site.workspace, review) == review
