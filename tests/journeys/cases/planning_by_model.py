"""The planner of the cases: a model that is scripted, and writes down what it was told.

Its first proposal for each version has a fault, so that it can be seen that every version went through the
plan's checks: the fault comes back to it, and only then does it propose what fits.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from tests.journeys.cases.fixture_tools import write_line

PLANNER = "scripted-planner"
PLANNED = "planned"
METHOD = "gc-profile"
OBJECTIVE = "base composition"
"""Short runs: an objective that few methods serve."""
NARROWEST, STEP, FAULTY = 100, 10, -1


@dataclass(frozen=True)
class Told:
    """What the planner was told once: for which run, the wish, and what was wrong with its last proposal."""

    gene: str
    objective: str
    comment: str
    replaces: bool
    correction: str


def read_told(folder: Path, objective: str) -> list[Told]:
    """Return what the planner was told for the run with this objective, in its order."""
    file = folder / PLANNED
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [told for line in lines if (told := Told(**json.loads(line))).objective == objective]


class Planner(BaseChatModel):
    """The planning model: a fault first, then a plan that differs from the one before."""

    _folder: Path = PrivateAttr()

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    @property
    def _llm_type(self) -> str:
        return PLANNER

    def bind_tools(self, tools: Any, **_: Any) -> "Planner":
        """There is one tool, and it is known."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        question = json.loads(str(messages[1].content))
        told = _told(question, messages[2:])
        write_line(self._folder / PLANNED, told.__dict__)
        before = [step["params"]["window"] for step in question.get("current_plan", [])]
        window = max(before, default=NARROWEST) + STEP if told.correction else FAULTY
        step = {"method": METHOD, "params": {"window": window}, "rationale": told.comment or "It fits."}
        call = {"name": "propose_plan", "args": {"steps": [step]}, "id": "p", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


def _told(question: dict[str, Any], later: Sequence[BaseMessage]) -> Told:
    corrections = [str(message.content) for message in later if message.type == "tool"]
    return Told(
        gene=question["gene"],
        objective=question["objective"],
        comment=question.get("wishes", {}).get("comment", ""),
        replaces="current_plan" in question,
        correction=corrections[-1] if corrections else "",
    )
