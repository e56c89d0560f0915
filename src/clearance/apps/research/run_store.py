"""What a run keeps: stages and files in the database, and the same as a folder for people to open.

The database is what counts: the folder is written from it, is made again when it is lost, and is never read
back. Only `meta.json` changes; every other file stays what it was.
"""

import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from clearance.apps.research.hitl import HITLRequest, decided, gate_of, version_of
from clearance.apps.research.plan import Plan, read_plan
from clearance.apps.research.state import PipelineState, Stage, state_of
from clearance.errors import NotFoundError
from clearance.killpoints import at
from clearance.review import Review
from clearance.run import Run
from clearance.store import reviews, run_files, runs
from clearance.store.database import Database
from clearance.store.run_files import RunFile

META = "meta.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewFile:
    """A file to be kept."""

    name: str
    content: bytes | str
    media_type: str = "application/json"


class RunStore:
    """The runs of one workspace. Writes of a segment carry its fence, and raise `FenceLostError`."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database = database
        # Steps run in folders of their own, and are told whole paths.
        self._runs = home.absolute() / "runs"

    def folder(self, run_id: str) -> Path:
        """Return a run's folder, whether it is there or not."""
        return self._runs / _plain(run_id)

    def state(self, run_id: str) -> PipelineState | None:
        """Return where a run is; None before its first stage."""
        with self._database.read() as tx:
            stage = run_files.last_stage(tx, run_id)
        return None if stage is None else state_of(stage.state)

    def reach(
        self, state: PipelineState, stage: Stage, *, fence: int | None, **changes: Any
    ) -> PipelineState:
        """Note that a run has come to a stage, and return its state from then on."""
        after = replace(state, stage=stage, **changes)
        with self._database.write() as tx:
            runs.check_fence(runs.lock_thread(tx, state.run_id), fence)
            now = self._database.now(tx)
            run_files.reach(tx, state.run_id, stage.value, state=after.document(), now=now)
        return after

    def put(
        self,
        run_id: str,
        name: str,
        content: bytes | str,
        *,
        media_type: str = "application/json",
        fence: int | None = None,
    ) -> RunFile:
        """Keep a file of a run, and write it into the folder. The same again is the same."""
        return self.put_all(run_id, [NewFile(name, content, media_type)], fence=fence)[0]

    def put_all(self, run_id: str, files: Sequence[NewFile], *, fence: int | None) -> list[RunFile]:
        """Keep several files of a run, all or none, and write them into the folder."""
        with self._database.write() as tx:
            if fence is not None:
                runs.check_fence(runs.lock_thread(tx, run_id), fence)
            now = self._database.now(tx)
            kept = [
                run_files.keep(
                    tx, run_id, file.name, content=_bytes(file), media_type=file.media_type, now=now
                )
                for file in files
            ]
        if any(file.at == now for file in kept):
            at("file-kept")
        for file in files:
            _write(self._path(run_id, file.name), _bytes(file))
        return kept

    def has(self, run_id: str, name: str) -> bool:
        """Whether a run has a file of that name."""
        with self._database.read() as tx:
            return run_files.file_of(tx, run_id, name) is not None

    def read(self, run_id: str, name: str) -> bytes:
        """Return a file of a run as it was kept; `NotFoundError` when there is none of that name."""
        with self._database.read() as tx:
            content = run_files.content_of(tx, run_id, name)
        if content is None:
            raise NotFoundError(f"Run {run_id} has no file {name}.")
        return content

    def files(self, run_id: str) -> list[RunFile]:
        """Return what is known of a run's files, by name."""
        with self._database.read() as tx:
            return run_files.files_of(tx, run_id)

    def path(self, run_id: str, name: str) -> Path:
        """Return where a file lies for another process to read: as it was kept, whatever became of it there.

        One that was changed is put aside, with `.changed` behind its name.
        """
        return self.laid_out(run_id, name, self.read(run_id, name))

    def laid_out(self, run_id: str, name: str, content: bytes) -> Path:
        """Return the same where the file was just read: `content` is what was kept."""
        path = self._path(run_id, name)
        if path.is_file() and path.read_bytes() != content:
            log.warning("%s was changed, and is put aside: what counts is what was kept", path)
            path.replace(path.with_name(f"{path.name}.changed"))
        if not path.is_file():
            _write(path, content)
        return path

    def changed_by_hand(self, run_id: str, name: str) -> Path | None:
        """Return where a file lies that is not what was kept; None when it is, or is not there."""
        path = self._path(run_id, name)
        return path if path.is_file() and path.read_bytes() != self.read(run_id, name) else None

    def plan(self, run_id: str, version: int) -> Plan:
        """Return a version of a run's plan."""
        return read_plan(self.read(run_id, plan_file(version)))

    def set_hitl_pending(self, run_id: str) -> None:
        """Show in `meta.json` what waits at a gate, as soon as it is asked."""
        self.write_meta(run_id)

    def record_hitl_decision(self, run_id: str) -> None:
        """Show in `meta.json` what people decided at a gate, before what follows from it is done."""
        self.write_meta(run_id)

    def write_meta(self, run_id: str) -> None:
        """Write `meta.json` anew, whole, from what the database says."""
        with self._database.read() as tx:
            document = _meta(tx, run_id)
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        _write(self.folder(run_id) / META, text.encode())

    def rebuild(self, run_id: str) -> None:
        """Make what is lost of a run's folder again, and bring `meta.json` up to date."""
        for file in self.files(run_id):
            if not self._path(run_id, file.name).is_file():
                self.path(run_id, file.name)
        self.write_meta(run_id)

    def now(self) -> datetime:
        """Return the time of the database's clock."""
        with self._database.read() as tx:
            return self._database.now(tx)

    def _path(self, run_id: str, name: str) -> Path:
        return self.folder(run_id).joinpath(*map(_plain, name.split("/")))


def plan_file(version: int) -> str:
    """Return the name of a plan's file."""
    return f"plan.v{version}.json"


def _meta(tx: Connection, run_id: str) -> dict[str, Any]:
    run = runs.run(tx, run_id)
    stages = run_files.stages_of(tx, run_id)
    files = {each.name: each for each in run_files.files_of(tx, run_id)}
    state = None if not stages else state_of(stages[-1].state)
    pending = reviews.pending(tx, run.thread_id)
    last = next((each for each in reviews.of_run(tx, run_id, limit=3) if decided(each)), None)
    return {
        **({} if state is None else state.document()),
        "run": _run_document(run),
        "hitl": None if pending is None or state is None else _waits(pending, state, files),
        "last_decision": None if last is None else {"gate": gate_of(last), "decision": decided(last)},
        "stages": [{"stage": each.stage, "at": each.at.isoformat()} for each in stages],
        "files": [
            {"name": each.name, "sha256": each.sha256, "size": each.size, "media_type": each.media_type}
            for each in files.values()
        ],
    }


def _waits(review: Review, state: PipelineState, files: Mapping[str, RunFile]) -> dict[str, Any]:
    name = plan_file(version_of(review))
    asked = HITLRequest(
        gate=gate_of(review),
        run_id=review.run_id,
        summary=state.planner_summary,
        payload_path=name,
        created_at=review.asked_at,
        review_id=review.id,
        plan_sha256=files[name].sha256,
    )
    return asked.document()


def _run_document(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "state": run.state.value,
        "requester": run.requester,
        "created_at": run.created_at.isoformat(),
        "answer": run.answer,
        "reason": run.reason,
    }


def _bytes(file: NewFile) -> bytes:
    return file.content if isinstance(file.content, bytes) else file.content.encode()


def _plain(part: str) -> str:
    """Return a part of a path that stays where it is; ids and names of ours are made of such parts."""
    if part in ("", ".", "..") or "/" in part or "\\" in part or "\0" in part:
        raise NotFoundError(f"{part!r} is no name of a run or a file.")
    return part


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Threads, too, may write the same file at once.
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    part.write_bytes(content)
    part.replace(path)
