"""An office: a workspace folder whose agent works in this process, and that is backed up and restored."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clearance.apps.chat import ReviewedChat
from clearance.outcome import CallState
from clearance.review import Review
from clearance.workspace import Clearance
from tests.journeys.front import Front
from tests.journeys.program import PERSON, Stage, agent_of
from tests.ways_in.desk import Desk

THREAD = "t1"


class Office:
    """A workspace of its own on SQLite; what its tools did is kept beside it."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.stage = Stage(f"sqlite:///{home / 'clearance.db'}", home)
        self.desk = Desk(home)

    @contextmanager
    def front(self) -> Iterator[Front]:
        """Open the door that sends and decides, and advances nothing."""
        front = Front(self.stage)
        try:
            yield front
        finally:
            front.close()

    @contextmanager
    def worker(self) -> Iterator[Clearance]:
        """Have a worker that knows the agent."""
        with self.stage.open(worker=True) as opened:
            ReviewedChat(agent_of(opened, self.stage))
            yield opened

    def backup(self, to: Path) -> None:
        """Copy the workspace."""
        self.desk.json("backup", str(to), person=PERSON)

    @classmethod
    def restored(cls, backup: Path, home: Path) -> "Office":
        """Bring a backup back in another folder."""
        other = cls(home)
        other.desk.json("restore", str(backup), person=PERSON)
        return other

    def seal(self) -> None:
        """Number and seal the trail, as a worker does."""
        with self.stage.open() as opened:
            assert opened.worker.notary is not None
            opened.worker.notary.seal_now()


# Each brings a call to a stage, calls back there, and brings it to its end; and returns what had been asked.


def while_held(office: Office, there: Callable[[], None]) -> Review:
    """Stop while people are asked."""
    with office.worker(), office.front() as front:
        review = front.wait_until_parked(front.begin(THREAD, "send a"))
        there()
        front.decide(review)
        front.wait_until_ended(review.run_id)
    return review


def while_cleared(office: Office, there: Callable[[], None]) -> Review:
    """Stop when the call was decided and no worker has taken it yet."""
    with office.front() as front:
        with office.worker():
            review = front.wait_until_parked(front.begin(THREAD, "send a"))
        front.decide(review)
        there()
        with office.worker():
            front.wait_until_ended(review.run_id)
    return review


def while_started(office: Office, there: Callable[[], None]) -> Review:
    """Stop while the tool runs."""
    with office.worker(), office.front() as front:
        review = front.wait_until_parked(front.begin(THREAD, "hold a"))
        front.decide(review)
        front.wait_until_first_call_is(CallState.STARTED, review.run_id)
        there()
        office.stage.release("a")
        front.wait_until_ended(review.run_id)
    return review


def while_uncertain(office: Office, there: Callable[[], None]) -> Review:
    """Stop while people are asked what became of a call; afterwards it is run once more."""
    return _second_attempt(office, before=there, after=lambda: None)


def while_cleared_again(office: Office, there: Callable[[], None]) -> Review:
    """Stop when an uncertain call was cleared to run again, and no worker has taken it yet."""
    return _second_attempt(office, before=lambda: None, after=there)


def _second_attempt(office: Office, *, before: Callable[[], None], after: Callable[[], None]) -> Review:
    with office.front() as front:
        with office.worker():
            run_id = front.wait_until_parked(front.begin(THREAD, "send a")).run_id
        # A workspace that is marked as restored calls into question what waits in it.
        office.desk.json("restore", "--mark", person=PERSON)
        [question] = front.open_outcomes(THREAD)
        before()
        front.decide(question)
        after()
        with office.worker():
            front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    return question
