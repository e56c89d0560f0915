"""What a report says about a trail: how far it is proven, by which keys, and what was kept elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import InvalidInputError
from clearance.proof import Extent, Unreadable, verify
from clearance.tampering import ProblemKind
from tests.rules.trails import (
    NOTARY,
    SOMEBODY,
    Trail,
    check,
    make_next,
    make_trail,
)

ranges = st.lists(st.integers(1, 4), max_size=5)


@given(ranges, st.integers(0, 3))
def test_a_trail_as_it_was_written_is_authenticated(sealed: list[int], unsealed: int) -> None:
    report = check(make_trail(sealed, unsealed=unsealed))
    assert report.ok
    assert report.authenticated == bool(sealed)
    assert (report.entries, report.sealed_to) == (sum(sealed) + unsealed, sum(sealed))
    assert report.unsealed == unsealed


def test_without_a_key_a_trail_is_only_consistent() -> None:
    report = check(make_trail(), key=None)
    assert report.ok
    assert not report.authenticated
    assert "consistent, not authenticated" in report.summary


def test_an_empty_trail_is_right() -> None:
    report = check(Trail((), ()))
    assert report.ok
    assert (report.entries, report.sealed_to, report.unsealed, report.head) == (0, 0, 0, "")


def test_what_is_not_yet_sealed_is_said() -> None:
    report = check(make_trail((3,), unsealed=2))
    assert (report.sealed_to, report.unsealed) == (3, 2)
    assert "sealed to 3, 2 not yet sealed" in report.summary


def test_an_entry_that_cannot_be_read_is_located() -> None:
    trail = make_trail()
    items = [Unreadable("entry", 5) if entry.seq == 5 else entry for entry in trail.entries]
    report = verify(items, trail.seals, public_key=NOTARY.pem)
    assert [(each.kind, each.seq) for each in report.problems] == [(ProblemKind.ALTERED, 5)]


def test_a_seal_that_cannot_be_read_is_located() -> None:
    trail = make_trail()
    items = [Unreadable("seal", 2) if seal.number == 2 else seal for seal in trail.seals]
    report = verify(trail.entries, items, public_key=NOTARY.pem)
    assert [(each.kind, each.seal) for each in report.problems] == [(ProblemKind.ALTERED, 2)]


CUT = make_trail()


@pytest.mark.parametrize(
    ("extent", "kind", "seq", "seal"),
    [
        (Extent(12, 3), ProblemKind.CUT_OFF, 12, None),
        (Extent(11, 4), ProblemKind.CUT_OFF, None, 4),
        (Extent(10, 3), ProblemKind.INSERTED, 11, None),
        (Extent(11, 2), ProblemKind.INSERTED, None, 3),
    ],
)
def test_what_a_trail_is_said_to_have_must_be_there(
    extent: Extent, kind: ProblemKind, seq: int | None, seal: int | None
) -> None:
    report = verify(CUT.entries, CUT.seals, public_key=NOTARY.pem, extent=extent)
    assert [(each.kind, each.seq, each.seal) for each in report.problems] == [(kind, seq, seal)]


HEADS = [CUT.seals[2].head, CUT.seals[2].hash, CUT.seals[0].head, CUT.seals[0].hash]


@pytest.mark.parametrize("head", HEADS)
def test_a_trail_that_holds_the_head_kept_elsewhere_is_right(head: str) -> None:
    assert check(CUT, head=head).ok


@pytest.mark.parametrize("head", HEADS[:2])
def test_a_trail_that_was_cut_off_with_its_seals_is_found_by_the_head_kept_elsewhere(head: str) -> None:
    shorter = Trail(CUT.entries[:6], CUT.seals[:2])
    assert check(shorter).authenticated
    assert [(each.kind, each.seal) for each in check(shorter, head=head).problems] == [
        (ProblemKind.CUT_OFF, 3)
    ]


def test_a_trail_that_was_made_anew_with_the_notarys_key_is_found_by_the_head_kept_elsewhere() -> None:
    anew = make_trail((3, 4, 4), unsealed=0)
    assert check(anew).authenticated
    assert [(each.kind, each.seal) for each in check(anew, head=HEADS[0]).problems] == [
        (ProblemKind.SEAL_BROKEN, 3)
    ]


@pytest.mark.parametrize("head", ["", "3", "x" * 64, f"0:{'0' * 64}", f"3:{'0' * 63}", HEADS[1].upper()])
def test_a_head_that_cannot_be_read_is_refused(head: str) -> None:
    with pytest.raises(InvalidInputError, match="NUMBER:HASH"):
        check(CUT, head=head)


def test_a_trail_whose_key_was_replaced_is_authenticated_with_both_keys() -> None:
    trail = make_trail((3, 3), unsealed=3)
    seals = (*trail.seals, make_next(trail.entries, trail.seals, length=3, signer=SOMEBODY))
    rotated = Trail(trail.entries, seals)
    assert check(rotated, key=NOTARY.pem + SOMEBODY.pem).authenticated
    first = check(rotated, key=NOTARY.pem).problems[0]
    assert (first.kind, first.seal) == (ProblemKind.SEAL_BROKEN, 3)
    assert SOMEBODY.id in first.message
