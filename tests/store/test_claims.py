"""Claims: who says that they are looking at a review. Others see it, and nobody is kept from deciding."""

from datetime import datetime, timedelta

import pytest

from clearance.claiming import LASTS
from clearance.errors import ForbiddenError, NotFoundError, ReviewClaimedError, ReviewConflictError
from clearance.policy import Policy, Rule, Threshold
from clearance.review import ReviewStatus
from clearance.store import claims
from clearance.store.claims import Claim
from tests.rules.small_reviews import approve
from tests.store.bench import MAIL, PAYMENT, Bench

MINUTE = timedelta(minutes=1)


def held(bench: Bench, review_id: str, *, now: datetime) -> Claim | None:
    """Return the claim on a review that holds then."""
    with bench.c.database.read() as tx:
        return claims.of(tx, [review_id], now=now).get(review_id)


def test_a_claim_says_who_looks_at_a_review_and_until_when(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    made = bench.c.gate.claim(review.id, by="rita")
    assert made.person == "rita"
    assert held(bench, review.id, now=made.until - MINUTE) == made
    assert held(bench, review.id, now=made.until) is None
    assert bench.review(review.id) == review
    assert bench.trail(review.id) == ["review:asked", "review:claimed"]


def test_claiming_again_makes_it_last_longer(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    first = bench.c.gate.claim(review.id, by="rita")
    gate = bench.gate_at(lambda: first.until - MINUTE)
    assert gate.claim(review.id, by="rita").until == first.until - MINUTE + LASTS
    gate.database.close()


def test_what_another_holds_is_claimed_only_by_taking_it_over(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    first = bench.c.gate.claim(review.id, by="rita")
    with pytest.raises(ReviewClaimedError, match="rita is looking at") as caught:
        bench.c.gate.claim(review.id, by="omar")
    assert (caught.value.person, caught.value.until) == ("rita", first.until)
    assert bench.c.gate.claim(review.id, by="omar", take_over=True).person == "omar"
    with pytest.raises(ReviewClaimedError, match="omar is looking at"):
        bench.c.gate.release(review.id, by="rita")


def test_a_claim_that_is_over_stands_in_nobody_s_way(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    first = bench.c.gate.claim(review.id, by="rita")
    gate = bench.gate_at(lambda: first.until)
    assert gate.release(review.id, by="omar") is False
    assert gate.claim(review.id, by="omar").person == "omar"
    gate.database.close()


def test_a_claim_is_given_back_once(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    made = bench.c.gate.claim(review.id, by="rita")
    assert bench.c.gate.release(review.id, by="rita") is True
    assert bench.c.gate.release(review.id, by="rita") is False
    assert held(bench, review.id, now=made.until - MINUTE) is None
    assert bench.trail(review.id) == ["review:asked", "review:claimed", "review:released"]


def test_a_claim_keeps_nobody_from_deciding(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    bench.c.gate.claim(review.id, by="rita")
    assert bench.decide(review, approve(), by="omar").status is ReviewStatus.SETTLED


@pytest.mark.parametrize(("by", "stays"), [("rita", False), ("omar", True)])
def test_a_claim_ends_with_its_holder_s_decision_alone(bench: Bench, by: str, stays: bool) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(approve=2),)),)))
    _, review = bench.asked(("pay", PAYMENT))
    made = bench.c.gate.claim(review.id, by="rita")
    bench.decide(review, approve(), by=by)
    assert (held(bench, review.id, now=made.until - MINUTE) is not None) == stays


@pytest.mark.parametrize("by", ["tom", "mallory", "dev-bot", "rita"])
def test_who_may_not_decide_a_review_does_not_claim_it(bench: Bench, by: str) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(group="finance"),)),)))
    _, review = bench.asked(("pay", PAYMENT))
    with pytest.raises(ForbiddenError):
        bench.c.gate.claim(review.id, by=by)
    assert bench.trail(review.id) == ["review:asked"]


def test_what_waits_no_more_is_not_claimed(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", expire=MINUTE), Rule(tool="send_email"))))
    _, settled = bench.asked(("send_email", MAIL), run_id="r1")
    bench.decide(settled, approve())
    with pytest.raises(ReviewConflictError, match="settled already"):
        bench.c.gate.claim(settled.id, by="rita")
    _, late = bench.asked(("pay", PAYMENT), run_id="r2")
    gate = bench.later(minutes=1)
    with pytest.raises(ReviewConflictError, match="expired at"):
        gate.claim(late.id, by="rita")
    gate.database.close()


def test_a_review_that_is_not_there_is_not_claimed(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        bench.c.gate.claim("nothing", by="rita")
    with pytest.raises(NotFoundError):
        bench.c.gate.release("nothing", by="rita")
