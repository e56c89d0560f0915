"""The product as a case finds it: server processes that can be killed, and this process, which looks.

Every server advances threads and, over HTTP, is the door for people. What they need to know lies in a
folder, so that one which is started anew is as the one before. A moved clock is the database's clock.
"""

import os
import pickle
import time
from collections.abc import Callable, Iterable
from math import inf
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from langchain_core.messages import BaseMessage
from sqlalchemy import select, update

from clearance.apps.chat import ReviewedChat
from clearance.audit import Entry
from clearance.membership import set_sight
from clearance.people import Sight
from clearance.review import Review, ReviewKind
from clearance.run import Run
from clearance.store import audit, calls, deliveries, people, reviews, runs, tables, times
from clearance.store.calls import LedgerRow
from clearance.store.deliveries import Delivery
from clearance.store.trail import trail
from tests.journeys.cases.fixture_tools import KILL_AT, read_effects
from tests.journeys.cases.served import HOLD, READY, SETUP, serve
from tests.journeys.cases.setup import CLOCK, Setup, offset
from tests.journeys.processes import Processes, kill, until


class Site:
    """A workspace with its servers, and what this process reads in it."""

    def __init__(self, setup: Setup, processes: ForkServerContext) -> None:
        self.setup = setup
        self.folder = setup.folder
        self._processes = Processes(processes, setup.folder / "said")
        self.servers: dict[int, BaseProcess] = {}
        self.opened = setup.open()
        self._let_in()
        self._keep_setup()
        self.chat = ReviewedChat(setup.agent(self.opened))

    def close(self) -> None:
        """End every process, and close the connections."""
        self._processes.end()
        self.opened.close()

    def configure(self, setup: Setup) -> None:
        """Go on with other rules, as after a deployment: the servers are started anew."""
        self.setup = setup
        self._let_in()
        sight = Sight.OWN_GROUPS if setup.tenants else Sight.ALL
        set_sight(self.opened.database, sight, by=self.opened.person)
        self._keep_setup()
        self.chat = ReviewedChat(setup.agent(self.opened))
        for number in list(self.servers):
            self.stop_server(number)
            self.server(number)

    # --- servers ---

    def server(self, number: int = 1) -> BaseProcess:
        """Return a server that runs, started when it does not."""
        process = self.servers.get(number)
        if process is None or process.exitcode is not None:
            ready = self.folder / f"{READY}-{number}"
            ready.unlink(missing_ok=True)
            process = self._processes.start(serve, self.folder, number)
            started = process
            until(lambda: ready.exists() or started.exitcode is not None, what=f"server {number}")
            assert ready.exists(), f"server {number} did not start:\n{self.said()}"
            self.servers[number] = process
        return process

    def stop_server(self, number: int) -> None:
        """Kill a server as a power cut does."""
        process = self.servers.pop(number, None)
        if process is not None:
            kill(process)

    def stop_all(self) -> list[int]:
        """Kill every server; return their numbers."""
        numbers = list(self.servers)
        for number in numbers:
            self.stop_server(number)
        return numbers

    def address(self, number: int = 1) -> str:
        """Return where a server listens."""
        self.server(number)
        return (self.folder / f"{READY}-{number}").read_text()

    def said(self) -> str:
        """Return what the servers have written."""
        log = self.folder / "said"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def arm(self, place: str) -> None:
        """Have the next server that passes the place killed there."""
        (self.folder / KILL_AT).write_text(place)

    def wait_until_killed(self) -> None:
        """Return when a server has died where it was to; fail when nothing passes the place."""
        told = self.folder / KILL_AT
        until(lambda: not told.exists(), what="a server that passes the place where it is killed")
        until(lambda: any(p.exitcode is not None for p in self.servers.values()))

    # --- time ---

    def move_clock(self, seconds: float) -> None:
        """Move the clock of the database; without a word of time in the case it is not looked at."""
        if not seconds:
            return
        moved = offset(self.folder) + seconds
        (self.folder / f"{CLOCK}.new").write_text(str(moved))
        os.replace(self.folder / f"{CLOCK}.new", self.folder / CLOCK)

    def seconds(self) -> float:
        """Return the seconds of the case: those that pass, and those by which its clock was moved."""
        return time.monotonic() + offset(self.folder)

    def pass_time(self, seconds: float, *, held: Callable[[], bool]) -> None:
        """Let so much time pass, and the servers do what falls due in it, each at its time.

        `held` says whether somebody outside keeps a server waiting: time alone can end that.
        """
        left = seconds
        if left > 0 and self._served():
            until(lambda: self._is_read() or not self._served(), what="the messenger that reads on")
        while left > 0 and self._served():
            span = min(left, self._until_next())
            self.move_clock(span)
            left -= span
            self._let_come_due(held)
        self.move_clock(left)

    def _let_come_due(self, held: Callable[[], bool]) -> None:
        late = {(each.seq, each.channel, each.person): each.tries for each in self.messages_to_send()}

        def is_done() -> bool:
            with self.opened.database.read() as tx:
                waits = bool(times.due(tx, now=self.opened.database.now(tx), limit=1))
            return not waits and not any(
                late.get((each.seq, each.channel, each.person)) == each.tries
                for each in self.messages_to_send()
            )

        until(lambda: is_done() or held() or not self._served(), what="that what is due is done")

    def _until_next(self) -> float:
        """Return the seconds until something falls due, at least one."""
        when = tables.review_times.c
        with self.opened.database.read() as tx:
            now = self.opened.database.now(tx)
            query = select(when.at).where(when.done_at.is_(None), when.at > now).order_by(when.at).limit(1)
            found = [*tx.execute(query).scalars()]
            found += [each.due_at for each in deliveries.listed(tx, limit=500) if each.due_at is not None]
        return min((max(1.0, (each - now).total_seconds()) for each in found if each > now), default=inf)

    def _is_read(self) -> bool:
        """Whether everything that has happened was looked at by the messenger."""
        self.opened.worker.notary.seal_now()  # type: ignore[union-attr]
        with self.opened.database.read() as tx:
            return deliveries.read_to(tx) >= audit.last_seq(tx)

    def hold(self, *, held: bool) -> None:
        """Have no server begin a call until it is let go."""
        if held:
            (self.folder / HOLD).touch()
        else:
            (self.folder / HOLD).unlink(missing_ok=True)

    @property
    def is_held(self) -> bool:
        """Whether no server begins a call."""
        return (self.folder / HOLD).exists()

    # --- what there is ---

    def messages_to_send(self) -> list[Delivery]:
        """Return the messages to people that are due by now and were not sent."""
        with self.opened.database.read() as tx:
            now = self.opened.database.now(tx)
            found = deliveries.listed(tx, limit=500)
        return [each for each in found if each.due_at is not None and each.due_at <= now]

    def is_told(self) -> bool:
        """Whether everybody was told of everything that has happened, or could not be told."""
        read = self._is_read()
        with self.opened.database.read() as tx:
            return read and not any(each.due_at is not None for each in deliveries.listed(tx, limit=500))

    def reviews(self, threads: Iterable[str]) -> list[Review]:
        """Return the questions about calls of some threads, in the order in which they were asked."""
        with self.opened.database.read() as tx:
            found = [review for thread in threads for review in reviews.of_thread(tx, thread, limit=1000)]
        asked = [review for review in found if review.kind is not ReviewKind.OUTCOME]
        return sorted(asked, key=lambda review: (review.asked_at, review.id))

    def outcome_reviews(self, thread: str) -> list[Review]:
        """Return the questions about what became of calls."""
        with self.opened.database.read() as tx:
            found = reviews.of_thread(tx, thread, limit=1000)
        return [review for review in found if review.kind is ReviewKind.OUTCOME]

    def review(self, review_id: str) -> Review:
        """Return a review as it is now."""
        with self.opened.database.read() as tx:
            return reviews.review(tx, review_id)

    def runs(self, thread: str) -> list[Run]:
        """Return the runs of a thread, the oldest first."""
        with self.opened.database.read() as tx:
            return list(reversed(runs.list_runs(tx, thread_id=thread, limit=1000)))

    def ledger(self, thread: str) -> list[LedgerRow]:
        """Return the calls of a thread that the ledger knows."""
        with self.opened.database.read() as tx:
            found = runs.list_runs(tx, thread_id=thread, limit=1000)
            return [row for run in found for row in calls.of_run(tx, run.id)]

    def trail(self) -> list[Entry]:
        """Return the trail's entries, all of them numbered and sealed."""
        self.opened.worker.notary.seal_now()  # type: ignore[union-attr]
        return [entry for entry in trail(self.opened.database).entries if isinstance(entry, Entry)]

    def messages(self, thread: str) -> list[BaseMessage]:
        """Return what a thread keeps."""
        return self.chat.messages(thread)

    def effects(self) -> list[Any]:
        """Return what the tools have really done."""
        return read_effects(self.folder)

    def is_at_rest(self, thread: str) -> bool:
        """Whether nothing is left to do for a thread but by people."""
        with self.opened.database.read() as tx:
            found = runs.thread(tx, thread)
        return found is None or (found.owner is None and found.wanted == found.done)

    def rest(self, thread: str, *, patience: float = 60.0) -> None:
        """Return as soon as nothing is left to do for a thread, or no server is there to do it."""
        until(
            lambda: self.is_at_rest(thread) or not self._served(),
            patience=patience,
            what=f"the rest of {thread}",
        )

    def _served(self) -> bool:
        return any(process.exitcode is None for process in self.servers.values())

    def _let_in(self) -> None:
        """Add the people of the case; of those who are there, change what they may do."""
        with self.opened.database.write() as tx:
            now = self.opened.database.now(tx)
            for person in self.setup.everybody():
                if not people.add(tx, person, now=now):
                    changed = {"role": person.role.value, "groups": list(person.groups)}
                    tx.execute(update(tables.people).where(tables.people.c.id == person.id).values(**changed))

    def _keep_setup(self) -> None:
        (self.folder / SETUP).write_bytes(pickle.dumps(self.setup))
