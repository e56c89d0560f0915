"""Short names of reviews and calls: one that could mean two things means none of them."""

import pytest

from clearance.store import reviews
from tests.ways_in.desk import Desk, answers, error

MAIL = '{"to":"bo@example.org","body":"Hi"}'


def test_a_review_is_found_by_the_beginning_and_by_the_end_of_its_id(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    for name in (review.id, review.run_id, review.id[:5], "1/1", f"/{review.id}/"):
        assert desk.json("show", name)["review_id"] == review.id


def test_a_name_that_could_be_two_reviews_is_refused_with_both(desk: Desk) -> None:
    first, second = desk.hold(("wipe", "{}")), desk.hold(("wipe", "{}"))
    done = desk.run("approve", "1/1", "--json")
    assert done.exit_code == 2
    assert first.id in error(done)["message"]
    assert second.id in error(done)["message"]


def test_a_short_name_of_a_decided_review_never_reaches_the_next_one(desk: Desk) -> None:
    first = desk.hold(("wipe", "{}"))
    assert desk.run("approve", "1/1").exit_code == 0
    second = desk.hold(("wipe", "{}"))
    assert desk.run("approve", "1/1").exit_code == 2
    assert desk.run("approve", first.id[:6]).exit_code == 5
    assert answers(desk.review(second.id)) == ["waiting"]


@pytest.mark.parametrize("name", ["", "/", "%", "_", "nope", "0x", "z2/", "\\"])
def test_a_name_of_no_review_is_not_found(desk: Desk, name: str) -> None:
    desk.hold(("wipe", "{}"))
    done = desk.run("show", name, "--json")
    assert done.exit_code == 4
    assert error(done)["error"] == "not_found"


def test_letters_of_an_id_are_told_apart_by_case(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    with desk.open() as c, c.database.read() as tx:
        assert reviews.ids_like(tx, review.id[:8], limit=5) == [review.id]
        assert reviews.ids_like(tx, review.id[:8].upper() + "X", limit=5) == []


def test_a_number_is_always_the_place_that_show_gives(desk: Desk) -> None:
    review = desk.hold(("pay", "{}"), ("wipe", "{}"))
    done = desk.run("decide", review.id, "--approve", "1", "--reject", "2")
    assert done.exit_code == 0, done.output
    assert answers(desk.review(review.id)) == ["approved", "rejected"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_call_is_found_by_its_id_and_by_the_end_of_it(desk: Desk, place: int) -> None:
    review = desk.hold(("pay", "{}"), ("wipe", "{}"))
    key, other = review.calls[place].key, review.calls[1 - place].key
    done = desk.run("decide", review.id, "--approve", f"1/{place}", "--reject", other)
    assert done.exit_code == 0, done.output
    assert desk.review(review.id).calls[place].key == key
    assert answers(desk.review(review.id))[place] == "approved"


@pytest.mark.parametrize("name", ["0", "3", "99", "nope", "", "/", "1/9", "wipe", "²"])
def test_a_name_of_no_call_is_refused_and_decides_nothing(desk: Desk, name: str) -> None:
    review = desk.hold(("pay", "{}"), ("wipe", "{}"))
    done = desk.run("decide", review.id, "--approve", name, "--reject", "2", "--json")
    assert done.exit_code == 2
    assert f"1: {review.calls[0].key}" in error(done)["message"]
    assert answers(desk.review(review.id)) == ["waiting", "waiting"]
