"""The jobs that carry wakes on PostgreSQL, as one worker of Procrastinate sees them.

The worker asks everything of the database through its job manager, so that is the place to be steady:
Procrastinate's own ends the worker at a fetch that fails, loses its listener for good with the connection
(the worker's watch over it ends with the first side task, at once where there are no periodic tasks), and
wakes nobody when a job ends whose lock kept another one waiting.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import psycopg
from procrastinate import App
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, JobDeferrer, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback

ADVANCE = "clearance.advance"
"""The name of the one task."""

RETRY_EVERY = 0.5

# NOTIFY refuses channels of 64 bytes and more, and Procrastinate puts 23 before the queue's name.
_LONGEST_QUEUE = 40

log = logging.getLogger(__name__)


def queue_of(program: str) -> str:
    """Return the queue of a program: its name, or what is left of it with a digest where it is too long."""
    name = program.encode()
    if len(name) <= _LONGEST_QUEUE:
        return program
    digest = hashlib.sha256(name).hexdigest()[:16]
    return f"{name[: _LONGEST_QUEUE - 17].decode(errors='ignore')}#{digest}"


def wake_of(app: App, thread_id: str, *, queue: str, connection: Any = None) -> JobDeferrer:
    """Return the job that advances a thread, ready to be deferred.

    It has no queueing lock: its conflict would end the transaction, and a second wake does no harm.
    """
    arguments: dict[str, Any] = {"thread_id": thread_id}
    return app.configure_task(
        ADVANCE, lock=thread_id, queue=queue, task_kwargs=arguments, connection=connection
    )


def is_away(error: ConnectorException) -> bool:
    """Whether the database could not be reached, rather than refused what it was asked."""
    return isinstance(error.__cause__, psycopg.OperationalError | psycopg.InterfaceError)


def reason(error: ConnectorException) -> str:
    """Return the driver's own first line."""
    return str(error.__cause__ or error).strip().partition("\n")[0]


class SteadyJobs(JobManager):
    """The jobs of one worker. `queues` is asked anew whenever it matters, so it may grow.

    `worker_id` names the worker's row while it has one; `running` holds the ids of its jobs.
    """

    def __init__(self, connector: BaseConnector, *, queues: Callable[[], list[str]]) -> None:
        super().__init__(connector)
        self.worker_id: int | None = None
        self.running: set[int] = set()
        self._queues = queues
        self._notify: NotificationCallback | None = None
        self._notified = 0
        self._ending = False

    def end(self) -> None:
        """Wait for an absent database no longer: what cannot be finished is left to other workers."""
        self._ending = True

    async def register_worker(self) -> int:
        """Make the worker's row, and keep its id for the heartbeat."""
        self.worker_id = await super().register_worker()
        return self.worker_id

    async def unregister_worker(self, worker_id: int) -> None:
        """Remove the worker's row. One that stays behind is pruned later."""
        self.worker_id = None
        try:
            await super().unregister_worker(worker_id)
        except ConnectorException as error:
            log.warning("the row of worker %s stays behind: %s", worker_id, reason(error))

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Take the next job. None, too, while the database is away: the worker asks again later.

        Raises `ConnectorException` when the worker's row was pruned; the worker has to start again.
        """
        try:
            job = await self._next(worker_id)
        except ConnectorException as error:
            if not is_away(error):
                raise
            log.warning("no job can be fetched: %s", reason(error))
            return None
        if job is not None and job.id is not None:
            self.running.add(job.id)
        return job

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job, waiting for the database: an unfinished one would keep its lock while we live."""
        while True:
            try:
                await super().finish_job(job, status, delete_job)
                break
            except ConnectorException as error:
                if not is_away(error):
                    log.info("job %s was replaced while it ran", job.id)
                    break
                if self._ending:
                    log.warning("job %s is left unfinished: %s", job.id, reason(error))
                    return
            await asyncio.sleep(RETRY_EVERY)
        self.running.discard(job.id or 0)
        if self._notify is not None:
            # Its lock may have kept another job waiting, which nothing else tells.
            await self._notify(channel="", notification={"type": "job_inserted", "job_id": 0})

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> NoReturn:
        """Pass notifications on until cancelled, over a new connection whenever one was lost."""

        async def notify(*, channel: str, notification: Notification) -> None:
            self._notified += 1
            await on_notification(channel=channel, notification=notification)

        self._notify = notify
        while True:
            await self._listen(notify, self._queues())

    async def _next(self, worker_id: int) -> Job | None:
        while True:
            notified, queues = self._notified, self._queues()
            if not queues:
                return None
            job = await super().fetch_job(queues, worker_id)
            # A job that came while this was asked is not seen by it, and the worker forgets that it was told.
            if job is not None or notified == self._notified:
                return job

    async def _listen(self, notify: NotificationCallback, queues: list[str]) -> None:
        """Listen to these queues until the connection is lost or there are others."""
        listening = asyncio.create_task(super().listen_for_jobs(on_notification=notify, queues=queues))
        try:
            while queues == self._queues() and not listening.done():
                await asyncio.wait({listening}, timeout=RETRY_EVERY)
        finally:
            listening.cancel()
            await asyncio.wait({listening})
        if listening.cancelled():
            return
        try:
            listening.result()
        except ConnectorException as error:
            log.warning("nothing is heard of new jobs: %s", reason(error))
            await asyncio.sleep(RETRY_EVERY)
