"""The pace of decisions: so many a minute for each person, at every door that decides over HTTP."""

from pathlib import Path

import pytest

from clearance.errors import TooManyDecisionsError
from clearance.web.pace import Pace
from tests.databases import Databases
from tests.pages.reviewing import opened, sent
from tests.pages.site import OWNER as ANN
from tests.pages.site import Site
from tests.web.asked import ask, decide
from tests.web.served import OWNER, Served


@pytest.fixture
def url(databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a database; of whoever serves it each person may decide twice a minute."""
    monkeypatch.setenv("CLEARANCE_PERSON_DECISIONS", "2")
    return databases.migrated("sqlite", tmp_path)


def test_more_decisions_than_a_minute_may_have_are_not_taken(url: str, tmp_path: Path) -> None:
    with Served.open(url, home=tmp_path) as served:
        served.add("eva")
        served.add("tom")
        served.add_agent("bot")
        first, second, third = (ask(served, by="bot") for _ in range(3))
        assert [decide(served, each, by="eva").status_code for each in (first, second)] == [200, 200]
        refused = decide(served, third, by="eva")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_decisions")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        headers = served.key("eva")
        still = served.http.get(f"/api/v1/reviews/{third.id}", headers=headers).json()
        assert still["status"] == "pending"
        for path, body in [
            (f"/api/v1/threads/{third.thread_id}/review", {"decisions": [{"type": "approve"}]}),
            (f"/chat/{third.thread_id}/review", {"decisions": [{"type": "approve"}]}),
        ]:
            answer = served.http.post(path, json=body, headers=headers)
            assert "decisions than one person may make" in answer.text, (path, answer.text)
        assert decide(served, third, by="tom").status_code == 200


def test_tries_count_as_well(url: str, tmp_path: Path) -> None:
    with Served.open(url, home=tmp_path) as served:
        served.add_agent("bot")
        review = ask(served, by="bot")
        for _ in range(2):
            assert decide(served, review, version=7).status_code == 409
        assert decide(served, review).status_code == 429


def test_a_page_says_when_to_go_on(url: str, tmp_path: Path) -> None:
    with Site.open(url, home=tmp_path) as site:
        site.workspace.gate.pace(ANN)
        site.workspace.gate.pace(ANN)
        site.add("eva")
        browser = site.signed_in()
        review = ask(site.workspace, by="eva")
        answer = sent(browser, opened(browser, review), "decision", "approve")
        assert (answer.status_code, "Go on in" in answer.text) == (429, True)
        assert int(answer.headers["retry-after"]) >= 1


def test_each_person_has_a_pace_of_their_own() -> None:
    pace = Pace(1)
    pace("ann")
    pace("eva")
    with pytest.raises(TooManyDecisionsError, match="Go on in"):
        pace("ann")


def test_nobody_is_slowed_down_where_it_is_set_so(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARANCE_PERSON_DECISIONS", "0")
    with Served.open(databases.migrated("sqlite", tmp_path), home=tmp_path) as served:
        for _ in range(200):
            served.workspace.gate.pace(OWNER)
