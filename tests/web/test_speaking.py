"""How a segment speaks: seldom, beside its work, and with nothing left behind."""

from clearance.adapters import speaking
from clearance.adapters.speaking import Speaker
from clearance.store import stream
from clearance.store.stream import Piece
from tests.web.served import Served
from tests.web.talking import Gates, TalkingModel, kept, start, talks, until

MESSAGES = "/api/v1/threads/t1/messages"


def test_a_short_answer_is_never_written_in_pieces(served: Served) -> None:
    workspace = served.workspace
    talks(workspace, TalkingModel([]))
    run_id = start(served)
    with Speaker(workspace.database, run_id, attempt=1, every=60) as speaker:
        speaker.begin()
        speaker.say("short")
    assert kept(served) == 0


def test_what_is_said_in_between_is_written_at_once(served: Served) -> None:
    talks(served.workspace, TalkingModel([]))
    run_id = start(served)
    with Speaker(served.workspace.database, run_id, attempt=9, every=1.0) as speaker:
        speaker.begin()
        for word in ("It ", "was ", "\0 ", "\ud800 ", "night."):
            speaker.say(word)
        until(lambda: kept(served))
        with served.workspace.database.read() as tx:
            assert stream.after(tx, run_id, attempt=8, n=7) == [Piece(9, 1, "It was \ufffd ? night.")]


def test_an_overtaken_speaker_takes_back_only_its_own_words(served: Served) -> None:
    database = served.workspace.database
    talks(served.workspace, TalkingModel([]))
    run_id = start(served)
    with Speaker(database, run_id, attempt=101, every=0.01) as speaker:
        speaker.say("old")
        until(lambda: kept(served))
        with database.write() as tx:
            stream.append(tx, run_id, [Piece(102, 1, "new")])
    with database.read() as tx:
        assert stream.after(tx, run_id, attempt=0, n=0) == [Piece(102, 1, "new")]


def test_what_came_after_the_end_is_cleared_away(served: Served, gates: Gates) -> None:
    database = served.workspace.database
    talks(served.workspace, TalkingModel([["Good morning."], [gates()]]))
    ended = served.http.post(MESSAGES, json={"text": "Hello"}, headers=served.key()).json()["run_id"]
    still_open = start(served)
    with database.write() as tx:
        for run_id in (ended, still_open):
            stream.append(tx, run_id, [Piece(1, 1, "late")])
    speaking.forget_the_ended(database)
    with database.read() as tx:
        assert stream.after(tx, ended, attempt=0, n=0) == []
        assert stream.after(tx, still_open, attempt=0, n=0) == [Piece(1, 1, "late")]
