"""Drawing a review for a person who has to decide it: what the product knows first, claims of others last."""

from datetime import datetime, timedelta

from rich.console import Console
from rich.text import Text

from clearance.cli.screen import block, heading, line, shown
from clearance.cli.values import draw_arguments, draw_changes
from clearance.deadline import is_over
from clearance.policy import DecisionType, Risk
from clearance.reading import Whole, said_in, summary_of
from clearance.redaction import scrubbed
from clearance.review import Answer, Decision, Review, ReviewedCall, ReviewKind, ReviewStatus, standing

_SHAPES = {
    Risk.CRITICAL: ("▲▲", "bold white on red"),
    Risk.HIGH: ("▲", "bold red"),
    Risk.MEDIUM: ("◆", "yellow"),
    Risk.LOW: ("●", "green"),
}
_LABEL = 15
_JUST_NOW = 5.0


def risk_text(risk: Risk) -> Text:
    """Return a risk as word, shape and colour."""
    shape, style = _SHAPES[risk]
    return Text(f"{shape} {risk.value} risk", style)


def draw_review(console: Console, found: Whole) -> None:
    """Draw a review with its calls, their arguments in full, and everything that was decided."""
    draw_head(console, found)
    for call in found.review.calls:
        draw_call(console, found, call)


def draw_head(console: Console, found: Whole) -> None:
    """Draw which review it is, who asked, and until when it can be decided."""
    review = found.review
    title = risk_text(review.risk).append("  ").append("review ", "not bold").append_text(shown(review.id))
    line(console, title)
    state = Text(review.status.value, "bold").append(f", version {review.version}")
    if review.reason:
        state.append(". ").append_text(shown(review.reason))
    _row(console, "state", state)
    if review.kind is ReviewKind.OUTCOME and review.status is ReviewStatus.PENDING:
        what = "The call was started, and nobody knows whether it happened. Find out, then answer."
        _row(console, "question", Text(what, "bold"))
    _row(console, "asked by", shown(f"{review.requester}, {_when(review.asked_at, found.now)}"))
    _row(console, "thread", shown(review.thread_id))
    if found.claim is not None:
        until = f"{found.claim.until:%H:%M:%S} UTC; others may decide it as well"
        _row(console, "claimed by", shown(f"{found.claim.person}, until {until}"))
    if review.status is ReviewStatus.PENDING or review.deadline is not None:
        _row(console, "deadline", _deadline(review, found.now))


def draw_call(console: Console, found: Whole, call: ReviewedCall) -> None:
    """Draw one call: its arguments, what follows from each decision, why it waits, what was decided."""
    heading(console, Text(f"Call {found.place(call)}  ", "bold").append_text(shown(call.tool, "bold")))
    if found.removed is None:
        draw_arguments(console, call.arguments, flags=call.verdict.flags)
    else:
        line(console, Text(found.removed, "dim"), indent=2)
    if call.edited:
        what = "Changed by a reviewer since it was proposed: see the decisions below."
        line(console, Text(what, "bold yellow"), indent=4)
    console.print()
    if len(found.review.calls) > 1:
        _row(console, "risk", risk_text(call.verdict.risk))
    sentence = summary_of(call) if found.removed is None else None
    if sentence is not None:
        _row(console, "in short", shown(sentence))
    description = found.descriptions.get(call.tool)
    if description:
        _row(console, "what it does", shown(" ".join(description.split())))
    if call.state is Answer.WAITING and found.review.status is ReviewStatus.PENDING:
        for decision in call.verdict.decisions:
            _row(console, f"if {_PARTICIPLES[decision]}", shown(found.consequence(call, decision)))
    _row(console, "why it waits" if found.review.status is ReviewStatus.PENDING else "why asked", _why(call))
    for fault in call.verdict.faults:
        _row(console, "", shown(fault, "yellow"))
    if found.review.status is ReviewStatus.PENDING:
        _draw_standing(console, found, call)
    if call.state is not Answer.WAITING:
        _row(console, "answer", shown(call.state.value, "bold"))
    _draw_decisions(console, found, call)
    _draw_outcome(console, found, call)


def draw_commands(console: Console, review: Review, *, program: str) -> None:
    """Draw the commands that decide a review, each on a line that can be copied. `program` begins them."""
    heading(console, "Decide it")
    for decision in DecisionType:
        allowed = all(decision in call.verdict.decisions for call in review.waiting)
        if allowed and (decision is not DecisionType.EDIT or len(review.waiting) == 1):
            console.print(shown(f"  {command(review, decision, program=program)}"))
    if len(review.waiting) > 1:
        each = "--approve NUMBER --reject NUMBER"
        console.print(shown(f"  {program} decide {review.id}{_version(review)} {each}"))


def command(review: Review, decision: DecisionType, *, program: str) -> str:
    """Return the command that gives one answer to every call of a review that waits."""
    more = {DecisionType.REJECT: ' -m "why"', DecisionType.RESPOND: ' --text "the result"'}
    return f"{program} {decision.value} {review.id}{_version(review)}{more.get(decision, '')}"


def _version(review: Review) -> str:
    return f" --version {review.version}" if review.version > 1 else ""


def _draw_standing(console: Console, found: Whole, call: ReviewedCall) -> None:
    for threshold, have in standing(call, found.people):
        group = f" from {threshold.group}" if threshold.group else ""
        against = f"; {threshold.reject} rejections reject it" if threshold.reject > 1 else ""
        _row(console, "approvals", shown(f"{have} of {threshold.approve}{group}{against}"))
        for each in threshold.also:
            left = each.after - call.elapsed(found.now)
            when = "now" if left <= timedelta(0) else f"in {_span(left.total_seconds())}"
            _row(console, "", shown(f"or people of {each.to}, {when}"))


def _draw_decisions(console: Console, found: Whole, call: ReviewedCall) -> None:
    """Draw who said what, and what each edit changed in the call as it was before it."""
    tool, arguments = call.proposed_tool, call.proposed
    for decision in call.decisions:
        said = shown(f"{decision.by}, {_when(decision.at, found.now)}: ").append(decision.type.value, "bold")
        _row(console, "decided", said)
        if decision.standing is not None:
            _row(console, "", shown(f"in advance, by the standing rule {decision.standing}"))
        _draw_counted(console, decision)
        if decision.message:
            block(console, decision.message, indent=_LABEL + 2)
        if decision.arguments is not None:
            if decision.tool not in (None, tool):
                line(console, shown(f"{tool} → {decision.tool}"), indent=_LABEL + 2)
            draw_changes(console, arguments, decision.arguments, indent=_LABEL + 2)
            tool, arguments = decision.tool or tool, decision.arguments


def _draw_counted(console: Console, decision: Decision) -> None:
    """Draw which thresholds a decision counted for, where that says more than that it counted."""
    for each in decision.counted:
        if each.group is not None:
            stead = f", as one of {each.through}" if each.through else ""
            _row(console, "", shown(f"counts for {each.need} from {each.group}{stead}"))


def _draw_outcome(console: Console, found: Whole, call: ReviewedCall) -> None:
    row = found.ledger.get(call.key)
    if row is None or found.review.status is ReviewStatus.PENDING:
        return
    _row(console, "the call", shown(row.state.value, "bold"))
    if row.result:
        block(console, row.result, indent=_LABEL + 2)


def draw_claims(console: Console, found: Whole, *, model_text: str | None = None) -> None:
    """Draw what people and models wrote, apart from what the product says: claims, and nothing more."""
    said = said_in(found.run)
    if not said and not model_text:
        return
    heading(console, Text("Not checked by anybody: what was written in the conversation", "bold dim"))
    for who, text in ((found.review.requester, said), ("the model", scrubbed(model_text or "", found.words))):
        if text:
            line(console, shown(f"{who} wrote:", "dim"), indent=2)
            block(console, text, indent=2, style="dim")


def _row(console: Console, label: str, text: Text) -> None:
    line(console, text, lead=Text(f"{label:<{_LABEL}}", "dim"), indent=2)


def _why(call: ReviewedCall) -> Text:
    rules = call.verdict.rules
    if not rules:
        return Text("no rule lets it run by itself")
    return shown(f"{'rules' if len(rules) > 1 else 'rule'}: {', '.join(rules)}")


def _deadline(review: Review, now: datetime) -> Text:
    if review.deadline is None:
        return Text("none: it waits until somebody decides")
    over = is_over(review.deadline, now=now)
    left = "over" if over else f"in {_span((review.deadline - now).total_seconds())}"
    return Text(f"{left} ({review.deadline:%Y-%m-%d %H:%M:%S} UTC)", "bold red" if over else "")


def _when(instant: datetime, now: datetime) -> str:
    seconds = (now - instant).total_seconds()
    ago = "just now" if seconds < _JUST_NOW else f"{_span(seconds)} ago"
    return f"{ago} ({instant:%Y-%m-%d %H:%M:%S} UTC)"


def _span(seconds: float) -> str:
    whole = max(int(seconds), 0)
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if whole >= size:
            count = whole // size
            return f"{count} {name}{'s' if count > 1 else ''}"
    return "0 seconds"


_PARTICIPLES = {
    DecisionType.APPROVE: "approved",
    DecisionType.EDIT: "edited",
    DecisionType.REJECT: "rejected",
    DecisionType.RESPOND: "responded",
    DecisionType.REVISE: "revised",
}
