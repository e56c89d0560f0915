"""The server processes of a case: the product, which can be killed and held back at places of its own."""

import os
import pickle
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter

from clearance import killpoints
from clearance.apps.chat import ReviewedChat
from clearance.store import database
from clearance.web.app import create_app
from clearance.workspace import Clearance
from tests.journeys.cases.fixture_tools import KILL_AT
from tests.journeys.cases.setup import ENVIRONMENT, Setup

SETUP, READY, HOLD = "setup", "ready", "hold"
ANSWERING = "answering"
_HELD_AT = "before-take"
_LOOK_EVERY = 0.05


def serve(folder: Path, number: int) -> None:
    """Be a server until somebody ends this process."""
    setup: Setup = pickle.loads((folder / SETUP).read_bytes())
    if number <= len(setup.skews):
        _skew_this_process(setup.skews[number - 1])
    killpoints.watch(_killing(folder))
    os.environ.update(ENVIRONMENT)
    opened = setup.open()
    ReviewedChat(setup.agent(opened))
    for name in setup.agents:
        ReviewedChat(setup.inner_agent(opened, name))
    routers = _research(opened, folder) if setup.research else []
    opened.worker.start()
    listening = socket.create_server(("127.0.0.1", 0))
    (folder / f"{READY}-{number}.new").write_text(f"http://127.0.0.1:{listening.getsockname()[1]}")
    os.replace(folder / f"{READY}-{number}.new", folder / f"{READY}-{number}")
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
    """Return what ends this process at the place that a file names, once; and what holds calls back."""
    told, hold = folder / KILL_AT, folder / HOLD

    def watcher(place: str) -> None:
        while place == _HELD_AT and hold.exists():
            time.sleep(_LOOK_EVERY)
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
