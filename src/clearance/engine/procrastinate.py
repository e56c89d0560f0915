"""The engine on PostgreSQL: Procrastinate delivers wakes as jobs, one at a time per thread by its lock.

A wake is a job that is deferred in the caller's own transaction. A worker of Procrastinate, told by NOTIFY,
takes it and advances the thread. What a process leaves behind that dies, every other worker finds.

Connections of a working process, beside those of its `Database`: one that listens and needs a session of
its own (through PgBouncer in transaction mode nothing is heard, and a wake waits for the next poll), and a
pool for short single statements.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, text

from clearance.engine import Advance
from clearance.errors import StoreError
from clearance.store.database import Database

if TYPE_CHECKING:
    from procrastinate import App
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

POLL_EVERY = 1.0
RESTART_AFTER = 0.5

# The rows of dead workers are kept for an hour: a worker that was frozen for less goes on with its own.
_PRUNE_AFTER = 3600.0
_HARDLY_EVER = 86_400.0

_SETUP_LOCK = 7255443
_MARK = "Tables of Procrastinate, kept by Clearance; newest migration: "

# Jobs are fetched in the order of an index. With the statistics of an empty table, which it mostly is, the
# planner would rather sort, and compare every waiting job with every other one before it takes the first:
# 4 to 50 s a job after 10,000 wakes at once, until the statistics are renewed; without sorting 0.02 s.
_NEVER_SORT = """
DO $$
DECLARE fetching regprocedure;
BEGIN
    FOR fetching IN SELECT oid FROM pg_proc
        WHERE starts_with(proname, 'procrastinate_fetch_job_') AND pg_function_is_visible(oid) LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_sort = off', fetching);
    END LOOP;
END
$$
"""

log = logging.getLogger(__name__)


class ProcrastinateEngine:
    """Delivers wakes on PostgreSQL, to up to `concurrency` segments at a time in this process."""

    def __init__(self, database: Database, *, concurrency: int = 4) -> None:
        self._database = database
        self._concurrency = concurrency
        self._stopping = threading.Event()
        self._stop_loop: Callable[[], object] = lambda: None

    @property
    def owner(self) -> str | None:
        """None: a thread belongs to the worker that holds the lock of its job."""
        return None

    def wake(self, tx: Connection, thread_id: str, *, program: str) -> None:
        """Defer a job for the thread in this transaction; a worker hears of it when it is committed.

        Raises `StoreError` when the connection was lost.
        """
        from procrastinate.exceptions import ConnectorException

        from clearance.engine.jobs import is_away, queue_of, wake_of

        connection: Any = tx.connection.driver_connection
        try:
            wake_of(self._sender, thread_id, queue=queue_of(program), connection=connection).defer()
        except ConnectorException as error:
            if is_away(error) or connection.closed:
                raise StoreError("The connection to the database was lost.") from error
            raise

    def work(self, advance: Advance, *, programs: Callable[[], tuple[str, ...]]) -> None:
        """Advance threads until `stop`, in a loop that runs in this thread; the segments have their own."""
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="segment") as pool:
            asyncio.run(self._work(advance, programs=programs, pool=pool))

    def stop(self) -> None:
        """Take no more threads; may be called from any thread, and before `work`."""
        self._stopping.set()
        self._stop_loop()

    async def _work(
        self, advance: Advance, *, programs: Callable[[], tuple[str, ...]], pool: ThreadPoolExecutor
    ) -> None:
        from procrastinate.exceptions import ConnectorException

        from clearance.engine.jobs import ADVANCE, reason

        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def stop_loop() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(stop.set)

        async def advance_thread(thread_id: str) -> None:
            await loop.run_in_executor(pool, _advance, advance, thread_id)

        self._stop_loop = stop_loop
        while not self._stopping.is_set():
            try:
                app = self._app()
                app.task(name=ADVANCE)(advance_thread)
                await self._run_worker(app, programs=programs, stop=stop)
            except ConnectorException as error:
                log.warning("the worker starts again: %s", reason(error))
            except Exception:  # whatever ends a worker, another one follows
                log.exception("the worker starts again")
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RESTART_AFTER)

    async def _run_worker(
        self, app: "App", *, programs: Callable[[], tuple[str, ...]], stop: asyncio.Event
    ) -> None:
        """Run a worker until `stop` is set and its last job has ended. Raises what ends it earlier."""
        from clearance.engine.jobs import SteadyJobs, queue_of
        from clearance.engine.lookout import LookOut

        jobs = SteadyJobs(app.connector, queues=lambda: [queue_of(name) for name in programs()])
        app.job_manager = jobs
        async with app.open_async():
            # The look-out outlives the worker: Procrastinate ends its own heartbeat before the last jobs have
            # ended, and somebody else would take them for dead.
            watch = asyncio.create_task(LookOut(app, jobs, programs=programs).keep())
            worker = asyncio.create_task(
                app.run_worker_async(
                    name="clearance",
                    concurrency=self._concurrency,
                    delete_jobs="always",
                    install_signal_handlers=False,
                    fetch_job_polling_interval=POLL_EVERY,
                    abort_job_polling_interval=_HARDLY_EVER,
                    update_heartbeat_interval=_HARDLY_EVER,
                    stalled_worker_timeout=_PRUNE_AFTER,
                )
            )
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    jobs.end()
                    worker.cancel()  # it takes no more jobs, and waits for those that run
                await asyncio.wait({worker})
            finally:
                watch.cancel()
                stopped.cancel()
                await asyncio.wait({watch, stopped})
            if not worker.cancelled():
                worker.result()

    def _app(self) -> "App":
        """Return Procrastinate over a pool of its own, which connects again soon after it was cut off."""
        from procrastinate import App, PsycopgConnector

        url = self._database.url
        _, parameters = url.get_dialect()().create_connect_args(url)
        connector = PsycopgConnector(
            pool_factory=_pool,
            kwargs=parameters,
            configure=_one_statement_each,
            min_size=0,  # nothing is waited for at the start, nor lost for good later
            max_size=4,
            timeout=2.0,
            reconnect_timeout=RESTART_AFTER,
        )
        return App(connector=connector)

    @cached_property
    def _sender(self) -> "App":
        """Procrastinate without connections: wakes are deferred on those of their callers."""
        from procrastinate import App, SyncPsycopgConnector

        return App(connector=SyncPsycopgConnector())


def setup(database: Database) -> None:
    """Bring Procrastinate's tables to the form of the installed library; safe when processes start at once.

    Where there are none, the library's whole schema is applied, and a comment on its table notes the newest
    migration in it: the library ships numbered SQL files, but keeps no record of those that were applied.
    After an upgrade of the library each file that is newer is applied in a transaction of its own, but for
    `post` ones after the last `pre`: by the library's rules these remove only what its earlier version
    needs, which may still run elsewhere. They follow with the next upgrade.
    Tables without the comment were made by somebody else, who keeps them up to date.
    """
    from procrastinate.schema import SchemaManager

    files = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    while _take_step(database, files, schema=SchemaManager.get_schema()):
        pass


def _take_step(database: Database, files: list[Path], *, schema: str) -> bool:
    """Apply the schema or the next migration; False when there is nothing to do."""
    with database.write() as tx:
        tx.execute(text(f"SELECT pg_advisory_xact_lock({_SETUP_LOCK})"))
        if tx.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar() is None:
            _apply(tx, schema, newest=files[-1])
            return True
        mark = tx.execute(text("SELECT obj_description(to_regclass('procrastinate_jobs'))")).scalar() or ""
        if not mark.startswith(_MARK):
            return False
        newer = [file for file in files if file.name > mark.removeprefix(_MARK)]
        if not any("_pre_" in file.name for file in newer):
            return False
        _apply(tx, newer[0].read_text(encoding="utf-8"), newest=newer[0])
        return True


def _apply(tx: Connection, script: str, *, newest: Path) -> None:
    connection: Any = tx.connection.driver_connection
    connection.execute(script)  # many statements, and none of their `%` or `:` is ours
    connection.execute(_NEVER_SORT)
    connection.execute(f"COMMENT ON TABLE procrastinate_jobs IS $${_MARK}{newest.name}$$")


def _pool(**options: Any) -> "AsyncConnectionPool":
    """Return a pool that does not try a connection before it is used: a broken one shows at once, and is
    replaced, while the try would double the statements."""
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool(**{**options, "check": None})


async def _one_statement_each(connection: "AsyncConnection") -> None:
    """Let every statement be a transaction: nothing is left open by a process that is stopped."""
    await connection.set_autocommit(True)


def _advance(advance: Advance, thread_id: str) -> None:
    try:
        advance(thread_id)
    except BaseException as error:  # noqa: BLE001 (the last frame; the look-out finds the thread again)
        # Not its text: that may hold values.
        log.error("thread %s: its segment raised %s", thread_id, type(error).__name__)
