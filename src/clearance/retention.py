"""Retention: the values of finished threads are removed; what happened stays, and everything still verifies.

    close     one transaction: the thread takes nothing any more, its values are gone, the trail says by whom
    clear     what lies outside of our tables goes: LangGraph's checkpoints, the folders of its runs
    emptied   one transaction: nothing of the thread is left

A process that dies on the way leaves a closed thread, with which the next one goes on. At the end the files
of SQLite are rewritten, for a deleted value lies in them until then.
"""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.breaker import forget
from clearance.errors import ConflictError, ForbiddenError, NotFoundError
from clearance.killpoints import at
from clearance.people import SYSTEM, Role, has_role
from clearance.store import audit, people, retention, runs
from clearance.store.database import Database

if TYPE_CHECKING:
    from clearance.adapters.checkpoints import FencedSaver

AT_ONCE = 50
"""How many threads one turn of a worker empties at most."""
CHECKPOINTS = "checkpoints.db"


@dataclass(frozen=True)
class Applied:
    """What was removed, by thread; with `dry` nothing was. `more` says that others are left.

    `scoured`: nothing of it is left in the files of SQLite, or the database is another one.
    """

    threads: tuple[tuple[str, retention.Removed], ...]
    dry: bool = False
    more: bool = False
    scoured: bool = True


@dataclass(frozen=True)
class Retention:
    """Retention in one workspace. `checkpointer` gives the saver of the calling thread."""

    database: Database
    home: Path
    checkpointer: "Callable[[], FencedSaver]"

    def apply(
        self,
        *,
        older_than: timedelta | None = None,
        thread: str | None = None,
        by: str,
        dry: bool = False,
        limit: int | None = None,
    ) -> Applied:
        """Remove the values of a thread, or of all that ended longer ago than `older_than`.

        A thread that is named and has not come to its end raises `ConflictError`; by age it is left out.
        With `dry` nothing is changed. Raises `ForbiddenError` for who is no admin.
        """
        self._check(by)
        chosen, more = self._chosen(older_than, thread, limit=limit)
        if dry:
            return Applied(tuple(self._looked_at(each) for each in chosen), dry=True, more=more)
        self._go_on()
        forget(self.database)
        done = []
        for each in chosen:
            removed = self._close(each, by=by, older_than=older_than)
            if removed is not None:
                done.append((each, removed))
                self._clear(each)
        scoured = self._scour() if done and not more else True
        return Applied(tuple(done), more=more, scoured=scoured)

    def _check(self, by: str) -> None:
        if by == SYSTEM:
            return
        with self.database.read() as tx:
            if not has_role(people.person(tx, by), Role.ADMIN):
                raise ForbiddenError("Only an admin can have values removed.")

    def _chosen(
        self, older_than: timedelta | None, thread: str | None, *, limit: int | None
    ) -> tuple[list[str], bool]:
        with self.database.read() as tx:
            if thread is not None:
                return self._named(tx, thread), False
            before = self.database.now(tx) - (older_than or timedelta(0))
            most = limit if limit is not None else 1_000_000
            found = retention.finished(tx, before=before, limit=most + 1)
        return found[:most], len(found) > most

    def _named(self, tx: Connection, thread: str) -> list[str]:
        if runs.thread(tx, thread) is None:
            raise NotFoundError(f"There is no thread {thread}.")
        named = [thread, *retention.below(tx, thread)]
        for each in named:
            reason = retention.why_not(tx, each)
            if reason is not None:
                raise ConflictError(f"The values of thread {each} stay: {reason}.")
        return named

    def _looked_at(self, thread_id: str) -> tuple[str, retention.Removed]:
        with self.database.read() as tx:
            return thread_id, retention.counted(tx, thread_id)

    def _close(self, thread_id: str, *, by: str, older_than: timedelta | None) -> retention.Removed | None:
        with self.database.write() as tx:
            found = runs.lock_thread(tx, thread_id)
            if found.closed_at is not None or retention.why_not(tx, thread_id) is not None:
                return None
            # A segment that was frozen, and thaws, finds that the thread is no longer its own.
            runs.shut_out(tx, thread_id)
            now = self.database.now(tx)
            removed = retention.empty(tx, thread_id, now=now)
            facts = {**asdict(removed), "older_than_days": None if older_than is None else older_than.days}
            audit.write(tx, AuditKind.THREAD_REDACTED, thread_id, actor=by, now=now, facts=facts)
            at("in-redact")
        at("redacted")
        return removed

    def _go_on(self) -> None:
        """Come to the end with threads that another process has closed, and died over."""
        with self.database.read() as tx:
            left = retention.half_emptied(tx, limit=1_000_000)
        for each in left:
            self._clear(each)

    def _clear(self, thread_id: str) -> None:
        with self.database.read() as tx:
            found = runs.thread(tx, thread_id)
            mine = retention.run_ids(tx, thread_id)
        if found is None:
            raise LookupError(f"thread {thread_id} is gone")
        saver = self.checkpointer()
        saver.raise_fence(thread_id, found.fence)
        saver.delete_thread(thread_id)
        at("checkpoints-gone")
        for run_id in mine:
            self._remove_folder(run_id)
        with self.database.write() as tx:
            retention.emptied(tx, thread_id, now=self.database.now(tx))

    def _remove_folder(self, run_id: str) -> None:
        # An id that is no plain name of a folder has none, and must not lead out of theirs.
        if run_id not in ("", ".", "..") and not set(run_id) & set("/\\\0"):
            shutil.rmtree(self.home / "runs" / run_id, ignore_errors=True)

    def _scour(self) -> bool:
        path = self.database.path
        if path is None:
            return True
        files = [path, path.parent / CHECKPOINTS]
        scoured = [retention.scour(file) for file in files if file.exists()]
        return all(scoured)
