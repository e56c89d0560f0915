"""The way of a run as pages draw it: its stages and gates, each with a mark and a word."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from clearance.apps.research.graph import STAGES
from clearance.apps.research.hitl import HITLGate
from clearance.apps.research.state import Stage
from clearance.run import Run, RunState
from clearance.store.run_files import RunStage

GATES = {"hitl_plan": HITLGate.S4_PLAN, "hitl_execute": HITLGate.S5_EXECUTE}
_GATE, _EXECUTE, _ANALYST = (STAGES.index(name) for name in ("hitl_plan", "hitl_execute", "analyst"))
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 130, 60, 16, 18


class Mark(StrEnum):
    """How a stage stands."""

    DONE = "done"
    NOT_NEEDED = "not needed"
    AT_WORK = "at work"
    QUEUED = "waits for a worker"
    WAITS = "waits for people"
    REJECTED = "rejected"
    EXPIRED = "expired"
    BLOCKED = "blocked"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TO_COME = "to come"

    @property
    def shape(self) -> str:
        """The sign that stands before its word."""
        match self:
            case Mark.DONE:
                return "✓"
            case Mark.NOT_NEEDED:
                return "–"
            case Mark.AT_WORK | Mark.QUEUED:
                return "▸"
            case Mark.WAITS:
                return "◆"
            case Mark.TO_COME:
                return "○"
            case Mark.REJECTED | Mark.EXPIRED | Mark.BLOCKED | Mark.FAILED | Mark.CANCELLED:
                return "✗"
            case _:
                assert_never(self)

    @property
    def tone(self) -> str:
        """Which of the page's colours it has, beside its word."""
        match self:
            case Mark.DONE:
                return "ok"
            case Mark.WAITS:
                return "waits"
            case Mark.REJECTED | Mark.EXPIRED | Mark.BLOCKED | Mark.FAILED | Mark.CANCELLED:
                return "bad"
            case _:
                return ""


@dataclass(frozen=True)
class Node:
    """One stage or gate. `line` says what it gave, `at` when it was come to, last."""

    name: str
    mark: Mark
    gate: HITLGate | None = None
    line: str = ""
    at: datetime | None = None

    @property
    def words(self) -> str:
        """The node in one phrase."""
        return f"{self.name}{f' (gate {self.gate})' if self.gate else ''}: {self.mark}"


@dataclass(frozen=True)
class Box:
    """A node at its place in a picture. `arrow` are the points of the line to the next one."""

    node: Node
    x: int
    y: int
    arrow: str
    head: str


@dataclass(frozen=True)
class Picture:
    """The way drawn in rows of `columns`, every other one from right to left."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    box_width: int = _WIDTH
    box_height: int = _HEIGHT


def way(run: Run, stages: Sequence[RunStage], *, waits: bool) -> tuple[Node, ...]:
    """Return every stage and gate of a run as it stands. `waits`: people are asked at its gate now."""
    last = stages[-1] if stages else None
    stage = Stage.STARTED if last is None else Stage(last.stage)
    here = _place(stage, stages)
    return tuple(
        Node(
            name,
            _mark(run, stage, stages, place=place, here=here, waits=waits),
            gate=GATES.get(name),
            line=_line(name, stages) if place <= here else "",
            at=_at(name, stages) if place <= here else None,
        )
        for place, name in enumerate(STAGES)
    )


def said(nodes: Sequence[Node]) -> str:
    """Return the way in one sentence."""
    return "; ".join(node.words for node in nodes) + "."


def picture(nodes: Sequence[Node], *, columns: int) -> Picture:
    """Return the way as a picture."""
    rows = -(-len(nodes) // columns)
    places = [_at_place(n, columns) for n in range(len(nodes))]
    boxes = []
    for n, node in enumerate(nodes):
        arrow, head = _arrow(places[n], places[n + 1]) if n + 1 < len(nodes) else ("", "")
        boxes.append(Box(node, *places[n], arrow, head))
    width = columns * _WIDTH + (columns - 1) * _ACROSS + 2
    return Picture(width, rows * _HEIGHT + (rows - 1) * _DOWN + 2, tuple(boxes))


def _place(stage: Stage, stages: Sequence[RunStage]) -> int:
    """Return the number of the node that a run is at; behind the last one when all are done."""
    match stage:
        case Stage.STARTED | Stage.SEQUENCE | Stage.LITERATURE | Stage.METHOD_KB:
            return (Stage.STARTED, Stage.SEQUENCE, Stage.LITERATURE, Stage.METHOD_KB).index(stage)
        case Stage.PLANNER | Stage.HITL_PLAN_PENDING:
            return _GATE
        case Stage.HITL_PLAN_APPROVED | Stage.HITL_EXECUTE_PENDING:
            return _EXECUTE
        case Stage.HITL_EXECUTE_APPROVED:
            return _ANALYST
        case Stage.ANALYST:
            return _ANALYST + 1
        case Stage.REPORTER | Stage.DONE:
            return len(STAGES)
        case Stage.HITL_REJECTED | Stage.HITL_EXPIRED | Stage.BLOCKED_HITL:
            before = [Stage(each.stage) for each in stages if Stage(each.stage) is not stage]
            return _place(before[-1], stages) if before else 0
        case _:
            assert_never(stage)


def _mark(run: Run, stage: Stage, stages: Sequence[RunStage], *, place: int, here: int, waits: bool) -> Mark:
    if place < here:
        skipped = place == _EXECUTE and not any(each.stage == Stage.HITL_EXECUTE_PENDING for each in stages)
        return Mark.NOT_NEEDED if skipped else Mark.DONE
    return _mark_here(run, stage, waits=waits) if place == here else Mark.TO_COME


def _mark_here(run: Run, stage: Stage, *, waits: bool) -> Mark:
    ended = {
        Stage.HITL_REJECTED: Mark.REJECTED,
        Stage.HITL_EXPIRED: Mark.EXPIRED,
        Stage.BLOCKED_HITL: Mark.BLOCKED,
    }
    match run.state:
        case RunState.FAILED:
            return ended.get(stage, Mark.FAILED)
        case RunState.CANCELLED:
            return Mark.CANCELLED
        case RunState.QUEUED:
            return Mark.QUEUED
        case _:
            return Mark.WAITS if waits else ended.get(stage, Mark.AT_WORK)


def _line(name: str, stages: Sequence[RunStage]) -> str:
    found = _last(name, stages)
    return "" if found is None else str(found.state.get("line", ""))


def _at(name: str, stages: Sequence[RunStage]) -> datetime | None:
    found = _last(name, stages)
    return None if found is None else found.at


def _last(name: str, stages: Sequence[RunStage]) -> RunStage | None:
    """Return the last step that a run took at a node; a gate is come to in two steps."""
    names = (f"{name}_pending", f"{name}_approved") if name in GATES else (name,)
    return next((each for each in reversed(stages) if each.stage in names), None)


def _at_place(n: int, columns: int) -> tuple[int, int]:
    row, column = divmod(n, columns)
    if row % 2:
        column = columns - 1 - column
    return 1 + column * (_WIDTH + _ACROSS), 1 + row * (_HEIGHT + _DOWN)


def _arrow(here: tuple[int, int], to: tuple[int, int]) -> tuple[str, str]:
    """Return the line from a box to the next one, and the head at its end."""
    (x, y), (to_x, to_y) = here, to
    if to_y > y:
        middle = x + _WIDTH // 2
        end = to_y - 2
        return f"{middle},{y + _HEIGHT} {middle},{end - 5}", _head(middle, end, across=0)
    middle = y + _HEIGHT // 2
    forth = to_x > x
    start, end = (x + _WIDTH, to_x - 2) if forth else (x, to_x + _WIDTH + 2)
    back = -5 if forth else 5
    return f"{start},{middle} {end + back},{middle}", _head(end, middle, across=back)


def _head(x: int, y: int, *, across: int) -> str:
    """Return a small triangle with its tip here; `across` is where its foot lies, 0 is above."""
    if across == 0:
        return f"{x},{y} {x - 4},{y - 7} {x + 4},{y - 7}"
    foot = x + (7 if across > 0 else -7)
    return f"{x},{y} {foot},{y - 4} {foot},{y + 4}"
