"""An exported trail is checked far from its database, and whatever was done to the file is located."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clearance.audit import Entry, Seal
from clearance.export import export_lines, read_line, verify_export
from clearance.proof import Extent, Report, Unreadable
from clearance.tampering import ProblemKind
from tests.rules.trails import NOTARY, Trail, make_trail

ALTERED, MISSING, INSERTED = ProblemKind.ALTERED, ProblemKind.MISSING, ProblemKind.INSERTED
REORDERED, CUT_OFF, BROKEN = ProblemKind.REORDERED, ProblemKind.CUT_OFF, ProblemKind.SEAL_BROKEN


def _export(trail: Trail) -> list[bytes]:
    return list(export_lines(trail.entries, trail.seals, extent=trail.extent))


def _check(lines: list[bytes], *, head: str | None = None) -> Report:
    return verify_export(lines, public_key=NOTARY.pem, expect_head=head)


# Line 1 says how much follows, 2-4 are entries 1-3, 5 is seal 1, 6-8 are entries 4-6, 9 is seal 2,
# 10-12 are entries 7-9, 13 is seal 3, 14 and 15 are the entries 10 and 11, which are not sealed.
TRAIL = make_trail()
LINES = _export(TRAIL)


@given(st.lists(st.integers(1, 4), max_size=4), st.integers(0, 3))
def test_an_export_is_authenticated(sealed: list[int], unsealed: int) -> None:
    trail = make_trail(sealed, unsealed=unsealed)
    report = _check(_export(trail))
    assert report.ok
    assert report.authenticated == bool(sealed)
    assert (report.entries, report.sealed_to, report.unsealed) == (
        sum(sealed) + unsealed,
        sum(sealed),
        unsealed,
    )


def test_an_export_without_a_key_is_only_consistent() -> None:
    report = verify_export(LINES, public_key=None)
    assert report.ok
    assert not report.authenticated


def test_an_export_reads_back_as_what_it_was() -> None:
    items = [read_line(line) for line in LINES]
    assert items[0] == Extent(11, 3)
    assert [item for item in items if isinstance(item, Entry)] == list(TRAIL.entries)
    assert [item for item in items if isinstance(item, Seal)] == list(TRAIL.seals)


def test_each_seal_comes_after_the_entries_that_it_covers() -> None:
    types = [json.loads(line)["type"] for line in LINES]
    assert types == ["trail", *(["entry"] * 3 + ["seal"]) * 3, "entry", "entry"]


def test_separators_of_lines_inside_texts_do_not_end_a_line() -> None:
    odd = replace(TRAIL.entries[0], actor="a\u2028b\u0085c\nd\r\x0be")
    (_, line) = export_lines([odd], [], extent=Extent(1, 0))
    assert line.count(b"\n") == 1
    assert read_line(line) == odd


def test_what_cannot_be_read_is_exported_and_fails_the_check_at_its_place() -> None:
    items = [Unreadable("entry", 5) if entry.seq == 5 else entry for entry in TRAIL.entries]
    report = _check(list(export_lines(items, TRAIL.seals, extent=TRAIL.extent)))
    assert [(each.kind, each.seq, each.line) for each in report.problems] == [(ALTERED, 5, 7)]


def _delete(*numbers: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [line for number, line in enumerate(lines, start=1) if number not in numbers]


def _put(number: int, line: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [*lines[: number - 1], line, *lines[number - 1 :]]


def _move(number: int, to: int) -> Callable[[list[bytes]], list[bytes]]:
    def move(lines: list[bytes]) -> list[bytes]:
        lines.insert(to - 1, lines.pop(number - 1))
        return lines

    return move


def _replace(number: int, old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    def change(lines: list[bytes]) -> list[bytes]:
        assert old in lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
        return lines

    return change


# What was done; the first problem: its kind, its line (None: the end), the entry and the seal.
DONE_TO_A_FILE = {
    "an entry altered": (_replace(7, b'"ann"', b'"bob"'), ALTERED, 7, 5, None),
    "a space added": (_replace(7, b'"ann"', b' "ann"'), ALTERED, 7, 5, None),
    "an escape added": (_replace(7, b'"ann"', b'"\\u0061nn"'), ALTERED, 7, 5, None),
    "a field added": (_replace(7, b'{"actor"', b'{"aa":1,"actor"'), ALTERED, 7, 5, None),
    "a key given twice": (_replace(7, b'"actor"', b'"actor":"bob","actor"'), ALTERED, 7, 5, None),
    "7.0 made 7": (_replace(7, b"7.0", b"7"), ALTERED, 7, 5, None),
    "another type": (_replace(7, b'"type":"entry"', b'"type":"entrz"'), ALTERED, 7, 5, None),
    "a number made text": (_replace(7, b'"seq":5', b'"seq":"5"'), ALTERED, 7, 5, None),
    "a number made true": (_replace(2, b'"seq":1', b'"seq":true'), ALTERED, 2, 1, None),
    "not UTF-8": (_replace(7, b'"ann"', b'"\xff"'), ALTERED, 7, 5, None),
    "half a surrogate pair": (_replace(7, b'"ann"', b'"\\ud800"'), ALTERED, 7, 5, None),
    "nested without end": (_replace(7, b"{", b"[" * 100_000), ALTERED, 7, 5, None),
    "a number without end": (_replace(7, b'"seq":5', b'"seq":' + b"9" * 5000), ALTERED, 7, 5, None),
    "a year too many": (_replace(7, b'"2026', b'"12026'), ALTERED, 7, 5, None),
    "carriage returns": (lambda lines: [line[:-1] + b"\r\n" for line in lines], CUT_OFF, 1, None, None),
    "a byte order mark": (_replace(1, b"{", b"\xef\xbb\xbf{"), CUT_OFF, 1, None, None),
    "an empty line": (_put(7, b"\n"), ALTERED, 7, 5, None),
    "rubbish put in": (_put(7, b"rubbish\n"), ALTERED, 7, 5, None),
    "two lines joined": (_replace(7, b"\n", b""), ALTERED, 7, 5, None),
    "an entry deleted": (_delete(7), MISSING, 7, 5, None),
    "the last entry of a range deleted": (_delete(8), MISSING, 8, 6, None),
    "a range deleted, with its seal": (_delete(6, 7, 8, 9), MISSING, 6, 4, None),
    "a seal deleted": (_delete(9), MISSING, 12, None, 2),
    "an entry copied": (_put(10, LINES[2]), INSERTED, 10, 2, None),
    "a seal copied": (_put(10, LINES[4]), INSERTED, 10, None, 1),
    "the first line copied": (_put(7, LINES[0]), ALTERED, 7, 5, None),
    "entries exchanged": (_move(7, to=8), REORDERED, 7, 5, None),
    "an entry moved on over a seal": (_move(3, to=7), REORDERED, 3, 2, None),
    "an entry moved back over a seal": (_move(8, to=3), REORDERED, 3, 2, None),
    "a seal moved back": (_move(9, to=8), REORDERED, 8, 6, None),
    "a seal moved on": (_move(9, to=10), REORDERED, 10, 7, 2),
    "a seal altered": (_replace(9, b'"number":2', b'"number":4'), MISSING, 9, None, 2),
    "a signature altered": (_replace(9, b'"signature":"', b'"signature":"0'), BROKEN, 9, 4, 2),
    "the first line deleted": (_delete(1), CUT_OFF, 1, None, None),
    "more promised": (_replace(1, b'"last_seq":11', b'"last_seq":12'), CUT_OFF, None, 12, None),
    "less promised": (_replace(1, b'"last_seq":11', b'"last_seq":10'), INSERTED, None, 11, None),
    "cut off after an unsealed entry": (lambda lines: lines[:14], CUT_OFF, None, 11, None),
    "cut off after a seal": (lambda lines: lines[:13], CUT_OFF, None, 10, None),
    "cut off within a range": (lambda lines: lines[:11], CUT_OFF, None, 9, None),
    "cut off within a line": (lambda lines: [*lines[:11], lines[11][:40]], ALTERED, 12, 9, None),
    "cut off before its last byte": (lambda lines: [*lines[:14], lines[14][:-1]], ALTERED, 15, 11, None),
    "nothing left but the first line": (lambda lines: lines[:1], CUT_OFF, None, 1, None),
    "nothing left": (lambda lines: lines[:0], CUT_OFF, 1, None, None),
}


@pytest.mark.parametrize(
    ("done", "kind", "line", "seq", "seal"), DONE_TO_A_FILE.values(), ids=DONE_TO_A_FILE.keys()
)
def test_what_was_done_to_a_file_is_located(
    done: Callable[[list[bytes]], list[bytes]],
    kind: ProblemKind,
    line: int | None,
    seq: int | None,
    seal: int | None,
) -> None:
    report = _check(done(list(LINES)))
    first = report.problems[0]
    assert (first.kind, first.line, first.seq, first.seal) == (kind, line, seq, seal), report.problems
    assert not report.authenticated


def test_a_file_that_was_shortened_in_every_way_is_found_by_the_head_kept_elsewhere() -> None:
    shorter = _export(make_trail((3, 3), unsealed=0))
    assert _check(shorter).authenticated
    first = _check(shorter, head=TRAIL.seals[2].head).problems[0]
    assert (first.kind, first.seal) == (CUT_OFF, 3)


CONTENT = b"".join(LINES)
places = st.integers(0, len(CONTENT) - 1)
byte = st.binary(min_size=1, max_size=1)


def _is_found_in_its_line(content: bytes, place: int) -> bool:
    """Whether the first problem names the line of this place; what line 1 promises is missed at the end."""
    first = _check(list(BytesIO(content))).problems[0]
    return (first.line or 1) == CONTENT[:place].count(b"\n") + 1


@given(places, byte)
def test_any_altered_byte_is_found_in_its_line(place: int, value: bytes) -> None:
    assume(value != CONTENT[place : place + 1])
    assert _is_found_in_its_line(CONTENT[:place] + value + CONTENT[place + 1 :], place)


@given(places)
def test_any_removed_byte_is_found_in_its_line(place: int) -> None:
    assert _is_found_in_its_line(CONTENT[:place] + CONTENT[place + 1 :], place)


@given(places, byte)
def test_any_added_byte_is_found_in_its_line(place: int, value: bytes) -> None:
    assume(value != CONTENT[place : place + 1] or value != b"\n")
    assert _is_found_in_its_line(CONTENT[:place] + value + CONTENT[place:], place)


@given(places)
def test_a_file_that_is_cut_off_anywhere_is_found(length: int) -> None:
    assert not _check(list(BytesIO(CONTENT[:length]))).ok


@given(st.data())
def test_any_line_out_of_its_place_is_found(data: st.DataObject) -> None:
    one = data.draw(st.integers(1, len(LINES)))
    other = data.draw(st.integers(1, len(LINES)).filter(lambda number: number != one))
    first = _check(_move(one, to=other)(list(LINES))).problems[0]
    # A seal that comes too late is found when it comes, or when the next one does.
    late = [number for number, line in enumerate(LINES, 1) if json.loads(line).get("number") == first.seal]
    assert first.line == min(one, other) or (first.seal and min(one, other) <= late[0] <= max(one, other))
