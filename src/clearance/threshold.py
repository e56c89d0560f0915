"""Thresholds: how many people must say the same, of which group, and who may stand in for them later."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from clearance.errors import PolicyError


@dataclass(frozen=True, order=True)
class Escalation:
    """From `after` the question was asked on, the members of the group `to` are told and may decide too."""

    after: timedelta
    to: str

    def __post_init__(self) -> None:
        given: tuple[object, object] = (self.after, self.to)
        if not (isinstance(given[0], timedelta) and isinstance(given[1], str)):
            raise PolicyError("An escalation has 'after', a timedelta, and 'to', the name of a group.")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values; the time in seconds."""
        return {"after": self.after.total_seconds(), "to": self.to}


@dataclass(frozen=True)
class Threshold:
    """How many different people must say the same, all of them of `group` where one is named.

    `also` are the groups whose members count too, each from its time on: what the rules escalate to.
    """

    approve: int = 1
    reject: int = 1
    group: str | None = None
    also: tuple[Escalation, ...] = ()

    def __post_init__(self) -> None:
        if type(self.approve) is not int or type(self.reject) is not int:
            raise PolicyError("A threshold counts people: 'approve' and 'reject' are whole numbers.")
        if self.group is not None and not isinstance(self.group, str):
            raise PolicyError("The group of a threshold is a name.")

    def escalating(self, to: Escalation | None) -> "Threshold":
        """Return the threshold of a rule that escalates; who asks for no group asks for no other later."""
        return self if to is None or self.group is None else replace(self, also=(to,))

    def order(self) -> tuple[object, ...]:
        """Return what thresholds are sorted by."""
        return self.group or "", self.approve, self.reject, self.also
