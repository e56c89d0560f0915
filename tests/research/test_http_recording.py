"""A run can be repeated from its own record, and from nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearance.apps.research.errors import NotRecordedError, RecordMismatchError, SourceUnavailableError
from clearance.apps.research.http import Body, Mode, Origin
from tests.research.local_server import Answer, Services, serve
from tests.research.network import NOON, Clock, fetcher


@pytest.fixture
def services() -> Iterator[Services]:
    with serve() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _record(services: Services, clock: Clock, folder: Path) -> None:
    services.answer("/gene", b'{"a": 1}')
    services.answer("/none", Answer(b"{}", status=404))
    services.answer("/down", Answer(status=403))
    with fetcher(folder, clock, record="r1") as fetching:
        fetching.get(f"{services.url}/gene", {"q": "A", "api_key": "secret"}, expect=Body.JSON)
        fetching.get(f"{services.url}/none", expect=Body.JSON, absent=(404,))
        with pytest.raises(SourceUnavailableError):
            fetching.get(f"{services.url}/down", expect=Body.JSON)
        with pytest.raises(SourceUnavailableError):
            fetching.get(f"{services.url}/down", expect=Body.JSON, cached_only=True)


def test_a_replay_gives_what_the_run_was_given_and_asks_nobody(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    _record(services, clock, tmp_path)
    asked = len(services.asked)
    (tmp_path / "http.db").unlink()
    clock.seconds += 1e6
    with fetcher(tmp_path, clock, record="r1", mode=Mode.REPLAY) as fetching:
        fetched = fetching.get(f"{services.url}/gene", {"q": "A"}, expect=Body.JSON)
        assert (fetched.body, fetched.retrieved_at) == (b'{"a": 1}', NOON)
        assert fetched.origin is Origin.REPLAYED
        assert fetching.get(f"{services.url}/none", expect=Body.JSON, absent=(404,)).status == 404
        with pytest.raises(SourceUnavailableError, match="status 403"):
            fetching.get(f"{services.url}/down", expect=Body.JSON)
        with pytest.raises(SourceUnavailableError, match="no copy"):
            fetching.get(f"{services.url}/down", expect=Body.JSON, cached_only=True)
    assert len(services.asked) == asked


def test_a_replay_stops_at_what_was_not_recorded(services: Services, clock: Clock, tmp_path: Path) -> None:
    _record(services, clock, tmp_path)
    with fetcher(tmp_path, clock, record="r1", mode=Mode.REPLAY) as fetching, pytest.raises(NotRecordedError):
        fetching.get(f"{services.url}/gene", {"q": "B"}, expect=Body.JSON)


def test_a_replay_stops_at_a_body_that_was_changed(services: Services, clock: Clock, tmp_path: Path) -> None:
    _record(services, clock, tmp_path)
    for body in (tmp_path / "runs/r1/http").glob("*.body"):
        body.write_bytes(b'{"a": 2}')
    with (
        fetcher(tmp_path, clock, record="r1", mode=Mode.REPLAY) as fetching,
        pytest.raises(RecordMismatchError),
    ):
        fetching.get(f"{services.url}/gene", {"q": "A"}, expect=Body.JSON)


def test_a_second_try_of_a_run_is_given_what_the_first_was(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    _record(services, clock, tmp_path)
    services.answer("/gene", b'{"a": 2}')
    services.answer("/down", b"{}")
    (tmp_path / "http.db").unlink()
    with fetcher(tmp_path, clock, record="r1") as fetching:
        again = fetching.get(f"{services.url}/gene", {"q": "A"}, expect=Body.JSON)
        assert fetching.get(f"{services.url}/down", expect=Body.JSON).body == b"{}"
    assert again.body == b'{"a": 1}'


def test_a_record_holds_no_key(services: Services, clock: Clock, tmp_path: Path) -> None:
    _record(services, clock, tmp_path)
    files = list((tmp_path / "runs/r1/http").iterdir())
    assert len(files) == 6
    assert not any(b"secret" in file.read_bytes() for file in files)
    assert b"secret" not in (tmp_path / "http.db").read_bytes()
    assert {"q": "A"} in [json.loads(file.read_bytes())["params"] for file in files if file.suffix == ".json"]


def test_a_copy_in_the_cache_that_was_changed_is_not_given(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    import sqlite3
    from contextlib import closing

    services.answer("/gene", b'{"a": 1}')
    with fetcher(tmp_path, clock) as fetching:
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
        with closing(sqlite3.connect(tmp_path / "http.db")) as connection, connection:
            connection.execute("UPDATE response SET body = ?", (b'{"a": 2}',))
        assert fetching.get(f"{services.url}/gene", expect=Body.JSON).body == b'{"a": 1}'
    assert services.count("/gene") == 2


def test_a_run_keeps_the_time_when_it_began(clock: Clock, tmp_path: Path) -> None:
    with fetcher(tmp_path, clock, record="r1") as fetching:
        assert fetching.now() == NOON
    clock.seconds += 1e6
    for mode in (Mode.LIVE, Mode.REPLAY):
        with fetcher(tmp_path, clock, record="r1", mode=mode) as fetching:
            assert fetching.now() == NOON


def test_a_run_without_a_record_cannot_be_replayed(clock: Clock, tmp_path: Path) -> None:
    with fetcher(tmp_path, clock, record="r1", mode=Mode.REPLAY) as fetching, pytest.raises(NotRecordedError):
        fetching.now()
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"began": 3}', b'{"began": "today"}'])
def test_a_record_that_was_broken_stops_the_run(clock: Clock, tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "runs/r1/http"
    folder.mkdir(parents=True)
    (folder / "began.json").write_bytes(content)
    with fetcher(tmp_path, clock, record="r1") as fetching, pytest.raises(RecordMismatchError):
        fetching.now()
