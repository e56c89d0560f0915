"""`ClearanceMiddleware`: the gate in an agent that LangChain's `create_agent` builds.

    after_model      asks about the calls of a message, in one interrupt, and waits for people
    wrap_tool_call   runs a call through `execution`, which asks for a clearance whatever brought it there
    wrap_model_call  shows the model a history in which every call is answered, and takes its message in

Two things about LangGraph decide how it is built.

A value that resumes an `interrupt` is kept with the node's execution, and given again by its position
whenever that execution starts anew. A hook that looped over `interrupt` would submit earlier values once
more, perhaps as another person. So the hook waits in a small graph of its own, which leaves its node after
each value and knows who sent it (`langchain_review`); what waits is always read from the store. A late
repetition of an answer meets what waits *then*, and is refused unless it names that.

A hook cannot send a graph back to itself. So a call that may not run as things stand gives no result;
`create_agent` goes on to the model, `wrap_model_call` sees the open call and does not ask the model, and
`after_model` asks people about it.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
    hook_config,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages import ToolCall as MessageCall
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.types import Command

from clearance import turns
from clearance.adapters import caller, history
from clearance.adapters.intake import Faulty, taken_in
from clearance.adapters.keyed import Workspace
from clearance.adapters.langchain_agent import Served
from clearance.adapters.langchain_answers import EDIT_NOTICE, Answers
from clearance.adapters.langchain_calls import Call, Given
from clearance.adapters.langchain_review import Asked, Reviewing
from clearance.adapters.langchain_rules import InterruptOn, Seen, looking_at, read_policy
from clearance.adapters.langchain_turns import Turn, last_message, read_turn
from clearance.execution import AskAgain, PausedError
from clearance.killpoints import at
from clearance.outcome import CallState, Outcome
from clearance.policy import Policy
from clearance.run import Run
from clearance.store import calls as ledger_rows
from clearance.store import runs
from clearance.toolcall import ToolCall

NOT_PROPOSED = "This call did not run: it is no call of the model's last message."
_ENDED = frozenset({CallState.EXECUTED, CallState.FAILED})

Update = dict[str, Any]


class ClearanceState(AgentState[Any]):
    """What an agent's thread keeps for the gate besides its messages."""

    clearance_turn: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class ClearanceMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gates the tool calls of an agent: those that need people wait, and every call runs at most once.

    Takes what LangChain's `HumanInTheLoopMiddleware` takes, so that an agent moves over by its import.
    `interrupt_on` and `policy` add up. `using` is the workspace where reviews are kept; without it, the one
    that was opened last in this process, else the default one. A decision sent as a resume value is that of
    `configurable.person` in the run's configuration, else of `person`, else of the workspace's own person.
    `program` names the agent in the workspace; default: the `name` of `create_agent`.

    The agent needs a checkpointer, and this middleware stands last in its list. Raises `PolicyError` when it
    is made, for rules that cannot be, and when the agent is built, for tools that the agent does not have.
    """

    state_schema = ClearanceState

    def __init__(
        self,
        interrupt_on: InterruptOn | None = None,
        *,
        policy: Policy | None = None,
        using: Workspace | None = None,
        person: str | None = None,
        program: str | None = None,
        description_prefix: str = "Tool execution requires approval",
        edit_notice: str | None = EDIT_NOTICE,
        interrupt_mode: str = "batched",
    ) -> None:
        super().__init__()
        if interrupt_mode != "batched":
            raise ValueError("ClearanceMiddleware asks once for each message: leave interrupt_mode out.")
        self._served = Served(read_policy(interrupt_on, policy), using=using, program=program, person=person)
        self._answers = Answers(self._served, edit_notice)
        self._reviewing = Reviewing(self._served, dict(interrupt_on or {}), description_prefix)
        self._waiting = self._reviewing.graph()

    @property
    def tools(self) -> Sequence[BaseTool]:  # type: ignore[override]  # LangChain only ever reads it
        """No tools of its own; `create_agent` asks for them, which is when the agent can be checked."""
        self._served.built(inspect.currentframe(), middleware=self)
        return []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model, unless calls of its last message are still open."""
        ready = self._ready(request)
        if isinstance(ready, ModelResponse):
            return ready
        shown, notes = ready
        return self._taken_in(shown, handler(shown), notes=notes)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        ready = await asyncio.to_thread(self._ready, request)
        if isinstance(ready, ModelResponse):
            return ready
        shown, notes = ready
        return self._taken_in(shown, await handler(shown), notes=notes)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Ask about the calls that need people, and wait until they are decided."""
        asked = self._asked(state, runtime)
        if asked is None:
            return None
        if self._reviewing.ask(asked) is not None:
            self._waiting.invoke({}, context=asked)
        return self._answers.update(asked.turn)

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """As `after_model`."""
        asked = await asyncio.to_thread(self._asked, state, runtime)
        if asked is None:
            return None
        if await asyncio.to_thread(self._reviewing.ask, asked) is not None:
            await self._waiting.ainvoke({}, context=asked)
        return await asyncio.to_thread(self._answers.update, asked.turn)

    def wrap_tool_call(  # type: ignore[override]  # LangChain's own handler takes lists, too
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Given]
    ) -> Given:
        """Run a call, if it is cleared: with the arguments that were cleared, and at most once."""
        return self._run(request, handler)

    async def awrap_tool_call(  # type: ignore[override]
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Given]]
    ) -> Given:
        """As `wrap_tool_call`; the tool runs in the caller's event loop."""
        loop = asyncio.get_running_loop()

        async def handled(cleared: ToolCallRequest) -> Given:
            return await handler(cleared)

        def from_thread(cleared: ToolCallRequest) -> Given:
            return asyncio.run_coroutine_threadsafe(handled(cleared), loop).result()

        return await asyncio.to_thread(self._run, request, from_thread)

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """End the run of the turn, unless one of its calls is open."""
        turns.finish_by_caller(self._served.workspace.ledger, self._run_of(state["messages"]).id)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        await asyncio.to_thread(self.after_agent, state, runtime)

    def _ready(
        self, request: ModelRequest[Any]
    ) -> ModelResponse[Any] | tuple[ModelRequest[Any], list[HumanMessage]]:
        """Return the request with a history that is whole, and what is told in it of earlier calls."""
        self._served.learn(request.tools)
        last = last_message(request.messages)
        if last is not None and last[1]:
            return ModelResponse(result=[last[0]])
        workspace = self._served.workspace
        run = self._run_of(request.state["messages"])
        notes: list[HumanMessage] = []
        if history.ai_messages(request.state["messages"]) == 0:
            workspace.execution.catch_up(run.thread_id, tools=self._served.tools, fence=None)
            notes = self._notes(run)
        messages = [*request.messages, *notes]
        shown = history.mended(messages, outcome_of=self._outcome_of, begun=caller.run_id_of)
        history.check_history(shown)
        return request.override(messages=shown), notes  # type: ignore[arg-type]  # any messages

    def _taken_in(
        self, request: ModelRequest[Any], response: ModelResponse[Any], *, notes: list[HumanMessage]
    ) -> ModelResponse[Any]:
        at("model-answered")
        used = frozenset(message.id or "" for message in request.state["messages"])
        result: list[BaseMessage] = list(response.result)
        # Structured output comes with its answer, and its call names no tool.
        if not any(isinstance(message, ToolMessage) for message in result):
            result = [
                taken_in(message, tools=self._served.tools, used_ids=used)
                if isinstance(message, AIMessage)
                else message
                for message in result
            ]
        return ModelResponse([*notes, *result], response.structured_response)

    def _asked(self, state: Any, runtime: Runtime[Any]) -> Asked | None:
        if last_message(state["messages"]) is None:
            return None
        turn = self._turn(state)
        return None if turn is None else Asked(turn, Seen(state, runtime, turn.message.tool_calls))

    def _run(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Given]) -> Given:
        self._served.learn(request.runtime.tools)
        turn = self._turn(request.state, asked=request.tool_call)
        call = None if turn is None else turn.call(request.tool_call["id"])
        if turn is None or call is None:
            call_id = request.tool_call["id"] or ""
            return ToolMessage(NOT_PROPOSED, tool_call_id=call_id, status="error")
        given = (
            history.answer(call, None, to=turn.message)
            if isinstance(call, Faulty)
            else self._executed(turn, call, request, handler)
        )
        last = turn.message.tool_calls[-1]["id"] == call.tool_call_id
        unreadable = [history.answer(each, None, to=turn.message) for each in turn.unreadable()]
        if not last or not unreadable:
            return given
        return [*(given if isinstance(given, list) else [given]), *unreadable]

    def _executed(
        self,
        turn: Turn,
        call: ToolCall,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Given],
    ) -> Given:
        workspace = self._served.workspace
        ledger, thread_id = workspace.ledger, turn.run.thread_id
        under_way = Call(request, handler, copy_context(), ledger, thread_id)
        with ledger.database.read() as tx:
            entered = bool(runs.open_below(tx, f"{thread_id}{runs.BELOW}{call.key}"))
        tools = under_way.tools(self._served.tools, self._served.real, entered=entered)
        with looking_at(Seen(request.state, request.runtime, turn.message.tool_calls)):
            try:
                [done] = workspace.execution.execute(
                    turn.run, [call], message=turn.number, tools=tools, fence=None
                )
            except PausedError as paused:
                # An agent inside the tool waits for people. LangGraph stops, and enters the tool again.
                raise (paused.__cause__ or paused) from None
        if isinstance(done, AskAgain):
            return Command(update={})
        given = under_way.kept(call.key) if done.state in _ENDED else None
        return self._answers.of(turn, call, done, given=given)

    def _turn(self, state: Any, *, asked: MessageCall | None = None) -> Turn | None:
        run = self._run_of(state["messages"])
        return read_turn(state, run, tools=self._served.tools, asked=asked)

    def _run_of(self, messages: Sequence[BaseMessage]) -> Run:
        served = self._served
        program, ledger = served.program, served.workspace.ledger
        run = caller.run_of(messages, ledger=ledger, program=program, person=served.person)
        # An agent that was built anew, under another name, is judged by the policy that it has now.
        return replace(run, program=program)

    def _notes(self, run: Run) -> list[HumanMessage]:
        """Return what became known of earlier calls since the last turn."""
        with self._served.workspace.ledger.database.write() as tx:
            found = ledger_rows.late_answers_for(tx, run.id, thread_id=run.thread_id)
        return [history.note(text, note_id=f"{answer_id}/note") for answer_id, text in found.items()]

    def _outcome_of(self, run_id: str, number: int, place: int) -> Outcome | None:
        return self._served.workspace.execution.ended([key := f"{run_id}/{number}/{place}"]).get(key)
