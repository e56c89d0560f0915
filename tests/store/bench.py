"""A bench: a workspace whose calls the test proposes itself, with tools that note that they were called."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from clearance import turns
from clearance.asking import Question
from clearance.assembly import Clearance, new_id, open_workspace
from clearance.execution import AskAgain
from clearance.gate import Gate
from clearance.outcome import Outcome
from clearance.people import Kind, Person, Role
from clearance.policy import Policy, requiring_approval
from clearance.program import Program
from clearance.review import Answer, Review
from clearance.run import Run, RunState
from clearance.store import audit, calls, people, reviews, runs
from clearance.store import tables as t
from clearance.store.calls import LedgerRow
from clearance.store.database import Database
from clearance.toolcall import Tool, ToolCall, argument_text
from tests.rules.case_tools import SCHEMAS
from tests.rules.small_reviews import approve

PROGRAM = "chat"
REQUESTER = "tom"
GATED = ("send_email", "pay", "delete_file", "write_record")
MAIL = {"to": "ann@corp.example", "subject": "s", "body": "b"}
PAYMENT = {"account": "A-1", "amount_cents": 1000}
PEOPLE = (
    Person(id="rita", name="Rita", role=Role.REVIEWER),
    Person(id="omar", name="Omar", role=Role.REVIEWER),
    Person(id="faye", name="Faye", role=Role.REVIEWER, groups=("finance",)),
    Person(id="olga", name="Olga", role=Role.OPERATOR),
    Person(id="mallory", name="Mallory", role=Role.VIEWER),
    Person(id="dev-bot", name="dev-bot", role=Role.ADMIN, kind=Kind.AGENT, behind="tom"),
    Person(id="sub-bot", name="sub-bot", role=Role.ADMIN, kind=Kind.AGENT, behind="dev-bot"),
)
LONG = 60.0
"""Seconds after which something that should happen never will."""

EVER = datetime(2026, 1, 1, tzinfo=UTC)

Proposal = tuple[str, Mapping[str, Any] | str]


@dataclass(frozen=True)
class Effect:
    """What a tool was called with."""

    tool: str
    arguments: dict[str, Any]
    key: str


@dataclass
class Turn:
    """A run whose calls the test proposes, as if it were their model."""

    run: Run
    question: Question


@dataclass
class Bench:
    """A workspace on a database; `tom` asks, and unless `alone` there are others who decide.

    `effects` are the calls of tools that have begun, in order. What a tool does beyond that is `does[name]`.
    """

    url: str
    home: Path
    c: Clearance = field(init=False)
    effects: list[Effect] = field(default_factory=list)
    does: dict[str, Callable[[dict[str, Any], str], object]] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.c = open_workspace(self.url, home=self.home, person=REQUESTER, worker=False)
        self.tools = {name: self.tool(name) for name in SCHEMAS}

    def tool(self, name: str, **says: Any) -> Tool:
        """Return a tool that notes its calls; `says` is what it says about itself."""

        def run(arguments: dict[str, Any], key: str) -> object:
            with self._lock:
                self.effects.append(Effect(name, arguments, key))
            return self.does[name](arguments, key) if name in self.does else f"{name} done"

        schema = says.pop("schema", SCHEMAS.get(name, {}))
        return Tool(name=name, schema=schema, run=run, **says)

    def say(self, name: str, **says: Any) -> None:
        """Have a tool say something else about itself from now on, in a program that is registered."""
        self.tools[name] = self.tool(name, **says)

    def register(self, policy: Policy | None = None) -> None:
        """Make the program known, with the tools as they are and a policy that is active from now on."""
        policy = requiring_approval(GATED) if policy is None else policy
        self.c.register(Program(name=PROGRAM, tools=dict(self.tools), policy=policy))

    def hire(self, *others: Person) -> None:
        """Let more people in: from the second on nobody decides what they asked for."""
        with self.c.database.write() as tx:
            for person in others or PEOPLE:
                people.add(tx, person, now=self.c.database.now(tx))

    # --- asking, deciding, executing ---

    def propose(
        self, *proposals: Proposal, run_id: str = "r1", by: str = REQUESTER, message: int = 1
    ) -> Turn:
        """Start a run (or go on with it) whose model proposes these calls, on a thread of its own."""
        run = Run(run_id, f"thread-{run_id}", PROGRAM, RunState.RUNNING, by, input=None, created_at=EVER)
        run = turns.start_by_caller(self.c.ledger, run)
        question = Question(run.id, run.thread_id, PROGRAM, message, (), self.tools)
        return reproposed(Turn(run, question), *proposals)

    def ask(self, turn: Turn) -> Review | None:
        """Ask about the calls of a turn."""
        return self.c.gate.ask(turn.question)

    def asked(self, *proposals: Proposal, **more: Any) -> tuple[Turn, Review]:
        """Propose calls and ask about them; some must wait."""
        turn = self.propose(*proposals, **more)
        review = self.ask(turn)
        assert review is not None
        return turn, review

    def decide(self, review: Review, *decisions: Any, by: str = "rita") -> Review:
        """Decide a review at the version that was read."""
        return self.c.gate.decide(review.id, list(decisions), by=by, version=review.version)

    def execute(self, turn: Turn, *, fence: int | None = None) -> list[Outcome | AskAgain]:
        """Execute the calls of a turn, with the tools as they are now."""
        return self.c.execution.execute(
            turn.run, turn.question.calls, message=turn.question.message, tools=self.tools, fence=fence
        )

    def outcome(self, turn: Turn) -> Outcome:
        """Execute a turn's one call, which must come to an outcome."""
        (found,) = self.execute(turn)
        assert isinstance(found, Outcome)
        return found

    def gate_at(self, moment: Callable[[], datetime]) -> Gate:
        """Return a gate on the same workspace whose clock is the test's. Close its database."""
        later = Database(self.url, clock=moment)
        return Gate(later, programs=self.c.programs, wake=self.c.ledger.wake, new_id=new_id)

    def later(self, **by: float) -> Gate:
        """Return a gate whose clock goes ahead by so much."""
        return self.gate_at(lambda: datetime.now(UTC) + timedelta(**by))

    # --- what is there ---

    def review(self, review_id: str) -> Review:
        """Read a review."""
        with self.c.database.read() as tx:
            return reviews.review(tx, review_id)

    def row(self, key: str) -> LedgerRow | None:
        """Read a call's row of the ledger."""
        with self.c.database.read() as tx:
            return calls.row(tx, key)

    def run(self, run_id: str) -> Run:
        """Read a run."""
        with self.c.database.read() as tx:
            return runs.run(tx, run_id)

    def thread(self, run_id: str) -> runs.Thread:
        """Read the thread of a run."""
        with self.c.database.read() as tx:
            found = runs.thread(tx, f"thread-{run_id}")
        assert found is not None
        return found

    def clearances(self, key: str) -> list[str]:
        """Return how the clearances of a call stand, oldest first."""
        query = select(t.clearances.c.status).where(t.clearances.c.key == key)
        with self.c.database.read() as tx:
            return list(tx.execute(query.order_by(t.clearances.c.minted_at, t.clearances.c.id)).scalars())

    def trail(self, *subjects: str, of: str = "") -> list[str]:
        """Return the kinds of the entries about these subjects (all, when none is named), in order.

        `of` is the sort of subject: the second call of a message has the same id as its first review.
        """
        with self.c.database.write() as tx:
            audit.number(tx)
        with self.c.database.read() as tx:
            entries = audit.read_after(tx, 0, limit=10_000)
        about = [entry for entry in entries if not subjects or entry.subject in subjects]
        return [entry.kind for entry in about if entry.kind.startswith(of)]

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        with self.c.database.read() as tx:
            return {
                table.name: len(tx.execute(select(*table.primary_key.columns)).all())
                for table in t.metadata.sorted_tables
                if table.name in ("reviews", "decisions", "clearances", "calls", "entries", "runs")
            }

    def change_person(self, person_id: str, **values: Any) -> None:
        """Change a person's row, as an administrator does."""
        with self.c.database.write() as tx:
            tx.execute(update(t.people).where(t.people.c.id == person_id).values(**values))

    def close(self) -> None:
        """Close the workspace."""
        self.c.close()


def reproposed(turn: Turn, *proposals: Proposal) -> Turn:
    """Return the same message with other calls in it, as a history that was changed from outside has them."""
    found = tuple(
        ToolCall(f"{turn.run.id}/{turn.question.message}/{place}", tool, _text(arguments), "call_0")
        for place, (tool, arguments) in enumerate(proposals)
    )
    return Turn(turn.run, replace(turn.question, calls=found))


def in_run(turn: Turn, run: Run, *, fence: int | None) -> Turn:
    """Return the same message of another run, as the segment with this fence proposes it."""
    found = tuple(
        replace(call, key=f"{run.id}/{turn.question.message}/{place}")
        for place, call in enumerate(turn.question.calls)
    )
    asked = replace(turn.question, run_id=run.id, thread_id=run.thread_id, calls=found, fence=fence)
    return Turn(run, asked)


def states(review: Review) -> list[Answer]:
    """Return how the calls of a review stand."""
    return [call.state for call in review.calls]


def named(found: Sequence[Outcome | AskAgain]) -> list[str]:
    """Return how calls ended, in a word each."""
    return [item.state.value if isinstance(item, Outcome) else "ask again" for item in found]


def cleared(bench: Bench, tool: str = "pay", arguments: Any = PAYMENT) -> Turn:
    """Return a turn whose one call was approved."""
    turn, review = bench.asked((tool, arguments))
    bench.decide(review, approve())
    return turn


def raising(error: BaseException) -> Callable[..., object]:
    """Return what a tool does that ends so."""

    def body(*_: object) -> object:
        raise error

    return body


def _text(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else argument_text(dict(arguments))
