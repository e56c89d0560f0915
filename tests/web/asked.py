"""Questions: calls that wait for people, and decisions on them, as the tests of the API need them."""

from collections.abc import Mapping
from typing import Any

from httpx2 import Response

from clearance import turns
from clearance.asking import Question
from clearance.assembly import new_id
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.review import Review
from clearance.toolcall import Tool, ToolCall
from clearance.workspace import Clearance
from tests.web.served import OWNER, Served

TEXT = {"type": "string"}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "send": {"type": "object", "properties": {"to": TEXT}, "required": ["to"], "additionalProperties": False},
    "pay": {"type": "object", "properties": {"amount": {"type": "number"}}},
    "wipe": {"type": "object"},
    "note": {"type": "object"},
}
ALL = (*DEFAULT_DECISIONS, DecisionType.RESPOND)
POLICY = Policy(
    rules=(
        Rule("send", decisions=ALL, name="mail"),
        Rule("pay", risk=Risk.HIGH, decisions=ALL, flags={"amount": "money goes out"}, name="money"),
        Rule("wipe", risk=Risk.CRITICAL, who=(Threshold(approve=2),), name="no way back"),
        Rule("note", risk=Risk.LOW, name="small"),
    )
)
_TOOLS = {name: Tool(name=name, schema=schema, run=lambda *_: "done") for name, schema in SCHEMAS.items()}


def ask(
    where: Served | Clearance,
    *calls: tuple[str, str],
    by: str = OWNER,
    thread: str | None = None,
    program: str = "desk",
) -> Review:
    """Propose calls, as (tool, JSON arguments), in a turn of their own; return the review that waits."""
    workspace = where.workspace if isinstance(where, Served) else where
    known = Program(program, tools=_TOOLS, policy=POLICY)
    if workspace.programs.get(program) is None:
        workspace.register(known)
    run = turns.start(workspace.ledger, thread or new_id(), "Do it.", run_id=new_id(), program=program, by=by)
    proposed = tuple(
        ToolCall(f"{run.id}/1/{place}", tool, arguments)
        for place, (tool, arguments) in enumerate(calls or (("send", '{"to":"ann@example.org"}'),))
    )
    review = workspace.gate.ask(Question(run.id, run.thread_id, program, 1, proposed, known.tools))
    assert review is not None
    return review


def decide(
    served: Served, review: Review, *decisions: Mapping[str, Any], by: str = OWNER, version: int | None = None
) -> Response:
    """Decide over HTTP; without decisions, approve."""
    body = {"decisions": list(decisions or [{"type": "approve"}]), "version": version or review.version}
    return served.http.post(f"/api/v1/reviews/{review.id}/decide", json=body, headers=served.key(by))
