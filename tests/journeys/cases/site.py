"""The product as a case finds it: server processes that can be killed, and this process, which looks.

Every server advances threads and, over HTTP, is the door for people. What they need to know lies in a
folder, so that one which is started anew is as the one before. A moved clock is the database's clock.
"""

import os
import pickle
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter
from langchain_core.messages import BaseMessage
from sqlalchemy import update

import clearance
from clearance import killpoints
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.audit import Entry
from clearance.people import Kind, Person, Role
from clearance.review import Review, ReviewKind
from clearance.run import Run
from clearance.store import calls, database, people, reviews, runs, tables
from clearance.store.calls import LedgerRow
from clearance.store.trail import trail
from clearance.web.app import create_app
from clearance.workspace import Clearance
from tests.journeys.cases.fixture_tools import KILL_AT, read_effects, tools
from tests.journeys.cases.loading import Fixtures, Step
from tests.journeys.cases.policies import groups_in, read_policy
from tests.journeys.cases.speaking import Speaker
from tests.journeys.processes import Processes, kill, until

KEEPER = "keeper"
PROGRAM = "cases"
ANSWERING = "answering"
_SETUP, _CLOCK, _READY = "setup", "clock", "ready"


@dataclass(frozen=True)
class Setup:
    """What a `configure` step asks for, and where."""

    url: str
    folder: Path
    fixtures: Fixtures
    policy: Any = "P0"
    override: tuple[Mapping[str, Any], ...] = ()
    principals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timeout: float = 60.0
    clock: bool = False
    research: bool = False
    skews: tuple[float, ...] = ()

    def open(self) -> Clearance:
        """Open the workspace in this process; it advances nothing until its worker is started."""
        opened = clearance.open(self.url, home=self.folder, person=KEEPER, worker=False)
        if self.clock:
            opened.database._clock = lambda: datetime.now(UTC) + timedelta(seconds=_offset(self.folder))
        return opened

    def agent(self, opened: Clearance, **more: Any) -> Any:
        """Build the agent on an open workspace. Raises what the product raises for its policy."""
        policy = read_policy(self.policy, self.fixtures, override=self.override, folder=self.folder)
        model = more.pop("model", None) or Speaker(self.folder)
        offered = tools(self.fixtures.tools, self.folder, timeout=self.timeout)
        name = more.pop("name", PROGRAM)
        return create_reviewed_agent(model, offered, policy=policy, using=opened, name=name, **more)

    def names(self) -> list[str]:
        """Return the names of the people and agents of the case."""
        return list({**self.fixtures.principals, **self.principals})

    def everybody(self) -> list[Person]:
        """Return the people and agents of the case, as ours."""
        policy = read_policy(self.policy, self.fixtures, override=self.override, folder=self.folder)
        decide = groups_in(policy)
        return [
            _person(name, said, decide)
            for name, said in {**self.fixtures.principals, **self.principals}.items()
        ]


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
            ready = self.folder / f"{_READY}-{number}"
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
        return (self.folder / f"{_READY}-{number}").read_text()

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
        offset = _offset(self.folder) + seconds
        (self.folder / f"{_CLOCK}.new").write_text(str(offset))
        os.replace(self.folder / f"{_CLOCK}.new", self.folder / _CLOCK)

    # --- what there is ---

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
        (self.folder / _SETUP).write_bytes(pickle.dumps(self.setup))


def serve(folder: Path, number: int) -> None:
    """Be a server until somebody ends this process."""
    setup: Setup = pickle.loads((folder / _SETUP).read_bytes())
    if number <= len(setup.skews):
        _skew_this_process(setup.skews[number - 1])
    killpoints.watch(_killing(folder))
    opened = setup.open()
    ReviewedChat(setup.agent(opened))
    routers = _research(opened, folder) if setup.research else []
    opened.worker.start()
    listening = socket.create_server(("127.0.0.1", 0))
    (folder / f"{_READY}-{number}.new").write_text(f"http://127.0.0.1:{listening.getsockname()[1]}")
    os.replace(folder / f"{_READY}-{number}.new", folder / f"{_READY}-{number}")
    application = _killed_when_answering(create_app(opened, routers=routers), folder)
    config = uvicorn.Config(application, log_level="warning", lifespan="on")
    uvicorn.Server(config).run(sockets=[listening])


def _research(opened: Clearance, folder: Path) -> list[APIRouter]:
    """Set the research pipeline up with our planning model, and return its routes."""
    from clearance.apps.research.executors.local import LocalExecutor
    from clearance.apps.research.report import open_reporter
    from clearance.apps.research.routes import routers_of
    from clearance.apps.research.runs import ResearchRuns
    from tests.journeys.cases.planning_by_model import Planner

    runs = ResearchRuns(
        opened,
        executors={"local": LocalExecutor(), "argo": LocalExecutor()},
        reporter=open_reporter,
        model_named=lambda _: Planner(folder),
    )
    return routers_of(runs)


def _killed_when_answering(application: Any, folder: Path) -> Any:
    """Return the application, whose process dies before a decision is answered, where told to."""
    watcher = _killing(folder)

    async def answering(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if str(scope.get("path", "")).endswith("/decide"):
                watcher(ANSWERING)
            await send(message)

        await application(scope, receive, sent)

    return answering


def _killing(folder: Path) -> Callable[[str], None]:
    """Return what ends this process at the place that a file names, once."""
    told = folder / KILL_AT

    def watcher(place: str) -> None:
        with suppress(FileNotFoundError):
            if told.read_text() == place:
                told.unlink()
                os.kill(os.getpid(), signal.SIGKILL)

    return watcher


def _skew_this_process(seconds: float) -> None:
    """Have what this process itself takes for the time be wrong; the database's clock is not."""
    told = time.time

    class Skewed(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Skewed":
            return super().now(tz) + timedelta(seconds=seconds)

    time.time = lambda: told() + seconds
    vars(database)["datetime"] = Skewed


def _offset(folder: Path) -> float:
    try:
        return float((folder / _CLOCK).read_text())
    except FileNotFoundError:
        return 0.0


def _person(name: str, said: Step | Mapping[str, Any], decide: set[str]) -> Person:
    roles = set(said.get("roles", []))
    groups = {group for group in decide if roles & set(group.split("-or-"))} | roles
    return Person(
        id=name,
        name=name,
        role=Role.REVIEWER if roles & {"reviewer", "lead"} else Role.VIEWER,
        groups=tuple(sorted(groups)),
        kind=Kind.AGENT if said.get("type") == "agent" else Kind.PERSON,
        behind=said.get("acts_for"),
    )
