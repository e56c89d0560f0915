"""Where calls come from, for conditions that ask: read only when the policy has such a condition."""

from sqlalchemy import Connection

from clearance.expression import Cel, Origin, read
from clearance.policy import Policy
from clearance.store import people, runs


def origin(tx: Connection, policy: Policy, *, run_id: str) -> Origin | None:
    """Return the run and who asked for it; None where no rule asks, or the requester is not known here."""
    asked = {
        name for rule in policy.rules if isinstance(rule.when, Cel) for name in read(rule.when.text).names
    }
    if not asked & {"run", "person"}:
        return None
    run = runs.run(tx, run_id)
    person = people.by_id(tx, [run.requester]).get(run.requester)
    if person is None:
        return None
    return Origin(
        run={"id": run.id, "thread": run.thread_id, "program": run.program},
        person={
            "id": person.id,
            "groups": list(person.groups),
            "role": person.role.value,
            "kind": person.kind.value,
        },
    )
