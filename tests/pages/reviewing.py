"""Reviews with arguments that are hard to show and to edit, and their form as a browser sends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from httpx2 import Response

from clearance import turns
from clearance.asking import Question
from clearance.assembly import new_id
from clearance.expression import Cel
from clearance.notary import Notary, SigningKey
from clearance.outcome import CallState
from clearance.policy import DEFAULT_DECISIONS, DecisionType, Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.review import Review, ReviewKind
from clearance.store import calls, reviews, runs
from clearance.toolcall import Tool, ToolCall
from clearance.uncertainty import make_uncertain
from clearance.workspace import PRIVATE, Clearance
from tests.pages.site import OWNER, Browser, Site

TEXT = {"type": "string"}
PAYMENT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "account": {"type": "integer", "description": "The account that gets the money."},
        "amount": {"type": "number", "minimum": 0},
        "note": TEXT,
        "code": TEXT,
        "lines": TEXT,
        "urgent": {"type": "boolean"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array", "items": TEXT},
        "by": {"enum": ["bank", "card"]},
        "copy": TEXT,
    },
    "required": ["account", "amount"],
    "additionalProperties": False,
}
ARGUMENTS = (
    '{"account":18446744073709551616,"amount":48250.0,"note":"\\nbegins with an empty line",'
    '"code":"a\\r\\nb","lines":"one\\ntwo","urgent":true,"days":null,"tags":["x","y"],"by":"bank"}'
)
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "pay": PAYMENT,
    "send": {"type": "object", "properties": {"to": TEXT, "body": TEXT}, "required": ["to"]},
    "refund": {"type": "object", "properties": {"amount": {"type": "number"}}},
    "wipe": {"type": "object"},
    "fire": {"type": "object"},
    "open": {
        "type": "object",
        "properties": {"user": TEXT, "pin": {"type": "string", "maxLength": 8, "x-secret": True}},
    },
    "step": {"type": "object"},
    "ship": {"type": "object", "properties": {"boxes": {"type": "integer"}}, "required": ["boxes"]},
}
_ALL = (*DEFAULT_DECISIONS, DecisionType.RESPOND)
POLICY = Policy(
    rules=(
        Rule(
            "pay",
            name="money goes out",
            flags={"account": "new account", "amount": "over 10,000"},
            summary="Pay {amount} to account {account}",
        ),
        Rule("send", decisions=_ALL, name="mail"),
        Rule("refund", reason=True, name="refunds"),
        Rule("wipe", risk=Risk.HIGH, who=(Threshold(approve=2),), name="two people"),
        Rule(
            "step", decisions=(DecisionType.APPROVE, DecisionType.REJECT, DecisionType.REVISE), name="plans"
        ),
        Rule("fire", risk=Risk.CRITICAL, name="no way back"),
        Rule("ship", when=Cel("args.boxes > 100"), risk=Risk.CRITICAL, name="a fleet"),
        Rule("ship", when=Cel("args.boxes > 10"), risk=Risk.HIGH, name="a van"),
        Rule("ship", name="a parcel"),
    )
)
_TOOLS = {
    name: Tool(name=name, schema=schema, run=lambda *_: "done", description=f"{name.capitalize()} it.")
    for name, schema in SCHEMAS.items()
}


def asked(
    where: Clearance,
    *proposed: tuple[str, str],
    by: str = "agent",
    message: str = "Do it.",
    kind: ReviewKind = ReviewKind.CALLS,
) -> Review:
    """Propose calls, as (tool, JSON arguments), in a turn of their own; return the review that waits."""
    known = Program("bank", tools=_TOOLS, policy=POLICY)
    if where.programs.get("bank") is None:
        where.register(known)
    run = turns.start(where.ledger, new_id(), message, run_id=new_id(), program="bank", by=by)
    made = tuple(
        ToolCall(f"{run.id}/1/{place}", tool, arguments)
        for place, (tool, arguments) in enumerate(proposed or (("pay", ARGUMENTS),))
    )
    question = Question(run.id, run.thread_id, "bank", 1, made, known.tools, kind=kind)
    review = where.gate.ask(question)
    assert review is not None
    return review


def uncertain(where: Clearance, review: Review) -> Review:
    """Approve the one call of a review, lose sight of it, and return the review about its outcome."""
    where.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    key = review.calls[0].key
    with where.database.write() as tx:
        found = calls.row(tx, key)
        assert found is not None
        assert calls.use(
            tx,
            key,
            attempt=found.attempt,
            fingerprint=review.calls[0].fingerprint,
            now=where.database.now(tx),
        )
        assert calls.move(
            tx, key, attempt=found.attempt, frm=(CallState.CLEARED,), to=CallState.STARTED, values={}
        )
        started = calls.row(tx, key)
        assert started is not None
        run = runs.run(tx, review.run_id)
        make_uncertain(tx, started, run=run, actor="clearance", now=where.database.now(tx))
        [asked] = reviews.of_call(tx, key, kind=ReviewKind.OUTCOME)
    return asked


def now(where: Clearance, review: Review) -> Review:
    """Return the review as the store has it now."""
    with where.database.read() as tx:
        return reviews.review(tx, review.id)


@dataclass
class Shown:
    """The decision form of a page as the parser of a browser reads it, and the text of the whole page."""

    action: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    values: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, html: str) -> "Shown":
        """Read a page."""
        reader = _Reader()
        reader.feed(html.replace("\r\n", "\n").replace("\r", "\n"))
        return reader.shown

    def sent(self, *button: str, **typed: str) -> list[tuple[str, str]]:
        """Return what a browser sends when a button is pressed, with other texts in some fields.

        `typed` names fields with `__` for what an argument's name cannot hold: `t1__amount` is `t1/amount`.
        """
        changed = {name.replace("__", "/"): text for name, text in typed.items()}
        names = [name for name, _ in self.fields]
        assert not [name for name in changed if name not in names and not name.startswith(("b", "d"))]
        kept = [(name, changed.pop(name, text)) for name, text in self.fields]
        pressed = [button] if button else []
        if pressed:
            assert button in self.buttons, self.buttons
        pairs = [*kept, *changed.items(), *pressed]
        return [(name, text.replace("\r\n", "\n").replace("\n", "\r\n")) for name, text in pairs]


class _Reader(HTMLParser):
    """Reads the form of id `decision`, and every exact value."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = Shown()
        self._in_form = False
        self._area: str | None = None
        self._select: str | None = None
        self._value = False
        self._fresh = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "pre":
            self._value, self._fresh = True, True
            self.shown.values.append("")
        if tag == "form":
            self._in_form = given.get("id") == "decision"
            if self._in_form:
                self.shown.action = given["action"]
        if not self._in_form:
            return
        name = given.get("name", "")
        match tag:
            case "input" if name:
                ticked = given.get("type") not in ("checkbox", "radio") or "checked" in given
                if ticked:
                    self.shown.fields.append((name, given.get("value", "")))
            case "textarea":
                self._area, self._fresh = name, True
                self.shown.fields.append((name, ""))
            case "select":
                self._select = name
            case "option" if self._select is not None:
                first = not self.shown.fields or self.shown.fields[-1][0] != self._select
                if first:
                    self.shown.fields.append((self._select, given.get("value", "")))
                elif "selected" in given:
                    self.shown.fields[-1] = (self._select, given.get("value", ""))
            case "button" if name and "disabled" not in given:
                self.shown.buttons.append((name, given.get("value", "")))

    def handle_data(self, data: str) -> None:
        # The parser of a browser drops a line feed right after these tags.
        text = data.removeprefix("\n") if self._fresh else data
        self._fresh = False
        if self._area is not None:
            name, before = self.shown.fields[-1]
            self.shown.fields[-1] = (name, before + text)
        elif self._value:
            self.shown.values[-1] += text
        self.shown.text += data

    def handle_endtag(self, tag: str) -> None:
        self._fresh = False
        match tag:
            case "textarea":
                self._area = None
            case "select":
                self._select = None
            case "pre":
                self._value = False
            case "form":
                self._in_form = False


def signed_in(site: Site, person: str = OWNER) -> Browser:
    """Give a browser in which somebody is signed in; how they do it is tested elsewhere."""
    browser = site.browser()
    browser.http.cookies.set("clearance", site.session(person).token)
    return browser


def opened(browser: Browser, review: Review, query: str = "") -> Shown:
    """Open the page of a review."""
    answer = browser.get(f"/reviews/{review.id}{query}")
    assert answer.status_code == 200, answer.text
    return Shown.read(answer.text)


def sent(browser: Browser, page: Shown, *button: str, **typed: str) -> Response:
    """Press a button of the form, after typing into some of its fields."""
    return posted(browser, page.action, page.sent(*button, **typed))


def posted(browser: Browser, action: str, pairs: list[tuple[str, str]]) -> Response:
    """Send a form as a browser does, field by field."""
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    return browser.http.post(action, content=urlencode(pairs), headers=headers, follow_redirects=False)


def seal(site: Site) -> None:
    """Number and seal everything, as a worker does."""
    key = SigningKey.load_or_create(site.workspace.home / PRIVATE / "notary.key")
    notary = Notary(site.workspace.database, key)
    while notary.turn():
        pass
    notary.seal_now()
