"""The trail over HTTP: read by number, checked, exported, and seen by an agent as far as it is its own."""

from typing import Any

import pytest
from sqlalchemy import text

from clearance.export import verify_export
from tests.web.asked import ask, decide
from tests.web.served import OWNER, Served

pytestmark = pytest.mark.sqlite_by_day


def _numbered(served: Served) -> None:
    served.workspace.worker.notary.seal_now()  # type: ignore[union-attr]  # this workspace has one


def _entries(served: Served, by: str = OWNER, **query: Any) -> list[tuple[str, str]]:
    """Return kind and subject of all entries, page by page."""
    found: list[tuple[str, str]] = []
    after = 0
    while True:
        params = {"after": after, **query}
        page = served.http.get("/api/v1/audit", params=params, headers=served.key(by)).json()
        found += [(each["kind"], each["subject"]) for each in page["entries"]]
        after = page["next_after"]
        if after >= page["last_seq"]:
            return found


def test_the_trail_is_read_page_by_page_without_gaps(served: Served) -> None:
    reviews = [ask(served) for _ in range(4)]
    _numbered(served)
    asked = [subject for kind, subject in _entries(served, limit=3) if kind == "review:asked"]
    assert asked == [each.id for each in reviews]


def test_filters_leave_what_they_name(served: Served) -> None:
    served.add("eva")
    review, other = ask(served), ask(served)
    decide(served, review, by="eva")
    _numbered(served)
    settled = [("review:decided", review.id), ("review:settled", review.id)]
    assert _entries(served, subject=review.id, limit=1) == [("review:asked", review.id), *settled]
    assert _entries(served, kind=["review:settled", "review:decided"]) == settled
    assert ("review:settled", review.id) in _entries(served, actor="eva")
    assert ("review:asked", review.id) not in _entries(served, actor="eva")
    assert _entries(served, kind="review:asked", subject=other.id) == [("review:asked", other.id)]


def test_an_agent_reads_what_it_asked_for_and_nothing_else(served: Served) -> None:
    served.add_agent("bot")
    own, other = ask(served, by="bot"), ask(served)
    decide(served, own)
    decide(served, other)
    _numbered(served)
    call = own.calls[0].key
    assert _entries(served, by="bot", limit=2) == [
        ("run:queued", own.run_id),
        ("review:asked", own.id),
        ("review:decided", own.id),
        ("review:settled", own.id),
        ("clearance:minted", call),
    ]
    assert _entries(served, by="bot", subject=other.id) == []


def test_the_head_says_how_far_the_trail_is_sealed(served: Served) -> None:
    ask(served)
    served.key()
    _numbered(served)
    found = served.http.get("/api/v1/audit/head", headers=served.key()).json()
    assert found["sealed_to"] == found["last_seq"] > 0
    assert found["head"].partition(":")[0].isdigit()


def test_a_trail_that_was_changed_is_reported_with_the_first_bad_place(served: Served) -> None:
    ask(served)
    _numbered(served)
    head = served.http.get("/api/v1/audit/head", headers=served.key()).json()["head"]
    good = served.http.get("/api/v1/audit/verify", params={"expect_head": head}, headers=served.key()).json()
    assert (good["ok"], good["authenticated"], good["problems"]) == (True, True, [])
    with served.workspace.database.write() as tx:
        tx.execute(text("UPDATE entries SET actor = 'mallory' WHERE seq = 2"))
    bad = served.http.get("/api/v1/audit/verify", headers=served.key()).json()
    assert (bad["ok"], bad["problems"][0]["seq"], bad["problems"][0]["kind"]) == (False, 2, "altered")


@pytest.mark.parametrize("head", ["", "x", "1:2", "0" * 64 + "0"])
def test_a_head_that_cannot_be_one_is_refused(served: Served, head: str) -> None:
    answer = served.http.get("/api/v1/audit/verify", params={"expect_head": head}, headers=served.key())
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


def test_the_export_is_checked_with_a_key_from_outside(served: Served) -> None:
    ask(served)
    _numbered(served)
    answer = served.http.get("/api/v1/audit/export", headers=served.key())
    assert answer.headers["content-type"] == "application/jsonl"
    lines = answer.content.splitlines(keepends=True)
    key = (served.workspace.home / ".clearance" / "notary.pub").read_bytes()
    assert verify_export(lines, public_key=key).authenticated
    assert not verify_export(lines[:-2], public_key=key).ok


@pytest.mark.parametrize(
    "path", ["/api/v1/audit/head", "/api/v1/audit/verify", "/api/v1/audit/export", "/metrics"]
)
def test_what_tells_about_the_whole_workspace_is_for_people(served: Served, path: str) -> None:
    served.add_agent("bot")
    assert served.http.get(path, headers=served.key("bot")).status_code == 403
    assert served.http.get(path, headers=served.key()).status_code == 200
