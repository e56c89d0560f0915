"""The chat: an agent whose risky calls wait for a person, and the conversation around it.

Names are loaded when they are first used, so that the parts beside the agent cost no LangGraph.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearance.adapters.history import unanswered_tool_calls
    from clearance.apps.chat.agent import (
        build_human_in_the_loop_agent,
        create_reviewed_agent,
        make_human_review,
    )
    from clearance.apps.chat.reviewed import Reply, ReviewedChat, ReviewedChatUseCase
    from clearance.apps.chat.validation import validate_decisions
    from clearance.payload import build_review_request

_HOMES = {
    "Reply": "clearance.apps.chat.reviewed",
    "ReviewedChat": "clearance.apps.chat.reviewed",
    "ReviewedChatUseCase": "clearance.apps.chat.reviewed",
    "build_human_in_the_loop_agent": "clearance.apps.chat.agent",
    "build_review_request": "clearance.payload",
    "create_reviewed_agent": "clearance.apps.chat.agent",
    "make_human_review": "clearance.apps.chat.agent",
    "unanswered_tool_calls": "clearance.adapters.history",
    "validate_decisions": "clearance.apps.chat.validation",
}

__all__ = [
    "Reply",
    "ReviewedChat",
    "ReviewedChatUseCase",
    "build_human_in_the_loop_agent",
    "build_review_request",
    "create_reviewed_agent",
    "make_human_review",
    "unanswered_tool_calls",
    "validate_decisions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clearance.apps.chat' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
