"""People: who is who, and who may decide what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from clearance.policy import Risk, Threshold


class Role(StrEnum):
    """What a person may do here; each role includes the ones before it."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Kind(StrEnum):
    """A person decides; an agent proposes and never decides."""

    PERSON = "person"
    AGENT = "agent"


class Mode(StrEnum):
    """`single-user`: the one person here may decide what they asked for; `separate`: nobody may."""

    SINGLE_USER = "single-user"
    SEPARATE = "separate"


class Sight(StrEnum):
    """Whose requests a person sees: `all`, or of `own-groups`: theirs, and of who is in a group of theirs."""

    ALL = "all"
    OWN_GROUPS = "own-groups"


@dataclass(frozen=True)
class SessionLimits:
    """How long a sign-in lasts: while it is used within each `idle`, and never longer than `lifetime`."""

    idle: timedelta = timedelta(hours=12)
    lifetime: timedelta = timedelta(days=30)


@dataclass(frozen=True)
class Patience:
    """How often a secret may be wrong: `free` times at once, then after a wait that doubles up to `most`."""

    free: int
    most: timedelta


PER_PERSON = Patience(5, timedelta(minutes=1))
"""Short, for anybody can make somebody else wait; twelve characters are not guessed at one a minute."""
PER_ADDRESS = Patience(20, timedelta(minutes=15))
SYSTEM = "clearance"
"""The product itself, where the trail says who did something. Nobody else has this id."""
AGENTS_PROPOSE = "Agents propose; only people decide."
FRESH = timedelta(minutes=5)
"""How long a full sign-in counts as fresh: what is decided at high or critical risk needs one."""
_ROLES = tuple(Role)


@dataclass(frozen=True)
class Person:
    """Somebody (or an agent) known to this workspace. `behind` is the person an agent acts for.

    `sees` are whose requests they see, as a door has read it when they came; None: everybody's.
    """

    id: str
    name: str
    role: Role = Role.VIEWER
    groups: tuple[str, ...] = ()
    kind: Kind = Kind.PERSON
    behind: str | None = None
    disabled: bool = False
    sees: frozenset[str] | None = None


def has_role(person: Person, role: Role) -> bool:
    """Whether the person has this role or one that includes it."""
    return _ROLES.index(person.role) >= _ROLES.index(role)


def may_see(person: Person, *, requester: str) -> bool:
    """Whether the person may see what `requester` asked for: an agent its own, people what they `see`."""
    only = sees_only(person)
    return only is None or requester in only


def sees_only(person: Person) -> frozenset[str] | None:
    """Return whose requests alone this person sees, for lists of them; None: everybody's."""
    return frozenset({person.id}) if person.kind is Kind.AGENT else person.sees


def seen_by_groups(person: Person, everybody: Mapping[str, Person]) -> frozenset[str]:
    """Return whose requests a person sees where groups decide it; `everybody` is by their ids.

    Their own, those of agents that act for them, and of whom they share a group with or who acts for such.
    """

    def shares(other: Person) -> bool:
        passed: set[str] = set()
        while other.id not in passed:
            if other.id == person.id or set(other.groups) & set(person.groups):
                return True
            passed.add(other.id)
            other = everybody.get(other.behind or "", other)
        return False

    return frozenset({person.id}) | {id for id, other in everybody.items() if shares(other)}


def refusal(
    person: Person, *, requester: str, mode: Mode, operators_only: bool = False, own: bool | None = None
) -> str | None:
    """Return why this person may not decide what `requester` asked for, or None when they may.

    `requester` is the whole party's person: of an agent that asked, whom it acts for in the end. `own` is
    whether the policy lets it decide what it asked for; None leaves that to the mode.
    """
    needed = Role.OPERATOR if operators_only else Role.REVIEWER
    if person.kind is Kind.AGENT:
        return AGENTS_PROPOSE
    if person.disabled:
        return f"{person.name} is disabled and decides nothing."
    if not has_role(person, needed):
        return f"{person.name} is a {person.role} here; deciding this needs the role {needed}."
    may = mode is Mode.SINGLE_USER if own is None else own
    if not may and requester in (person.id, person.behind):
        return f"{person.name} asked for this, and nobody decides their own request: somebody else has to."
    return None


def counts_for(person: Person, threshold: Threshold, *, elapsed: timedelta = timedelta(0)) -> bool:
    """Whether this person's decision counts for the threshold: everybody's, or a member's of its group.

    `elapsed` is the time from the question to the decision: from an escalation on, its group counts too.
    """
    if threshold.group is None or threshold.group in person.groups:
        return True
    return any(elapsed >= each.after and each.to in person.groups for each in threshold.also)


def needs_fresh(risk: Risk, *, fresh_at: datetime, now: datetime) -> bool:
    """Whether a decision at this risk needs its person to sign in once more.

    High: unless they did within `FRESH`. Critical: each time.
    """
    return risk is Risk.CRITICAL or (risk is Risk.HIGH and not fresh_at <= now < fresh_at + FRESH)


def wait_after(failures: int, patience: Patience) -> timedelta:
    """Return how long nothing is looked at after so many failures in a row."""
    over = failures - patience.free
    if over < 0:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(over, 32)), patience.most)
