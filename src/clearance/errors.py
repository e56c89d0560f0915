"""Every error that Clearance raises on purpose, each with its HTTP status and its exit code.

    ClearanceError
    ├─ InvalidInputError            422  2   what was sent cannot be taken; nothing was changed
    │   ├─ EmptyMessageError
    │   ├─ InvalidArgumentsError             arguments that are not an object, or break the schema
    │   ├─ InvalidReviewDecisionError        count, type, names or content of decisions
    │   ├─ PolicyError                       a rule that cannot mean what it says
    │   └─ IdempotencyKeyReusedError         the key of another request
    ├─ NotFoundError                404  4
    │   └─ NoPendingReviewError
    ├─ UnauthorizedError            401 15   nobody is known by what was shown: no key, or a wrong one
    ├─ ForbiddenError               403  6   known, but not entitled
    │   ├─ FreshSignInError                  entitled, once they sign in again
    │   └─ KeyScopeError                     entitled, and not by this key
    ├─ ConflictError                409  5   true when it was sent, overtaken meanwhile
    │   ├─ ThreadBusyError
    │   ├─ ReviewPendingError
    │   ├─ ReviewConflictError               decided, expired or withdrawn before
    │   ├─ ReviewClaimedError                somebody else says that they are looking at it
    │   └─ KeyReusedError                    the same key with other arguments
    ├─ TooManyTriesError            429 16   a secret was wrong too often; wait a little
    ├─ TooManyDecisionsError        429 19   one person decided too much in a minute
    ├─ AgentParkedError             429 18   the agent proposed too much; an operator lets it go on
    ├─ ThreadClosedError            410 17   retention has removed the thread's values
    ├─ CallRefusedError             409  7   the call did not run and will not
    │   ├─ CallRejectedError
    │   └─ CallBlockedError
    ├─ CallFailedError              502  8   the tool ran and raised
    ├─ CallUncertainError           502  9   started, outcome unknown, never repeated by itself
    ├─ RunUnfinishedError           202 10   still working when the wait ended
    ├─ RunFailedError               500 11
    ├─ ModelFailedError             502 14   the model gave no answer; the thread takes the next message
    ├─ SettingsError                500 12   this installation is not set up as it must be
    └─ StoreError                   503 13   the database cannot be used now

`FenceLostError` stands outside the tree, and outside `Exception`: it is not a failure but the order to
stop, given to a segment whose thread was taken over, and no handler on the way may swallow it.
"""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from clearance.credential import Scope
    from clearance.policy import Risk
    from clearance.review import Review


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with what was sent: a JSON pointer to the place, and a sentence."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '(whole)'}: {self.message}"


class ClearanceError(Exception):
    """The root of the tree: a sentence that says what is wrong and what to do."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class InvalidInputError(ClearanceError):
    """What was sent cannot be taken. `faults` lists every place that is wrong."""

    status = 422
    exit_code = 2

    def __init__(self, message: str, *, faults: Sequence[Fault] = ()) -> None:
        super().__init__(_with_details(message, faults))
        self.message = message
        self.faults = tuple(faults)

    def point_below(self, place: str) -> None:
        """Let the faults point into something larger, where what was looked at stands at `place`."""
        faults = [Fault(f"{place}{fault.pointer}", fault.message) for fault in self.faults]
        self.faults = tuple(faults) or (Fault(place, self.message),)
        self.args = (_with_details(self.message, faults),)


def _with_details(message: str, faults: Sequence[Fault]) -> str:
    return " ".join([message, "; ".join(map(str, faults))]) if faults else message


class EmptyMessageError(InvalidInputError):
    """A message without text."""

    def __init__(self) -> None:
        super().__init__("The message is empty. Write what the agent should do.")


class InvalidArgumentsError(InvalidInputError):
    """Arguments that are no JSON object, are outside the limits, or break the tool's schema."""


class InvalidReviewDecisionError(InvalidInputError):
    """A set of decisions that does not fit the review. The review is unchanged and still waits."""


class PolicyError(InvalidInputError):
    """A policy that cannot be loaded, because a rule in it could never do what it says."""


class IdempotencyKeyReusedError(InvalidInputError):
    """A request's own key stands for one request; what says something else needs another key."""

    def __init__(self, key: str) -> None:
        super().__init__("This Idempotency-Key was sent with another body before. Use a new key for it.")
        self.key = key


class NotFoundError(ClearanceError):
    """Nothing is known under that name (or nothing that this person may see)."""

    status = 404
    exit_code = 4


class NoPendingReviewError(NotFoundError):
    """The thread has no review that waits for a decision."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"Thread {thread_id} has no review that waits. There is nothing to decide.")
        self.thread_id = thread_id


class UnauthorizedError(ClearanceError):
    """Nobody is known by the key that was shown, or none was shown."""

    status = 401
    exit_code = 15


class ForbiddenError(ClearanceError):
    """The person is known, but may not do this."""

    status = 403
    exit_code = 6


class FreshSignInError(ForbiddenError):
    """A decision came to have a `risk` for which the sign-in behind it is not fresh enough."""

    def __init__(self, risk: "Risk") -> None:
        super().__init__(
            f"This has {risk} risk: it needs a fresh sign-in. Nothing was done. Decide it on its page."
        )
        self.risk = risk


class KeyScopeError(ForbiddenError):
    """A key that does not go so far was shown. `scopes`: any of these would do."""

    def __init__(self, scopes: "Sequence[Scope]", *, person: str, key: str) -> None:
        lacking = " or ".join(f"`{each}`" for each in scopes)
        super().__init__(
            f"This needs a key with the scope {lacking}; the key that was shown has: {key}. "
            "Nothing was done. Make a key that goes so far: "
            f"clearance keys add NAME --person {shlex.quote(person)} --scope {scopes[0]}"
        )
        self.scopes = tuple(scopes)


class ConflictError(ClearanceError):
    """The world moved on since this was read. Read again, then decide."""

    status = 409
    exit_code = 5


class ThreadBusyError(ConflictError):
    """The thread works on an earlier message."""

    def __init__(self, thread_id: str, run_id: str) -> None:
        super().__init__(
            f"Thread {thread_id} still works on run {run_id}. Send the message when it has ended."
        )
        self.thread_id = thread_id
        self.run_id = run_id


class ReviewPendingError(ConflictError):
    """A review waits for a person; until it is decided nothing goes on."""

    def __init__(self, review_id: str, address: str | None = None) -> None:
        how = address or f"clearance show {review_id}"
        super().__init__(f"Review {review_id} waits for a decision. Decide it first: {how}")
        self.review_id = review_id
        self.address = how


class ReviewConflictError(ConflictError):
    """Somebody else was first. `review` is what it became, with who decided what."""

    def __init__(self, message: str, review: "Review") -> None:
        super().__init__(message)
        self.review = review


class ReviewClaimedError(ConflictError):
    """Somebody else says that they are looking at a review: `person`, until `until`."""

    def __init__(self, review_id: str, *, person: str, until: datetime) -> None:
        super().__init__(
            f"{person} is looking at review {review_id} until {until:%Y-%m-%d %H:%M:%S} UTC. "
            "Take it over if you must; it can be decided in any case."
        )
        self.review_id = review_id
        self.person = person
        self.until = until


class KeyReusedError(ConflictError):
    """A key stands for one call; other arguments need another key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Key {key} was used for other arguments. Use a new key for another call.")
        self.key = key


class TooManyTriesError(ClearanceError):
    """A secret was wrong too often. `seconds` is how long nothing is looked at."""

    status = 429
    exit_code = 16

    def __init__(self, wait: timedelta) -> None:
        self.seconds = max(math.ceil(wait.total_seconds()), 1)
        when = f"{self.seconds} seconds" if self.seconds < 120 else f"{math.ceil(self.seconds / 60)} minutes"
        super().__init__(f"That failed too often. Try again in {when if self.seconds > 1 else 'a second'}.")


class TooManyDecisionsError(ClearanceError):
    """One person sent more decisions in a minute than they may. `seconds` is when the next one is taken."""

    status = 429
    exit_code = 19

    def __init__(self, wait: timedelta) -> None:
        self.seconds = max(math.ceil(wait.total_seconds()), 1)
        super().__init__(
            f"Nothing was done: these are more decisions than one person may make in a minute. "
            f"Go on in {self.seconds} seconds."
        )


class AgentParkedError(ClearanceError):
    """The breaker has parked the agent: nothing that it proposes is taken, or runs, until it may go on."""

    status = 429
    exit_code = 18

    def __init__(self, agent: str, reason: str) -> None:
        super().__init__(
            f"The breaker has parked the agent {agent}: {reason}. Nothing of it runs until an operator lets "
            f"it go on: clearance agents resume {agent}"
        )
        self.agent = agent
        self.reason = reason


class ThreadClosedError(ClearanceError):
    """Retention has removed the values of a thread, and with them what it could go on from."""

    status = 410
    exit_code = 17

    def __init__(self, thread_id: str, closed_at: datetime) -> None:
        super().__init__(
            f"Thread {thread_id} is closed: its values were removed by retention on {closed_at:%Y-%m-%d}. "
            "What happened in it stands in the trail. Start another thread."
        )
        self.thread_id = thread_id
        self.closed_at = closed_at


class CallRefusedError(ClearanceError):
    """The call did not run, and will not run under this key."""

    status = 409
    exit_code = 7


class CallRejectedError(CallRefusedError):
    """People rejected the call, or nobody cleared it in time."""


class CallBlockedError(CallRefusedError):
    """There is no clearance that fits the call, or the policy denies it."""


class CallFailedError(ClearanceError):
    """The tool ran and raised; its message is the result."""

    status = 502
    exit_code = 8


class CallUncertainError(ClearanceError):
    """The call was started and its outcome is unknown. It is not repeated until a person says so.

    `review_id` is the review that asks people what became of it, where one does.
    """

    status = 502
    exit_code = 9

    def __init__(self, message: str, *, review_id: str | None = None) -> None:
        super().__init__(message)
        self.review_id = review_id


class RunUnfinishedError(ClearanceError):
    """The run goes on; only the wait has ended. Ask again with the run's id."""

    status = 202
    exit_code = 10

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"Run {run_id} has not finished yet; it goes on, and nothing was lost. "
            "If it stays so, check that a worker runs: clearance doctor"
        )
        self.run_id = run_id


class RunFailedError(ClearanceError):
    """The run ended with an error; the thread takes the next message."""

    status = 500
    exit_code = 11

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(f"Run {run_id} failed: {reason}")
        self.run_id = run_id
        self.reason = reason


class ModelFailedError(ClearanceError):
    """The model gave no answer. The message says why, and nothing that its provider wrote."""

    status = 502
    exit_code = 14

    def __init__(self, text: str, *, tries: int = 1) -> None:
        super().__init__(f"The model's provider {text}" + (f" (Tried {tries} times.)" if tries > 1 else ""))
        self.tries = tries


class SettingsError(ClearanceError):
    """This installation is not set up as it must be."""

    exit_code = 12


class StoreError(ClearanceError):
    """The database cannot be used now. Nothing was half-done."""

    status = 503
    exit_code = 13


class FenceLostError(BaseException):
    """Another worker has taken the thread over; whatever this segment still does is discarded."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id} was taken over")
        self.thread_id = thread_id


def error_code(error: ClearanceError) -> str:
    """Return the word for a kind of error: `review_conflict` for `ReviewConflictError`."""
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
