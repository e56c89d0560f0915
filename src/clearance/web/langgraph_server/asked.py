"""What a client asks of a run: to begin with what a person says, or to go on with what a person decides.

The LangGraph server takes much more: states, jumps, interruptions, other checkpoints. Here all of that is
refused in words, so that nobody believes it had an effect.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from clearance.errors import ConflictError, Fault, InvalidInputError
from clearance.web.bodies import Words
from clearance.web.langgraph_server.states import read_name

# These change nothing here, whatever they say: which frames come, and what becomes of the run when the client
# is gone (it goes on), is the server's; the rest is for the maker's own statistics.
_PASSED_OVER = frozenset({
    "stream_subgraphs", "stream_resumable", "on_disconnect", "on_completion", "if_not_exists", "durability",
    "checkpoint_during", "feedback_keys", "metadata", "langsmith_tracer", "strict_resume",
})  # fmt: skip
_EMPTY: tuple[Any, ...] = (None, {}, [], "")


class RunAsked(BaseModel):
    """A run as clients of the LangGraph server ask for it."""

    model_config = ConfigDict(extra="allow")

    assistant_id: Words = Field(min_length=1, max_length=200)
    input: Any = None
    command: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    multitask_strategy: str | None = None
    stream_mode: str | list[str] | None = None

    @property
    def modes(self) -> frozenset[str]:
        """Which kinds of frames are wanted."""
        given = self.stream_mode or "values"
        return frozenset([given] if isinstance(given, str) else given)

    @property
    def is_answer(self) -> bool:
        """Whether it goes on with what a person decides."""
        return self.command is not None and any(value not in _EMPTY for value in self.command.values())


@dataclass(frozen=True)
class Answer:
    """What a person decides, and for which state, as far as the client says it."""

    decisions: Any
    name: str | None
    """The name of the state that was seen: a review and its version."""


def check(asked: RunAsked) -> None:
    """Raise `InvalidInputError` for all that a run cannot be told here."""
    faults = [
        Fault(f"/{name}", "is not taken here: leave it out")
        for name, value in (asked.model_extra or {}).items()
        if name not in _PASSED_OVER and value not in _EMPTY
    ]
    faults += [
        Fault(f"/command/{name}", "is not taken here: people decide, and the graph goes where it goes")
        for name, value in (asked.command or {}).items()
        if name != "resume" and value not in _EMPTY
    ]
    if asked.multitask_strategy not in (None, "reject"):
        faults.append(Fault("/multitask_strategy", "must be reject: a thread works on one message at a time"))
    if (asked.checkpoint or {}).get("checkpoint_ns") not in _EMPTY:
        faults.append(Fault("/checkpoint/checkpoint_ns", "is not taken here"))
    if asked.is_answer and asked.input not in _EMPTY:
        faults.append(Fault("/input", "does not go together with a decision; send one after the other"))
    if faults:
        raise InvalidInputError("A run takes what a person says, or decides, and no more.", faults=faults)


def state_named(asked: RunAsked) -> str | None:
    """Return the name of the state that the client says it saw."""
    named = (asked.checkpoint or {}).get("checkpoint_id") or asked.checkpoint_id
    return str(named) if named else None


def answer_of(asked: RunAsked) -> Answer:
    """Return what is decided. Raises `ConflictError` when it is said to be about two different states."""
    resume = (asked.command or {}).get("resume")
    names = {named} if (named := state_named(asked)) is not None else set()
    if isinstance(resume, dict) and len(resume) == 1 and read_name(next(iter(resume))) is not None:
        # LangGraph's own way to say which interrupt is answered.
        [(name, resume)] = resume.items()
        names.add(name)
    if isinstance(resume, dict) and isinstance(resume.get("review_id"), str):
        names.add(f"{resume['review_id']}@{resume.get('version')}")
    if len(names) > 1:
        raise ConflictError(
            "This answer names two different reviews or versions. Look once more, and decide."
        )
    return Answer(resume, next(iter(names), None))
