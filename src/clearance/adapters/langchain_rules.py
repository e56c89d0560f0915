"""What `interrupt_on` says, read as a policy: the named tools are held, the others run at once.

LangChain's `when` looks at the agent's state, which a policy's condition does not get; `looking_at` lends it
while the agent asks and executes. Elsewhere, where an edit is judged on another machine, say, there is no
state to look at, so the condition has no answer and the call is held.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall as MessageCall
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime

from clearance.errors import PolicyError
from clearance.policy import DecisionType, Effect, Policy, Predicate, Rule
from clearance.toolcall import parse_arguments

ALL_DECISIONS = (DecisionType.APPROVE, DecisionType.EDIT, DecisionType.REJECT, DecisionType.RESPOND)

InterruptOn = Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """What an agent's hook sees, and a `when` or a description may look at: the state, its calls."""

    state: Any
    runtime: Any
    calls: Sequence[MessageCall]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> MessageCall:
        """Return a call as LangChain writes it, with the id that the model gave it."""
        same = [call for call in self.calls if call["name"] == tool]
        exact = [call for call in same if all(arguments.get(k) == v for k, v in call["args"].items())]
        call_id = next((call["id"] for call in [*exact, *same]), None)
        return {"name": tool, "args": dict(arguments), "id": call_id, "type": "tool_call"}

    def request(self, tool: str, arguments: Mapping[str, Any]) -> ToolCallRequest:
        """Return what LangChain hands to a `when`."""
        call = self.call(tool, arguments)
        runtime = self.runtime if isinstance(self.runtime, ToolRuntime) else self._tool_runtime(call["id"])
        return ToolCallRequest(tool_call=call, tool=None, state=self.state, runtime=runtime)

    def _tool_runtime(self, call_id: str | None) -> ToolRuntime[Any, Any]:
        return ToolRuntime(
            state=self.state,
            context=self.runtime.context,
            config=get_config(),
            stream_writer=self.runtime.stream_writer,
            tool_call_id=call_id,
            store=self.runtime.store,
            execution_info=self.runtime.execution_info,
            server_info=self.runtime.server_info,
        )


@contextmanager
def looking_at(seen: Seen) -> Iterator[None]:
    """Lend what a hook sees to the conditions that are asked inside the `with` statement."""
    token = _seen.set(seen)
    try:
        yield
    finally:
        _seen.reset(token)


def read_policy(interrupt_on: InterruptOn | None, policy: Policy | None) -> Policy:
    """Return the policy of an agent: `interrupt_on` as rules, added to those of `policy`.

    `True` holds a tool and lets people approve, edit, reject and respond; `False` lets it run at once, as far
    as no other rule objects. Tools that nothing names run at once, or get the default of `policy`.
    Raises `PolicyError` for what cannot be a rule.
    """
    if interrupt_on is None and policy is None:
        raise PolicyError("Say what waits for people: give interrupt_on= or policy=.")
    rules = tuple(_rule(tool, said) for tool, said in (interrupt_on or {}).items())
    given = policy if policy is not None else Policy(default=Effect.ALLOW)
    return Policy(rules=(*given.rules, *rules), default=given.default)


def describe(interrupt_on: InterruptOn, *, prefix: str, seen: Seen, tool: str, arguments: str) -> str:
    """Return the text that a client shows with a call: the one given for the tool, or LangChain's."""
    parsed = parse_arguments(arguments)
    said = interrupt_on.get(tool)
    wanted = said.get("description") if isinstance(said, Mapping) else None
    if callable(wanted):
        try:
            return str(wanted(seen.call(tool, parsed), seen.state, seen.runtime))
        except Exception:  # noqa: BLE001 - a text that cannot be made must not keep the question from people
            wanted = None
    return str(wanted) if wanted is not None else f"{prefix}\n\nTool: {tool}\nArgs: {parsed}"


def _rule(tool: str, said: object) -> Rule:
    if isinstance(said, bool):
        return Rule(tool, effect=Effect.HOLD if said else Effect.ALLOW, decisions=ALL_DECISIONS)
    allowed = said.get("allowed_decisions") if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(allowed, list | tuple) or not allowed:
        raise PolicyError(
            f"interrupt_on[{tool!r}] is True, False or a mapping whose 'allowed_decisions' lists at least "
            f"one of {', '.join(ALL_DECISIONS)}."
        )
    when = said.get("when")
    if when is not None and not callable(when):
        raise PolicyError(f"interrupt_on[{tool!r}]: 'when' is a function of the tool call's request.")
    return Rule(tool, decisions=tuple(allowed), when=None if when is None else _predicate(tool, when))


def _predicate(tool: str, when: Callable[[ToolCallRequest], object]) -> Predicate:
    def condition(arguments: dict[str, Any]) -> Any:
        seen = _seen.get()
        if seen is None:
            raise LookupError("this condition looks at the agent's state, which is not here")
        return when(seen.request(tool, arguments))

    return Predicate(name=f"when of {tool}", version=_version(when), function=condition)


def _version(function: object) -> str:
    """Return what changes when a function is written anew, and not from process to process."""
    code = getattr(function, "__code__", None)
    written = _written(code) if isinstance(code, CodeType) else f"{type(function).__qualname__}"
    return hashlib.sha256(written.encode()).hexdigest()[:12]


def _written(value: object) -> str:
    """Write a constant of a function's code, nested functions too, without addresses or an order of sets."""
    if isinstance(value, CodeType):
        parts = [value.co_code.hex(), repr(value.co_names), *map(_written, value.co_consts)]
        return "(" + ",".join(parts) + ")"
    if isinstance(value, frozenset):
        return repr(sorted(map(_written, value)))
    return repr(value)


_seen: ContextVar[Seen | None] = ContextVar("clearance_seen", default=None)
