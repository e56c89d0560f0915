"""The offline model of the demo: deterministic, labelled as no AI, needs no key and no network.

Names are loaded when they are first used: its label can be had without LangChain.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearance.apps.chat.offline.language import Language
    from clearance.apps.chat.offline.model import OfflineChatModel
    from clearance.apps.chat.offline.wording import label

__all__ = ["Language", "OfflineChatModel", "label"]

_HOMES = {"Language": "language", "OfflineChatModel": "model", "label": "wording"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clearance.apps.chat.offline' has no attribute {name!r}")
    return getattr(import_module(f"clearance.apps.chat.offline.{_HOMES[name]}"), name)
