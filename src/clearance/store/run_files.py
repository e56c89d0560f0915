"""Rows of what a run made: files that never change, and the stages that it has come to."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from clearance.errors import ConflictError
from clearance.store.runs import insert_ignoring
from clearance.store.tables import run_files, run_stages


@dataclass(frozen=True)
class RunFile:
    """One file of a run, without its content. `sha256` is hexadecimal, `size` in bytes."""

    name: str
    media_type: str
    sha256: str
    size: int
    at: datetime


@dataclass(frozen=True)
class RunStage:
    """One step of a run's way: its number from 1, what it is called, and the run's state from then on."""

    n: int
    stage: str
    state: Mapping[str, Any]
    at: datetime


def keep(
    tx: Connection, run_id: str, name: str, *, content: bytes, media_type: str, now: datetime
) -> RunFile:
    """Keep a file of a run. The same file again is the same; another content raises `ConflictError`."""
    file = RunFile(name, media_type, hashlib.sha256(content).hexdigest(), len(content), now)
    done = tx.execute(
        insert_ignoring(tx, run_files)
        .values(run_id=run_id, content=content, **file.__dict__)
        .returning(run_files.c.name)
    ).first()
    if done is not None:
        return file
    known = file_of(tx, run_id, name)
    if known is None or known.sha256 != file.sha256:
        raise ConflictError(f"Run {run_id} has another file {name} already, and files of a run never change.")
    return known


def file_of(tx: Connection, run_id: str, name: str) -> RunFile | None:
    """Return what is known of a file; None when the run has none of that name."""
    query = select(*_FILE).where(run_files.c.run_id == run_id, run_files.c.name == name)
    row = tx.execute(query).mappings().first()
    return None if row is None else RunFile(**row)


def content_of(tx: Connection, run_id: str, name: str) -> bytes | None:
    """Return the bytes of a file; None when the run has none of that name."""
    query = select(run_files.c.content).where(run_files.c.run_id == run_id, run_files.c.name == name)
    content: bytes | None = tx.execute(query).scalar()
    return content


def files_of(tx: Connection, run_id: str) -> list[RunFile]:
    """Return the files of a run, by name."""
    query = select(*_FILE).where(run_files.c.run_id == run_id).order_by(run_files.c.name)
    return [RunFile(**row) for row in tx.execute(query).mappings()]


def reach(tx: Connection, run_id: str, stage: str, *, state: Mapping[str, Any], now: datetime) -> RunStage:
    """Note that a run has come to a stage."""
    last = tx.execute(
        select(func.coalesce(func.max(run_stages.c.n), 0)).where(run_stages.c.run_id == run_id)
    ).scalar_one()
    reached = RunStage(n=last + 1, stage=stage, state=state, at=now)
    tx.execute(insert(run_stages).values(run_id=run_id, **reached.__dict__))
    return reached


def stages_of(tx: Connection, run_id: str, *, after: int = 0) -> list[RunStage]:
    """Return the stages that a run has come to, behind number `after`."""
    query = select(*_STAGE).where(run_stages.c.run_id == run_id, run_stages.c.n > after)
    return [RunStage(**row) for row in tx.execute(query.order_by(run_stages.c.n)).mappings()]


def last_stage(tx: Connection, run_id: str) -> RunStage | None:
    """Return where a run is now; None before its first stage."""
    query = select(*_STAGE).where(run_stages.c.run_id == run_id).order_by(run_stages.c.n.desc()).limit(1)
    row = tx.execute(query).mappings().first()
    return None if row is None else RunStage(**row)


_FILE = (
    run_files.c.name,
    run_files.c.media_type,
    run_files.c.sha256,
    run_files.c.size,
    run_files.c.at,
)
_STAGE = (run_stages.c.n, run_stages.c.stage, run_stages.c.state, run_stages.c.at)
