"""Requests for plans on shipped data, without a network, and everything that a check needs."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from clearance.apps.research.http import Mode
from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.plan import Plan
from clearance.apps.research.plan_request import PlanRequest, plan_request
from clearance.apps.research.planner import plan_by_rules
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.literature import find_literature
from clearance.apps.research.sources.sequence import find_sequences
from tests.research.network import Clock, fetcher

CARDS = {card.id: card for card in load_cards()}


@cache
def _found(symbol: str, fasta: bytes | None) -> tuple[Any, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        fetcher(Path(folder), Clock(), mode=Mode.OFFLINE) as fetching,
    ):
        options: dict[str, Any] = {"fetcher": fetching, "endpoints": Endpoints()}
        return find_sequences(symbol, fasta=fasta, **options), find_literature(symbol, **options)


def request(
    symbol: str = "KRAS", objective: str = "", *, fasta: bytes | None = None, **more: Any
) -> PlanRequest:
    """The request of an offline run."""
    sequences, literature = _found(symbol, fasta)
    return plan_request("r1", sequences, literature=literature, objective=objective, **more)


@cache
def plan(symbol: str = "KRAS", objective: str = "") -> Plan:
    """The first version of an offline run's plan."""
    return plan_by_rules(request(symbol, objective))


def step_ids(value: Plan) -> list[str]:
    """The ids of a plan's steps, in their order."""
    return [step.id for step in value.steps]
