"""Words that must fit: what pages say to who may not decide, of what was decided, and by whom."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearance.audit import AuditKind
from clearance.people import Role
from tests.notices.visiting import Visit, visiting
from tests.pages.reviewing import Shown, asked, opened, seal, sent, signed_in
from tests.pages.site import Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day


@pytest.fixture
def visit(migrated_database_url: str, tmp_path: Path) -> Iterator[Visit]:
    """Give a workspace that sends links, and its site."""
    with visiting(migrated_database_url, tmp_path) as opened_site:
        yield opened_site


def _edited(site: Site) -> str:
    """Have a payment approved with an edit; return the address of its review."""
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review, "?edit=1")
    assert sent(browser, page, "decision", "approve", t1__amount="100.0").status_code == 303
    return f"/reviews/{review.id}"


def test_who_may_not_decide_is_not_told_that_it_needs_them(site: Site) -> None:
    review = asked(site.workspace)
    site.add("vic", role=Role.VIEWER)
    text = " ".join(opened(signed_in(site, "vic"), review).text.split())
    assert "Why it waits" in text
    assert "What each answer does" in text
    assert "needs you" not in text
    assert "if you" not in text
    mine = " ".join(opened(signed_in(site), review).text.split())
    assert "Why it needs you" in mine
    assert "What happens if you …" in mine


def test_a_decided_review_gives_no_orders_and_shows_its_edit_once(site: Site) -> None:
    text = signed_in(site).page(_edited(site)).text
    assert "These 2 values were flagged" in text
    assert "Check these" not in text
    assert text.count("48250.0") == 1
    assert "Changed by a reviewer" not in text
    assert "ann approved with edits" in text


def test_the_page_of_a_run_and_the_trail_say_what_was_decided(site: Site) -> None:
    review = asked(site.workspace)
    site.workspace.gate.decide(
        review.id, [{"type": "reject", "message": "no"}], by="ann", version=review.version
    )
    seal(site)
    browser = signed_in(site)
    assert "ann rejected" in browser.page(f"/runs/{review.run_id}").text
    audit = browser.page(f"/audit?kind={AuditKind.REVIEW_DECIDED.value}").text
    assert f"ann decided on review {review.id}: rejected" in audit


def test_the_trail_does_not_call_the_first_policy_another_one(site: Site) -> None:
    asked(site.workspace)
    seal(site)
    text = signed_in(site).page(f"/audit?kind={AuditKind.POLICY_ACTIVATED.value}").text
    assert "ann activated a policy for bank" in text
    assert "another policy" not in text


def test_the_trail_tells_the_number_of_its_last_seal_apart_from_its_entries(site: Site) -> None:
    asked(site.workspace)
    seal(site)
    text = signed_in(site).page("/audit").text
    assert re.search(r"\d+ entries, the last seal is 1 \([0-9a-f]{6}…\)", text)
    assert "sealed to" not in text


def test_the_page_of_a_link_shows_each_argument_apart_and_the_flagged_first(visit: Visit) -> None:
    review = asked(visit.office.workspace)
    shown = Shown.read(visit.look(visit.token(review)).text)
    assert "Check these 2 values" in " ".join(shown.text.split())
    assert shown.values[:2] == ["18446744073709551616", "48250.0"]
    assert {"one\ntwo", "true"} <= set(shown.values)
    assert not [each for each in shown.values if each.startswith("{")]


@pytest.mark.parametrize("path", ["keys", "people", "policies", "channels"])
def test_every_cell_of_the_settings_says_what_it_is_where_tables_are_stacked(site: Site, path: str) -> None:
    asked(site.workspace)
    html = signed_in(site).get(f"/settings/{path}").text
    for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
        assert 'class="stacks"' in table
        for cell in re.findall(r"<td(.*?)</td>", table, re.DOTALL):
            assert cell.startswith(' data-label="') or "<form" in cell, cell
