"""The header Idempotency-Key: a request that is sent again is done once, and answered the same."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from clearance import once, turns
from clearance.errors import IdempotencyKeyReusedError
from clearance.ledger import new_id
from clearance.once import KEPT_FOR, Once, Repeated
from clearance.review import Review
from clearance.run import Run
from clearance.store import reviews, runs, tables
from clearance.store.database import Database
from tests.scripted import ScriptedModel, calls
from tests.web.asked import ask
from tests.web.deciding import approving
from tests.web.served import Served
from tests.web.talking import frames, live, talks

ROOT = Path(__file__).parents[2]
MESSAGES = "/api/v1/threads/t1/messages"
APPROVE = {"decisions": [{"type": "approve"}], "version": 1}
START = datetime(2030, 1, 1, tzinfo=UTC)
AT_ONCE = 16


def _key(served: Served, key: str = "k1", person: str = "ann") -> dict[str, str]:
    return served.key(person) | {"Idempotency-Key": key}


def _path(review: Review) -> str:
    return f"/api/v1/reviews/{review.id}/decide"


def _decisions(served: Served) -> int:
    with served.workspace.database.read() as tx:
        return tx.execute(select(func.count()).select_from(tables.decisions)).scalar_one()


def _runs(served: Served, thread_id: str = "t1") -> int:
    with served.workspace.database.read() as tx:
        return len(runs.list_runs(tx, thread_id=thread_id))


def _at_once(work: Callable[[], Any]) -> list[Any]:
    start = threading.Barrier(AT_ONCE)

    def one() -> Any:
        start.wait(30)
        return work()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [each.result(60) for each in [pool.submit(one) for _ in range(AT_ONCE)]]


def test_sixteen_decisions_at_once_under_one_key_are_one(served: Served) -> None:
    review = ask(served)
    headers = _key(served)
    with live(served.workspace) as client:
        answers = _at_once(lambda: client.post(_path(review), json=APPROVE, headers=headers))
    assert {each.status_code for each in answers} == {200}
    assert len({each.text for each in answers}) == 1
    assert len({each.headers["etag"] for each in answers}) == 1
    assert _decisions(served) == 1


def test_of_sixteen_at_the_gate_one_decides_and_the_others_are_told_its_answer(served: Served) -> None:
    gate, review = served.workspace.gate, ask(served)

    def decide() -> str:
        try:
            gate.decide(review.id, APPROVE["decisions"], by="ann", version=1, once=approving(review.id, "k1"))
        except Repeated as repeated:
            return repeated.answer
        return "decided"

    assert sorted(_at_once(decide)) == ["decided", *["version 2"] * (AT_ONCE - 1)]
    assert _decisions(served) == 1


def test_sixteen_messages_at_once_under_one_key_are_one_run(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    headers = _key(served)
    with live(served.workspace) as client:
        answers = _at_once(lambda: client.post(MESSAGES, json={"text": "Hello"}, headers=headers))
    assert {each.status_code for each in answers} == {200}
    assert len({each.text for each in answers}) == 1
    assert _runs(served) == 1


def test_sixteen_at_once_on_what_a_thread_waits_for_are_one_decision(served: Served) -> None:
    office = talks(
        served.workspace, ScriptedModel([calls(("send_email", {"to": "a@b.example"})), "It is sent."])
    )
    served.http.post(MESSAGES, json={"text": "Write"}, headers=served.key())
    headers, body = _key(served), {"decisions": [{"type": "approve"}]}
    with live(served.workspace) as client:
        answers = _at_once(lambda: client.post("/chat/t1/review", json=body, headers=headers))
    assert {(each.status_code, each.json()["answer"]) for each in answers} == {(200, "It is sent.")}
    assert (_decisions(served), office.mails) == (1, ["a@b.example"])


def test_a_repetition_gets_the_first_answer_whatever_happened_since(served: Served) -> None:
    served.add("bob")
    review = ask(served, ("wipe", "{}"), by="someone")
    first = served.http.post(_path(review), json=APPROVE, headers=_key(served))
    assert first.json()["status"] == "pending"
    served.http.post(_path(review), json={**APPROVE, "version": 2}, headers=served.key("bob"))
    again = served.http.post(_path(review), json=APPROVE, headers=_key(served))
    assert (again.status_code, again.text, again.headers["etag"]) == (200, first.text, first.headers["etag"])
    with served.workspace.database.read() as tx:
        assert reviews.review(tx, review.id).status == "settled"


def test_without_a_key_a_repetition_is_a_conflict(served: Served) -> None:
    review = ask(served)
    assert served.http.post(_path(review), json=APPROVE, headers=served.key()).is_success
    assert served.http.post(_path(review), json=APPROVE, headers=served.key()).status_code == 409


@pytest.mark.parametrize(
    "body", [{"decisions": [{"type": "reject"}], "version": 1}, {**APPROVE, "version": 2}]
)
def test_another_body_under_the_same_key_is_refused(served: Served, body: dict[str, object]) -> None:
    review = ask(served)
    assert served.http.post(_path(review), json=APPROVE, headers=_key(served)).is_success
    refused = served.http.post(_path(review), json=body, headers=_key(served))
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert _decisions(served) == 1


def test_another_text_under_the_same_key_is_refused(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    assert served.http.post(MESSAGES, json={"text": "Hello"}, headers=_key(served)).is_success
    refused = served.http.post(MESSAGES, json={"text": "Good bye"}, headers=_key(served))
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert _runs(served) == 1


def test_a_repetition_may_wait_longer_and_is_the_same(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    first = served.http.post(MESSAGES, json={"text": "Hello", "wait": 0}, headers=_key(served))
    again = served.http.post(MESSAGES, json={"text": "Hello", "wait": 30}, headers=_key(served))
    assert again.json()["run_id"] == first.json()["run_id"]
    assert again.json()["answer"] == "Good morning."
    assert _runs(served) == 1


def test_the_two_names_of_a_route_share_its_keys(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    told = [
        served.http.post(path, json={"text": "Hello"}, headers=_key(served)).json()["run_id"]
        for path in (MESSAGES, "/chat/t1/messages")
    ]
    assert told[0] == told[1]


def test_a_stream_that_is_asked_for_again_follows_the_same_run(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    headers = _key(served) | {"Accept": "text/event-stream"}
    first, again = (
        list(frames(served.http.post(MESSAGES, json={"text": "Hello"}, headers=headers))) for _ in range(2)
    )
    assert first[0].data["run_id"] == again[0].data["run_id"]
    assert first[-1].data == again[-1].data
    assert _runs(served) == 1


def test_another_person_has_keys_of_their_own(served: Served) -> None:
    served.add("bob")
    review = ask(served, ("wipe", "{}"), by="someone")
    assert served.http.post(_path(review), json=APPROVE, headers=_key(served)).json()["version"] == 2
    body = {**APPROVE, "version": 2}
    assert (
        served.http.post(_path(review), json=body, headers=_key(served, person="bob")).json()["version"] == 3
    )
    assert _decisions(served) == 2


def test_a_key_counts_for_one_route(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning.", "Good evening."]))
    told = [
        served.http.post(
            f"/api/v1/threads/{thread}/messages", json={"text": "Hello"}, headers=_key(served)
        ).json()["run_id"]
        for thread in ("t1", "t2")
    ]
    assert told[0] != told[1]


def test_what_was_refused_is_not_kept(served: Served) -> None:
    review = ask(served)
    wrong = {**APPROVE, "version": 7}
    assert served.http.post(_path(review), json=wrong, headers=_key(served)).status_code == 409
    assert served.http.post(_path(review), json=APPROVE, headers=_key(served)).status_code == 200


def test_taking_a_question_back_twice_is_taking_it_back_once(served: Served) -> None:
    review = ask(served)
    path = f"/api/v1/reviews/{review.id}/withdraw"
    first, again = (served.http.post(path, json={}, headers=_key(served)) for _ in range(2))
    assert (first.status_code, first.json()["status"]) == (200, "withdrawn")
    assert again.text == first.text


def test_ending_a_run_twice_is_ending_it_once(served: Served) -> None:
    review = ask(served)
    path = f"/api/v1/runs/{review.run_id}/cancel"
    first, again = (served.http.post(path, headers=_key(served)) for _ in range(2))
    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert again.text == first.text


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "tab\there"])
def test_a_key_that_is_none_is_refused(served: Served, key: str) -> None:
    review = ask(served)
    refused = served.http.post(_path(review), json=APPROVE, headers=_key(served, key))
    assert refused.status_code == 422
    assert _decisions(served) == 0


def test_a_process_that_is_killed_before_the_commit_keeps_neither_the_fact_nor_the_key(
    served: Served,
) -> None:
    review = ask(served)
    url = served.workspace.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.web.deciding", url, str(served.workspace.home), review.id, "k1"]
    environment = {**os.environ, "CLEARANCE_KILL_AT": "in-decide"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert _decisions(served) == 0
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    with pytest.raises(Repeated) as told:
        served.workspace.gate.decide(
            review.id, APPROVE["decisions"], by="ann", version=1, once=approving(review.id, "k1")
        )
    assert (told.value.answer, _decisions(served)) == ("version 2", 1)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Give a clock."""
    return Clock()


@pytest.fixture
def database(migrated_database_url: str, clock: Clock) -> Iterator[Database]:
    """Give a database whose clock the test moves."""
    opened = Database(migrated_database_url, clock=clock)
    yield opened
    opened.close()


def _once(body: str = "digest", key: str = "k1", answer: str = "done") -> Once[str]:
    return Once("ann", "route", key, body, lambda _, done: f"{answer} {done}")


def _do(database: Database, request: Once[str], done: str) -> str:
    try:
        with database.write() as tx:
            once.claim(database, tx, request)
            once.keep(tx, request, done)
    except Repeated as repeated:
        return repeated.answer
    return f"now {done}"


def test_an_answer_is_kept_for_a_day_and_no_longer(database: Database, clock: Clock) -> None:
    assert _do(database, _once(), "first") == "now first"
    clock.now = START + KEPT_FOR - timedelta(microseconds=1)
    assert _do(database, _once(), "second") == "done first"
    clock.now = START + KEPT_FOR
    with database.read() as tx:
        once.look(database, tx, _once())
    assert _do(database, _once("other body"), "third") == "now third"
    assert _do(database, _once("other body"), "fourth") == "done third"


def test_a_look_tells_of_what_was_done(database: Database) -> None:
    _do(database, _once(), "first")
    with database.read() as tx, pytest.raises(Repeated):
        once.look(database, tx, _once())
    with database.read() as tx, pytest.raises(IdempotencyKeyReusedError):
        once.look(database, tx, _once("other body"))
    with database.read() as tx:
        once.look(database, tx, _once(key="k2"))


def test_old_answers_are_cleared_away_and_the_others_stay(database: Database, clock: Clock) -> None:
    _do(database, _once(key="old"), "first")
    clock.now = START + timedelta(hours=1)
    _do(database, _once(key="new"), "second")
    clock.now = START + KEPT_FOR
    once.purge(database)
    with database.read() as tx:
        assert tx.execute(select(tables.answers.c.key)).scalars().all() == ["new"]


def test_sixteen_who_come_when_a_key_has_run_out_do_it_once(database: Database, clock: Clock) -> None:
    _do(database, _once(), "yesterday")
    clock.now = START + KEPT_FOR
    told = _at_once(lambda: _do(database, _once(), "today"))
    assert sorted(told) == [*["done today"] * (AT_ONCE - 1), "now today"]


def test_a_start_under_a_key_that_fails_later_leaves_nothing(served: Served) -> None:
    talks(served.workspace, ScriptedModel([]))

    def broken(_: object, __: Run) -> str:
        raise RuntimeError("the answer cannot be made")

    request = Once("ann", "route", "k1", "digest", broken)
    ledger = served.workspace.ledger
    with pytest.raises(RuntimeError, match="cannot be made"):
        turns.start(ledger, "t1", "Hello", run_id=new_id(), program="chat", by="ann", once=request)
    assert _runs(served) == 0
    with served.workspace.database.read() as tx:
        assert tx.execute(select(tables.answers.c.key)).first() is None
