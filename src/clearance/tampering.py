"""Tampering: the bad places of a trail, named in its order, and what numbers out of order tell about them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

MOST_PROBLEMS = 20


class ProblemKind(StrEnum):
    """In what way a place of the trail is not as it was written."""

    ALTERED = "altered"
    MISSING = "missing"
    INSERTED = "inserted"
    REORDERED = "reordered"
    SEAL_BROKEN = "seal broken"
    CUT_OFF = "cut off"


@dataclass(frozen=True)
class Problem:
    """One bad place. `seq` is the first entry concerned, `seal` the seal, `line` that of an export."""

    kind: ProblemKind
    message: str
    seq: int | None = None
    seal: int | None = None
    line: int | None = None


class Findings:
    """The first problems of a trail, in its order, and how many there are. `line` is where the check is."""

    def __init__(self) -> None:
        self.line: int | None = None
        self._found = 0
        self._first: list[Problem | Gap] = []

    def __len__(self) -> int:
        return self._found

    def add(
        self, kind: ProblemKind, message: str, *, seq: int | None = None, seal: int | None = None
    ) -> None:
        """Take note of a problem at this place."""
        self._keep(Problem(kind, message, seq, seal, self.line))

    def add_gap(self, gap: "Gap") -> bool:
        """Take note of a gap, whose kind is known at the end; return whether it is among the first."""
        gap.line = self.line
        return self._keep(gap)

    def result(self) -> tuple[tuple[Problem, ...], int]:
        """Return the first problems and the number of all."""
        return tuple(each.problem() if isinstance(each, Gap) else each for each in self._first), self._found

    def _keep(self, problem: "Problem | Gap") -> bool:
        self._found += 1
        if self._found > MOST_PROBLEMS:
            return False
        self._first.append(problem)
        return True


class Gap:
    """Numbers that were due and did not come: missing, cut off, or only out of order when they come later."""

    def __init__(self, order: "Order", first: int, last: int) -> None:
        self._order = order
        self._first = self._lowest = first
        self.last = last
        self._came = 0
        self.line: int | None = None

    def takes(self, number: int) -> bool:
        """Whether the number belongs here; it is then taken as come."""
        if not self._first <= number <= self.last:
            return False
        self._came += 1
        if number == self._lowest:
            self._lowest += 1
        return True

    def problem(self) -> Problem:
        """Return what the gap has turned out to be."""
        order, first, last = self._order, self._lowest, self.last
        which = f"{order.one} {first} is" if first == last else f"{order.many} {first} to {last} are"
        if self._came > last - self._first:
            kind, first = ProblemKind.REORDERED, self._first
            message = f"{order.one} {first} is not in its place: it comes later."
        elif last + 1 == order.due:
            kind, message = ProblemKind.CUT_OFF, f"{which} cut off: the trail ends too early."
        else:
            kind, message = ProblemKind.MISSING, f"{which} missing."
        seq, seal = order.place(first)
        return Problem(kind, message, seq, seal, self.line)


class Order:
    """The numbers of entries, or of seals: they come one by one from 1, and what does not is a finding."""

    def __init__(self, findings: Findings, what: Literal["entry", "seal"]) -> None:
        self.one, self.many = ("Seal", "Seals") if what == "seal" else ("Entry", "Entries")
        self.due = 1
        # Unreadable items that may stand for what is due.
        self.spare = 0
        self._findings = findings
        self._gaps: list[Gap] = []

    def take(self, number: int) -> tuple[bool, bool]:
        """Take the next number; return whether it moves on, and whether nothing is missing before it."""
        if number >= self.due:
            complete = self.reach(number - 1)
            self.due, self.spare = number + 1, 0
            return True, complete
        if not any(gap.takes(number) for gap in self._gaps):
            self._add(ProblemKind.INSERTED, "is there twice, or was put in.", number)
        return False, True

    def reach(self, last: int) -> bool:
        """Take note that everything up to `last` should have come; return whether it has."""
        if last < self.due:
            return True
        if last - self.due >= self.spare:
            self._miss(last)
        self.due = last + 1
        return False

    def end(self, last: int) -> None:
        """Take note that `last` should be the last number."""
        self.reach(last)
        if self.due > last + 1:
            self._add(ProblemKind.INSERTED, "is one more than the trail says it has.", last + 1)

    def _miss(self, last: int) -> None:
        if self._gaps and self._gaps[-1].last == self.due - 1:
            self._gaps[-1].last = last
            return
        gap = Gap(self, self.due, last)
        if self._findings.add_gap(gap):
            self._gaps.append(gap)

    def place(self, number: int) -> tuple[int | None, int | None]:
        """Return a number as the entry and the seal of a problem."""
        return (None, number) if self.one == "Seal" else (number, None)

    def _add(self, kind: ProblemKind, message: str, number: int) -> None:
        seq, seal = self.place(number)
        self._findings.add(kind, f"{self.one} {number} {message}", seq=seq, seal=seal)
