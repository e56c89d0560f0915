"""What the engine on PostgreSQL promises beyond the contract: outages, the dead, upgrades, costs."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection, create_engine, make_url, text

from clearance.engine.lookout import FORGOTTEN, STALLED_AFTER
from clearance.engine.procrastinate import setup
from clearance.store.database import Database
from tests.databases import Databases
from tests.store.workplace import LONG, Workplace

MIGRATIONS = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


@pytest.fixture
def url(databases: Databases, tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL database with the product's tables."""
    made = databases.migrated("postgresql", tmp_path)
    yield made
    databases.drop(made)


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[Workplace]:
    """A workplace without workers."""
    made = Workplace(url, tmp_path)
    yield made
    made.close()


@contextmanager
def _administering(databases: Databases) -> Iterator[Connection]:
    engine = create_engine(databases.server_url(), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _cut_off(connection: Connection, url: str) -> None:
    name = make_url(url).database
    connection.execute(
        text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), {"name": name}
    )


def _allow_connections(connection: Connection, url: str, *, allowed: bool) -> None:
    connection.execute(text(f'ALTER DATABASE "{make_url(url).database}" ALLOW_CONNECTIONS {allowed}'))


def _jobs(place: Workplace) -> list[tuple[str, str]]:
    with place.database.read() as tx:
        rows = tx.execute(text("SELECT lock, status::text FROM procrastinate_jobs ORDER BY id"))
        return [(row.lock, row.status) for row in rows]


def _heartbeats(place: Workplace) -> list[float]:
    with place.database.read() as tx:
        query = "SELECT extract(epoch FROM last_heartbeat) FROM procrastinate_workers ORDER BY id"
        return [float(beat) for beat in tx.execute(text(query)).scalars()]


def test_finished_jobs_are_deleted(place: Workplace) -> None:
    place.start()
    place.want("t")
    assert place.until_advanced("t")
    assert place.until(lambda: _jobs(place) == [])


def test_a_thread_whose_job_was_deleted_is_found(place: Workplace) -> None:
    place.want("t")
    with place.database.write() as tx:
        tx.execute(text("DELETE FROM procrastinate_jobs"))
    place.start()
    assert place.until_advanced("t")


def test_a_job_whose_fetch_was_never_answered_is_replaced(place: Workplace) -> None:
    place.start()
    assert place.until(lambda: len(_heartbeats(place)) == 1)
    with place.database.write() as tx:
        place.want_in(tx, "t")
        worker = "(SELECT max(id) FROM procrastinate_workers)"
        tx.execute(text(f"UPDATE procrastinate_jobs SET status = 'doing', worker_id = {worker}"))
    assert place.until_advanced("t")


@pytest.mark.parametrize("thread_id", ["""a "b", (c) \\d' {e} %s""", "😀-é-\u202e", "x" * 1000])
def test_any_thread_id_and_any_program_is_delivered(place: Workplace, thread_id: str) -> None:
    program = "ein sehr langer Name für ein Programm, " * 5
    place.programs = (program, f"{program}2")
    place.start()
    place.want(thread_id, program=program)
    place.want(f"{thread_id}2", program=f"{program}2")
    assert place.until_advanced(thread_id)
    assert place.until_advanced(f"{thread_id}2")


def test_cut_connections_are_survived(place: Workplace, databases: Databases, url: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(thread_id: str) -> None:
        if thread_id == "running":
            inside.set()
            go_on.wait(LONG)

    place.body = wait
    place.start()
    place.want("running")
    assert inside.wait(LONG)
    with _administering(databases) as server:
        _cut_off(server, url)
        place.want("after")
        assert place.until_advanced("after")
        _cut_off(server, url)
    go_on.set()
    assert place.until_advanced("running")
    assert place.until(lambda: _jobs(place) == [])
    assert place.segments["running"] == 1


def test_a_database_that_was_away_costs_no_worker_its_threads(
    place: Workplace, databases: Databases, url: str
) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(thread_id: str) -> None:
        if thread_id == "running":
            inside.set()
            go_on.wait(LONG)

    place.body = wait
    place.start()
    place.want("running")
    assert inside.wait(LONG)
    place.start()
    assert place.until(lambda: len(_heartbeats(place)) == 2)
    with _administering(databases) as server:
        _allow_connections(server, url, allowed=False)
        _cut_off(server, url)
        threading.Event().wait(STALLED_AFTER + 1)  # an outage has no event
        _allow_connections(server, url, allowed=True)
    before = max(_heartbeats(place))
    assert place.until(lambda: min(_heartbeats(place)) > before + STALLED_AFTER)
    assert place.thread("running").fence == 1
    place.want("after")
    assert place.until_advanced("after")
    go_on.set()
    assert place.until_advanced("running")
    assert place.until(lambda: _jobs(place) == [])
    assert not place.overlaps


def test_a_worker_ends_while_the_database_is_away(place: Workplace, databases: Databases, url: str) -> None:
    engine = place.start()
    place.want("t")
    assert place.until_advanced("t")
    with _administering(databases) as server:
        _allow_connections(server, url, allowed=False)
        _cut_off(server, url)
        engine.stop()
        assert place.has_ended(engine)
        _allow_connections(server, url, allowed=True)


def test_a_worker_that_waits_for_its_last_segment_is_not_taken_for_dead(place: Workplace) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        inside.set()
        go_on.wait(LONG)

    place.body = wait
    first = place.start()
    place.want("t")
    assert inside.wait(LONG)
    first.stop()
    before = max(_heartbeats(place))
    place.start()
    assert place.until(lambda: len(beats := _heartbeats(place)) == 2 and min(beats) > before + 3)
    assert place.thread("t").fence == 1
    go_on.set()
    assert place.has_ended(first)
    assert place.thread("t").done == 1
    assert not place.overlaps


def test_a_worker_whose_row_was_pruned_starts_again(place: Workplace) -> None:
    place.start()
    assert place.until(lambda: len(_heartbeats(place)) == 1)
    with place.database.write() as tx:
        tx.execute(text("DELETE FROM procrastinate_workers"))
    place.want("t")
    assert place.until_advanced("t")
    assert place.until(lambda: len(_heartbeats(place)) == 1)


def test_the_look_out_reads_no_parked_thread(place: Workplace) -> None:
    with place.database.write() as tx:
        tx.execute(
            text(
                "INSERT INTO threads (id, program, caller_driven, wanted, done, fence, created_at) "
                "SELECT 'parked-' || n, 'chat', false, 2, 2, 2, 0 FROM generate_series(1, 10000) n"
            )
        )
        tx.execute(text("ANALYZE"))
        plan = tx.connection.driver_connection.execute(  # type: ignore[union-attr]
            "EXPLAIN (FORMAT JSON) " + FORGOTTEN, {"programs": ["chat"], "limit": 100}
        )
        ((answer,),) = plan.fetchall()
    scans = [node for node in _nodes(answer[0]["Plan"]) if node.get("Relation Name") == "threads"]
    assert [node["Index Name"] for node in scans] == ["threads_wanted"], json.dumps(answer)


def test_many_wakes_at_once_are_taken_without_delay(url: str) -> None:
    job = "INSERT INTO procrastinate_jobs (queue_name, task_name, lock) SELECT 'chat', 'x', 'job-' || n"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"{job} FROM generate_series(1, 300) n"))
        connection.execute(text("DELETE FROM procrastinate_jobs"))
        connection.execute(text("VACUUM ANALYZE procrastinate_jobs"))  # as the server does now and then
        connection.execute(text(f"{job} FROM generate_series(1, 10000) n"))
        connection.execute(text("SET statement_timeout = '1s'"))  # it takes 0.02 s, or more than 4 s
        fetched = connection.execute(text("SELECT lock FROM procrastinate_fetch_job_v2('{chat}', NULL)"))
        assert fetched.scalar() == "job-1"
    engine.dispose()


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from _nodes(part)


def test_processes_may_set_up_at_once(new_postgres_database: Callable[[], str]) -> None:
    url = new_postgres_database()
    ready = threading.Barrier(6, timeout=LONG)

    def set_up() -> str | None:
        with closing(Database(url)) as database:
            ready.wait()
            setup(database)
            return _comment(database)

    with ThreadPoolExecutor(6) as pool:
        comments = {each.result() for each in [pool.submit(set_up) for _ in range(6)]}
    assert comments == {_mark(MIGRATIONS[-1])}


def test_the_tables_of_an_older_library_are_upgraded(
    new_postgres_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_postgres_database()
    older = next(file for file in MIGRATIONS if file.name.startswith("03.01.00_01_pre"))
    with closing(Database(url)) as database:
        database.migrate()
        for file in MIGRATIONS[: MIGRATIONS.index(older)]:
            _run(database, file.read_text(), f"COMMENT ON TABLE procrastinate_jobs IS '{_mark(file)}'")
        setup(database)
        # What the version before still needs is left until the next upgrade.
        assert _comment(database) == _mark([file for file in MIGRATIONS if "_pre_" in file.name][-1])
    place = Workplace(url, tmp_path)
    place.start()
    place.want("t")
    assert place.until_advanced("t")
    place.close()


def test_tables_that_somebody_else_keeps_are_left_alone(new_postgres_database: Callable[[], str]) -> None:
    with closing(Database(new_postgres_database())) as database:
        _run(database, SchemaManager.get_schema())
        setup(database)
        assert _comment(database) is None


def _run(database: Database, *scripts: str) -> None:
    with database.write() as tx:
        connection: Any = tx.connection.driver_connection
        for script in scripts:
            connection.execute(script)


def _comment(database: Database) -> str | None:
    with database.read() as tx:
        query = text("SELECT obj_description('procrastinate_jobs'::regclass)")
        comment: str | None = tx.execute(query).scalar()
        return comment


def _mark(newest: Path) -> str:
    return f"Tables of Procrastinate, kept by Clearance; newest migration: {newest.name}"
