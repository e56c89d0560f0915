"""What is due while a review waits: people are reminded, or it is escalated to others. Each is done once.

The facts in the trail are what notices are sent by. Whether somebody of another group may decide is judged
by the stored instant alone, so it makes no difference when the sweep notices that it is over.
"""

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.deadline import Time, TimeKind, times
from clearance.people import SYSTEM
from clearance.review import ReviewStatus
from clearance.store import audit, reviews, runs
from clearance.store import times as rows
from clearance.store.database import Database

_KINDS = {TimeKind.REMIND: AuditKind.REVIEW_REMINDED, TimeKind.ESCALATE: AuditKind.REVIEW_ESCALATED}


def remind(database: Database, *, limit: int) -> int:
    """Do what is due for reviews that wait, oldest first; return how much was done.

    Harmless from several workers. A worker that comes late does each that was missed.
    """
    with database.read() as tx:
        due = rows.due(tx, now=database.now(tx), limit=limit)
    found = 0
    for review_id, time in due:
        with database.write() as tx:
            found += _done(database, tx, review_id, time=time)
    return found


def _done(database: Database, tx: Connection, review_id: str, *, time: Time) -> bool:
    runs.lock_thread(tx, reviews.thread_of(tx, review_id))
    now = database.now(tx)
    if not rows.done(tx, review_id, time, now=now):
        return False
    review = reviews.review(tx, review_id)
    # What an edit has made of the call may have other times, and a review that ended has none.
    if review.status is not ReviewStatus.PENDING or time not in times(review):
        return False
    facts = {"due": time.at.isoformat(), **({"to": time.to} if time.to else {})}
    audit.write(tx, _KINDS[time.kind], review_id, actor=SYSTEM, now=now, facts=facts)
    return True
