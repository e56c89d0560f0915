"""Coding variants in the nomenclature of HGVS: read, applied to a coding sequence, and put in its 3' form.

The subset: substitution, deletion, duplication, insertion and deletion-insertion at positions of the
coding sequence (c.1 to the stop codon's last base). Introns (c.68+1), untranslated regions (c.-1, c.*1)
and inversions are refused: a coding sequence alone cannot answer for them.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from clearance.errors import InvalidInputError

_VARIANT = re.compile(
    r"(?:[A-Za-z0-9_.()-]+:)?c\.(?P<start>\d+)(?:_(?P<end>\d+))?"
    r"(?:(?P<old>[ACGT])>(?P<new>[ACGT])"
    r"|(?P<kind>delins|del(?P<deleted>[ACGT]*)ins|del|dup|ins)(?P<bases>[ACGT]*))"
)
LONGEST_INSERTION = 10_000


class Kind(StrEnum):
    """What happens to the bases."""

    SUBSTITUTION = "substitution"
    DELETION = "deletion"
    DUPLICATION = "duplication"
    INSERTION = "insertion"
    DELETION_INSERTION = "deletion-insertion"


@dataclass(frozen=True)
class Change:
    """One variant: the bases `start` to `end` (from 1, both included; the two neighbours of an insertion).

    `stated` are the bases that the text says were there, "" where it does not say; `inserted` the new ones.
    """

    kind: Kind
    start: int
    end: int
    stated: str = ""
    inserted: str = ""

    def __str__(self) -> str:
        place = f"c.{self.start}" if self.start == self.end else f"c.{self.start}_{self.end}"
        match self.kind:
            case Kind.SUBSTITUTION:
                return f"{place}{self.stated}>{self.inserted}"
            case Kind.DELETION:
                return f"{place}del"
            case Kind.DUPLICATION:
                return f"{place}dup"
            case Kind.INSERTION:
                return f"{place}ins{self.inserted}"
            case Kind.DELETION_INSERTION:
                return f"{place}delins{self.inserted}"


def parse(text: str) -> Change:
    """Return the variant that `text` names, such as "c.68_69del" or "NM_007294.4:c.181T>G".

    Raises `InvalidInputError` for what is not in the subset.
    """
    match = _VARIANT.fullmatch(text.strip())
    if match is None:
        raise InvalidInputError(
            f"variants: {_shown(text)} is not in the subset. Write c.181T>G, c.68_69del, c.5266dup, "
            "c.10_11insACG or c.10_12delinsAA, within the coding sequence."
        )
    start, end = int(match["start"]), int(match["end"] or match["start"])
    if match["old"]:
        change = Change(Kind.SUBSTITUTION, start, end, match["old"], match["new"])
    elif match["kind"] == "del":
        change = Change(Kind.DELETION, start, end, match["bases"])
    elif match["kind"] == "dup":
        change = Change(Kind.DUPLICATION, start, end, match["bases"])
    elif match["kind"] == "ins":
        change = Change(Kind.INSERTION, start, end, "", match["bases"])
    else:
        change = Change(Kind.DELETION_INSERTION, start, end, match["deleted"] or "", match["bases"])
    wrong = _fault(change)
    if wrong:
        raise InvalidInputError(f"variants: {_shown(text)}: {wrong}.")
    return change


def apply(change: Change, letters: str) -> str:
    """Return the coding sequence with the variant in it.

    Raises `InvalidInputError` for positions outside it, and for other bases there than the variant states.
    """
    if change.end > len(letters):
        raise InvalidInputError(
            f"variants: {change} lies behind the last base of the coding sequence, {len(letters)}."
        )
    there = letters[change.start - 1 : change.end]
    if change.stated and change.stated != there:
        raise InvalidInputError(
            f"variants: {change} states {_shown(change.stated)}, but the sequence has {_shown(there)} there. "
            "Check the transcript and its version."
        )
    before, after = letters[: change.start - 1], letters[change.end :]
    match change.kind:
        case Kind.SUBSTITUTION | Kind.DELETION_INSERTION:
            return before + change.inserted + after
        case Kind.DELETION:
            return before + after
        case Kind.DUPLICATION:
            return before + there + there + after
        case Kind.INSERTION:
            return letters[: change.start] + change.inserted + letters[change.start :]


def normalized(change: Change, letters: str) -> Change:
    """Return the same variant as far 3' as it goes; an insertion that repeats its left side is a duplication.

    The rule is HGVS's own ("3' rule"). Substitutions and deletion-insertions stay as they are.
    """
    match change.kind:
        case Kind.DELETION | Kind.DUPLICATION:
            start, end = change.start, change.end
            while end < len(letters) and letters[start - 1] == letters[end]:
                start, end = start + 1, end + 1
            return replace(change, start=start, end=end, stated="")
        case Kind.INSERTION:
            return _insertion(change, letters)
        case Kind.SUBSTITUTION | Kind.DELETION_INSERTION:
            return change


def _insertion(change: Change, letters: str) -> Change:
    at, bases = change.start, change.inserted
    # An insertion has a base on both sides, so it cannot go behind the last one.
    while at < len(letters) - 1 and letters[at] == bases[0]:
        at, bases = at + 1, bases[1:] + bases[0]
    if letters[max(0, at - len(bases)) : at] == bases:
        return normalized(Change(Kind.DUPLICATION, at - len(bases) + 1, at), letters)
    return replace(change, start=at, end=at + 1, inserted=bases)


def _fault(change: Change) -> str | None:
    length = change.end - change.start + 1
    needs_bases = change.kind in (Kind.INSERTION, Kind.DELETION_INSERTION)
    if change.start < 1 or length < 1:
        return "positions count from 1 and go upwards"
    if needs_bases and not 0 < len(change.inserted) <= LONGEST_INSERTION:
        return f"it must name the inserted bases, at most {LONGEST_INSERTION}"
    if change.kind is Kind.INSERTION and length != 2:
        return "an insertion stands between two neighbours, such as c.10_11insA"
    if change.kind is Kind.SUBSTITUTION and (length != 1 or change.stated == change.inserted):
        return "a substitution changes one base into another"
    if change.stated and len(change.stated) != length:
        return "the bases that it states are not as many as its positions"
    return None


def _shown(text: str) -> str:
    """Return a text for a message, cut where it is long."""
    return repr(text if len(text) <= 40 else text[:39] + "…")
