"""The page of the trail: every kind in words, filters in the address, the check, and the file."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from clearance.audit import AuditKind, Entry
from clearance.export import verify_export
from clearance.people import Role
from clearance.store import audit
from clearance.web.pages import audit as page_of_trail
from clearance.web.pages.telling import SENTENCES
from clearance.workspace import PRIVATE
from tests.pages.reviewing import seal, signed_in
from tests.pages.site import Page, Site
from tests.web.asked import ask

pytestmark = pytest.mark.sqlite_by_day(
    but=[
        "test_a_target_is_found_wherever_it_stands_in_the_trail",
        "test_days_narrow_the_entries_though_no_index_has_their_times",
        "test_fifty_stand_on_a_page_and_the_next_goes_on",
    ]
)


def decide(site: Site, tool: tuple[str, str] = ("note", "{}")) -> str:
    """Have something happen: a call that is asked about and approved. Return the review's id."""
    review = ask(site.workspace, tool, by="agent")
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    return review.id


def numbers(html: str) -> list[int]:
    """Return the numbers of the entries that a page shows, in its order."""
    return [int(part.split('"', 1)[0]) for part in html.split('<li id="e')[1:]]


def test_every_kind_has_a_sentence() -> None:
    assert set(SENTENCES) == set(AuditKind)
    for kind, sentence in SENTENCES.items():
        assert "{subject}" in sentence or kind.startswith("workspace:"), kind


def test_entries_are_told_in_words_the_newest_first_with_links(site: Site) -> None:
    review = decide(site)
    seal(site)
    html = signed_in(site).get("/audit").text
    shown = numbers(html)
    assert shown == sorted(shown, reverse=True)
    assert f"ann decided on review {review}" in Page(html).text
    assert f'href="/reviews/{review}"' in html


def test_a_kind_that_this_version_does_not_know_is_shown_as_it_is(site: Site) -> None:
    database = site.workspace.database
    with database.write() as tx:
        audit.write(tx, AuditKind.RUN_DONE, "m-1", actor="<b>zed</b>", now=database.now(tx))
        tx.execute(text("update entries set kind = 'moon:landed' where subject = 'm-1'"))
    seal(site)
    html = signed_in(site).get("/audit?kind=moon:landed").text
    assert "moon:landed" in html
    assert "&lt;b&gt;zed&lt;/b&gt;" in html
    assert len(numbers(html)) == 1


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("actor=ann", lambda each: each.actor == "ann"),
        ("kind=review", lambda each: each.kind.startswith("review:")),
        ("kind=review:asked", lambda each: each.kind == "review:asked"),
        ("actor=agent&kind=review:asked", lambda each: (each.kind, each.actor) == ("review:asked", "agent")),
        ("actor=nobody", lambda _: False),
        ("kind=100%25", lambda _: False),
        ("since=nonsense&until=2026-13-40&below=x&unknown=1", lambda _: True),
        ("since=1970-01-01&until=9999-12-31", lambda _: True),
        ("actor=%00", lambda _: True),
    ],
)
def test_the_address_narrows_the_entries(site: Site, query: str, fits: Callable[[Entry], bool]) -> None:
    decide(site)
    seal(site)
    with site.workspace.database.read() as tx:
        found = audit.read_after(tx, 0, limit=100)
    browser = signed_in(site)
    seal(site)
    shown = [seq for seq in numbers(browser.get(f"/audit?{query}").text) if seq <= len(found)]
    assert shown == [each.seq for each in found if fits(each)][::-1]


def test_a_target_is_found_wherever_it_stands_in_the_trail(site: Site) -> None:
    review = decide(site)
    for _ in range(3):
        decide(site)
    seal(site)
    html = signed_in(site).get(f"/audit?target={review}").text
    with site.workspace.database.read() as tx:
        about = [each.seq for each in audit.read_after(tx, 0, limit=500, subject=review)]
    assert numbers(html) == about[::-1]


def test_days_narrow_the_entries_though_no_index_has_their_times(site: Site) -> None:
    database = site.workspace.database
    clock = site.stop_the_clock()
    clock.now = datetime(2026, 3, 2, 23, 59, tzinfo=UTC)
    for day in range(4):
        with database.write() as tx:
            for part in range(30):
                now = database.now(tx)
                audit.write(tx, AuditKind.RUN_DONE, f"day-{day}/{part}", actor="zed", now=now)
        clock.now += timedelta(hours=24)
    seal(site)
    browser = signed_in(site)
    html = browser.get("/audit?actor=zed&since=2026-03-03&until=2026-03-04").text
    assert len(numbers(html)) == 50
    assert {f"day-{day}/" in html for day in (1, 2)} == {True}
    assert not any(f"day-{day}/" in html for day in (0, 3))
    assert numbers(browser.get("/audit?actor=zed&until=2026-03-01").text) == []
    assert numbers(browser.get("/audit?actor=zed&since=2026-03-07").text) == []


def test_fifty_stand_on_a_page_and_the_next_goes_on(site: Site) -> None:
    database = site.workspace.database
    with database.write() as tx:
        for part in range(70):
            audit.write(tx, AuditKind.RUN_DONE, f"r{part}", actor="zed", now=database.now(tx))
    seal(site)
    browser = signed_in(site)
    first = browser.get("/audit?actor=zed").text
    following = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    second = browser.get(following).text
    assert len(numbers(first)) == 50
    assert len(numbers(first) + numbers(second)) == len({*numbers(first), *numbers(second)}) == 70


def test_the_trail_is_good_until_a_row_is_altered_and_then_the_first_such_entry_is_named(site: Site) -> None:
    for _ in range(3):
        decide(site)
    browser = signed_in(site)
    seal(site)
    good = browser.send("/audit", "/audit/verify")
    assert good.status_code == 200
    assert "Nothing was altered" in good.text
    assert "✓" in good.text
    with site.workspace.database.write() as tx:
        tx.execute(text("update entries set actor = 'eve' where seq in (5, 9)"))
    bad = browser.send("/audit", "/audit/verify").text
    assert "The trail was changed" in bad
    told = bad.split("The trail was changed", 1)[1]
    assert told.index("Entry 5 is not what its hash was made over") < told.index("Entry 9 is not")
    assert 'href="/audit?below=30#e5"' in bad
    assert 5 in numbers(browser.get("/audit?below=30").text)


def test_one_check_runs_at_a_time_and_the_others_are_told(site: Site) -> None:
    browser = signed_in(site)
    with page_of_trail._ONE_CHECK:
        busy = browser.send("/audit", "/audit/verify")
    assert busy.status_code == 409
    assert "running already" in busy.text
    seal(site)
    assert browser.send("/audit", "/audit/verify").status_code == 200


def test_getting_the_address_of_the_check_checks_nothing(site: Site) -> None:
    assert signed_in(site).get("/audit/verify").status_code == 405


def test_the_file_is_that_of_the_api_and_passes_its_check(site: Site) -> None:
    decide(site)
    seal(site)
    browser = signed_in(site)
    seal(site)
    answer = browser.get("/audit/export")
    assert answer.headers["Content-Type"].startswith("application/jsonl")
    assert "attachment" in answer.headers["Content-Disposition"]
    key = (site.workspace.home / PRIVATE / "notary.pub").read_bytes()
    report = verify_export(answer.content.splitlines(keepends=True), public_key=key)
    assert report.ok
    assert report.authenticated


@pytest.mark.parametrize("role", list(Role))
def test_everybody_reads_and_checks_and_operators_export(site: Site, role: Role) -> None:
    site.add("rob", role=role)
    seal(site)
    browser = signed_in(site, "rob")
    may = role in (Role.OPERATOR, Role.ADMIN)
    html = browser.get("/audit").text
    assert ("/audit/export" in html) is may
    assert browser.send("/audit", "/audit/verify").status_code == 200
    answer = browser.get("/audit/export", headers={"Accept": "text/html", "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == (200 if may else 403)
    assert may or "needs the role operator" in Page(answer.text).text


@pytest.mark.parametrize("address", ["/audit", "/audit/export", "/runs", "/runs/x"])
def test_nobody_reads_without_signing_in(site: Site, address: str) -> None:
    answer = site.browser().get(address)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/login?next=")
