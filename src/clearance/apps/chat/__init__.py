"""The chat: an agent whose risky calls wait for a person, and the conversation around it."""

from clearance.adapters.history import unanswered_tool_calls
from clearance.apps.chat.agent import (
    build_human_in_the_loop_agent,
    create_reviewed_agent,
    make_human_review,
)
from clearance.apps.chat.reviewed import Reply, ReviewedChat, ReviewedChatUseCase
from clearance.apps.chat.validation import validate_decisions
from clearance.payload import build_review_request

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
