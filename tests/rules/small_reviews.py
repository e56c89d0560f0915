"""Small reviews, decided in memory: what is needed to see what a set of decisions makes of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from clearance.decision import check_open, read_decisions, settle
from clearance.errors import InvalidReviewDecisionError
from clearance.people import Kind, Mode, Person, Role
from clearance.policy import DecisionType, Effect, Policy, Risk, Threshold, Verdict, judge
from clearance.review import Answer, Review, ReviewedCall, ReviewKind, ReviewStatus
from clearance.schema import check_arguments, with_defaults
from tests.rules.case_tools import SCHEMAS

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
ALL = tuple(DecisionType)
MAIL = '{"to":"ann@corp.example","subject":"s","body":"b"}'
PAYMENT = '{"account":"A-1","amount_cents":1000}'
FILE = '{"path":"/srv/tmp/a"}'
RITA = Person(id="u-1001", name="Rita", role=Role.REVIEWER)
OMAR = Person(id="u-1002", name="Omar", role=Role.REVIEWER)
LENA = Person(id="u-1003", name="Lena", role=Role.REVIEWER, groups=("lead",))
FAYE = Person(id="u-1005", name="Faye", role=Role.REVIEWER, groups=("finance",))
FRED = Person(id="u-1006", name="Fred", role=Role.OPERATOR, groups=("finance", "lead"))
TOM = Person(id="u-1004", name="Tom", role=Role.REVIEWER)
MALLORY = Person(id="u-1666", name="Mallory", role=Role.VIEWER)
BOT = Person(id="a-1", name="dev-bot", role=Role.ADMIN, kind=Kind.AGENT, behind=TOM.id)
EVERYBODY = {person.id: person for person in (RITA, OMAR, LENA, FAYE, FRED, TOM, MALLORY, BOT)}


def verdict(
    who: Sequence[Threshold] = (Threshold(),),
    *,
    decisions: Sequence[DecisionType] = ALL,
    reason: bool = False,
    rules: Sequence[str] = ("rule",),
) -> Verdict:
    """Return what a policy may say about a call that it holds."""
    return Verdict(
        effect=Effect.HOLD,
        risk=Risk.MEDIUM,
        decisions=tuple(decisions),
        who=tuple(who),
        rules=tuple(rules),
        policy="0" * 16,
        reason=reason,
    )


def call(key: str, *, tool: str = "send_email", arguments: str = MAIL, **given: Any) -> ReviewedCall:
    """Return a call that waits, as it was proposed; `given` goes to its verdict."""
    return ReviewedCall(
        key=key,
        tool_call_id="call_0",
        proposed_tool=tool,
        proposed=arguments,
        tool=tool,
        arguments=arguments,
        schema_hash="",
        salt="00" * 16,
        fingerprint=f"fingerprint of {arguments}",
        verdict=verdict(**given),
    )


def review(*calls: ReviewedCall, **other: Any) -> Review:
    """Return a review of these calls, asked an hour ago."""
    made = Review(
        id="r/1/1",
        run_id="r",
        thread_id="t",
        program="chat",
        kind=ReviewKind.CALLS,
        message=1,
        round=1,
        status=ReviewStatus.PENDING,
        version=1,
        requester=TOM.id,
        asked_at=NOW - timedelta(hours=1),
        deadline=None,
        calls=calls,
    )
    return replace(made, **other)


@dataclass
class Desk:
    """Where people decide a review, one after the other; each sees the version that is current.

    `policy` judges edits. `people` may be changed between two decisions; time goes on by a second each.
    """

    review: Review
    people: Mapping[str, Person] = field(default_factory=lambda: dict(EVERYBODY))
    mode: Mode = Mode.SEPARATE
    party: str = TOM.id
    policy: Policy = field(default_factory=Policy)
    now: datetime = NOW

    def decide(self, payload: object, *, by: Person = RITA, version: int | None = None) -> Review:
        """Take decisions as a client sends them."""
        self.now += timedelta(seconds=1)
        seen = self.review.version if version is None else version
        check_open(self.review, version=seen, now=self.now)
        decisions = read_decisions(payload, self.review, by=by.id, now=self.now)
        self.review = settle(
            self.review,
            decisions,
            by=self.people.get(by.id, by),
            now=self.now,
            version=seen,
            mode=self.mode,
            party=self.party,
            people=self.people,
            revise=self.revise,
        )
        return self.review

    def states(self) -> list[Answer]:
        """Return what the decisions add up to, for each call."""
        return [each.state for each in self.review.calls]

    def revise(self, old: ReviewedCall, tool: str, arguments: str) -> ReviewedCall:
        """Make the next revision of a call, as the gate does."""
        if tool not in SCHEMAS:
            raise InvalidReviewDecisionError(f"There is no tool {tool}.")
        parsed = check_arguments(tool, SCHEMAS[tool], arguments)
        judged = judge(self.policy, tool, arguments=with_defaults(SCHEMAS[tool], parsed))
        return replace(
            old, tool=tool, arguments=arguments, verdict=judged, fingerprint=f"fingerprint of {arguments}"
        )


def approve(key: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an approval as a client sends it."""
    return _decision("approve", key, more)


def reject(key: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a rejection as a client sends it."""
    return _decision("reject", key, more)


def respond(key: str | None = None, message: str = "done by hand", **more: Any) -> dict[str, Any]:
    """Return a result in the tool's place as a client sends it."""
    return _decision("respond", key, {"message": message, **more})


def edit(key: str | None, args: object, *, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an edit as a client sends it."""
    action = {"args": args} if name is None else {"name": name, "args": args}
    return _decision("edit", key, {"edited_action": action, **more})


def _decision(kind: str, key: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": kind, **({} if key is None else {"call": key}), **more}
