"""The offline model of the demo: deterministic, labelled as no AI, needs no key and no network."""

from clearance.apps.chat.offline.language import Language
from clearance.apps.chat.offline.model import OfflineChatModel
from clearance.apps.chat.offline.wording import label

__all__ = ["Language", "OfflineChatModel", "label"]
