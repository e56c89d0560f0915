"""One turn of a conversation at the terminal: a message, the reviews on its way, and the answer."""

from typing import TYPE_CHECKING

from clearance.run import Run, RunState

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.review import Review

LONGEST = 600.0


def send(c: "Clearance", thread_id: str, text: str, *, run_id: str | None = None) -> Run:
    """Send a message as the person who acts here, and return its run as soon as it ended or waits.

    Raises what starting a run raises, `RunFailedError`, and `RunUnfinishedError`.
    """
    from clearance import turns
    from clearance.apps.chat.demo import PROGRAM
    from clearance.assembly import new_id

    run = turns.start(c.ledger, thread_id, text, run_id=run_id or new_id(), program=PROGRAM, by=c.person)
    return follow(c, run.id)


def follow(c: "Clearance", run_id: str) -> Run:
    """Return the run as soon as it has ended, or waits for people."""
    from clearance.cli.screen import working
    from clearance.cli.waiting import await_run

    with working("Working"):
        return await_run(c, run_id, seconds=LONGEST)


def waiting_review(c: "Clearance", run: Run) -> "Review | None":
    """Return the review that the run waits for."""
    from clearance.store import reviews

    if run.state is not RunState.WAITING:
        return None
    with c.database.read() as tx:
        return reviews.pending(tx, run.thread_id)


def decided_to_the_end(c: "Clearance", run: Run) -> Run | None:
    """Have the person decide one review after the other until the run ends.

    None: one is left for later, or waits for other people, too.
    """
    from clearance.cli.inline import decide_inline
    from clearance.cli.screen import line, out
    from clearance.review import ReviewStatus

    while (review := waiting_review(c, run)) is not None:
        after = decide_inline(c, review.id)
        if after is None:
            return None
        if after.status is ReviewStatus.PENDING:
            line(out(), "Others must decide too; it still waits.")
            return None
        run = follow(c, run.id)
    return run


def say_held(c: "Clearance", run: Run, *, program: str) -> None:
    """Say how the review that a run waits for is decided later. `program` begins each command."""
    from clearance.cli.drawing import draw_commands
    from clearance.cli.screen import out

    review = waiting_review(c, run)
    if review is not None:
        draw_commands(out(), review, program=program)
