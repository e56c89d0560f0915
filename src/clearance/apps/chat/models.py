"""Which model runs: the one that is named. None is ever chosen silently.

offline              fixed rules, no AI, no key (see `clearance.apps.chat.offline`)
PROVIDER:NAME        a model of one of the `PROVIDERS`, through LangChain's `init_chat_model`
openai:NAME          with a base URL: any server that speaks OpenAI's protocol
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from clearance.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

OFFLINE = "offline"
REQUEST_TIMEOUT = 120.0
"""Seconds without a byte of an answer after which a request counts as lost; another try may follow."""


@dataclass(frozen=True)
class Provider:
    """A provider: the extra that installs it, and the variables that may hold its key (none: no key)."""

    extra: str
    langchain: str
    package: str
    keys: tuple[str, ...]


PROVIDERS = {
    "anthropic": Provider("anthropic", "anthropic", "langchain_anthropic", ("ANTHROPIC_API_KEY",)),
    "google": Provider(
        "google", "google_genai", "langchain_google_genai", ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    ),
    "groq": Provider("groq", "groq", "langchain_groq", ("GROQ_API_KEY",)),
    "mistral": Provider("mistral", "mistralai", "langchain_mistralai", ("MISTRAL_API_KEY",)),
    "ollama": Provider("ollama", "ollama", "langchain_ollama", ()),
    "openai": Provider("openai", "openai", "langchain_openai", ("OPENAI_API_KEY",)),
}
NO_MODEL = (
    "No model is set, and none is chosen for you. Name one with --model or CLEARANCE_MODEL: "
    f"PROVIDER:NAME ({', '.join(PROVIDERS)}; the provider's key in its own variable), openai:NAME together "
    "with CLEARANCE_MODEL_BASE_URL for any server that speaks OpenAI's protocol, or offline (fixed rules, "
    "no AI, no key)."
)


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
