"""A desk: a workspace with reviews that wait, and the command line as somebody uses it there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from clearance import turns
from clearance.asking import Question
from clearance.assembly import Clearance, new_id, open_workspace
from clearance.cli import build
from clearance.people import Person
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.review import Review
from clearance.store import people, reviews
from clearance.toolcall import Tool, ToolCall

PERSON = "ana"
TEXT = {"type": "string"}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "send_email": {
        "type": "object",
        "properties": {"to": TEXT, "body": TEXT},
        "required": ["to", "body"],
        "additionalProperties": False,
    },
    "pay": {"type": "object", "properties": {"amount": {"type": "number"}, "note": TEXT}},
    "wipe": {"type": "object"},
}
ALL = (*DEFAULT_DECISIONS, DecisionType.RESPOND)
POLICY = Policy(
    rules=(
        Rule("send_email", decisions=ALL, name="mail"),
        Rule("pay", risk=Risk.HIGH, decisions=ALL, flags={"amount": "money goes out"}, name="money"),
        Rule("wipe", risk=Risk.CRITICAL, decisions=ALL, name="no way back"),
    )
)
TWO_PEOPLE = Policy(rules=(Rule("*", decisions=ALL, who=(Threshold(approve=2),), name="two people"),))


@dataclass(frozen=True)
class Desk:
    """A workspace folder, and what a test does in it: `hold` calls, and `run` commands."""

    home: Path

    def run(self, *words: str, typed: str | None = None, person: str = PERSON) -> Result:
        """Run one command in this process, with its input; nothing is a terminal."""
        given = ["--home", str(self.home), "--person", person, *words]
        return CliRunner().invoke(build(), given, input=typed, prog_name="clearance")

    def json(self, *words: str, person: str = PERSON) -> Any:
        """Run a command that must succeed, and return its JSON answer."""
        done = self.run(*words, "--json", person=person)
        assert done.exit_code == 0, done.output
        assert done.stderr == ""
        return json.loads(done.stdout)

    def open(self) -> Clearance:
        """Open the workspace."""
        return open_workspace(home=self.home, person=PERSON, worker=False)

    def hold(
        self,
        *calls: tuple[str, str],
        policy: Policy = POLICY,
        thread: str | None = None,
        message: str = "Please do it.",
    ) -> Review:
        """Have an agent propose these calls, as (tool, arguments), and return the review that waits."""
        with self.open() as c:
            program = Program("desk", tools=_tools(), policy=policy)
            c.register(program)
            run = turns.start(
                c.ledger, thread or new_id(), message, run_id=new_id(), program="desk", by=PERSON
            )
            proposed = tuple(
                ToolCall(f"{run.id}/1/{place}", tool, arguments)
                for place, (tool, arguments) in enumerate(calls)
            )
            question = Question(run.id, run.thread_id, "desk", 1, proposed, program.tools)
            review = c.gate.ask(question)
        assert review is not None
        return review

    def review(self, review_id: str) -> Review:
        """Return a review as it is now."""
        with self.open() as c, c.database.read() as tx:
            return reviews.review(tx, review_id)

    def add(self, *new: Person) -> None:
        """Let more people into the workspace."""
        with self.open() as c, c.database.write() as tx:
            for person in new:
                people.add(tx, person, now=c.database.now(tx))


def error(done: Result) -> dict[str, Any]:
    """Return the JSON error that a command gave on standard error."""
    assert done.stdout == ""
    found: dict[str, Any] = json.loads(done.stderr)
    return found


def answers(review: Review) -> Sequence[str]:
    """Return what the decisions on each call add up to."""
    return [call.state.value for call in review.calls]


def _tools() -> dict[str, Tool]:
    return {name: Tool(name=name, schema=schema, run=_run) for name, schema in SCHEMAS.items()}


def _run(arguments: dict[str, Any], key: str) -> str:
    return f"{key}: {sorted(arguments)}"
