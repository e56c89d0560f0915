"""How the calls of an agent of `create_agent` are answered, and what its history shows of their edits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage

from clearance.adapters import history
from clearance.adapters.intake import Faulty
from clearance.adapters.langchain_agent import Served
from clearance.adapters.langchain_calls import Given, answers
from clearance.adapters.langchain_turns import Turn, as_cleared, as_proposed, asked_calls
from clearance.killpoints import at
from clearance.outcome import CallState, Outcome
from clearance.review import ReviewedCall
from clearance.toolcall import ToolCall

EDIT_NOTICE = "A reviewer changed this call."
MOST_PASSES = 5
"""How often a message goes round from its tools to its review before its open calls are given up."""
UNSETTLED = "This call did not run: what it needs changed each time that it was looked at."
_RAN = frozenset({CallState.EXECUTED, CallState.FAILED, CallState.UNCERTAIN})

Asked = Mapping[str, ReviewedCall]


@dataclass(frozen=True)
class Answers:
    """The answers of one agent. `edit_notice` begins the result of a call that a person changed."""

    served: Served
    edit_notice: str | None

    def update(self, turn: Turn) -> dict[str, Any]:
        """Return the update of a hook after which nothing waits for people.

        Where no call is to run, every one is answered, in order. Else they are left to the tools, and shown
        as they were cleared.
        """
        at("read-settled")
        ended = self.served.workspace.execution.ended([call.key for call in turn.proposed])
        waiting = [_given_up(call) if self._is_stuck(turn, call, ended) else call for call in turn.waiting]
        if not waiting:
            return turn.mark()
        asked = asked_calls(self.served.workspace.ledger.database, turn)
        if any(isinstance(call, ToolCall) and call.key not in ended for call in waiting):
            changed = as_cleared(asked, turn)
            return {**turn.mark(), **({"messages": [changed]} if changed is not None else {})}
        told = [
            history.answer(call, None, to=turn.message)
            if isinstance(call, Faulty)
            else self._told(turn, call, ended[call.key], asked)
            for call in waiting
        ]
        # LangChain ends the turn after a message that only has calls which it could not read.
        jump = {} if turn.message.tool_calls else {"jump_to": "model"}
        return {**turn.mark(), "messages": told, **jump}

    def of(self, turn: Turn, call: ToolCall, outcome: Outcome, *, given: Given | None) -> Given:
        """Return what answers a call: `given` by its tool, as far as that is more than text."""
        asked = asked_calls(self.served.workspace.ledger.database, turn)
        told = self._told(turn, call, outcome, asked)
        if given is None:
            return told
        return answers(given, to=told, notice=self._notice(call, outcome, asked))

    def _is_stuck(self, turn: Turn, call: ToolCall | Faulty, ended: Mapping[str, Outcome]) -> bool:
        return isinstance(call, ToolCall) and call.key not in ended and turn.passes >= MOST_PASSES

    def _told(self, turn: Turn, call: ToolCall, outcome: Outcome, asked: Asked) -> ToolMessage:
        """Return the message with the outcome; what people changed about the call is said first."""
        as_it_ran = ToolCall(call.key, outcome.tool, outcome.arguments, call.tool_call_id)
        told = history.answer(as_it_ran, outcome, to=turn.message)
        return told.model_copy(update={"content": f"{self._notice(call, outcome, asked)}{told.content}"})

    def _notice(self, call: ToolCall, outcome: Outcome, asked: Asked) -> str:
        if outcome.state not in _RAN:
            return ""
        reviewed = asked.get(call.key)
        secret = reviewed.verdict.secret if reviewed is not None else ()
        if not self.edit_notice:
            # Left out as wanted, where the message itself says what ran.
            return history.edit_notice(call, outcome, secret=secret)
        return history.edit_notice(
            as_proposed(call, reviewed), outcome, secret=secret, words=self.edit_notice
        )


def _given_up(call: ToolCall | Faulty) -> Faulty:
    return Faulty(call.tool_call_id, call.tool, UNSETTLED)
