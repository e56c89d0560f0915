"""The gate: where calls are asked about, decided, withdrawn and let expire. Every door comes through here.

Each verb is one transaction that locks the thread's row first, so that all of them stand in one order; what
it writes (review, decisions, trail, clearances, wake) is there together or not at all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from clearance import claiming
from clearance.asking import Question, ask
from clearance.audit import AuditKind, salted_hash
from clearance.breaker import NO_LIMITS, Limits, forget, watch
from clearance.deadline import is_over
from clearance.decision import check_open, named_calls, read_decisions, settle
from clearance.errors import (
    AgentParkedError,
    ConflictError,
    Fault,
    ForbiddenError,
    FreshSignInError,
    InvalidReviewDecisionError,
    NoPendingReviewError,
    NotFoundError,
    ReviewConflictError,
)
from clearance.fingerprint import fingerprint
from clearance.killpoints import at
from clearance.once import Once
from clearance.once import claim as claim_once
from clearance.once import keep as keep_once
from clearance.once import look as look_once
from clearance.people import SYSTEM, Kind, Person, Role, has_role, may_see
from clearance.policy import DecisionType, Risk, judge
from clearance.program import Programs
from clearance.redaction import secrets_in, unmasked
from clearance.remembering import expire
from clearance.reminding import remind
from clearance.review import Decision, Review, ReviewedCall, ReviewKind, ReviewStatus, closed
from clearance.schema import check_arguments, with_defaults
from clearance.settlement import Wake, close_calls, settle_calls
from clearance.store import audit, claims, people, policies, reviews, runs
from clearance.store.claims import Claim
from clearance.store.database import Database
from clearance.store.origins import origin
from clearance.toolcall import ToolCall
from clearance.tracing import about_run, in_run

SWEEP_LIMIT = 100


class Gate:
    """The verbs on reviews. `new_id` makes fresh ids; `wake` asks for a segment in the same transaction.

    `pace` is asked before each decision, with the person's id: it may raise.
    """

    def __init__(
        self,
        database: Database,
        *,
        programs: Programs,
        wake: Wake,
        new_id: Callable[[], str],
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.database = database
        self.programs = programs
        self._wake = wake
        self._new_id = new_id
        self._limits = limits
        self.pace: Callable[[str], None] = lambda _: None

    def ask(self, question: Question) -> Review | None:
        """Ask people about those calls of one AI message that need it; return the review that waits.

        None: nothing waits, every call is settled or needs nobody. Asking again changes nothing, unless
        what is asked about changed: then the old review is invalidated and the next round asked.
        Raises `FenceLostError` for a segment that was taken over, `AgentParkedError` for an agent that
        proposes too much.
        """
        counted = {"clearance__calls": len(question.calls)}
        with in_run("clearance.ask", question.run_id, **counted), self.database.write() as tx:
            known = self.programs.policies(question.program)
            policy = policies.active(tx, question.program, known=known)
            runs.lock_thread(tx, question.thread_id)
            now = self.database.now(tx)
            requester = runs.run(tx, question.run_id).requester
            parked = watch(tx, question.calls, self._limits, requester=requester, now=now)
            review = None if parked else ask(tx, question, policy=policy, now=now, new_id=self._new_id)
            self.database.announce(tx, question.run_id)
            at("in-ask")
        # After the commit: what was counted stays.
        if parked is not None:
            raise AgentParkedError(parked.agent, parked.reason)
        return review

    def decide(
        self,
        review_id: str,
        payload: object,
        *,
        by: str,
        version: int,
        fresh_for: Risk | None = None,
        once: Once[Review] | None = None,
    ) -> Review:
        """Take one person's decisions for every call of the review that waits, all of them or none.

        `payload` is read by `decision.read_decisions`; `version` is that of the review the person saw.
        `fresh_for` is the highest risk for which their sign-in is fresh enough; None where they show a key.
        Returns the review as it then is. Raises `ReviewConflictError` when it moved on meanwhile (the
        error carries what happened), `ForbiddenError`, `InvalidReviewDecisionError`, `NotFoundError`;
        `FreshSignInError` when it has, or gets by an edit, a higher risk than `fresh_for`; `Repeated` for a
        request that was done before.
        """
        self.pace(by)
        with self.database.read() as tx:
            thread_id = reviews.thread_of(tx, review_id)
        try:
            with self.database.write() as tx:
                claim_once(self.database, tx, once)
                runs.lock_thread(tx, thread_id)
                before = reviews.review(tx, review_id)
                with about_run("clearance.decide", before.run_id, clearance__review__id=review_id):
                    after = self._decided(tx, before, payload, by=by, version=version, fresh_for=fresh_for)
                keep_once(tx, once, after)
                at("in-decide")
                return after
        except ReviewConflictError as error:
            if error.review.status is ReviewStatus.PENDING and error.review.deadline is not None:
                # Who was told that it is too late is not contradicted, even where the clock is set back.
                self._expire(error.review)
            raise

    def decide_waiting(
        self, thread_id: str, payload: object, *, by: str, once: Once[Review] | None = None
    ) -> Review:
        """Take decisions for whatever the thread waits for, from a door that names no review.

        They must name their calls, except at the first review of a thread: afterwards a late repetition of
        an earlier answer could not be told from a new one. Raises `NoPendingReviewError` too.
        """
        with self.database.read() as tx:
            look_once(self.database, tx, once)
            waiting = reviews.pending(tx, thread_id)
            if waiting is None:
                raise NoPendingReviewError(thread_id)
            bound = bool(named_calls(payload)) or reviews.is_first(tx, waiting)
        if not bound:
            raise InvalidReviewDecisionError(
                "This thread was decided on before, and an answer that names neither review nor call could "
                f"be a late repetition. Name the review ({waiting.id}), or each decision's 'call'."
            )
        return self.decide(waiting.id, payload, by=by, version=waiting.version, once=once)

    def withdraw(self, review_id: str, *, by: str, reason: str, once: Once[Review] | None = None) -> Review:
        """Take a question back, as who asked it or as an operator; its waiting calls never run.

        Raises `Repeated` for a request that was done before.
        """
        with self.database.read() as tx:
            found = reviews.review(tx, review_id)
            person = people.person(tx, by)
            party = people.party(tx, found.requester)
        if found.kind is ReviewKind.OUTCOME:
            raise ConflictError(
                "What became of a call stays open until somebody answers it. Decide the review."
            )
        if by not in (found.requester, party) and not has_role(person, Role.OPERATOR):
            raise ForbiddenError("Only who asked for this, or an operator, can withdraw it.")
        return self._close(found, ReviewStatus.WITHDRAWN, by=by, reason=reason, once=once)

    def claim(self, review_id: str, *, by: str, take_over: bool = False) -> Claim:
        """Say that a person who may decide a review is looking at it, for 30 minutes; again renews it.

        It binds nobody: others can still decide. Raises `ReviewClaimedError` while another holds it, unless
        it is to be taken over; `ReviewConflictError` when it waits no more, `ForbiddenError`.
        """
        with self._holding(review_id) as (tx, review, now):
            return claiming.claim(tx, review, by=people.person(tx, by), now=now, take_over=take_over)

    def release(self, review_id: str, *, by: str) -> bool:
        """End a person's claim on a review; False: they had none. `ReviewClaimedError`: it is another's."""
        with self._holding(review_id) as (tx, review, now):
            return claiming.release(tx, review, by=people.person(tx, by), now=now)

    @contextmanager
    def _holding(self, review_id: str) -> Iterator[tuple[Connection, Review, datetime]]:
        """Give a transaction that holds the review's thread, the review, and the instant."""
        with self.database.write() as tx:
            runs.lock_thread(tx, reviews.thread_of(tx, review_id))
            yield tx, reviews.review(tx, review_id), self.database.now(tx)

    def sweep(self) -> int:
        """Do what is due: remind and escalate, end standing rules, expire the reviews whose deadline is over.

        What the breaker noted is removed when it counts no more.

        Returns how many reviews expired. Harmless from several workers.
        """
        remind(self.database, limit=SWEEP_LIMIT)
        expire(self.database)
        forget(self.database)
        with self.database.read() as tx:
            due = reviews.due(tx, now=self.database.now(tx), limit=SWEEP_LIMIT)
            found = [reviews.review(tx, review_id) for review_id, _ in due]
        return sum(1 for review in found if self._expire(review))

    def _expire(self, found: Review) -> bool:
        try:
            self._close(found, ReviewStatus.EXPIRED, by=SYSTEM, reason="Nobody decided in time.")
        except ConflictError:
            return False
        return True

    def _close(
        self,
        found: Review,
        status: ReviewStatus,
        *,
        by: str,
        reason: str,
        once: Once[Review] | None = None,
    ) -> Review:
        with self.database.write() as tx:
            claim_once(self.database, tx, once)
            runs.lock_thread(tx, found.thread_id)
            before = reviews.review(tx, found.id)
            now = self.database.now(tx)
            if before.status is not ReviewStatus.PENDING:
                raise ReviewConflictError(f"Review {before.id} is {before.status} already.", before)
            if status is ReviewStatus.EXPIRED and not is_over(before.deadline, now=now):
                raise ReviewConflictError(f"Review {before.id} is not due.", before)
            after = closed(before, status, now=now, reason=reason)
            reviews.save(tx, before, after)
            close_calls(tx, before, after, now=now, by=by, wake=self._wake)
            keep_once(tx, once, after)
            at("in-close")
            return after

    def _decided(
        self,
        tx: Connection,
        before: Review,
        payload: object,
        *,
        by: str,
        version: int,
        fresh_for: Risk | None,
    ) -> Review:
        """Take the decisions in this transaction, which holds the thread."""
        # Read after the lock: a decision counts at the instant at which nothing can overtake it.
        now = self.database.now(tx)
        person = people.with_sight(tx, people.person(tx, by))
        if person.kind is Kind.PERSON and not may_see(person, requester=before.requester):
            raise NotFoundError(f"There is no review {before.id}.")
        check_open(before, version=version, now=now)
        read = read_decisions(payload, before, by=by, now=now)
        decisions = [replace(item, id=self._new_id()) for item in read]
        after = self._settled(tx, before, decisions, by=person, now=now, version=version)
        _check_fresh(before, after, fresh_for)
        _check_may_start(tx, before, decisions)
        if after == before:
            return before
        if not reviews.save(tx, before, after):
            raise ReviewConflictError(f"Review {before.id} was decided at this moment.", before)
        claims.end(tx, before.id, person=by)
        self._record_decided(tx, before, after, by=by, now=now)
        if after.status is ReviewStatus.SETTLED:
            settle_calls(tx, after, now=now, by=by, new_id=self._new_id, wake=self._wake)
        return after

    def _settled(
        self,
        tx: Connection,
        before: Review,
        decisions: Sequence[Decision],
        *,
        by: Person,
        now: datetime,
        version: int,
    ) -> Review:
        deciders = {item.by for call in before.calls for item in call.decisions}
        known = {by.id: by}
        if deciders - known.keys():
            known |= people.by_id(tx, sorted(deciders - known.keys()))
        return settle(
            before,
            decisions,
            by=by,
            now=now,
            version=version,
            mode=people.mode(tx),
            party=people.party(tx, before.requester, known=known),
            people=known,
            revise=lambda call, tool, arguments: self._revise(
                tx, before, call, tool=tool, arguments=arguments
            ),
        )

    def _revise(
        self, tx: Connection, review: Review, call: ReviewedCall, *, tool: str, arguments: str
    ) -> ReviewedCall:
        """Return the call with another tool or other arguments, judged by the policy that is active now."""
        schema = policies.tool_schema(tx, review.program, tool)
        if schema is None and tool == call.tool:
            schema = policies.schema(tx, call.schema_hash)
        if schema is None:
            known = ", ".join(policies.tool_names(tx, review.program))
            fault = Fault("/edited_action/name", f"is no tool of this agent; it has {known}")
            raise InvalidReviewDecisionError(f"There is no tool {tool}.", faults=[fault])
        secret = call.verdict.secret if tool == call.tool else ()
        arguments = unmasked(arguments, before=call.arguments, pointers=secret)
        parsed = check_arguments(tool, schema, arguments)
        policy = policies.active(tx, review.program, known=self.programs.policies(review.program))
        edited = ToolCall(key=call.key, tool=tool, arguments=arguments)
        return replace(
            call,
            tool=tool,
            arguments=arguments,
            schema_hash=policies.keep_schema(tx, schema),
            fingerprint=fingerprint(edited, run=review.run_id, schema=schema, salt=call.salt),
            verdict=judge(
                policy,
                tool,
                arguments=with_defaults(schema, parsed),
                origin=origin(tx, policy, run_id=review.run_id),
            ).hiding([*call.verdict.secret, *secrets_in(schema, parsed)]),
        )

    def _record_decided(
        self, tx: Connection, before: Review, after: Review, *, by: str, now: datetime
    ) -> None:
        answers = []
        for old, new in zip(before.calls, after.calls, strict=True):
            for item in new.decisions[len(old.decisions) :]:
                said = {"call": new.key, "type": item.type, "revision": item.revision}
                said["fingerprint"] = new.fingerprint
                if item.message:
                    said["message"] = salted_hash(item.message, salt=new.salt)
                answers.append(said)
        facts = {"version": after.version, "decisions": answers}
        audit.write(tx, AuditKind.REVIEW_DECIDED, after.id, actor=by, now=now, facts=facts)


def _check_may_start(tx: Connection, review: Review, decisions: Sequence[Decision]) -> None:
    """Refuse what would let a call start for somebody who is disabled: it would only be asked about again."""
    if not any(item.type in (DecisionType.APPROVE, DecisionType.EDIT) for item in decisions):
        return
    barred = people.barred(tx, review.requester)
    if barred is not None:
        raise InvalidReviewDecisionError(
            f"{barred} is disabled here, and nothing starts for them. Have them enabled first, or reject it."
        )


def _check_fresh(before: Review, after: Review, fresh_for: Risk | None) -> None:
    """Refuse what is riskier than the sign-in is fresh for: as it was asked, or as an edit has made it."""
    order = tuple(Risk)
    risk = max(before.risk, after.risk, key=order.index)
    if fresh_for is not None and order.index(risk) > order.index(fresh_for):
        raise FreshSignInError(risk)
