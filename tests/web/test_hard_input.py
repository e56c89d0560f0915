"""Hard input: whatever is sent, a clear refusal comes back and nothing of it is kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from clearance.review import Review
from clearance.store.tables import calls, decisions, entries, reviews, runs, threads
from clearance.web.bodies import MAX_BODY
from tests.databases import KINDS, Databases
from tests.web.asked import ask
from tests.web.served import Served

pytestmark = pytest.mark.sqlite_by_day

JSON = "application/json"
GOOD = b'{"decisions":[{"type":"approve"}],"version":1}'
DEEP = 100_000

BODIES = {
    "two megabytes": (b'{"reason":"' + b"x" * 2_000_000 + b'"}', JSON, 413, "too_large"),
    "a byte too much": (b" " * (MAX_BODY + 1), JSON, 413, "too_large"),
    "not UTF-8": (b'{"decisions":["\xff"]}', JSON, 422, "invalid_input"),
    "UTF-16": (GOOD.decode().encode("utf-16"), JSON, 422, "invalid_input"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, JSON, 422, "invalid_input"),
    "nested deep": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", JSON, 422, "invalid_input"),
    "nested in objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, JSON, 422, "invalid_input"),
    "NaN": (b'{"decisions":[],"version":NaN}', JSON, 422, "invalid_input"),
    "infinity": (b'{"decisions":[],"version":-Infinity}', JSON, 422, "invalid_input"),
    "a number out of bounds": (b'{"decisions":[],"version":1e999}', JSON, 422, "invalid_input"),
    "an integer of many digits": (b'{"version":' + b"9" * 5000 + b"}", JSON, 422, "invalid_input"),
    "a key twice": (b'{"decisions":[],"version":1,"version":2}', JSON, 422, "invalid_input"),
    "half of a surrogate pair": (rb'{"decisions":["\ud800"],"version":1}', JSON, 422, "invalid_input"),
    "an array": (b"[1]", JSON, 422, "invalid_input"),
    "a text": (b'"hello"', JSON, 422, "invalid_input"),
    "null": (b"null", JSON, 422, "invalid_input"),
    "cut off": (b'{"decisions":[', JSON, 422, "invalid_input"),
    "more after the end": (GOOD + b"{}", JSON, 422, "invalid_input"),
    "nothing": (b"", JSON, 422, "invalid_input"),
    "a form": (b"decisions=approve", "application/x-www-form-urlencoded", 415, "wrong_type"),
    "plain text": (GOOD, "text/plain", 415, "wrong_type"),
    "XML": (b"<a/>", "application/xml", 415, "wrong_type"),
    "no type": (GOOD, "", 415, "wrong_type"),
    "a field that is not known": (b'{"decisions":[],"version":1,"by":"eva"}', JSON, 422, "invalid_input"),
    "decisions that are no list": (b'{"decisions":{},"version":1}', JSON, 422, "invalid_input"),
    "decisions that are no objects": (b'{"decisions":[7],"version":1}', JSON, 422, "invalid_review_decision"),
    "no decisions": (b'{"decisions":[],"version":1}', JSON, 422, "invalid_review_decision"),
    "a null character": (
        b'{"decisions":[{"type":"reject","message":"a\\u0000b"}],"version":1}',
        JSON, 422, "invalid_review_decision",
    ),
    "a message beyond bounds": (
        json.dumps({"decisions": [{"type": "reject", "message": "x" * 100_000}], "version": 1}).encode(),
        JSON, 422, "invalid_review_decision",
    ),
}  # fmt: skip

_TABLES = (threads, runs, reviews, calls, decisions, entries)


class Desk:
    """A workspace with one review that waits, and how much is stored in it."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.review: Review = ask(served)
        self.headers = served.key()

    def stored(self) -> list[int]:
        """Return how many rows the tables have."""
        with self.served.workspace.database.read() as tx:
            return [tx.execute(select(func.count()).select_from(table)).scalar_one() for table in _TABLES]


@pytest.fixture(scope="module", params=KINDS)
def desk(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """Serve a workspace for all of these tests: none of them changes it."""
    folder: Path = tmp_path_factory.mktemp("hard")
    url = databases.migrated(request.param, folder)
    with Served.open(url, home=folder) as served:
        yield Desk(served)
    if request.param == "postgresql":
        databases.drop(url)


@pytest.mark.parametrize("verb", ["decide", "withdraw"])
@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_taken_is_refused_and_not_kept(desk: Desk, name: str, verb: str) -> None:
    body, kind, status, code = BODIES[name]
    if verb == "withdraw" and (name == "nothing" or code == "invalid_review_decision"):
        body, status, code = b'{"reason":"a\\u0000b"}', 422, "invalid_input"
    before = desk.stored()
    answer = desk.served.http.post(
        f"/api/v1/reviews/{desk.review.id}/{verb}",
        content=body,
        headers={**desk.headers, **({"Content-Type": kind} if kind else {})},
    )
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 10_000
    assert desk.stored() == before


def test_a_body_in_pieces_that_does_not_say_how_long_it_is_is_cut_off(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 50_000

    answer = desk.served.http.post(
        f"/api/v1/reviews/{desk.review.id}/decide",
        content=pieces(),
        headers={**desk.headers, "Content-Type": JSON},
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/reviews/a%00b", 422),
        ("/api/v1/reviews?thread=%00", 422),
        ("/api/v1/reviews?limit=0", 422),
        ("/api/v1/reviews?limit=x", 422),
        ("/api/v1/reviews?risk=huge", 422),
        ("/api/v1/reviews?status=", 422),
        ("/api/v1/reviews/%ff%fe", 404),
        ("/api/v1/reviews/" + "x" * 5000, 404),
        ("/api/v1/reviews/..%2f..%2fetc", 404),
        ("/api/v1/runs?state=lost", 422),
        ("/api/v1/runs/%F0%9F%92%A9", 404),
        ("/api/v1/audit?after=-1", 422),
        ("/api/v1/audit?after=99999999999999999999", 422),
        ("/api/v1/audit?kind=%00", 422),
        ("/api/v1/nothing", 404),
        ("/api/v2/reviews", 404),
    ],
)
def test_an_address_that_cannot_be_meant_is_a_problem(desk: Desk, path: str, status: int) -> None:
    answer = desk.served.http.get(path, headers=desk.headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_a_method_that_a_route_does_not_take_is_a_problem(desk: Desk, method: str) -> None:
    answer = desk.served.http.request(method, f"/api/v1/reviews/{desk.review.id}", headers=desk.headers)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_a_bug_says_nothing_about_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.served.workspace.gate, "withdraw", lambda *_, **__: 1 / 0)
    answer = desk.served.http.post(f"/api/v1/reviews/{desk.review.id}/withdraw", headers=desk.headers)
    assert (answer.status_code, answer.json()["code"]) == (500, "bug")
    assert "division" not in answer.text
