"""The look-out of a worker on PostgreSQL: says that it lives, and finds what dead workers left behind."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from procrastinate import App
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status

from clearance.engine.jobs import ADVANCE, SteadyJobs, is_away, queue_of, reason, wake_of

BEAT_EVERY = 0.5
STALLED_AFTER = 2.0
"""Seconds without a heartbeat after which a worker counts as dead, and its threads go on elsewhere."""

LOOK_EVERY = 0.5
SEARCH_EVERY = 1.0

# Where this process, its machine or the database was away, nobody's heartbeat came in time: the others have
# some seconds for their next one before they are judged. A worker that is alive must not lose its threads.
_AWAY_AFTER = 1.0
_TRUST_AFTER = 3.0

_MOST_AT_ONCE = 100

# NOT IN, not NOT EXISTS: it is hashed whatever the statistics say, which are those of an empty table when
# thousands of jobs come at once.
FORGOTTEN = """
SELECT id, program FROM threads
 WHERE wanted > done AND program = ANY(%(programs)s) AND NOT caller_driven AND id NOT IN (
       SELECT lock FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND lock IS NOT NULL)
 LIMIT %(limit)s
"""

log = logging.getLogger(__name__)


class LookOut:
    """Watches while its worker runs, and while it waits for its last jobs, until `keep` is cancelled."""

    def __init__(self, app: App, jobs: SteadyJobs, *, programs: Callable[[], tuple[str, ...]]) -> None:
        self._app = app
        self._jobs = jobs
        self._programs = programs
        self._beaten = _clock()
        self._trusted_from = 0.0
        self._unknown: set[int] = set()

    async def keep(self) -> None:
        """Beat, look and search for ever."""
        await asyncio.gather(
            _every(BEAT_EVERY, self._beat),
            _every(LOOK_EVERY, self._look),
            _every(SEARCH_EVERY, self._search),
        )

    async def _beat(self) -> None:
        if self._jobs.worker_id is None:
            return
        now = _clock()
        await self._jobs.update_heartbeat(self._jobs.worker_id)
        if now - self._beaten > _AWAY_AFTER:
            self._trusted_from = _clock() + _TRUST_AFTER
        self._beaten = now

    async def _look(self) -> None:
        """Replace the jobs of workers that are dead."""
        now = _clock()
        if now < self._trusted_from or now - self._beaten > _AWAY_AFTER:
            return
        for job in await self._jobs.get_stalled_jobs(
            task_name=ADVANCE, seconds_since_heartbeat=STALLED_AFTER
        ):
            await self._replace(job)

    async def _search(self) -> None:
        """Find threads that nothing else would ever advance."""
        for job in await self._mislaid():
            await self._replace(job)
        await self._wake_forgotten()

    async def _mislaid(self) -> list[Job]:
        """Return jobs that are ours by the database and do not run: the answer to their fetch was lost."""
        if self._jobs.worker_id is None:
            return []
        ours = await self._jobs.list_jobs_async(
            task=ADVANCE, status=Status.DOING.value, worker_id=self._jobs.worker_id
        )
        unknown = {job.id: job for job in ours if job.id is not None and job.id not in self._jobs.running}
        # Once it may be under way to us.
        mislaid = [job for job_id, job in unknown.items() if job_id in self._unknown]
        self._unknown = set(unknown)
        return mislaid

    async def _replace(self, job: Job) -> None:
        """End another worker's job and defer a fresh one, which is announced.

        The old one must not be retried: a worker that thaws would end it while its successor runs it.
        """
        if job.id is None or job.lock is None:
            return
        try:
            await self._jobs.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        except ConnectorException as error:
            if is_away(error):
                raise
            return  # another worker, or its own, was first
        log.warning("job %s of worker %s was left behind; thread %s goes on", job.id, job.worker_id, job.lock)
        await wake_of(self._app, job.lock, queue=job.queue).defer_async()

    async def _wake_forgotten(self) -> None:
        """Wake threads that want a segment and have no job, such as those whose segment was given back."""
        programs = list(self._programs())
        if not programs:
            return
        rows = await self._jobs.connector.execute_query_all_async(
            FORGOTTEN, programs=programs, limit=_MOST_AT_ONCE
        )
        for row in rows:
            await wake_of(self._app, row["id"], queue=queue_of(row["program"])).defer_async()


async def _every(seconds: float, turn: Callable[[], Awaitable[None]]) -> NoReturn:
    """Take turns for ever; one that fails is logged, and the next may go well."""
    while True:
        try:
            await turn()
        except ConnectorException as error:
            log.warning("the look-out waits for the database: %s", reason(error))
        except Exception:  # a look-out that has ended would be missed by nobody
            log.exception("the look-out failed")
        await asyncio.sleep(seconds)


def _clock() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
