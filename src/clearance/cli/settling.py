"""Taking a person's decisions through the gate, and telling what they did."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clearance.cli.options import Options, opened
from clearance.errors import ClearanceError, InvalidInputError, ReviewConflictError
from clearance.review import Review, ReviewedCall, ReviewKind, ReviewStatus

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.run import Run


@dataclass(frozen=True)
class Request:
    """What the person asked for besides the decisions themselves."""

    options: Options
    review: str
    version: int | None
    wait: float | None


@dataclass
class Answers:
    """One person's answers, by the key of each call."""

    by_call: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, call: ReviewedCall, decision: dict[str, Any]) -> None:
        """Answer one more call. Raises `InvalidInputError` for a call that is answered twice."""
        if call.key in self.by_call:
            raise InvalidInputError(f"Call {call.key} is answered twice. Give each call one answer.")
        self.by_call[call.key] = {**decision, "call": call.key}


def with_message(decision: dict[str, Any], message: str) -> dict[str, Any]:
    """Return the decision with a message, where there is one."""
    return {**decision, "message": message} if message else decision


def all_alike(review: Review, name: str | None, decision: dict[str, Any]) -> Answers:
    """Return one answer for every call that waits; a named call must be the only one."""
    only_one(review, name)
    answers = Answers()
    for call in review.waiting:
        answers.add(call, decision)
    return answers


def only_one(review: Review, name: str | None) -> None:
    """Refuse a call by name where others wait too: a decision covers every call of its review."""
    from clearance.cli.references import find_call

    if name is None:
        return
    named = find_call(review, name)
    others = [call for call in review.waiting if call.key != named.key]
    if others:
        places = " ".join(f"--reject {review.calls.index(call) + 1}" for call in others)
        place = review.calls.index(named) + 1
        raise InvalidInputError(
            f"{len(others) + 1} calls of this review wait, and a decision covers them all. Decide them "
            f"together, such as: clearance decide {review.id} --approve {place} {places}"
        )


def settle(request: Request, collect: Callable[[Review], Answers | None]) -> None:
    """Decide a review as the person who acts here, and say what became of it.

    `collect` asks for the answers, given the review; None is: nothing is decided after all.
    """
    from clearance.cli.references import find_review
    from clearance.cli.screen import line, out, print_json
    from clearance.veil import veiled

    options = request.options
    with opened(options) as c:
        with c.database.read() as tx:
            found = veiled(find_review(tx, request.review))
        version = _seen(c, found, request.version)
        answers = collect(found)
        if answers is None:
            if options.as_json:
                print_json({"decided": False})
            else:
                line(out(), "Nothing was changed, so nothing was decided.")
            return
        know_policy(c)
        after = c.gate.decide(found.id, list(answers.by_call.values()), by=c.person, version=version)
        _tell(c, request, after, answers)


def know_policy(c: "Clearance") -> None:
    """Make the bundled chat's policy known to this process: an edit is judged by it, conditions and all."""
    from clearance.apps.chat.demo import PROGRAM
    from clearance.apps.chat.support.policy import SUPPORT_POLICY
    from clearance.program import Program

    if c.programs.get(PROGRAM) is None:
        c.programs.register(Program(PROGRAM, tools={}, policy=SUPPORT_POLICY))


def _seen(c: "Clearance", found: Review, version: int | None) -> int:
    """Return the version that the person saw. Without one it is the question as it was first asked."""
    from clearance.decision import check_open

    with c.database.read() as tx:
        now = c.database.now(tx)
    check_open(found, version=version or found.version, now=now)
    if version is None and found.version > 1:
        raise ReviewConflictError(
            f"Review {found.id} has changed since it was asked. Read it with `clearance show {found.id}`, "
            f"then decide it with --version {found.version}.",
            found,
        )
    return version or found.version


def _tell(c: "Clearance", request: Request, after: Review, answers: Answers) -> None:
    """Say what was decided and who goes on, and with `wait` what came of it."""
    from clearance.cli.screen import print_json
    from clearance.cli.waiting import anyone_works
    from clearance.reading import review_record, run_record, whole
    from clearance.store import runs, secret_parts

    works = anyone_works(c)
    failure: ClearanceError | None = None
    waits = request.wait is not None and after.kind is not ReviewKind.OUTCOME
    if not request.options.as_json:
        _say_decided(after, answers)
        if not waits:
            _say_who_goes_on(c, after, works=works)
    if waits:
        try:
            _wait(c, request, after)
        except ClearanceError as error:
            failure = error
    if request.options.as_json:
        with c.database.read() as tx:
            record = review_record(whole(c.database, tx, after))
            [run] = secret_parts.veiled(tx, [runs.run(tx, after.run_id)])
        print_json({"decided": True, "review": record, "worker_running": works, "run": run_record(run)})
    if failure is not None:
        raise failure


def _say_decided(after: Review, answers: Answers) -> None:
    from clearance.cli.screen import line, out, shown

    console = out()
    for key, decision in answers.by_call.items():
        call = after.call(key)
        if call is not None:
            line(
                console,
                shown(f"{_PAST[decision['type']]}: {call.tool} (call {after.calls.index(call) + 1})."),
            )
    if after.status is ReviewStatus.PENDING:
        still = f"Others must decide too: review {after.id} still waits, now at version {after.version}."
        line(console, shown(still))


def _say_who_goes_on(c: "Clearance", after: Review, *, works: bool) -> None:
    from clearance.apps.chat.demo import PROGRAM
    from clearance.cli.screen import line, out
    from clearance.store import runs

    with c.database.read() as tx:
        thread = runs.thread(tx, after.thread_id)
    if after.status is ReviewStatus.PENDING:
        return
    if after.kind is ReviewKind.OUTCOME:
        line(out(), "The answer enters the conversation with its next message.")
    elif thread is not None and thread.caller_driven:
        line(out(), "The program that asked goes on when it comes back to it.")
    elif not works and after.program == PROGRAM:
        line(out(), "No worker is running here. Start one, and the run goes on: clearance worker")
    elif not works:
        line(out(), f"The run goes on as soon as the application that has the agent {after.program!r} runs.")


def _wait(c: "Clearance", request: Request, after: Review) -> None:
    from clearance.cli.screen import working
    from clearance.cli.waiting import await_run, can_work, working_for

    able = can_work(c, program=after.program)
    with (
        working_for(c, request.options, model=None) if able else nullcontext(),
        working("Waiting for the run"),
    ):
        run = await_run(c, after.run_id, seconds=request.wait or 0.0)
    if not request.options.as_json:
        say_run(c, run)


def say_run(c: "Clearance", run: "Run") -> None:
    """Say where a run has come to: its answer, or the review that it waits for."""
    from clearance.cli.screen import block, line, out, shown
    from clearance.store import reviews

    console = out()
    if run.answer is not None:
        line(console, "The agent answers:")
        block(console, run.answer)
        return
    with c.database.read() as tx:
        waiting = reviews.pending(tx, run.thread_id)
    if waiting is not None:
        console.print(shown(f"The run waits for a decision: clearance show {waiting.id}"))


_PAST = {"approve": "Approved", "edit": "Approved with changes", "reject": "Rejected", "respond": "Answered"}
