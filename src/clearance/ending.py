"""Ending: what follows at once from the end of a call that is a run of its own, as agents elsewhere ask.

Nobody comes back to such a run: it ends in the transaction that ends its call, and its caller is told.
"""

from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.run import RunState, is_one_call
from clearance.store import audit, callbacks, runs


def end_with_call(tx: Connection, run_id: str, *, actor: str, now: datetime) -> None:
    """End the run of a call that has ended, if the run is that call."""
    run = runs.run(tx, run_id)
    if not is_one_call(run.program):
        return
    if runs.end_run(tx, run_id, RunState.DONE, now=now):
        audit.write(tx, AuditKind.RUN_DONE, run_id, actor=actor, now=now)
    callbacks.due(tx, run_id, now=now)
