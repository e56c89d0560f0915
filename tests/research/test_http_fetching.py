"""A GET gives a whole answer or says that there is none, whatever the other side does."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from clearance.apps.research.errors import SourceUnavailableError
from clearance.apps.research.http import Body, Mode, Origin
from clearance.apps.research.http.fetching import LARGEST_BODY
from tests.research.local_server import Answer, Services, serve
from tests.research.network import NOON, Clock, fetcher


@pytest.fixture
def services() -> Iterator[Services]:
    with serve() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_an_answer_has_its_bytes_its_checksum_and_its_time(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", b'{"symbol": "KRAS"}')
    with fetcher(tmp_path, clock) as fetching:
        fetched = fetching.get(f"{services.url}/gene", {"q": "KRAS"}, expect=Body.JSON)
    assert fetched.body == b'{"symbol": "KRAS"}'
    assert fetched.sha256 == "d17ca4d75d5b5abbf25f00b602055386d58df3416e2f2afcc504d175b8c67ca0"
    assert (fetched.retrieved_at, fetched.origin, fetched.stale) == (NOON, Origin.LIVE, False)
    assert services.asked[0].params == {"q": "KRAS"}


def test_an_answer_of_the_same_day_is_not_asked_for_again(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", b"{}")
    for _ in range(2):
        with fetcher(tmp_path, clock) as fetching:
            fetched = fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/gene") == 1
    assert (fetched.origin, fetched.retrieved_at) == (Origin.CACHED, NOON)


def test_other_parameters_are_another_request_and_a_key_is_none(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", b"{}")
    with fetcher(tmp_path, clock) as fetching:
        for params in ({"q": "A"}, {"q": "B"}, {"q": "A", "api_key": "k1"}, {"q": "A", "api_key": "k2"}):
            fetching.get(f"{services.url}/gene", params, expect=Body.JSON)
    assert [asked.params["q"] for asked in services.asked] == ["A", "B"]


def test_an_older_answer_is_confirmed_by_its_etag(services: Services, clock: Clock, tmp_path: Path) -> None:
    services.answer("/gene", Answer(b'{"a": 1}', headers={"ETag": '"one"'}), Answer(b"", status=304))
    with fetcher(tmp_path, clock) as fetching:
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
        clock.seconds += timedelta(days=2).total_seconds()
        fetched = fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.asked[1].headers["If-None-Match"] == '"one"'
    assert (fetched.body, fetched.stale) == (b'{"a": 1}', False)
    assert fetched.retrieved_at == NOON + timedelta(days=2)


def test_a_429_is_waited_out_as_long_as_it_says_to_the_fraction(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", Answer(status=429, headers={"Retry-After": "2.75"}), b'{"a": 1}')
    with fetcher(tmp_path, clock) as fetching:
        assert fetching.get(f"{services.url}/gene", expect=Body.JSON).body == b'{"a": 1}'
    assert clock.seconds == pytest.approx(2.75)


@pytest.mark.parametrize("value", ["Sun, 01 Mar 2026 12:00:03 GMT", "3", " 3.0 "])
def test_a_retry_after_is_a_number_or_a_date(
    services: Services, clock: Clock, tmp_path: Path, value: str
) -> None:
    services.answer("/gene", Answer(status=503, headers={"Retry-After": value}), b"{}")
    with fetcher(tmp_path, clock) as fetching:
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert clock.seconds == pytest.approx(3)


@pytest.mark.parametrize("value", ["soon", "nan", "inf", ""])
def test_a_retry_after_that_means_nothing_is_backed_off_from(
    services: Services, clock: Clock, tmp_path: Path, value: str
) -> None:
    services.answer("/gene", Answer(status=429, headers={"Retry-After": value}), b"{}")
    with fetcher(tmp_path, clock) as fetching:
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert clock.slept[-1] == 0.5


def test_a_host_that_asks_for_an_hour_is_left(services: Services, clock: Clock, tmp_path: Path) -> None:
    services.answer("/gene", Answer(status=429, headers={"Retry-After": "3600"}))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError, match="wait 3600 s"):
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/gene") == 1


FAULTS = {
    "a server error": Answer(status=500),
    "a gateway error": Answer(status=502),
    "fewer bytes than promised": Answer(b'{"a": 1', cut=5),
    "JSON without its end and without a length": Answer(b'{"a": 1', bare=True),
    "a page of a proxy": Answer(b"<html>busy</html>"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_tried_again_with_growing_pauses(
    services: Services, clock: Clock, tmp_path: Path, fault: Answer
) -> None:
    services.answer("/gene", fault, fault, b'{"a": 1}')
    with fetcher(tmp_path, clock) as fetching:
        assert fetching.get(f"{services.url}/gene", expect=Body.JSON).body == b'{"a": 1}'
    assert [pause for pause in clock.slept if pause > 0.1] == [0.5, 1.0]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_that_stays_is_given_up_and_never_kept(
    services: Services, clock: Clock, tmp_path: Path, fault: Answer
) -> None:
    services.answer("/gene", fault)
    with fetcher(tmp_path, clock) as fetching:
        with pytest.raises(SourceUnavailableError):
            fetching.get(f"{services.url}/gene", expect=Body.JSON)
        with pytest.raises(SourceUnavailableError):
            fetching.get(f"{services.url}/gene", expect=Body.JSON, cached_only=True)
    assert services.count("/gene") == 4


@pytest.mark.parametrize(
    ("expect", "whole", "broken"),
    [
        (Body.XML, b"<a><b/></a>", b"<a><b/>"),
        (Body.FASTA, b">x\nACGT\n", b"Error: no id"),
    ],
)
def test_a_body_must_be_what_was_asked_for(
    services: Services, clock: Clock, tmp_path: Path, expect: Body, whole: bytes, broken: bytes
) -> None:
    services.answer("/record", Answer(broken, bare=True), whole)
    with fetcher(tmp_path, clock) as fetching:
        assert fetching.get(f"{services.url}/record", expect=expect).body == whole


def test_a_refusal_is_not_tried_again(services: Services, clock: Clock, tmp_path: Path) -> None:
    services.answer("/gene", Answer(status=403))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError, match="status 403"):
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/gene") == 1


def test_a_redirect_is_not_followed(services: Services, clock: Clock, tmp_path: Path) -> None:
    services.answer("/gene", Answer(status=302, headers={"Location": "/elsewhere"}))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError, match="status 302"):
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/elsewhere") == 0


def test_that_there_is_none_is_an_answer_where_the_source_says_it_so(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", Answer(b'{"error": "none"}', status=400))
    with fetcher(tmp_path, clock) as fetching:
        assert fetching.get(f"{services.url}/gene", expect=Body.JSON, absent=(400, 404)).status == 400


def test_a_host_that_is_not_there_is_unavailable(clock: Clock, tmp_path: Path) -> None:
    with (
        fetcher(tmp_path, clock) as fetching,
        pytest.raises(SourceUnavailableError, match=r"127\.0\.0\.1: no whole answer \(ConnectError\)"),
    ):
        fetching.get("http://127.0.0.1:9/gene", {"api_key": "k1"}, expect=Body.JSON)


def test_offline_asks_nobody_and_marks_an_old_copy_stale(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", b'{"a": 1}')
    with fetcher(tmp_path, clock) as fetching:
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    clock.seconds += timedelta(days=2).total_seconds()
    with fetcher(tmp_path, clock, mode=Mode.OFFLINE) as fetching:
        fetched = fetching.get(f"{services.url}/gene", expect=Body.JSON)
        with pytest.raises(SourceUnavailableError, match="no copy"):
            fetching.get(f"{services.url}/other", expect=Body.JSON)
    assert (fetched.body, fetched.origin, fetched.stale) == (b'{"a": 1}', Origin.STALE, True)
    assert fetched.retrieved_at == NOON
    assert len(services.asked) == 1


def test_no_key_reaches_a_log_line_or_an_error(
    services: Services, clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    services.answer("/gene", Answer(status=403))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError) as raised:
        fetching.get(f"{services.url}/gene", {"api_key": "very-secret"}, expect=Body.JSON)
    assert services.asked[0].params == {"api_key": "very-secret"}
    assert "very-secret" not in caplog.text + str(raised.value)


def test_a_429_that_stays_is_given_up_after_four_tries(
    services: Services, clock: Clock, tmp_path: Path
) -> None:
    services.answer("/gene", Answer(status=429, headers={"Retry-After": "0.5"}))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError, match="answered 429"):
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/gene") == 4
    assert clock.seconds == pytest.approx(1.5)


def test_an_endless_answer_is_cut_off(services: Services, clock: Clock, tmp_path: Path) -> None:
    services.answer("/gene", b" " * (LARGEST_BODY + 1))
    with fetcher(tmp_path, clock) as fetching, pytest.raises(SourceUnavailableError, match="is larger than"):
        fetching.get(f"{services.url}/gene", expect=Body.JSON)
    assert services.count("/gene") == 1
