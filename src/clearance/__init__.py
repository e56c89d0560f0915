"""Clearance: nothing runs but what a person cleared, exactly as cleared, at most once, and never lost.

    with clearance.open("sqlite:///app.db") as c:
        gated = ["send_email"]
        agent = clearance.create_reviewed_agent(model, tools, tools_requiring_approval=gated, using=c)
        chat = clearance.ReviewedChat(agent)
        reply = chat.send_message("thread-1", "Write to Ana.")

Names are loaded when they are first used: importing this package loads no framework and no driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearance.adapters.langchain import ClearanceMiddleware
    from clearance.adapters.plain import cleared
    from clearance.apps.chat import ReviewedChat, create_reviewed_agent
    from clearance.assembly import open_workspace as open
    from clearance.expression import Cel
    from clearance.policy import DecisionType, Effect, Escalation, Policy, Risk, Rule, Threshold, predicate
    from clearance.policy_file import read_policy
    from clearance.workspace import Clearance

__version__ = "0.1.0"

_HOMES = {
    "Cel": ("clearance.expression", "Cel"),
    "Clearance": ("clearance.workspace", "Clearance"),
    "ClearanceMiddleware": ("clearance.adapters.langchain", "ClearanceMiddleware"),
    "DecisionType": ("clearance.policy", "DecisionType"),
    "Effect": ("clearance.policy", "Effect"),
    "Escalation": ("clearance.policy", "Escalation"),
    "Policy": ("clearance.policy", "Policy"),
    "ReviewedChat": ("clearance.apps.chat", "ReviewedChat"),
    "Risk": ("clearance.policy", "Risk"),
    "Rule": ("clearance.policy", "Rule"),
    "Threshold": ("clearance.policy", "Threshold"),
    "cleared": ("clearance.adapters.plain", "cleared"),
    "create_reviewed_agent": ("clearance.apps.chat", "create_reviewed_agent"),
    "open": ("clearance.assembly", "open_workspace"),
    "predicate": ("clearance.policy", "predicate"),
    "read_policy": ("clearance.policy_file", "read_policy"),
}

__all__ = [
    "Cel",
    "Clearance",
    "ClearanceMiddleware",
    "DecisionType",
    "Effect",
    "Escalation",
    "Policy",
    "ReviewedChat",
    "Risk",
    "Rule",
    "Threshold",
    "cleared",
    "create_reviewed_agent",
    "open",
    "predicate",
    "read_policy",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clearance' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
