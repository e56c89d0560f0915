"""Proof: is the trail what was written, and if not, where is the first place that differs.

Every kind of tampering is a difference between what seals promise and what is there. A trail is checked in
one pass, in constant memory. `docs/audit.md` says what a good report proves, and what it does not.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from clearance.audit import NO_SEAL, Entry, Seal, digest_part, entry_hash, is_signed_by, public_keys
from clearance.errors import InvalidInputError
from clearance.tampering import Findings, Order, Problem, ProblemKind


@dataclass(frozen=True)
class Extent:
    """How many entries and seals a trail is said to have."""

    last_seq: int
    last_seal: int


@dataclass(frozen=True)
class Unreadable:
    """What stands where an entry or a seal should, and is neither. `number` is its own, where it has one."""

    what: Literal["entry", "seal", "line"]
    number: int | None = None


Item = Entry | Seal | Unreadable


@dataclass(frozen=True)
class Report:
    """What a check found. `problems` are the first bad places, in the order of the trail; `found` counts all.

    `sealed_to` is the last entry up to which everything is as its seals say; `unsealed` counts the entries
    after the last seal, which nothing protects yet. `head` names the last seal (`number:hash`).
    `authenticated` says that each seal's signature is good under a key that was given.
    """

    entries: int
    sealed_to: int
    unsealed: int
    head: str
    authenticated: bool
    problems: tuple[Problem, ...]
    found: int

    @property
    def ok(self) -> bool:
        """Whether nothing bad was found."""
        return not self.found

    @property
    def summary(self) -> str:
        """The report as one sentence for people."""
        if self.problems:
            more = f" ({self.found - 1} more)" if self.found > 1 else ""
            return f"The trail was changed. {self.problems[0].message}{more}"
        state = "authenticated" if self.authenticated else "consistent, not authenticated"
        return f"{self.entries} entries, sealed to {self.sealed_to}, {self.unsealed} not yet sealed: {state}."


def verify(
    entries: Iterable[Entry | Unreadable],
    seals: Iterable[Seal | Unreadable],
    *,
    public_key: bytes | None,
    expect_head: str | None = None,
    extent: Extent | None = None,
) -> Report:
    """Check a trail that is given in the order of its numbers, from its first entry and first seal.

    `public_key` is PEM from outside, several keys one after another where the key has changed. Without it
    the report says at most that the trail is consistent. `expect_head` is the hash of a seal, or its
    `number:hash`, kept elsewhere: a trail that was cut off before it, or made anew, is found. `extent` is
    what the trail is said to have. Raises `InvalidInputError` for a key or a head that cannot be read.
    """
    check = Verification(public_key=public_key, expect_head=expect_head)
    for item in in_order(entries, seals):
        check.take(item)
    return check.finish(extent)


def in_order(entries: Iterable[Entry | Unreadable], seals: Iterable[Seal | Unreadable]) -> Iterator[Item]:
    """Yield entries and seals, each seal after the entries that it covers."""
    rest = iter(entries)
    held = next(rest, None)
    for seal in seals:
        while isinstance(seal, Seal) and held is not None and _seq(held) <= seal.last_seq:
            yield held
            held = next(rest, None)
        yield seal
    if held is not None:
        yield held
        yield from rest


class Verification:
    """One check of one trail: `take` every item in its order, then `finish`. Its size does not grow."""

    def __init__(self, *, public_key: bytes | None, expect_head: str | None = None) -> None:
        self._keys = None if public_key is None else public_keys(public_key)
        self._expected = _Expected(expect_head)
        self._findings = Findings()
        self._entries = Order(self._findings, "entry")
        self._seals = Order(self._findings, "seal")
        self._range = _Range(first=1)
        self._last: Seal | None = None
        # Whether `_last` is known to be what the next seal has to follow.
        self._follows = True
        self._count = self._since_seal = self._sealed_to = 0

    def take(self, item: Item, *, line: int | None = None) -> None:
        """Check the next item; `line` is where it stands in an export."""
        self._findings.line = line
        match item:
            case Entry():
                self._take_entry(item)
            case Seal():
                self._take_seal(item)
            case Unreadable():
                self._take_unreadable(item)
            case _:
                assert_never(item)

    def note(self, kind: ProblemKind, message: str, *, line: int | None = None) -> None:
        """Take note of what is wrong around the trail, in the file that holds it."""
        self._findings.line = line
        self._findings.add(kind, message)

    def finish(self, extent: Extent | None = None) -> Report:
        """Return the report. `extent` is what the trail is said to have, where something says it."""
        self._findings.line = None
        if extent is not None:
            self._entries.end(extent.last_seq)
            self._seals.end(extent.last_seal)
        if self._expected.missed:
            self._findings.add(ProblemKind.CUT_OFF, self._expected.missed, seal=self._seals.due)
        problems, found = self._findings.result()
        return Report(
            entries=self._count,
            sealed_to=self._sealed_to,
            unsealed=self._since_seal,
            head=self._last.head if self._last else "",
            authenticated=self._keys is not None and self._last is not None and not found,
            problems=problems,
            found=found,
        )

    def _take_entry(self, entry: Entry) -> None:
        seq = _seq(entry)
        in_turn, complete = self._entries.take(seq)
        self._range.complete &= complete
        self._count += 1
        actual = entry_hash(entry)
        if in_turn:
            self._since_seal += 1
            self._range.add(entry.hash, actual)
        if actual != entry.hash:
            self._findings.add(
                ProblemKind.ALTERED, f"Entry {seq} is not what its hash was made over.", seq=seq
            )

    def _take_seal(self, seal: Seal) -> None:
        in_turn, complete = self._seals.take(seal.number)
        if self._expected.denies(seal):
            self._broken(seal, "is not the one whose hash was kept elsewhere")
        if not in_turn:
            return
        fault = self._fault(seal, follows=self._follows and complete)
        if fault:
            self._broken(seal, fault)
            following = _Range(first=self._entries.due)
        else:
            following = self._compare(seal)
        self._range, self._last, self._follows = following, seal, not fault
        self._since_seal = 0
        if not self._findings:
            self._sealed_to = seal.last_seq

    def _fault(self, seal: Seal, *, follows: bool) -> str:
        """Return what is wrong with the seal itself, whatever it covers; an empty text when nothing is."""
        if self._keys is not None:
            if seal.key_id not in self._keys:
                return f"was made with the key {seal.key_id}, which is not among those given"
            if not is_signed_by(seal, self._keys[seal.key_id]):
                return "does not carry its signature: it was altered, or made by somebody else"
        if seal.last_seq < seal.first_seq:
            return "covers no entries"
        if follows and seal.previous != (self._last.hash if self._last else NO_SEAL):
            return "does not follow the seal before it: one of the two was altered or replaced"
        if follows and seal.first_seq != self._range.first:
            return f"begins with entry {seal.first_seq}, though entry {self._range.first} is next"
        return ""

    def _compare(self, seal: Seal) -> "_Range":
        """Compare the entries since the last seal with this one; return the range that follows."""
        there = self._range
        there.complete &= self._entries.reach(seal.last_seq)
        following = _Range(first=seal.last_seq + 1)
        if self._entries.due > seal.last_seq + 1:
            there.complete = following.complete = False
            self._findings.add(
                ProblemKind.REORDERED,
                f"Seal {seal.number} comes after entry {self._entries.due - 1}, which it does not cover.",
                seq=seal.last_seq + 1,
                seal=seal.number,
            )
        if there.complete and there.first == seal.first_seq and not there.fits(seal.digest):
            self._findings.add(
                ProblemKind.ALTERED,
                f"Entries {seal.first_seq} to {seal.last_seq} are not those that seal {seal.number} was "
                "made over: some were altered together with their hash, exchanged or replaced.",
                seq=seal.first_seq,
                seal=seal.number,
            )
        return following

    def _take_unreadable(self, item: Unreadable) -> None:
        self._range.complete = False
        order = self._seals if item.what == "seal" else self._entries
        if order is self._seals:
            self._follows = False
        number = order.due if item.number is None else item.number
        name = f"Line {self._findings.line}" if item.what == "line" else f"{order.one} {number}"
        seq, seal = order.place(number)
        self._findings.add(
            ProblemKind.ALTERED,
            f"{name} cannot be read: it was altered, or something was put there.",
            seq=seq,
            seal=seal,
        )
        if item.number is not None:
            order.take(number)
        else:
            # It may stand for the entry or the seal that is due.
            self._entries.spare += 1
            self._seals.spare += 1

    def _broken(self, seal: Seal, fault: str) -> None:
        self._findings.add(
            ProblemKind.SEAL_BROKEN,
            f"Seal {seal.number} {fault}.",
            seq=seal.first_seq,
            seal=seal.number,
        )


class _Range:
    """The entries since the last seal, as far as a digest needs them."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.complete = True
        # An entry whose hash alone was altered still fits by what it contains, and the other way round.
        self._stored, self._actual = hashlib.sha256(), hashlib.sha256()

    def add(self, stored: str, actual: str) -> None:
        self._stored.update(digest_part(stored))
        self._actual.update(digest_part(actual))

    def fits(self, digest: str) -> bool:
        return digest in (self._stored.hexdigest(), self._actual.hexdigest())


class _Expected:
    """A seal that is known from elsewhere. `missed` is a sentence as long as it has not come."""

    def __init__(self, head: str | None) -> None:
        form = re.fullmatch(r"(?:([1-9][0-9]{0,17}):)?([0-9a-f]{64})", head or "")
        if head is not None and form is None:
            raise InvalidInputError(
                "The expected head cannot be read. Give the hash of a seal, or NUMBER:HASH."
            )
        self._number = int(form[1]) if form and form[1] else None
        self._hash = form[2] if form else ""
        self.missed = ""
        if form:
            which = f"Seal {self._number}" if self._number else "The seal"
            self.missed = (
                f"{which} whose hash was kept elsewhere is not in the trail: it was cut off, or made anew."
            )

    def denies(self, seal: Seal) -> bool:
        """Take note of a seal; return whether it stands under the expected number and is another one."""
        if not self.missed:
            return False
        same = seal.hash == self._hash and self._number in (None, seal.number)
        if same or self._number == seal.number:
            self.missed = ""
        return not same and self._number == seal.number


def _seq(entry: Entry | Unreadable) -> int:
    """Return the number that an item of the trail has; what has none is wherever it stands."""
    number = entry.seq if isinstance(entry, Entry) else (entry.number or 0)
    if number is None:
        raise ValueError("only numbered entries are part of the trail")
    return number
