"""One party: who asked, its agent and the person behind it never decide their own, at whatever door."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clearance.errors import ForbiddenError
from clearance.keyring import add_agent
from clearance.membership import set_mode
from clearance.people import Mode, Role
from clearance.signing_in import Client, start_session
from clearance.store import people, reviews
from tests.web.asked import ask
from tests.web.served import OWNER, Served

DOORS = ("gate", "api", "page")


@pytest.fixture
def served(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """Give a workspace where `bot` acts for ann, `helper` for the bot, and `eva` is somebody else."""
    with Served.open(migrated_database_url, home=tmp_path) as found:
        found.add("eva")
        found.add_agent("bot")
        add_agent(found.workspace.database, "helper", behind="bot", by=OWNER)
        yield found


def _decide(served: Served, door: str, review_id: str, *, by: str) -> bool:
    """Approve at a door; whether it was taken."""
    path = f"reviews/{review_id}/decide"
    match door:
        case "gate":
            try:
                served.workspace.gate.decide(review_id, [{"type": "approve"}], by=by, version=1)
            except ForbiddenError:
                return False
            return True
        case "api":
            body = {"version": 1, "decisions": [{"type": "approve"}]}
            answer = served.http.post(f"/api/v1/{path}", json=body, headers=served.key(by))
            return answer.status_code == 200
        case _:
            return _decide_on_page(served, path, by=by)


def _decide_on_page(served: Served, path: str, *, by: str) -> bool:
    from clearance.web.pages.viewer import csrf_of

    database, limits = served.workspace.database, served.workspace.session_limits
    with database.write() as tx:
        person = people.person(tx, by)
        client = Client("127.0.0.1")
        found = start_session(database, tx, person, client=client, limits=limits, how="password")
    form = {"csrf": csrf_of(found.token), "version": "1", "decision": "approve"}
    headers = {"Cookie": f"clearance={found.token}", "Sec-Fetch-Site": "same-origin"}
    answer = served.http.post(f"http://127.0.0.1/{path}", data=form, headers=headers, follow_redirects=False)
    return answer.status_code == 303


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("asker", [OWNER, "bot", "helper"])
def test_a_party_does_not_decide_what_one_of_it_asked_for(served: Served, asker: str, door: str) -> None:
    review = ask(served, by=asker)
    assert not _decide(served, door, review.id, by=OWNER)
    with served.workspace.database.read() as tx:
        assert reviews.review(tx, review.id).version == 1
    assert _decide(served, door, review.id, by="eva")


@pytest.mark.parametrize("door", ["gate", "api"])
@pytest.mark.parametrize("agent", ["bot", "helper"])
def test_an_agent_decides_nothing_whoever_asked(served: Served, agent: str, door: str) -> None:
    assert not _decide(served, door, ask(served, by="eva").id, by=agent)


@pytest.mark.parametrize("door", DOORS)
def test_the_one_person_of_a_workspace_decides_their_own_until_it_is_made_separate(
    migrated_database_url: str, tmp_path: Path, door: str
) -> None:
    with Served.open(migrated_database_url, home=tmp_path) as alone:
        alone.add_agent("bot")
        assert _decide(alone, door, ask(alone, by="bot").id, by=OWNER)
        set_mode(alone.workspace.database, Mode.SEPARATE, by=OWNER)
        assert not _decide(alone, door, ask(alone, by="bot").id, by=OWNER)


def test_a_viewer_decides_nothing_on_a_page(served: Served) -> None:
    served.add("vera", role=Role.VIEWER)
    assert not _decide(served, "page", ask(served, by=OWNER).id, by="vera")
