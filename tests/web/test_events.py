"""The event stream: what happened, in order, to who may see it, and none of it lost on the way."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from clearance.credential import read_credential
from clearance.keyring import revoke_key
from clearance.membership import set_sight
from clearance.people import Sight
from clearance.web.events import MOST_STREAMS
from clearance.web.turns import still_allowed
from tests.web.asked import ask, decide
from tests.web.live import LONG, Stream, serving, stream
from tests.web.served import OWNER, Served


@pytest.fixture
def address(served: Served) -> Iterator[str]:
    """Serve the workspace live as well."""
    with serving(served.workspace) as found:
        yield found


def test_what_is_asked_and_decided_comes_in_order(served: Served, address: str) -> None:
    with stream(address, "reviews", headers=served.key()) as found:
        hello = found.wait_for("hello")
        review = ask(served)
        asked = found.wait_for("review:asked")
        decide(served, review)
        decided, settled = found.wait_for("review:decided"), found.wait_for("review:settled")
    assert found.retry == "2000"
    assert int(hello.id) < int(asked.id) < int(decided.id) < int(settled.id)
    assert asked.data["v"] == 1
    assert (asked.data["seq"], asked.data["type"], asked.data["subject"]) == (
        int(asked.id), "review:asked", review.id,
    )  # fmt: skip
    assert decided.data["data"]["actor"] == OWNER


def test_a_stream_tells_nothing_of_what_its_person_sees_no_more(served: Served, address: str) -> None:
    served.add("eva")
    with stream(address, "reviews", headers=served.key("eva")) as found:
        found.wait_for("hello")
        first = ask(served)
        assert found.wait_for("review:asked").data["subject"] == first.id
        set_sight(served.workspace.database, Sight.OWN_GROUPS, by=OWNER)
        ask(served)
        own = ask(served, by="eva")
        assert found.wait_for("review:asked").data["subject"] == own.id


def test_the_stream_of_a_run_ends_for_who_sees_it_no_more(served: Served) -> None:
    served.add("eva")
    shown = read_credential(served.key("eva")["Authorization"].removeprefix("Bearer "))
    assert shown is not None
    others, own = (still_allowed(served.workspace, shown, ask(served, by=by).run_id) for by in (OWNER, "eva"))
    assert (others(), own()) == (True, True)
    set_sight(served.workspace.database, Sight.OWN_GROUPS, by=OWNER)
    assert (others(), own()) == (False, True)


def test_no_frame_carries_an_argument(served: Served, address: str) -> None:
    secret = "the-very-secret-recipient"
    with stream(address, "reviews,runs", headers=served.key()) as found:
        found.wait_for("hello")
        review = ask(served, ("send", json.dumps({"to": secret})))
        with stream(address, f"run:{review.run_id}", headers=served.key(), seen="0") as of_run:
            decide(served, review)
            frames = [found.wait_for(kind) for kind in ("review:asked", "review:settled")]
            frames += [of_run.wait_for(kind) for kind in ("run:queued", "clearance:minted")]
    assert secret not in str(frames)


def test_a_client_that_comes_again_misses_nothing_and_gets_nothing_twice(
    served: Served, address: str
) -> None:
    with stream(address, "reviews", headers=served.key()) as found:
        hello = found.wait_for("hello")
        first = ask(served)
        seen = found.wait_for("review:asked")
    second, third = ask(served), ask(served)
    with stream(address, "reviews", headers=served.key(), seen=seen.id) as again:
        assert again.wait_for("hello").id == seen.id
        assert [again.wait_for("review:asked").data["subject"] for _ in range(2)] == [second.id, third.id]
    with stream(address, "reviews", headers=served.key(), seen=hello.id) as hidden:
        assert hidden.wait_for("review:asked").data["subject"] == first.id


def test_the_topic_of_a_run_tells_all_about_it_and_nothing_else(served: Served, address: str) -> None:
    review, other = ask(served), ask(served)
    with stream(address, f"run:{review.run_id}", headers=served.key(), seen="0") as found:
        decide(served, other)
        decide(served, review)
        frames = [found.next() for _ in range(6)]
    told = [(each.event, each.data["subject"]) for each in frames if each is not None]
    call = review.calls[0].key
    assert told == [
        ("hello", ""),
        ("run:queued", review.run_id),
        ("review:asked", review.id),
        ("review:decided", review.id),
        ("review:settled", review.id),
        ("clearance:minted", call),
    ]


def test_an_agent_hears_of_what_it_asked_for_alone(served: Served, address: str) -> None:
    served.add_agent("bot")
    with stream(address, "reviews,runs", headers=served.key("bot")) as found:
        found.wait_for("hello")
        ask(served)
        own = ask(served, by="bot")
        heard = [found.next(), found.next()]
    subjects = {each.data["subject"] for each in heard if each is not None}
    assert subjects <= {own.id, own.run_id}


@pytest.mark.parametrize(
    ("topics", "status"),
    [("run:no", 404), ("nothing", 422), ("", 422), (",", 422), ("reviews,x", 422), ("run:", 422)],
)
def test_topics_that_are_not_there_are_refused(served: Served, topics: str, status: int) -> None:
    answer = served.http.get("/api/v1/events", params={"topics": topics}, headers=served.key())
    assert answer.status_code == status


@pytest.mark.parametrize("seen", ["x", "-1", "1" * 40, "1.5"])
def test_an_id_that_no_frame_had_is_refused(served: Served, seen: str) -> None:
    answer = served.http.get("/api/v1/events", headers={**served.key(), "Last-Event-ID": seen})
    assert answer.status_code == 422


def test_an_agent_cannot_follow_the_run_of_somebody_else(served: Served) -> None:
    served.add_agent("bot")
    review = ask(served)
    topics = {"topics": f"run:{review.run_id}"}
    answer = served.http.get("/api/v1/events", params=topics, headers=served.key("bot"))
    assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no run {review.run_id}.")


def test_one_stream_too_many_is_refused_until_another_has_ended(served: Served, address: str) -> None:
    with ExitStack() as open_streams:
        each = [
            open_streams.enter_context(stream(address, "reviews", headers=served.key()))
            for _ in range(MOST_STREAMS)
        ]
        assert {found.status for found in each} == {200}
        with stream(address, "reviews", headers=served.key()) as refused:
            assert refused.status == 429
        served.add("eva")
        with stream(address, "reviews", headers=served.key("eva")) as of_another:
            assert of_another.status == 200
    # The server hears of the end of a connection a little after the client has closed it.
    assert _until_accepted(served, address)


def _until_accepted(served: Served, address: str) -> bool:
    for _ in range(100):
        with stream(address, "reviews", headers=served.key()) as found:
            if found.status == 200:
                return True
        threading.Event().wait(0.05)
    return False


def test_a_revoked_key_ends_its_streams(served: Served, address: str) -> None:
    served.add("eva")
    with stream(address, "reviews", headers=served.key("eva")) as found:
        found.wait_for("hello")
        revoke_key(served.workspace.database, "key of eva", by=OWNER)
        assert found.next() is None


def test_streams_end_when_the_server_does(served: Served) -> None:
    ended = threading.Event()

    def read(found: Stream) -> None:
        while found.next() is not None:
            pass
        ended.set()

    with ExitStack() as client:
        with serving(served.workspace) as address:
            found = client.enter_context(stream(address, "reviews", headers=served.key()))
            found.wait_for("hello")
            reader = threading.Thread(target=read, args=(found,))
            reader.start()
        assert ended.wait(LONG)
        reader.join()


def test_hundreds_of_events_arrive_complete_while_they_are_written(served: Served, address: str) -> None:
    with stream(address, "reviews", headers=served.key()) as found:
        found.wait_for("hello")
        writers = [threading.Thread(target=lambda: [ask(served) for _ in range(25)]) for _ in range(4)]
        for each in writers:
            each.start()
        heard = [found.wait_for("review:asked") for _ in range(100)]
        for each in writers:
            each.join()
    assert len({each.data["subject"] for each in heard}) == 100
    ids = [int(each.id) for each in heard]
    assert ids == sorted(ids)
