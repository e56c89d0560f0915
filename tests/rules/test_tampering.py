"""Every kind of tampering with a trail is found, and the first place that is not as it was is named."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.audit import Entry, Seal
from clearance.proof import Report
from clearance.tampering import MOST_PROBLEMS, ProblemKind
from tests.rules.trails import (
    NOTARY,
    SOMEBODY,
    START,
    Trail,
    check,
    make_next,
    make_numbered,
    make_trail,
    rehashed,
    renumbered,
)


@dataclass
class Draft:
    """A trail that is being tampered with."""

    entries: list[Entry]
    seals: list[Seal]


Tamper = Callable[[Draft], None]

ranges = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def _tampered(tamper: Tamper, *, trail: Trail | None = None) -> Trail:
    trail = trail or make_trail()
    draft = Draft(list(trail.entries), list(trail.seals))
    tamper(draft)
    return Trail(tuple(draft.entries), tuple(draft.seals))


def _alter(place: int, **changes: object) -> Tamper:
    def tamper(draft: Draft) -> None:
        draft.entries[place - 1] = replace(draft.entries[place - 1], **changes)  # type: ignore[arg-type]

    return tamper


def _alter_and_rehash(place: int, **changes: object) -> Tamper:
    def tamper(draft: Draft) -> None:
        _alter(place, **changes)(draft)
        draft.entries[place - 1] = rehashed(draft.entries[place - 1])

    return tamper


def _delete(first: int, last: int, *, renumber: bool = False) -> Tamper:
    def tamper(draft: Draft) -> None:
        del draft.entries[first - 1 : last]
        if renumber:
            draft.entries[:] = renumbered(draft.entries)

    return tamper


def _insert(place: int, entry: Entry, *, renumber: bool = False) -> Tamper:
    def tamper(draft: Draft) -> None:
        draft.entries.insert(place - 1, entry)
        if renumber:
            draft.entries[:] = renumbered(draft.entries)

    return tamper


def _move(place: int, *, to: int) -> Tamper:
    def tamper(draft: Draft) -> None:
        draft.entries.insert(to - 1, draft.entries.pop(place - 1))

    return tamper


def _exchange(one: int, other: int) -> Tamper:
    """Exchange what stands under two numbers, so that the numbers are right."""

    def tamper(draft: Draft) -> None:
        draft.entries[one - 1], draft.entries[other - 1] = draft.entries[other - 1], draft.entries[one - 1]
        draft.entries[:] = renumbered(draft.entries)

    return tamper


STRANGER = make_numbered(5, about="stranger")
ALTERED, MISSING, INSERTED = ProblemKind.ALTERED, ProblemKind.MISSING, ProblemKind.INSERTED
REORDERED, CUT_OFF, BROKEN = ProblemKind.REORDERED, ProblemKind.CUT_OFF, ProblemKind.SEAL_BROKEN

# Entries 1-3, 4-6 and 7-9 are sealed, 10 and 11 are not.
ENTRY_TAMPERING = {
    "facts": (_alter(5, facts={"place": 99}), ALTERED, 5, None),
    "actor": (_alter(5, actor="bob"), ALTERED, 5, None),
    "subject": (_alter(5, subject="run-6"), ALTERED, 5, None),
    "kind": (_alter(5, kind="run:done"), ALTERED, 5, None),
    "time": (_alter(5, time=START), ALTERED, 5, None),
    "id": (_alter(5, id="f" * 32), ALTERED, 5, None),
    "only the hash": (_alter(5, hash="0" * 64), ALTERED, 5, None),
    "an unsealed entry": (_alter(11, actor="bob"), ALTERED, 11, None),
    "rehashed": (_alter_and_rehash(5, actor="bob"), ALTERED, 4, 2),
    "the first, rehashed": (_alter_and_rehash(1, actor="bob"), ALTERED, 1, 1),
    "the last sealed, rehashed": (_alter_and_rehash(9, actor="bob"), ALTERED, 7, 3),
    "deleted": (_delete(5, 5), MISSING, 5, None),
    "first deleted": (_delete(1, 1), MISSING, 1, None),
    "a range deleted": (_delete(4, 6), MISSING, 4, None),
    "deleted across seals": (_delete(3, 7), MISSING, 3, None),
    "deleted and renumbered": (_delete(5, 5, renumber=True), ALTERED, 4, 2),
    "the end deleted": (_delete(8, 11), CUT_OFF, 8, None),
    "everything deleted": (_delete(1, 11), CUT_OFF, 1, None),
    "inserted under a number in use": (_insert(6, STRANGER), INSERTED, 5, None),
    "inserted before the right one": (_insert(5, STRANGER), INSERTED, 5, None),
    "inserted and renumbered": (_insert(5, STRANGER, renumber=True), ALTERED, 4, 2),
    "inserted under a negative number": (_insert(1, replace(STRANGER, seq=-1)), INSERTED, -1, None),
    "a copy": (_insert(9, make_numbered(2)), INSERTED, 2, None),
    "moved back": (_move(5, to=8), REORDERED, 5, None),
    "moved forward": (_move(8, to=5), REORDERED, 5, None),
    "neighbours over a seal": (_move(3, to=4), REORDERED, 3, None),
    "the first moved to the end": (_move(1, to=11), REORDERED, 1, None),
    "exchanged within a seal": (_exchange(4, 6), ALTERED, 4, 2),
    "exchanged across seals": (_exchange(3, 8), ALTERED, 1, 1),
}


@pytest.mark.parametrize(
    ("tamper", "kind", "seq", "seal"), ENTRY_TAMPERING.values(), ids=ENTRY_TAMPERING.keys()
)
def test_tampering_with_entries_is_located(
    tamper: Tamper, kind: ProblemKind, seq: int, seal: int | None
) -> None:
    report = check(_tampered(tamper))
    first = report.problems[0]
    assert (first.kind, first.seq, first.seal) == (kind, seq, seal), report.problems
    assert not report.ok
    assert not report.authenticated
    assert first.message in report.summary


@pytest.mark.parametrize(
    ("tamper", "kind", "seq", "seal"), ENTRY_TAMPERING.values(), ids=ENTRY_TAMPERING.keys()
)
def test_tampering_with_entries_alone_is_located_without_a_key_too(
    tamper: Tamper, kind: ProblemKind, seq: int, seal: int | None
) -> None:
    first = check(_tampered(tamper), key=None).problems[0]
    assert (first.kind, first.seq, first.seal) == (kind, seq, seal)


def _alter_seal(place: int, **changes: object) -> Tamper:
    def tamper(draft: Draft) -> None:
        draft.seals[place - 1] = replace(draft.seals[place - 1], **changes)  # type: ignore[arg-type]

    return tamper


def _delete_seals(first: int, last: int) -> Tamper:
    def tamper(draft: Draft) -> None:
        del draft.seals[first - 1 : last]

    return tamper


def _copy_seal(draft: Draft) -> None:
    draft.seals.insert(2, draft.seals[1])


def _exchange_seals(draft: Draft) -> None:
    draft.seals[1], draft.seals[2] = draft.seals[2], draft.seals[1]


def _seal_by_somebody_else(draft: Draft) -> None:
    draft.seals.append(make_next(draft.entries, draft.seals, length=2, signer=SOMEBODY))


def _make_anew_by_somebody_else(draft: Draft) -> None:
    _alter_and_rehash(5, actor="bob")(draft)
    draft.seals[1:] = []
    draft.seals.append(make_next(draft.entries, draft.seals, length=3, signer=SOMEBODY))
    draft.seals.append(make_next(draft.entries, draft.seals, length=3, signer=SOMEBODY))


def _borrow_the_name_of_the_key(draft: Draft) -> None:
    _make_anew_by_somebody_else(draft)
    draft.seals[1] = replace(draft.seals[1], key_id=NOTARY.id)


def _splice(draft: Draft) -> None:
    """Put a seal of the same notary over another history in place of one."""
    draft.seals[2] = make_trail((2, 4, 3)).seals[2]


SEAL_TAMPERING = {
    "first_seq": (_alter_seal(2, first_seq=5), BROKEN, 2),
    "last_seq, less": (_alter_seal(2, last_seq=5), BROKEN, 2),
    "last_seq, more": (_alter_seal(2, last_seq=8), BROKEN, 2),
    "last_seq, beyond the end": (_alter_seal(2, last_seq=99), BROKEN, 2),
    "last_seq before first_seq": (_alter_seal(2, last_seq=1), BROKEN, 2),
    "digest": (_alter_seal(2, digest="0" * 64), BROKEN, 2),
    "previous": (_alter_seal(2, previous="0" * 64), BROKEN, 2),
    "time": (_alter_seal(2, time=START), BROKEN, 2),
    "key_id": (_alter_seal(2, key_id=SOMEBODY.id), BROKEN, 2),
    "signature": (_alter_seal(2, signature="0" * 128), BROKEN, 2),
    "signature that is no hexadecimal": (_alter_seal(2, signature="no"), BROKEN, 2),
    "time of the last": (_alter_seal(3, time=START), BROKEN, 3),
    "signature of the last in upper case": (
        _alter_seal(3, signature=make_trail().seals[2].signature.upper()),
        BROKEN,
        3,
    ),
    "number": (_alter_seal(2, number=4), MISSING, 2),
    "deleted": (_delete_seals(2, 2), MISSING, 2),
    "the first deleted": (_delete_seals(1, 1), MISSING, 1),
    "a copy": (_copy_seal, INSERTED, 2),
    "exchanged": (_exchange_seals, REORDERED, 2),
    "by another key": (_seal_by_somebody_else, BROKEN, 4),
    "made anew by another key": (_make_anew_by_somebody_else, BROKEN, 2),
    "made anew, with the name of the key": (_borrow_the_name_of_the_key, BROKEN, 2),
    "over another history": (_splice, BROKEN, 3),
}


@pytest.mark.parametrize(("tamper", "kind", "seal"), SEAL_TAMPERING.values(), ids=SEAL_TAMPERING.keys())
def test_tampering_with_seals_is_located(tamper: Tamper, kind: ProblemKind, seal: int) -> None:
    report = check(_tampered(tamper))
    first = report.problems[0]
    assert (first.kind, first.seal) == (kind, seal), report.problems
    assert not report.authenticated


@pytest.mark.parametrize(
    ("change", "kind", "seal"),
    [
        ({"first_seq": 5}, BROKEN, 2),
        ({"last_seq": 1}, BROKEN, 2),
        ({"last_seq": 5}, ALTERED, 2),
        ({"last_seq": 8}, ALTERED, 2),
        ({"digest": "0" * 64}, ALTERED, 2),
        ({"previous": "0" * 64}, BROKEN, 2),
        ({"time": START}, BROKEN, 3),
        ({"signature": "0" * 128}, BROKEN, 3),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_without_a_key_an_altered_seal_does_not_fit_what_is_around_it(
    change: dict[str, object], kind: ProblemKind, seal: int
) -> None:
    first = check(_tampered(_alter_seal(2, **change)), key=None).problems[0]
    assert (first.kind, first.seal) == (kind, seal)


def test_what_is_proven_ends_before_the_first_bad_place() -> None:
    assert check(_tampered(_alter(8, actor="bob"))).sealed_to == 6
    assert check(_tampered(_alter_seal(2, digest="0" * 64))).sealed_to == 3


def test_a_broken_seal_does_not_hide_what_comes_after_it() -> None:
    def tamper(draft: Draft) -> None:
        _alter_seal(1, signature="0" * 128)(draft)
        _alter_and_rehash(8, actor="bob")(draft)

    assert [(each.kind, each.seal) for each in check(_tampered(tamper)).problems] == [
        (BROKEN, 1),
        (ALTERED, 3),
    ]


@pytest.mark.parametrize(
    "name", ["facts", "only the hash", "rehashed", "deleted across seals", "moved forward"]
)
def test_one_bad_place_is_one_problem(name: str) -> None:
    tamper = ENTRY_TAMPERING[name][0]
    assert check(_tampered(tamper)).found == 1


def test_only_the_first_problems_are_kept_and_all_are_counted() -> None:
    trail = make_trail((50,), unsealed=0)
    wrong = tuple(replace(entry, actor="bob") for entry in trail.entries)
    report = check(Trail(wrong, trail.seals))
    assert len(report.problems) == MOST_PROBLEMS
    assert report.found == 50


def _names(report: Report, trail: Trail, seq: int) -> bool:
    """Whether the first problem is at this entry, or at the seal over it."""
    first = report.problems[0]
    covering = [seal.number for seal in trail.seals if seal.first_seq <= seq <= seal.last_seq]
    return first.seq == seq or first.seal in covering


@given(ranges, st.data())
def test_any_single_change_of_sealed_entries_is_found_at_its_place(
    sealed: list[int], data: st.DataObject
) -> None:
    trail = make_trail(sealed, unsealed=1)
    seq = data.draw(st.integers(1, sum(sealed)), label="place")
    other = data.draw(st.integers(1, sum(sealed) + 1).filter(lambda each: each != seq), label="other")
    changes = {
        "altered": _alter(seq, actor="bob"),
        "altered, with its hash": _alter_and_rehash(seq, actor="bob"),
        "only its hash": _alter(seq, hash="0" * 64),
        "another number": _alter(seq, seq=other + 100),
        "deleted": _delete(seq, seq),
        "deleted, renumbered": _delete(seq, seq, renumber=True),
        "inserted": _insert(seq, make_numbered(seq, about="stranger")),
        "inserted, renumbered": _insert(seq, STRANGER, renumber=True),
        "moved": _move(seq, to=other),
        "exchanged": _exchange(seq, other),
    }
    how = data.draw(st.sampled_from(sorted(changes)), label="how")
    place = min(seq, other) if how in ("moved", "exchanged") else seq
    report = check(_tampered(changes[how], trail=trail))
    assert _names(report, trail, place), report.problems


@given(ranges, st.data())
def test_any_single_change_of_a_seal_is_found_at_its_place(sealed: list[int], data: st.DataObject) -> None:
    trail = make_trail(sealed, unsealed=1)
    number = data.draw(st.integers(1, len(sealed)), label="seal")
    seal = trail.seals[number - 1]
    wholes = st.integers(-1, 30)
    texts = st.text("0123456789abcdef", min_size=64, max_size=64)
    changes: dict[str, st.SearchStrategy[object]] = {
        "first_seq": wholes,
        "last_seq": wholes,
        "digest": texts,
        "previous": texts,
        "key_id": st.sampled_from(["", SOMEBODY.id]),
        "time": st.datetimes().map(lambda time: time.replace(tzinfo=START.tzinfo)),
        "signature": st.sampled_from(["", "0" * 128, *(each.signature for each in trail.seals)]),
    }
    field = data.draw(st.sampled_from(sorted(changes)), label="field")
    value = data.draw(changes[field].filter(lambda value: value != getattr(seal, field)), label="value")
    first = check(_tampered(_alter_seal(number, **{field: value}), trail=trail)).problems[0]
    assert (first.kind, first.seal) == (BROKEN, number)
