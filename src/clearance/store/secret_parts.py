"""Secret parts: what is masked in a call that no review stands for, by its program's tools and policy now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from clearance.errors import InvalidArgumentsError
from clearance.policy import Policy
from clearance.redaction import named_in, secrets_in, speaks_of_secrets
from clearance.run import Run
from clearance.store import policies, reviews, runs
from clearance.toolcall import parse_arguments
from clearance.veil import secret_words, veiled_run


@dataclass(frozen=True)
class Marks:
    """What the tools and the policy of a program call secret, whatever a rule's condition would say."""

    schemas: Mapping[str, Mapping[str, Any]]
    policy: Policy
    words: frozenset[str] = field(default=frozenset(), repr=False)
    """Secret texts that people were shown masked, to be looked for in what was written around them."""

    @property
    def any(self) -> bool:
        """Whether anything is secret here at all."""
        return any(rule.secret for rule in self.policy.rules) or any(
            map(speaks_of_secrets, self.schemas.values())
        )

    def of(self, tool: str, arguments: str) -> tuple[str, ...]:
        """Return the JSON pointers of what is secret in a call.

        Where there are secrets at all, that is everything in a call of a tool that is not known any more.
        """
        try:
            parsed = parse_arguments(arguments)
        except InvalidArgumentsError:
            return ()
        names = {name for rule in self.policy.rules if rule.covers(tool) for name in rule.secret}
        schema = self.schemas.get(tool)
        if schema is None and self.any:
            schema = {"x-secret": True}
        return tuple(sorted(secrets_in(schema or {}, parsed) | named_in(names, parsed)))


def of_program(tx: Connection, program: str) -> Marks:
    """Return what a program's tools and its active policy call secret."""
    return Marks(policies.offered(tx, program), policies.active(tx, program))


def of_thread(tx: Connection, thread_id: str) -> Marks:
    """Return what the program of a thread calls secret; of one that nobody has written in, nothing."""
    thread = runs.thread(tx, thread_id)
    if thread is None:
        return Marks({}, Policy())
    # What counts is what held when people were asked, whatever is secret by now.
    words = (secret_words(review) for review in reviews.secret_of_thread(tx, thread_id))
    return replace(of_program(tx, thread.program), words=frozenset().union(*words))


def veiled(tx: Connection, found: Sequence[Run]) -> list[Run]:
    """Return runs as they are shown: masked where they repeat what is secret in their reviews."""
    words: dict[str, frozenset[str]] = {}
    for review in reviews.secret_of_runs(tx, [run.id for run in found]):
        words[review.run_id] = words.get(review.run_id, frozenset()) | secret_words(review)
    return [veiled_run(run, words.get(run.id, frozenset())) for run in found]


def of_call(tx: Connection, program: str, tool: str, arguments: str) -> tuple[str, ...]:
    """Return the JSON pointers of what is secret in a call."""
    return of_program(tx, program).of(tool, arguments)
