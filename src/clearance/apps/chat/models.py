"""Which model runs: the one that is named. None is ever chosen silently.

offline              fixed rules, no AI, no key (see `clearance.apps.chat.offline`)
PROVIDER:NAME        a model of one of the `PROVIDERS`, through LangChain's `init_chat_model`
openai:NAME          with a base URL: any server that speaks OpenAI's protocol
"""

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from clearance.errors import SettingsError
from clearance.providers import NO_MODEL, OFFLINE, PROVIDERS, Provider

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["NO_MODEL", "OFFLINE", "PROVIDERS", "check_model", "named_model", "open_model"]

REQUEST_TIMEOUT = 120.0
"""Seconds without a byte of an answer after which a request counts as lost; another try may follow."""


def named_model(given: str | None, setting: str | None, remembered: str | None = None) -> str:
    """Return the name of the model that runs: given, else set, else remembered by a demo's workspace.

    Raises `SettingsError`, naming the ways, when there is none.
    """
    name = (given or setting or remembered or "").strip()
    if not name:
        raise SettingsError(NO_MODEL)
    return name


def open_model(name: str, *, base_url: str | None = None) -> "BaseChatModel":
    """Return the model of this name, ready for its first call. Raises what `check_model` raises."""
    found = check_model(name, base_url=base_url)
    if found is None:
        from clearance.apps.chat.offline import OfflineChatModel

        return OfflineChatModel()
    return _init(found, name.partition(":")[2], base_url=base_url)


def check_model(name: str, *, base_url: str | None = None) -> Provider | None:
    """Return the provider of a model that can be opened here, None for the offline one. Costs no import.

    Raises `SettingsError` when the name means nothing, its package is not installed or its key is missing.
    """
    if name == OFFLINE:
        return None
    provider, _, model = name.partition(":")
    found = PROVIDERS.get(provider)
    if found is None or not model:
        raise SettingsError(f"{name!r} names no model. {NO_MODEL.partition('. ')[2]}")
    if find_spec("langchain") is None or find_spec(found.package) is None:
        raise SettingsError(
            f"Models of {provider} need more packages: pip install 'clearance[{found.extra}]'"
        )
    if found.keys and base_url is None and not any(os.environ.get(key) for key in found.keys):
        raise SettingsError(f"{name} needs its key: set {' or '.join(found.keys)}.")
    return found


def _init(found: Provider, model: str, *, base_url: str | None) -> "BaseChatModel":
    from langchain.chat_models import init_chat_model

    # The client tries once: `adapters.model_calls` is the one place that tries again.
    more: dict[str, Any] = {"max_retries": 0, "timeout": REQUEST_TIMEOUT}
    if found.langchain == "ollama":
        # Its client never retries, and takes its options apart from the model's.
        more = {"client_kwargs": {"timeout": REQUEST_TIMEOUT}}
    if base_url is not None:
        more["base_url"] = base_url
        if found.keys and not any(os.environ.get(key) for key in found.keys):
            # A server of one's own often wants no key, and the client insists on one.
            more["api_key"] = "none"
    try:
        opened: BaseChatModel = init_chat_model(model, model_provider=found.langchain, **more)
    except (ImportError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise SettingsError(f"The model {found.langchain}:{model} cannot be used: {reason}") from error
    return opened
