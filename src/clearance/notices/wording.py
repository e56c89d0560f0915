"""Wording: what a message says. It names the review, the tools and who asked, and never an argument."""

import re
from dataclasses import dataclass
from typing import Any

from clearance.channel import Event
from clearance.redaction import masked
from clearance.review import Review

_PLAIN = re.compile(r"[^\w .:/@+-]")
_MOST_TOOLS = 5
_TITLES = {
    Event.ASKED: "Waits for a decision",
    Event.REMINDED: "Still waits for a decision",
    Event.ESCALATED: "Now waits for you too",
    Event.UNCERTAIN: "Did it happen?",
    Event.EXPIRED: "Expired: nobody decided in time",
    Event.SETTLED: "Decided",
    Event.FAILED: "A run failed",
    Event.PARKED: "An agent was parked",
}


@dataclass(frozen=True)
class Message:
    """What is sent: to people a title and a body, to servers the facts."""

    title: str
    body: str
    facts: dict[str, Any]


def plain(name: str) -> str:
    """Return a name that came from outside, without what a messenger could take for a command or a link."""
    return _PLAIN.sub("?", name)[:80]


def about_review(
    event: Event, review: Review, *, page: str | None, link: str | None = None, more: int = 0
) -> Message:
    """Return the message about a review. `page` is its address, `link` a personal one that decides."""
    named = [plain(call.tool) for call in review.calls]
    tools = ", ".join(named[:_MOST_TOOLS]) + (" …" if len(named) > _MOST_TOOLS else "")
    lines = [
        f"{plain(review.requester)} asked to run: {tools}",
        f"Risk: {review.risk}",
        f"Until: {review.deadline:%Y-%m-%d %H:%M} UTC" if review.deadline else "Until: no deadline",
        f"Review: {plain(review.id)}",
        f"Arguments: {_left_out(review)}",
        f"Open: {page}" if page else f"Look: clearance show {plain(review.id)}",
    ]
    if link is not None:
        lines += ["", "Approve or reject it here. The address is yours alone, and works once:", link]
    facts = {
        "event": event.value,
        "review_id": review.id,
        "run_id": review.run_id,
        "kind": review.kind.value,
        "status": review.status.value,
        "risk": review.risk.value,
        "tools": [call.tool for call in review.calls],
        "requester": review.requester,
        "expires_at": None if review.deadline is None else review.deadline.isoformat(),
        "url": page,
    }
    return _message(event, f"{review.risk} risk, {tools}", lines, facts=facts, more=more)


def _left_out(review: Review) -> str:
    """Return how much of what is asked stands on the page alone."""
    characters = sum(len(masked(call.arguments, call.verdict.secret)) for call in review.calls)
    secret = sum(len(call.verdict.secret) for call in review.calls)
    parts = f"; {secret} of their parts masked there" if secret else ""
    return f"{characters:,} characters, not in this message{parts}"


def about_run(event: Event, run_id: str, *, page: str | None, more: int = 0) -> Message:
    """Return the message about a run that failed."""
    lines = [f"Run: {plain(run_id)}", f"Open: {page}" if page else "Look: clearance runs"]
    facts = {"event": event.value, "run_id": run_id, "url": page}
    return _message(event, plain(run_id), lines, facts=facts, more=more)


def about_agent(event: Event, agent: str, *, more: int = 0) -> Message:
    """Return the message about an agent that asked too much, and is not listened to."""
    lines = [
        f"Agent: {plain(agent)}",
        "It proposed too much in a minute, and nothing of it runs until it may go on:",
        f"clearance agents resume {plain(agent)}",
    ]
    return _message(event, plain(agent), lines, facts={"event": event.value, "agent": agent}, more=more)


def trial(channel: str) -> Message:
    """Return the message by which somebody sees that a channel works."""
    lines = [f"The channel {plain(channel)} of Clearance works."]
    return Message("Clearance: a test", "\n".join(lines), {"event": "test", "channel": channel})


def _message(event: Event, what: str, lines: list[str], *, facts: dict[str, Any], more: int) -> Message:
    if more:
        lines = [
            *lines,
            "",
            f"{more} more {'waits' if more == 1 else 'wait'}: there were too many to tell each.",
        ]
    return Message(f"{_TITLES[event]}: {what}", "\n".join(lines), {**facts, "more": more})
