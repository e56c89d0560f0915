"""Taking a call: the transaction that uses up its clearance and says `started`, before the tool is called.

The call is judged by today's policy, and the decisions on it are counted again with today's people. Where
that no longer adds up to an approval, or whoever it would run for is disabled, the call is not run but asked
about again.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from clearance import outcome as words
from clearance import uncertainty
from clearance.asking import refuse, standing_call
from clearance.audit import AuditKind
from clearance.breaker import check_going
from clearance.fingerprint import fingerprint
from clearance.killpoints import at
from clearance.ledger import Ledger, Refused, Taken, Underway, due, outcome_of
from clearance.outcome import FINAL, CallState, Outcome
from clearance.people import SYSTEM, Person, refusal
from clearance.policy import Effect, Verdict, judge
from clearance.review import Answer, Review, ReviewedCall, ReviewKind, tally
from clearance.run import Run, RunState
from clearance.schema import with_defaults
from clearance.standing import may_stand
from clearance.store import audit, calls, people, policies, reviews, runs, standing
from clearance.store.calls import LedgerRow
from clearance.store.origins import origin
from clearance.toolcall import Tool, ToolCall, parse_arguments


def take(
    ledger: Ledger,
    run: Run,
    call: ToolCall,
    *,
    message: int,
    tools: Mapping[str, Tool],
    fence: int | None,
) -> Taken | Outcome | Underway | Refused:
    """Start the call if it may run now; otherwise say how it stands."""
    with ledger.database.write() as tx:
        runs.check_fence(runs.lock_thread(tx, run.thread_id), fence)
        now = ledger.database.now(tx)
        row = calls.row(tx, call.key)
        if row is not None and (row.state in FINAL or row.state is CallState.UNCERTAIN):
            return outcome_of(row)
        if row is not None and row.state is CallState.STARTED:
            return _underway(row, run=run, tools=tools, fence=fence, now=now)
        check_going(tx, run.requester)
        rounds = reviews.of_message(tx, run.id, message, call=call.key)
        standing = standing_call(rounds, call, tools=tools)
        starts = _Start(ledger, tx, run, now=now, fence=fence or 0)
        ended = runs.run(tx, run.id)
        if ended.state is RunState.CANCELLED:
            return starts.refused(
                call, to=CallState.REJECTED, text=words.withdrawn(call.tool, reason=ended.reason or "")
            )
        if standing is None:
            found = starts.allowed(call, tool=tools[call.tool])
        else:
            found = starts.cleared(standing, tool=tools[standing.tool], review=_review_of(rounds, standing))
        at("in-take")
        return found


def take_again(ledger: Ledger, key: str, *, tools: Mapping[str, Tool]) -> Taken | None:
    """Start the second attempt at an uncertain call, for which a person gave a new clearance.

    None: there is none, or it does not stand any more; then people are asked again what became of the call.
    Raises `AgentParkedError`.
    """
    with ledger.database.write() as tx:
        row = calls.row(tx, key)
        tool = tools.get(row.tool) if row is not None else None
        if row is None or tool is None:
            return None
        run = runs.run(tx, row.run_id)
        thread = runs.lock_thread(tx, run.thread_id)
        asked = reviews.of_call(tx, key, kind=ReviewKind.OUTCOME)
        call = asked[-1].call(key) if asked else None
        if call is None or call.state is not Answer.APPROVED or row.state is not CallState.UNCERTAIN:
            return None
        check_going(tx, run.requester)
        now = ledger.database.now(tx)
        starts = _Start(ledger, tx, run, now=now, fence=thread.fence)
        found = starts.again(call, row=row, tool=tool, review=asked[-1])
        at("in-take-again")
        return found


def resume(ledger: Ledger, taken: Taken, *, fence: int | None) -> Taken | None:
    """Take over a started call whose tool may be called again with the same key.

    None when it ended, or when another caller has just taken it over; callers have no fence that says so.
    """
    with ledger.database.write() as tx:
        runs.check_fence(runs.lock_thread(tx, taken.thread_id), fence)
        now = ledger.database.now(tx)
        row = calls.row(tx, taken.key)
        if fence is None and row is not None and row.worker != ledger.worker and not _is_due(row, now=now):
            return None
        values = {**_started(ledger, taken.tool, now=now), "fence": fence or 0}
        started = (CallState.STARTED,)
        if not calls.move(
            tx, taken.key, attempt=taken.attempt, frm=started, to=CallState.STARTED, values=values
        ):
            return None
        facts = {"attempt": taken.attempt, "again": True}
        record_started(tx, taken.key, ledger=ledger, now=now, facts=facts)
        at("in-resume")
        return taken


def let_go(ledger: Ledger, taken: Taken) -> None:
    """Let a started call be taken over at once: its tool came back without an end, to be entered again."""
    with ledger.database.write() as tx:
        runs.lock_thread(tx, taken.thread_id)
        started = (CallState.STARTED,)
        values = {"due_at": ledger.database.now(tx)}
        calls.move(tx, taken.key, attempt=taken.attempt, frm=started, to=CallState.STARTED, values=values)


def record_started(
    tx: Connection, key: str, *, ledger: Ledger, now: datetime, facts: Mapping[str, object]
) -> None:
    """Write the trail's entry of a start."""
    audit.write(tx, AuditKind.CALL_STARTED, key, actor=ledger.worker, now=now, facts=dict(facts))


class _Start:
    """One attempt to start a call, inside its transaction."""

    def __init__(self, ledger: Ledger, tx: Connection, run: Run, *, now: datetime, fence: int) -> None:
        self.ledger = ledger
        self.tx = tx
        self.run = run
        self.now = now
        self.fence = fence

    def allowed(self, call: ToolCall, *, tool: Tool) -> Taken | Outcome | Refused:
        """Start a call that nobody was asked about, if the policy lets it run at once."""
        verdict = self._judge(call.tool, call.arguments, tool=tool)
        if verdict.effect is Effect.DENY:
            return self.refused(call, to=CallState.BLOCKED, text=words.blocked(call.tool))
        if verdict.effect is Effect.HOLD or people.barred(self.tx, self.run.requester) is not None:
            return Refused()
        row = LedgerRow(
            key=call.key,
            run_id=self.run.id,
            tool=call.tool,
            arguments=call.arguments,
            fingerprint="",
            state=CallState.STARTED,
            attempt=1,
            fence=self.fence,
            **_started(self.ledger, tool, now=self.now),
        )
        if not calls.record(self.tx, row):
            # Held in the meantime, or in an earlier round: it is people's to decide.
            return Refused()
        facts = {"attempt": 1, "tool": call.tool, "policy": verdict.policy, "rules": list(verdict.rules)}
        record_started(self.tx, call.key, ledger=self.ledger, now=self.now, facts=facts)
        return self._taken(call.key, tool=tool, arguments=call.arguments)

    def cleared(self, call: ReviewedCall, *, tool: Tool, review: Review) -> Taken | Outcome | Refused:
        """Start a call that people were asked about, if what they said still clears it."""
        if call.state is not Answer.APPROVED:
            return Refused()
        plain = ToolCall(key=call.key, tool=call.tool, arguments=call.arguments)
        verdict = self._judge(call.tool, call.arguments, tool=tool)
        if verdict.effect is Effect.DENY:
            return self.refused(plain, to=CallState.BLOCKED, text=words.blocked(call.tool))
        barred = people.barred(self.tx, self.run.requester)
        if barred is not None:
            return self._ask_again(call, review, reason=f"{barred} is disabled, and nothing starts for them.")
        if verdict.effect is Effect.HOLD and not self._still_approved(call, verdict, review):
            return self._ask_again(call, review, reason="What was decided is not enough any more.")
        exact = fingerprint(plain, run=self.run.id, schema=tool.schema, salt=call.salt)
        used = calls.use(self.tx, call.key, attempt=1, fingerprint=exact, now=self.now)
        if used is None or not calls.move(
            self.tx,
            call.key,
            attempt=1,
            frm=(CallState.CLEARED,),
            to=CallState.STARTED,
            values={**_started(self.ledger, tool, now=self.now), "fence": self.fence},
        ):
            return self._ask_again(call, review, reason="There is no clearance that fits.")
        facts = {"attempt": 1, "clearance": used.id, "fingerprint": exact, "policy": verdict.policy}
        record_started(self.tx, call.key, ledger=self.ledger, now=self.now, facts=facts)
        return self._taken(call.key, tool=tool, arguments=call.arguments)

    def _judge(self, name: str, arguments: str, *, tool: Tool) -> Verdict:
        known = self.ledger.programs.policies(self.run.program)
        policy = policies.active(self.tx, self.run.program, known=known)
        return judge(
            policy,
            name,
            arguments=with_defaults(tool.schema, parse_arguments(arguments)),
            origin=origin(self.tx, policy, run_id=self.run.id),
        )

    def _still_approved(self, call: ReviewedCall, verdict: Verdict, review: Review) -> bool:
        """Whether the recorded decisions, of people who may still decide, meet today's thresholds."""
        through = {item.standing for item in call.decisions if item.standing is not None}
        if through and (may_stand(verdict, kind=review.kind) or standing.revoked(self.tx, through)):
            return False
        known = people.by_id(self.tx, [item.by for item in call.decisions])
        party = people.party(self.tx, review.requester, known=known)
        mode = people.mode(self.tx)
        entitled: dict[str, Person] = {
            name: person
            for name, person in known.items()
            if refusal(
                person,
                requester=party,
                mode=mode,
                operators_only=review.operators_only,
                own=verdict.self_approval,
            )
            is None
        }
        return tally(replace(call, verdict=verdict), entitled) is Answer.APPROVED

    def _ask_again(self, call: ReviewedCall, review: Review, *, reason: str) -> Refused:
        reviews.mark_call(self.tx, review.id, call.key, state=Answer.INVALIDATED)
        calls.void(self.tx, call.key)
        facts = {"review": review.id, "fingerprint": call.fingerprint, "reason": reason}
        audit.write(self.tx, AuditKind.CLEARANCE_VOIDED, call.key, actor=SYSTEM, now=self.now, facts=facts)
        return Refused()

    def again(self, call: ReviewedCall, *, row: LedgerRow, tool: Tool, review: Review) -> Taken | None:
        """Start an uncertain call once more, if what was said about it still clears that."""
        plain = ToolCall(key=call.key, tool=call.tool, arguments=call.arguments)
        verdict = self._judge(call.tool, call.arguments, tool=tool)
        exact = fingerprint(plain, run=self.run.id, schema=tool.schema, salt=call.salt)
        # It is not the policy but somebody's word that lets a call run twice: that word has to count still.
        counting = call.verdict if verdict.effect is Effect.ALLOW else verdict
        stands = (
            verdict.effect is not Effect.DENY
            and people.barred(self.tx, self.run.requester) is None
            and self._still_approved(call, counting, review)
        )
        attempt = row.attempt + 1
        used = (
            calls.use(self.tx, call.key, attempt=attempt, fingerprint=exact, now=self.now) if stands else None
        )
        if used is None:
            self._ask_again(call, review, reason="What was decided does not clear the call any more.")
            uncertainty.ask_again(self.tx, row, run=self.run, now=self.now)
            return None
        values = {**_started(self.ledger, tool, now=self.now), "attempt": attempt, "fence": self.fence}
        frm = (CallState.UNCERTAIN,)
        calls.move(self.tx, call.key, attempt=row.attempt, frm=frm, to=CallState.STARTED, values=values)
        facts = {"attempt": attempt, "clearance": used.id, "fingerprint": exact, "policy": verdict.policy}
        record_started(self.tx, call.key, ledger=self.ledger, now=self.now, facts=facts)
        return Taken(call.key, attempt, self.run.id, self.run.thread_id, tool, row.arguments)

    def refused(self, call: ToolCall, *, to: CallState, text: str) -> Outcome:
        """Give a call that will not run its final state, and return it."""
        refuse(self.tx, call, run_id=self.run.id, to=to, text=text, now=self.now)
        row = calls.row(self.tx, call.key)
        if row is None:
            raise LookupError(f"refused call {call.key} is not in the ledger")
        return outcome_of(row)

    def _taken(self, key: str, *, tool: Tool, arguments: str) -> Taken:
        return Taken(key, 1, self.run.id, self.run.thread_id, tool, arguments)


def _started(ledger: Ledger, tool: Tool, *, now: datetime) -> dict[str, Any]:
    return {"started_at": now, "due_at": due(now, tool), "worker": ledger.worker}


def _underway(
    row: LedgerRow, *, run: Run, tools: Mapping[str, Tool], fence: int | None, now: datetime
) -> Underway:
    return Underway(
        taken=Taken(row.key, row.attempt, run.id, run.thread_id, tools[row.tool], row.arguments),
        worker=row.worker,
        superseded=fence is not None and row.fence < fence,
        overdue=_is_due(row, now=now),
    )


def _is_due(row: LedgerRow, *, now: datetime) -> bool:
    return row.due_at is not None and now >= row.due_at


def _review_of(rounds: list[Review], call: ReviewedCall) -> Review:
    return next(review for review in reversed(rounds) if review.call(call.key) == call)
