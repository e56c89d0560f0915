"""What a model wrote beside the calls of a review: a claim to be read with care, kept in the checkpoints."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearance.review import Review
    from clearance.workspace import Clearance


def model_text(c: "Clearance", review: "Review") -> str | None:
    """Return the text of the AI message whose calls the review is about; None when there is none to be had.

    It is read from the workspace's own checkpoints, so a graph with a checkpointer of its own has none here.
    """
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, StateGraph

    from clearance.adapters import history
    from clearance.adapters.langgraph import AgentState

    reader = StateGraph(AgentState)
    reader.add_node("read", lambda state: state)
    reader.add_edge(START, "read")
    graph = reader.compile(checkpointer=c.checkpointer())
    state = graph.get_state({"configurable": {"thread_id": review.thread_id}})
    messages = state.values.get("messages", [])
    begins = [at for at, message in enumerate(messages) if message.id == history.input_id(review.run_id)]
    if not begins:
        return None
    said = [message for message in messages[begins[0] :] if isinstance(message, AIMessage)]
    if len(said) < review.message:
        return None
    return said[review.message - 1].text or None
