"""A small workspace that could be somebody's: agents ask, people decide, a plan and a conversation wait."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from clearance import turns
from clearance.apps.chat import ReviewedChat
from clearance.apps.chat.demo import REQUEST, support_agent
from clearance.apps.chat.models import OFFLINE, open_model
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.runs import ResearchRuns
from clearance.asking import Question
from clearance.assembly import new_id
from clearance.channel import ChannelKind, Serves
from clearance.credential import EVERY_SCOPE, Scope
from clearance.keyring import add_key, new_credential
from clearance.notices.channels import add_channel
from clearance.notices.targets import Allowed
from clearance.passwords import hashed
from clearance.people import Kind, Person, Role
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.remembering import draft
from clearance.review import Review
from clearance.standing import Terms
from clearance.store import passwords, people
from clearance.toolcall import Tool, ToolCall
from clearance.web import following
from clearance.workspace import Clearance
from tests.notices.visiting import link_to
from tests.web.talking import until

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
_ALL = (*DEFAULT_DECISIONS, DecisionType.RESPOND)
_FINANCE = (Threshold(approve=2, group="finance"),)
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "pay_invoice": {"invoice": TEXT, "holder": TEXT, "account": TEXT, "amount": NUMBER, "currency": TEXT},
    "refund": {"order": TEXT, "amount": NUMBER, "reason": TEXT},
    "send_email": {"to": TEXT, "subject": TEXT, "body": TEXT},
    "add_note": {"order": TEXT, "text": TEXT},
    "delete_records": {"table": TEXT, "older_than_days": NUMBER},
}
_TOOLS = {
    name: Tool(
        name=name,
        schema={"type": "object", "properties": dict(shape), "required": list(shape)},
        run=lambda *_: "done",
    )
    for name, shape in _SHAPES.items()
}
POLICY = Policy(
    rules=(
        Rule(
            "pay_invoice",
            name="new payee",
            risk=Risk.CRITICAL,
            who=_FINANCE,
            reason=True,
            expire=timedelta(minutes=14),
            flags={"account": "never paid before", "amount": "over 10,000"},
            summary="Pay {amount} {currency} to {holder}, account {account}",
        ),
        Rule(
            "delete_records",
            name="data is deleted",
            risk=Risk.HIGH,
            expire=timedelta(hours=4),
            summary="Delete records of {table} older than {older_than_days} days",
        ),
        Rule(
            "refund",
            name="refunds",
            risk=Risk.HIGH,
            decisions=_ALL,
            expire=timedelta(hours=2),
            flags={"amount": "more than the order"},
            summary="Refund {amount} EUR for order {order}",
        ),
        Rule("send_email", name="mail to customers", decisions=_ALL, summary="Write to {to}: {subject}"),
        Rule("add_note", name="notes", risk=Risk.LOW, summary="Add a note to order {order}"),
    )
)
_MAIL = '{{"to":"{0}@example.org","subject":"Your order {1}","body":"Your order {1} leaves today."}}'
_PAY = (
    '{"invoice":"2026-774","holder":"Arang Nusantara","account":"ID-774-ARANG",'
    '"amount":48250.0,"currency":"EUR"}'
)


@dataclass(frozen=True)
class Office:
    """What stands in the workspace, by the addresses of its pages."""

    critical: Review
    edited: Review
    conversation: str
    plan: str
    report: str
    link: str


def furnish(where: Clearance, research: ResearchRuns) -> Office:
    """Fill a workspace whose worker runs. `ann` is its first person."""
    _people(where)
    plan = _plan(research)
    report = _report(research)
    _settings(where)
    thread = _conversation(where)
    _decide(where, _ask(where, ("add_note", '{"order":"4711","text":"Called back."}')), "approve")
    _decide(where, _ask(where, ("send_email", _MAIL.format("eve", "4698"))), "reject", message="Not yet.")
    refund = '{"order":"4702","amount":129.0,"reason":"Arrived broken"}'
    edited = _ask(where, ("refund", refund))
    change = {"name": "refund", "args": {"order": "4702", "amount": 119.0, "reason": "Arrived broken"}}
    answer = {"type": "edit", "edited_action": change, "message": "Without the shipping."}
    where.gate.decide(edited.id, [answer], by="ben", version=edited.version)
    for name, order in (("ana", "4711"), ("budi", "4715"), ("citra", "4720")):
        mail = _ask(where, ("send_email", _MAIL.format(name, order)))
    terms = Terms(20, timedelta(days=7), free=("subject", "body"), when='args.to.endsWith("@example.org")')
    draft(where.database, mail.id, terms, by="cleo", rule_id="mails", call=None)
    for order in ("4711", "4720"):
        _ask(where, ("add_note", f'{{"order":"{order}","text":"Asked for a later delivery."}}'))
    _ask(where, ("refund", '{"order":"4713","amount":89.9,"reason":"Wrong size"}'))
    _ask(where, ("delete_records", '{"table":"visits","older_than_days":400}'), by="ops-agent")
    critical = _ask(
        where, ("pay_invoice", _PAY), by="finance-agent", message="Pay what is due this week, please."
    )
    _decide(where, critical, "approve", by="ben")
    link = f"/l/{link_to(where, mail, person='ben')}"
    return Office(critical, edited, f"/chat/{thread}", f"/pipeline/{plan}", f"/pipeline/{report}", link)


def _people(where: Clearance) -> None:
    with where.database.write() as tx:
        now = where.database.now(tx)
        for name, role in (("ben", Role.REVIEWER), ("cleo", Role.REVIEWER), ("dan", Role.OPERATOR)):
            groups = () if name == "dan" else ("finance",)
            people.add(tx, Person(name, name.capitalize(), role=role, groups=groups), now=now)
        for agent in ("support-agent", "finance-agent", "ops-agent"):
            people.add(tx, Person(agent, agent, kind=Kind.AGENT, behind="dan"), now=now)
        passwords.put(tx, "ben", hashed("a long way over the hills"), now=now)


def _ask(
    where: Clearance,
    call: tuple[str, str],
    *,
    by: str = "support-agent",
    message: str = "See to what came in today.",
) -> Review:
    known = Program("office", tools=_TOOLS, policy=POLICY)
    if where.programs.get(known.name) is None:
        where.register(known)
    run = turns.start(where.ledger, new_id(), message, run_id=new_id(), program=known.name, by=by)
    tool, arguments = call
    proposed = (ToolCall(f"{run.id}/1/0", tool, arguments),)
    review = where.gate.ask(Question(run.id, run.thread_id, known.name, 1, proposed, known.tools))
    assert review is not None
    return review


def _decide(where: Clearance, review: Review, answer: str, *, by: str = "ann", message: str = "") -> None:
    said = {"type": answer, "message": message} if message else {"type": answer}
    where.gate.decide(review.id, [said], by=by, version=review.version)


def _conversation(where: Clearance) -> str:
    ReviewedChat(support_agent(where, open_model(OFFLINE)))
    run = turns.start(where.ledger, "order-4711", REQUEST, run_id=new_id(), program="chat", by="dan")
    until(_has_stopped(where, run.id))
    return run.thread_id


def _plan(research: ResearchRuns) -> str:
    research.start(ResearchRequest("BRCA1", offline=True), run_id="brca1-2026", by="dan")
    until(lambda: research.waiting("brca1-2026") is not None)
    return "brca1-2026"


def _report(research: ResearchRuns) -> str:
    run = "tp53-2026"
    research.start(ResearchRequest("TP53", offline=True), run_id=run, by="dan")
    until(lambda: research.waiting(run) is not None)
    research.decide(run, HITLDecision.APPROVE, by="ben")
    research.wait_for(run, wait=120)
    return run


def _settings(where: Clearance) -> None:
    """Let the workspace have channels, and keys for programs."""
    for name, address, serves, whom in (
        ("mail to ben", "mailtos://desk:secret@mail.example.org?to=ben@example.org", Serves.PERSON, "ben"),
        (
            "the finance room",
            "slack://T1AAAAAAA/B1AAAAAAA/cccccccccccccccccccccccc/#finance",
            Serves.GROUP,
            "finance",
        ),
    ):
        add_channel(
            where.database, name, kind=ChannelKind.APPRISE, address=address, serves=serves,
            whom=whom, by="ann", id=new_id(), allowed=Allowed(),
        )  # fmt: skip
    for name, whose, scopes in (
        ("the support desk", "support-agent", {Scope.PROPOSE}),
        ("monitoring", "dan", set[Scope]()),
        ("laptop", "ann", EVERY_SCOPE),
    ):
        add_key(where.database, name, person=whose, by="ann", made=new_credential(), scopes=scopes)


def _has_stopped(where: Clearance, run_id: str) -> Callable[[], bool]:
    return lambda: following.standing(where, run_id).has_stopped
