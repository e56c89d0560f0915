"""Applying: a person makes a policy file the active policy, or lets the program's code have its say again."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import ConflictError, ForbiddenError, NotFoundError
from clearance.people import Kind, Role, has_role
from clearance.policy import Policy
from clearance.policy_checks import warnings
from clearance.policy_file import place, read_policy
from clearance.policy_json import policy_from_json
from clearance.store import audit, people, policies
from clearance.store.database import Database
from clearance.store.policies import Source


@dataclass(frozen=True)
class Known:
    """What a workspace knows that a policy may name: a program's tools, and how many people are in a group.

    Without tools the program was never started here, and their names cannot be checked. The group "" is
    everybody who may decide; None is: no workspace.
    """

    tools: dict[str, dict[str, Any]]
    members: dict[str, int] | None

    def read(self, text: str) -> Policy:
        """Return the policy of a file, checked against what is known. Raises `PolicyError`."""
        groups = None if self.members is None else [name for name in self.members if name]
        return read_policy(text, tools=self.tools or None, groups=groups)

    def warnings(self, policy: Policy, text: str) -> list[tuple[str, str]]:
        """Return what the policy may not mean: the place in its file, and a sentence."""
        said = [
            (place(text, found.rule, found.key), found.message)
            for found in warnings(policy, self.tools or None, members=self.members)
        ]
        if not self.tools:
            said.append(
                ("1:1", "the program was never started here: names of tools and arguments are unchecked")
            )
        return said


def known(tx: Connection, program: str) -> Known:
    """Return what the workspace knows about a program and its people."""
    deciders = [each for each in people.persons(tx) if not each.disabled and has_role(each, Role.REVIEWER)]
    names = {group for each in people.persons(tx) for group in each.groups}
    members = {name: sum(name in each.groups for each in deciders) for name in sorted(names)}
    return Known(tools=policies.offered(tx, program), members={"": len(deciders), **members})


def apply(
    database: Database, text: str, *, program: str, by: str, instead_of: int | None = None
) -> tuple[Policy, bool]:
    """Make the policy of a file the active one of a program; return it, and whether it was not that already.

    It stays when the program starts again, whatever policy its code brings. `instead_of` is the number of the
    policy that it is meant to follow. Raises `PolicyError` for a file that cannot be used, `ForbiddenError`
    unless `by` is an admin, `ConflictError` when another one is active by now.
    """
    with database.write() as tx:
        _check_admin(tx, by)
        last = policies.latest(tx, program)
        if instead_of is not None and (last is None or last.number != instead_of):
            raise ConflictError(f"Another policy became active in program {program} meanwhile.")
        policy = known(tx, program).read(text)
        return policy, _activate(
            tx, database, policy, program=program, by=by, source=Source.APPLIED, text=text
        )


def reset(database: Database, *, program: str, by: str) -> Policy:
    """Make the policy that the program's code brought last the active one again.

    From then on its code says what holds, from each start. Raises `NotFoundError` where no file was applied,
    `ForbiddenError` unless `by` is an admin.
    """
    with database.write() as tx:
        _check_admin(tx, by)
        last = policies.latest(tx, program)
        if last is None or last.source is not Source.APPLIED:
            raise NotFoundError(f"No policy from a file is active in program {program}.")
        before = policies.latest(tx, program, source=Source.CODE)
        # Where the code never brought one, everything is held until it does.
        policy = Policy() if before is None else policy_from_json(before.policy)
        _activate(tx, database, policy, program=program, by=by, source=Source.CODE, text=None)
        return policy


def _activate(
    tx: Connection,
    database: Database,
    policy: Policy,
    *,
    program: str,
    by: str,
    source: Source,
    text: str | None,
) -> bool:
    now = database.now(tx)
    if not policies.activate(tx, program, policy, now=now, source=source, text=text):
        return False
    facts = {"program": program, "version": policy.version, "source": source.value}
    audit.write(tx, AuditKind.POLICY_ACTIVATED, program, actor=by, now=now, facts=facts)
    return True


def _check_admin(tx: Connection, by: str) -> None:
    person = people.person(tx, by)
    if person.kind is not Kind.PERSON or person.disabled or not has_role(person, Role.ADMIN):
        raise ForbiddenError(f"Only an admin changes the policy; {person.name} is a {person.role}.")
