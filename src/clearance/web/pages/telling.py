"""Telling: what an entry of the trail says, in a sentence for people, with links to what it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlalchemy import Connection

from clearance.audit import AuditKind, Entry
from clearance.policy import DecisionType
from clearance.store import calls
from clearance.toolcall import canonical

SENTENCES: Mapping[str, str] = {
    AuditKind.RUN_QUEUED: "{actor} started run {subject}",
    AuditKind.RUN_RESUMED: "{actor} went on with run {subject}",
    AuditKind.RUN_WAITING: "run {subject} waits for people",
    AuditKind.RUN_DONE: "run {subject} ended as it should",
    AuditKind.RUN_FAILED: "run {subject} ended with an error",
    AuditKind.RUN_CANCELLED: "{actor} ended run {subject} early",
    AuditKind.REVIEW_ASKED: "{actor} asked for review {subject}",
    AuditKind.REVIEW_CLAIMED: "{actor} is looking at review {subject}",
    AuditKind.REVIEW_RELEASED: "{actor} is no longer looking at review {subject}",
    AuditKind.REVIEW_REMINDED: "people were reminded of review {subject}",
    AuditKind.REVIEW_ESCALATED: "review {subject} was escalated: more people may decide it",
    AuditKind.REVIEW_DECIDED: "{actor} decided on review {subject}",
    AuditKind.REVIEW_SETTLED: "review {subject} is settled: nothing of it waits any more",
    AuditKind.REVIEW_EXPIRED: "nobody decided review {subject} in time",
    AuditKind.REVIEW_WITHDRAWN: "review {subject} was withdrawn",
    AuditKind.REVIEW_INVALIDATED: "review {subject} no longer fits, and is asked again",
    AuditKind.CLEARANCE_MINTED: "call {subject} was cleared: it may run once, exactly as it was shown",
    AuditKind.CLEARANCE_USED: "the clearance of call {subject} was used: it is about to start",
    AuditKind.CLEARANCE_VOIDED: "the clearance of call {subject} was taken back unused",
    AuditKind.CALL_HELD: "call {subject} is held for a decision",
    AuditKind.CALL_STARTED: "{actor} started call {subject}",
    AuditKind.CALL_EXECUTED: "call {subject} was executed",
    AuditKind.CALL_FAILED: "call {subject} failed",
    AuditKind.CALL_REJECTED: "call {subject} was rejected and did not run",
    AuditKind.CALL_RESPONDED: "a person’s answer stands for call {subject}, which did not run",
    AuditKind.CALL_BLOCKED: "call {subject} was blocked and did not run",
    AuditKind.CALL_UNCERTAIN: "nobody knows whether call {subject} happened",
    AuditKind.CALL_LATE: "the result of call {subject} came after all",
    AuditKind.POLICY_ACTIVATED: "{actor} activated a policy for {subject}",
    AuditKind.STANDING_RULE_DRAFTED: "{actor} drafted standing rule {subject}",
    AuditKind.STANDING_RULE_APPROVED: "{actor} approved standing rule {subject}",
    AuditKind.STANDING_RULE_ACTIVATED: "standing rule {subject} is used from now on",
    AuditKind.STANDING_RULE_USED: "standing rule {subject} cleared a call",
    AuditKind.STANDING_RULE_REVOKED: "{actor} revoked standing rule {subject}",
    AuditKind.STANDING_RULE_EXPIRED: "standing rule {subject} is over",
    AuditKind.AGENT_PARKED: "agent {subject} proposed too much and was parked",
    AuditKind.AGENT_RESUMED: "{actor} let agent {subject} go on",
    AuditKind.PERSON_ADDED: "{actor} added {subject}",
    AuditKind.PERSON_DISABLED: "{actor} disabled {subject}",
    AuditKind.PERSON_ENABLED: "{actor} enabled {subject}",
    AuditKind.PERSON_ROLE_CHANGED: "{actor} changed the role of {subject}",
    AuditKind.PERSON_GROUPS_CHANGED: "{actor} changed the groups of {subject}",
    AuditKind.PERSON_INVITED: "{actor} made a one-time link for {subject}",
    AuditKind.PERSON_JOINED: "{actor} joined {subject} with who they are at the identity provider",
    AuditKind.PERSON_PASSWORD_SET: "{actor} set the password of {subject}",
    AuditKind.PERSON_SIGNED_IN: "{subject} signed in",
    AuditKind.PERSON_SIGNED_OUT: "{subject} signed out",
    AuditKind.PERSON_SIGN_IN_FAILED: "a wrong password was given for {subject}",
    AuditKind.SESSION_REVOKED: "{actor} ended session {subject}",
    AuditKind.WORKSPACE_MODE_CHANGED: "{actor} changed who may decide their own requests",
    AuditKind.KEY_ADDED: "{actor} added key {subject}",
    AuditKind.KEY_REVOKED: "{actor} revoked key {subject}",
    AuditKind.CHANNEL_ADDED: "{actor} added channel {subject}",
    AuditKind.CHANNEL_ENABLED: "{actor} enabled channel {subject}",
    AuditKind.CHANNEL_DISABLED: "{actor} disabled channel {subject}",
    AuditKind.CHANNEL_REMOVED: "{actor} removed channel {subject}",
    AuditKind.NOTICE_UNDELIVERED: "a message could not be delivered by channel {subject}",
    AuditKind.THREAD_REDACTED: "{actor} removed the values of thread {subject}",
    AuditKind.WORKSPACE_RESTORED: "{actor} restored the workspace from a backup",
}
"""What each kind says. A kind that is not here was written by a newer version, and is shown as it is."""
UNKNOWN = "{actor} · {subject}"
SAID: Mapping[str, str] = {
    DecisionType.APPROVE: "approved",
    DecisionType.EDIT: "approved with edits",
    DecisionType.REJECT: "rejected",
    DecisionType.RESPOND: "answered in its place",
    DecisionType.REVISE: "sent it back",
}
"""What somebody did who decided so."""


@dataclass(frozen=True)
class Part:
    """A part of a sentence: words of ours, or (`name`) what the entry calls something."""

    text: str
    name: bool = False
    href: str | None = None


@dataclass(frozen=True)
class Told:
    """An entry as a page tells it. `facts` is what else it says, as JSON; empty when it says no more."""

    entry: Entry
    parts: tuple[Part, ...]
    facts: str

    @property
    def unknown(self) -> bool:
        """Whether this version has no sentence for it."""
        return self.entry.kind not in SENTENCES


def told(tx: Connection, entries: Sequence[Entry]) -> list[Told]:
    """Return entries as a page tells them, with few queries for all."""
    keys = {each.subject for each in entries if _family(each) in ("call", "clearance")}
    run_ids = {key: row.run_id for key, row in calls.rows(tx, keys).items()} if keys else {}
    return [_told(each, run_ids) for each in entries]


def said(decision: str) -> str:
    """Return what somebody did who decided so; a word of a newer version as it is."""
    return SAID.get(decision, decision)


def decided(entry: Entry) -> str:
    """Return what an entry about a decision says was decided, each thing once."""
    return ", ".join(
        dict.fromkeys(said(str(each.get("type", ""))) for each in entry.facts.get("decisions", ()))
    )


def _told(entry: Entry, run_ids: Mapping[str, str]) -> Told:
    sentence = SENTENCES.get(entry.kind, UNKNOWN)
    names = {"actor": Part(entry.actor, name=True), "subject": _subject(entry, run_ids)}
    parts = []
    for piece in sentence.replace("}", "{").split("{"):
        if piece:
            parts.append(names.get(piece) or Part(piece))
    if entry.kind == AuditKind.REVIEW_DECIDED and (what := decided(entry)):
        parts.append(Part(f": {what}"))
    return Told(entry, tuple(parts), canonical(dict(entry.facts)) if entry.facts else "")


def _subject(entry: Entry, run_ids: Mapping[str, str]) -> Part:
    href: str | None = None
    match _family(entry):
        case "run":
            href = f"/runs/{quote(entry.subject)}"
        case "review":
            href = f"/reviews/{quote(entry.subject)}"
        case "call" | "clearance" if entry.subject in run_ids:
            href = f"/runs/{quote(run_ids[entry.subject])}"
    return Part(entry.subject, name=True, href=href)


def _family(entry: Entry) -> str:
    return entry.kind.partition(":")[0]
