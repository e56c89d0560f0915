"""The reviewed agent on the real clients of providers, and `llmock` as the providers, on loopback."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from llmock.pytest_plugin import LLMock

import clearance
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.chat.models import open_model
from clearance.policy import DecisionType, Effect, Policy, Rule
from clearance.settings import Settings
from clearance.workspace import Clearance
from tests.apps.conftest import Desk
from tests.databases import Databases
from tests.providers.history import Body, Check, anthropic_faults, chat_faults, responses_faults


@dataclass(frozen=True)
class Wire:
    """One of the formats: the model that speaks it, the provider behind it, and the check of histories."""

    name: str
    model: str
    provider: str
    faults: Check
    history: str

    def results(self, body: Body) -> list[str]:
        """Return the texts of all results of calls in a request, in their order."""
        found: list[str] = []
        for item in body[self.history]:
            if item.get("role") == "tool":
                found.append(item["content"])
            elif item.get("type") == "function_call_output":
                found.append(item["output"])
            elif isinstance(item.get("content"), list):
                blocks = (block for block in item["content"] if block.get("type") == "tool_result")
                found += [_plain(block["content"]) for block in blocks]
        return found


CHAT = Wire("chat", "openai:gpt-4o", "openai", chat_faults, "messages")
# OpenAI's client takes this model to the other interface by itself.
RESPONSES = Wire("responses", "openai:gpt-5-pro", "openai", responses_faults, "input")
ANTHROPIC = Wire("anthropic", "anthropic:claude-sonnet-4-6", "anthropic", anthropic_faults, "messages")
WIRES = (CHAT, RESPONSES, ANTHROPIC)

POLICY = Policy(rules=(Rule("pay", decisions=tuple(DecisionType(name) for name in
                       ("approve", "edit", "reject", "respond"))),), default=Effect.ALLOW)  # fmt: skip


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each of the three formats."""
    found: Wire = request.param
    return found


@pytest.fixture(params=[True, False], ids=["streamed", "at-once"])
def streamed(request: pytest.FixtureRequest) -> bool:
    """Whether the provider's answer comes in pieces."""
    return bool(request.param)


@pytest.fixture
def provider(llmock: LLMock) -> Iterator[LLMock]:
    """A provider of all formats. After the test every history that it was sent is checked."""
    yield llmock
    checks = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/anthropic/v1/messages": ANTHROPIC}
    for record in llmock.requests:
        assert checks[record.path].faults(record.body) == [], record.body


@pytest.fixture
def desk() -> Desk:
    """The tools of one test."""
    return Desk()


@pytest.fixture
def workspace(databases: Databases, tmp_path: Path) -> Iterator[Clearance]:
    """An open workspace with a worker; what goes over the wire does not depend on the database."""
    url = databases.migrated("sqlite", tmp_path)
    with clearance.open(url, home=tmp_path, person="ann") as opened:
        yield opened


Open = Callable[..., ReviewedChat]


@pytest.fixture
def open_chat(workspace: Clearance, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Open:
    """A call that returns the chat on the model of a wire, opened from the settings at this address."""

    def opened(wire: Wire, address: str, *, streamed: bool = True) -> ReviewedChat:
        model = opened_model(wire, address, monkeypatch)
        model.disable_streaming = not streamed
        return chat_on(model, workspace, desk)

    return opened


def opened_model(wire: Wire, address: str, patch: pytest.MonkeyPatch) -> BaseChatModel:
    """Return the model as an installation opens it: by the settings in its environment."""
    patch.setenv("CLEARANCE_MODEL", wire.model)
    patch.setenv("CLEARANCE_MODEL_BASE_URL", address)
    settings = Settings.read()
    return open_model(settings.model or "", base_url=settings.model_base_url)


def chat_on(model: BaseChatModel, workspace: Clearance, desk: Desk) -> ReviewedChat:
    """Return the reviewed chat on a model: payments wait for people, the other tools run."""
    return ReviewedChat(create_reviewed_agent(model, desk.tools(), using=workspace, policy=POLICY))


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
