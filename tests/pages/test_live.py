"""What pages are told: the same stream as that of the API, through the door of a session's cookie."""

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from clearance import turns
from clearance.store import audit, people, sessions
from clearance.web.events import MOST_STREAMS
from tests.pages.site import OWNER, Site
from tests.web.asked import ask
from tests.web.live import Stream, serving, stream
from tests.web.talking import until


@pytest.fixture
def busy(migrated_database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Give a workspace with a worker, which numbers what happens."""
    with Site.open(migrated_database_url, home=tmp_path, worker=True) as found:
        yield found


def cookie(site: Site, name: str = OWNER) -> dict[str, str]:
    """Return the header of a browser in which somebody is signed in."""
    return {"Cookie": f"clearance={site.session(name).token}"}


@contextmanager
def told(address: str, headers: dict[str, str]) -> Iterator[Stream]:
    """Open the stream of a page."""
    with stream(address, "reviews", headers=headers, path="/events") as found:
        yield found


def test_a_page_is_told_of_a_new_review(busy: Site) -> None:
    with serving(busy.workspace) as address, told(address, cookie(busy)) as found:
        found.wait_for("hello")
        review = ask(busy.workspace)
        assert found.wait_for("review:asked").data["subject"] == review.id


@pytest.mark.parametrize("page", ["/", "/runs", "/reviews/{review}", "/runs/{run}"])
def test_what_happens_between_a_page_and_its_stream_is_told(busy: Site, page: str) -> None:
    review = ask(busy.workspace)
    headers = cookie(busy)
    with serving(busy.workspace) as address:
        path = page.format(review=review.id, run=review.run_id)
        shown = httpx.get(f"{address}{path}", headers=headers, timeout=60).text
        turns.cancel(busy.workspace.ledger, review.run_id, by=OWNER, reason="not needed")
        until(lambda: _numbered(busy, "run:cancelled"))
        (live,) = re.findall(r'hx-sse:connect="([^"]+)"', shown)
        with httpx.stream("GET", address + html.unescape(live), headers=headers, timeout=60) as answer:
            Stream(answer).wait_for("run:cancelled" if "run" in live else "review:withdrawn")


def _numbered(site: Site, kind: str) -> bool:
    with site.workspace.database.read() as tx:
        return any(entry.kind == kind for entry in audit.read_after(tx, 0, limit=100))


def test_a_key_opens_no_page_and_a_cookie_not_the_api(busy: Site) -> None:
    with serving(busy.workspace) as address:
        with told(address, {"Authorization": "Bearer nothing"}) as found:
            assert found.status == 303
        with stream(address, "reviews", headers=cookie(busy)) as found:
            assert found.status == 401


@pytest.mark.parametrize("how", ["signed out", "disabled"])
def test_the_stream_ends_with_the_session(busy: Site, how: str) -> None:
    busy.add("eva")
    database = busy.workspace.database
    with serving(busy.workspace) as address, told(address, cookie(busy, "eva")) as found:
        found.wait_for("hello")
        with database.write() as tx:
            if how == "disabled":
                people.disable(tx, "eva")
            else:
                sessions.revoke(tx, "eva", now=database.now(tx))
        ask(busy.workspace)
        seen = found.next()
        assert seen is None, seen


def test_a_person_has_so_many_streams_and_no_more(busy: Site) -> None:
    with serving(busy.workspace) as address, ExitStack() as opened:
        headers = cookie(busy)
        for _ in range(MOST_STREAMS):
            opened.enter_context(told(address, headers)).wait_for("hello")
        with told(address, headers) as refused:
            assert refused.status == 429
