"""Payments: an agent whose one tool needs a person, and requests of front ends to it, as recorded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpx2 import Response
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Rule
from clearance.workspace import Clearance
from tests.scripted import ScriptedModel, Step, calls
from tests.web.served import OWNER, Served
from tests.web.talking import Frame, frames

BODIES = Path(__file__).parent / "bodies"
RENT: dict[str, Any] = {"to": "landlord", "amount": 48250.0, "account": 1234567890123456789, "months": 1}


def recorded(name: str) -> dict[str, Any]:
    """Return the body of a request as a front end sends it."""
    found: dict[str, Any] = json.loads((BODIES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def pays(workspace: Clearance, *steps: Step, respond: bool = False) -> list[dict[str, Any]]:
    """Have the workspace's chat say these steps; return the list of what it pays."""
    paid: list[dict[str, Any]] = []

    def pay(to: str, amount: float, account: int, months: int = 1) -> str:
        """Pay somebody."""
        paid.append({"to": to, "amount": amount, "account": account, "months": months})
        return "paid"

    decisions = (*DEFAULT_DECISIONS, DecisionType.RESPOND) if respond else DEFAULT_DECISIONS
    policy = Policy(rules=(Rule("pay", decisions=decisions),))
    agent = create_reviewed_agent(
        ScriptedModel(steps), [StructuredTool.from_function(pay)], policy=policy, using=workspace
    )
    ReviewedChat(agent)
    return paid


def wants(*payments: Mapping[str, Any]) -> AIMessage:
    """Return the model's message that wants these payments."""
    return calls(*(("pay", {**RENT, **each}) for each in payments or ({},)))


@dataclass
class FrontEnd:
    """A front end with the key of somebody, in one thread."""

    served: Served
    who: str = OWNER
    thread: str = "t1"
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        key = self.served.key(self.who)["Authorization"].removeprefix("Bearer ")
        self.headers = {"X-Api-Key": key}

    def post(self, path: str, body: Any) -> Response:
        """Send something about the thread."""
        url = f"/langgraph/threads/{self.thread}/{path}"
        return self.served.http.post(url, json=body, headers=self.headers)

    def stream(self, body: Any) -> Response:
        """Ask for a run, and hear it to its stop."""
        return self.post("runs/stream", body)

    def heard(self, body: Any) -> list[Frame]:
        """Return the frames of a run that is taken."""
        answer = self.stream(body)
        assert answer.status_code == 200, answer.text
        return list(frames(answer))

    def say(self, name: str = "chat-ui-message") -> list[Frame]:
        """Say something, and hear what it comes to."""
        return self.heard(recorded(name))

    def history(self) -> dict[str, Any]:
        """Return how the thread stands, as Agent Chat UI looks at it."""
        [state] = self.post("history", {"limit": 1000}).json()
        assert isinstance(state, dict)
        return state

    def show(self) -> dict[str, Any]:
        """Return the thread, as Agent Inbox looks at it."""
        url = f"/langgraph/threads/{self.thread}"
        found = self.served.http.get(url, headers=self.headers).json()
        assert isinstance(found, dict)
        return found

    def seen(self, name: str) -> dict[str, Any]:
        """Return a recorded body as Agent Chat UI sends it: with the checkpoint of what it shows."""
        checkpoint = {k: v for k, v in self.history()["checkpoint"].items() if k != "thread_id"}
        return {**recorded(name), "checkpoint": checkpoint}

    def waiting(self) -> list[dict[str, Any]]:
        """Return the reviews that wait in the workspace, as its own API tells them."""
        answer = self.served.http.get("/api/v1/reviews", headers=self.served.key())
        found = answer.json()["reviews"]
        assert isinstance(found, list)
        return found
