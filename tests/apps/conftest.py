"""A reviewed chat on a real database, with tools that count what they did."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

import clearance
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.assembly import Clearance
from tests.scripted import ScriptedModel, Step


class Desk:
    """What the tools did: `mails` and `payments` were really carried out."""

    def __init__(self) -> None:
        self.mails: list[dict[str, Any]] = []
        self.payments: list[dict[str, Any]] = []
        self.cities: list[str] = []

    def tools(self) -> list[BaseTool]:
        """send_email and pay are for review, get_weather is not."""

        @tool
        def send_email(to: str, subject: str, body: str = "") -> str:
            """Send an e-mail."""
            self.mails.append({"to": to, "subject": subject, "body": body})
            return f"sent to {to}"

        @tool
        def pay(account: str, amount_cents: int, memo: str | None = None) -> str:
            """Pay money."""
            self.payments.append({"account": account, "amount_cents": amount_cents, "memo": memo})
            return f"paid {amount_cents}"

        @tool
        def get_weather(city: str) -> str:
            """Tell the weather."""
            self.cities.append(city)
            return f"sunny in {city}"

        get_weather.metadata = {"clearance": {"read_only": True}}
        return [send_email, pay, get_weather]


@pytest.fixture
def desk() -> Desk:
    """The tools of one test."""
    return Desk()


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """An open workspace with a worker, on each database."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann") as opened:
        yield opened


Talk = Callable[..., tuple[ReviewedChat, ScriptedModel]]


@pytest.fixture
def talk(workspace: Clearance, desk: Desk) -> Talk:
    """A call that returns a chat whose model follows a script."""

    def make(*steps: Step, gated: Iterable[str] = ("send_email", "pay"), **more: Any) -> tuple[Any, Any]:
        model = ScriptedModel(steps)
        tools = more.pop("tools", None) or desk.tools()
        if "policy" not in more:
            more["tools_requiring_approval"] = list(gated)
        agent = create_reviewed_agent(model, tools, using=workspace, **more)
        return ReviewedChat(agent), model

    return make
