"""The reviewed agent as a LangGraph graph: `llm_call`, `human_review`, `tool_node`.

    START → llm_call → human_review → tool_node → llm_call … → END

Every tool call passes `human_review`, and only those that need people stop it, in one interrupt for each AI
message. The node reads what was decided from the store: resume values decide nothing by themselves. Tools run
in `tool_node`, through `execution`, which asks for a clearance whatever the graph says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from clearance import turns
from clearance.adapters import caller, history
from clearance.adapters.intake import Faulty, read_calls, taken_in
from clearance.adapters.messages import Messages
from clearance.adapters.model_calls import ask_model
from clearance.adapters.speaking import Speaker
from clearance.asking import Question
from clearance.execution import AskAgain, Execution
from clearance.gate import Gate
from clearance.killpoints import at
from clearance.ledger import Ledger
from clearance.outcome import Outcome
from clearance.review import Review
from clearance.run import Run
from clearance.store import calls as ledger_rows
from clearance.store import reviews
from clearance.toolcall import Tool, ToolCall

MAX_AGENT_STEPS = 25
STEPS_PER_TOOL_ROUND = 3
CLOSING = (
    "I stop here: this request took more steps than one turn may have. "
    "What was done so far stands; tell me how to go on."
)
LIMIT_REACHED = "This call did not run: the turn has reached its limit of steps."

Next = Literal["llm_call", "tool_node", "human_review"]


class AgentState(TypedDict):
    """What a thread keeps: its messages, the run that a worker began last, why a decision was refused."""

    messages: Messages
    run: NotRequired[str]
    refused: NotRequired[str]


@dataclass(frozen=True)
class RunContext:
    """What a worker hands to a segment; absent where the caller drives the graph by hand.

    `ended` is what became of calls of the last message that this segment has run ahead of the graph; `store`
    makes the graph's state durable, which it is before anybody is asked about it.
    """

    run: Run
    fence: int
    speaker: Speaker | None = None
    ended: Mapping[str, Outcome] = field(default_factory=dict)
    store: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Reviewed:
    """The parts that the nodes share. `person` decides and asks where a configuration names nobody."""

    program: str
    model: Runnable[Any, Any]
    tools: Mapping[str, Tool]
    prompt: str
    gate: Gate
    execution: Execution
    ledger: Ledger
    person: str
    address: Callable[[str], str | None] = field(default=lambda _: None)
    max_steps: int = MAX_AGENT_STEPS

    def graph(self) -> StateGraph[AgentState, RunContext, AgentState, AgentState]:
        """Return the graph, to be compiled with a checkpointer."""
        builder = StateGraph(AgentState, context_schema=RunContext)
        builder.add_node("llm_call", self.llm_call)
        builder.add_node("human_review", self.human_review, destinations=("tool_node", "llm_call"))
        builder.add_node("tool_node", self.tool_node, destinations=("llm_call",))
        builder.add_edge(START, "llm_call")
        builder.add_conditional_edges("llm_call", _after_model, ["human_review", END])
        return builder

    def llm_call(self, state: AgentState, *, runtime: Runtime[RunContext]) -> dict[str, Any]:
        """Ask the model, and take its message in."""
        run, fence = self._run(state, runtime)
        by_hand = runtime.context is None
        messages = state["messages"]
        if by_hand and history.ai_messages(messages) == 0:
            self.execution.catch_up(run.thread_id, tools=self.tools, fence=None)
        notes = self._notes(run, messages) if history.ai_messages(messages) == 0 else []
        begun = caller.run_id_of if by_hand else history.run_of
        shown = history.mended([*messages, *notes], outcome_of=self._outcome_of, begun=begun)
        history.check_history(shown)
        given = ask_model(
            self.model,
            [SystemMessage(self.prompt), *shown],
            get_config(),
            still_wanted=lambda: turns.check_claim(self.ledger, run.thread_id, fence=fence),
            speaker=None if by_hand else runtime.context.speaker,
        )
        at("model-answered")
        used = frozenset(message.id or "" for message in messages)
        message = taken_in(given, tools=self.tools, used_ids=used)
        number = history.ai_messages(messages) + 1
        closing = _has_calls(message) and number * STEPS_PER_TOOL_ROUND >= self.max_steps
        if by_hand and (closing or not _has_calls(message)):
            turns.finish_by_caller(self.ledger, run.id)
        return {"messages": [*notes, message, *(_closed_off(message, run) if closing else [])]}

    def human_review(self, state: AgentState, *, runtime: Runtime[RunContext]) -> Command[Next]:
        """Ask about the calls that need people, wait for them, and choose where to go on.

        Runs again from its start at every resume; what stands before `interrupt` may be repeated.
        """
        run, fence = self._run(state, runtime)
        found = self._calls(state, run)
        context: RunContext | None = runtime.context
        ahead = context.ended if context is not None else {}
        if ahead and all(isinstance(call, ToolCall) and call.key in ahead for call in found):
            at("read-settled")
            return Command(goto="llm_call", update=self._answers(run, state, found, ahead))
        if context is not None:
            context.store()
        review = self.gate.ask(self._question(run, state, found, fence=fence))
        at("asked")
        if review is not None:
            at("read-pending")
            resumed = interrupt(self._payload(review, refused=state.get("refused")))
            refused = caller.submit(self.gate, review, resumed, by=caller.person_of(self.person))
            return Command(goto="human_review", update={"refused": refused})
        at("read-settled")
        proposed = [call for call in found if isinstance(call, ToolCall)]
        ended = self.execution.ended([call.key for call in proposed])
        if len(ended) < len(proposed):
            return Command(goto="tool_node")
        return Command(goto="llm_call", update=self._answers(run, state, found, ended))

    def tool_node(self, state: AgentState, *, runtime: Runtime[RunContext]) -> Command[Next]:
        """Run what is cleared, and answer every call of the message in one update."""
        run, fence = self._run(state, runtime)
        found = self._calls(state, run)
        proposed = [call for call in found if isinstance(call, ToolCall)]
        number = history.ai_messages(state["messages"])
        done = self.execution.execute(run, proposed, message=number, tools=self.tools, fence=fence)
        if any(isinstance(item, AskAgain) for item in done):
            return Command(goto="human_review")
        outcomes = {item.key: item for item in done if isinstance(item, Outcome)}
        return Command(goto="llm_call", update=self._answers(run, state, found, outcomes))

    def run_ahead(self, run: Run, asked: Mapping[str, Any], *, fence: int) -> dict[str, Outcome]:
        """Run what was decided about a question, before the graph is started, and return what became of it.

        `asked` is the question as it is kept with the thread's present state, so the calls are still those of
        its last message. Only calls that may run side by side: the others keep their order in `tool_node`.
        """
        calls = [
            ToolCall(each["call"], each["name"], each["arguments"], each.get("tool_call_id", ""))
            for each in asked["action_requests"]
        ]
        tools = [self.tools.get(call.tool) for call in calls]
        if not calls or not all(tool is not None and tool.parallel for tool in tools):
            return {}
        number = int(calls[0].key.split("/")[-2])
        done = self.execution.execute(run, calls, message=number, tools=self.tools, fence=fence)
        return {item.key: item for item in done if isinstance(item, Outcome)}

    def _run(self, state: AgentState, runtime: Runtime[RunContext]) -> tuple[Run, int | None]:
        """Return the run and its fence: handed in by a worker, or made from the message by hand."""
        context: RunContext | None = runtime.context
        if context is not None:
            return context.run, context.fence
        first = next(m for m in reversed(state["messages"]) if isinstance(m, HumanMessage))
        run_id = history.run_of(first)
        if run_id is not None:
            with self.ledger.database.read() as tx:
                return turns.find(tx, run_id), None
        messages = state["messages"]
        return caller.run_of(messages, ledger=self.ledger, program=self.program, person=self.person), None

    def _calls(self, state: AgentState, run: Run) -> list[ToolCall | Faulty]:
        messages = state["messages"]
        number = history.ai_messages(messages)
        return read_calls(_newest(messages), run_id=run.id, number=number, tools=self.tools)

    def _question(
        self, run: Run, state: AgentState, found: Sequence[ToolCall | Faulty], *, fence: int | None
    ) -> Question:
        return Question(
            run_id=run.id,
            thread_id=run.thread_id,
            program=self.program,
            message=history.ai_messages(state["messages"]),
            calls=tuple(call for call in found if isinstance(call, ToolCall)),
            tools=self.tools,
            fence=fence,
        )

    def _payload(self, review: Review, *, refused: str | None) -> dict[str, Any]:
        return caller.question(self.ledger, review, refused=refused, address=self.address(review.id))

    def _notes(self, run: Run, messages: Sequence[BaseMessage]) -> list[HumanMessage]:
        """Return what became known of earlier calls since the last turn."""
        with self.ledger.database.write() as tx:
            answers = ledger_rows.late_answers_for(tx, run.id, thread_id=run.thread_id)
        told = {message.id for message in messages}
        notes = [history.note(text, note_id=f"{answer_id}/note") for answer_id, text in answers.items()]
        return [note for note in notes if note.id not in told]

    def _answers(
        self, run: Run, state: AgentState, found: Sequence[ToolCall | Faulty], outcomes: Mapping[str, Outcome]
    ) -> dict[str, Any]:
        """Return the one update that answers a message: what ran in it, and every result in call order."""
        message, number = _newest(state["messages"]), history.ai_messages(state["messages"])
        proposed = [call for call in found if isinstance(call, ToolCall)]
        changed = any(
            history.was_changed(call, outcomes[call.key]) for call in proposed if call.key in outcomes
        )
        secret = self._secret_parts(run, number) if changed else {}
        answers = [
            history.answer(call, None, to=message)
            if isinstance(call, Faulty)
            else history.answer(call, outcomes.get(call.key), to=message, secret=secret.get(call.key, ()))
            for call in found
        ]
        as_it_ran = history.rewritten(message, proposed, outcomes)
        results = history.in_call_order(answers, of=message)
        return {"messages": [*([as_it_ran] if as_it_ran is not None else []), *results], "refused": ""}

    def _secret_parts(self, run: Run, number: int) -> dict[str, tuple[str, ...]]:
        """Return what was secret in the calls of a message when people were asked about them."""
        with self.ledger.database.read() as tx:
            rounds = reviews.of_message(tx, run.id, number)
        return {call.key: call.verdict.secret for review in rounds for call in review.calls}

    def _outcome_of(self, run_id: str, number: int, place: int) -> Outcome | None:
        return self.execution.ended([key := f"{run_id}/{number}/{place}"]).get(key)


def bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable[Any, Any]:
    """Return the model with its tools; one without any needs no binding."""
    return model.bind_tools(list(tools)) if tools else model


def _after_model(state: AgentState) -> Literal["human_review", "__end__"]:
    last = state["messages"][-1]
    return "human_review" if isinstance(last, AIMessage) and _has_calls(last) else "__end__"


def _newest(messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the last message of the model."""
    return next(message for message in reversed(messages) if isinstance(message, AIMessage))


def _has_calls(message: AIMessage) -> bool:
    return bool(message.tool_calls or message.invalid_tool_calls)


def _closed_off(message: AIMessage, run: Run) -> list[BaseMessage]:
    """Answer the calls of a message that came at the limit, and say that the turn ends."""
    found = [Faulty(call["id"] or "", call["name"] or "", LIMIT_REACHED) for call in message.tool_calls]
    found += [
        Faulty(call["id"] or "", call["name"] or "", LIMIT_REACHED) for call in message.invalid_tool_calls
    ]
    return [
        *history.in_call_order([history.answer(call, None, to=message) for call in found], of=message),
        AIMessage(CLOSING, id=f"{run.id}/closing"),
    ]
