"""Providers of models: which there are, what each needs, and what is said where no model is named."""

from dataclasses import dataclass

OFFLINE = "offline"


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
