"""What the trail, and the stored facts that it is bound to, must say of a case."""

import json
import re
from typing import Any

from clearance.audit import AuditKind
from tests.journeys.cases.loading import CaseError
from tests.journeys.cases.world import World


def check_audit(world: World, must: str) -> None:
    """Check what the trail must say. Raises `CaseError` for a demand that is not known."""
    said = re.sub(r"\s+", " ", must).strip()
    if found := re.fullmatch(r"proposed (\S+), edited (\S+), executed (\S+)", said):
        _three_facts(world, *found.groups())
    elif said == "expiry by the system, no person named":
        _expired_by_the_system(world)
    elif said == "the refused tries with the real subject":
        _only_real_subjects(world)
    elif re.fullmatch(r"\w+(\([^()]*\))?(, \w+(\([^()]*\))?)*", said):
        _story(world, re.findall(r"(\w+)(?:\(([^()]*)\))?", said))
    else:
        raise CaseError(f"The interpreter knows no demand on the trail {said!r}.")


def _three_facts(world: World, proposed: str, edited: str, executed: str) -> None:
    """What was proposed, what it was changed to and what ran are kept apart, and bound in the trail."""
    [call] = [call for review in world.reviews(world.scope) for call in review.calls if call.edited]
    assert _holds(call.proposed, proposed), call.proposed
    assert _holds(call.arguments, edited), call.arguments
    [row] = [row for thread in world.scope.threads.values() for row in world.site.ledger(thread)]
    assert _holds(row.arguments, executed), row.arguments
    entries = world.site.trail()
    [asked] = [e for e in entries if e.kind == AuditKind.REVIEW_ASKED]
    [decided] = [e for e in entries if e.kind == AuditKind.REVIEW_DECIDED]
    [started] = [e for e in entries if e.kind == AuditKind.CALL_STARTED]
    shown = asked.facts["calls"][0]["fingerprint"]
    changed = decided.facts["decisions"][0]
    assert changed["type"] == "edit", changed
    assert shown != changed["fingerprint"], "the edit has the fingerprint of what was proposed"
    assert changed["fingerprint"] == call.fingerprint == started.facts["fingerprint"]


def _story(world: World, told: list[tuple[str, str]]) -> None:
    """The trail tells of the first review what happened, in this order; a letter is one digest.

    A look at a review and a refused try change nothing, and leave no entry: nothing is decided by them.
    """
    review = world.reviews(world.scope)[0]
    about = {review.id, *(call.key for call in review.calls)}
    entries = [entry for entry in world.site.trail() if entry.subject in about]
    subs = {said["sub"]: name for name, said in world.site.setup.fixtures.principals.items()}
    digests: dict[str, str] = {}
    for word, given in told:
        said = [part.strip() for part in given.split(",") if part.strip()]
        person = next((subs[part] for part in said if part in subs), None)
        if word in ("shown", "refused"):
            decided = {entry.actor for entry in entries if entry.kind == AuditKind.REVIEW_DECIDED}
            assert word == "shown" or person not in decided, f"{person} was refused, and decided"
            continue
        if word not in _TOLD_BY:
            raise CaseError(f"The interpreter knows no entry {word!r} of a trail.")
        entry = next((each for each in entries if each.kind == _TOLD_BY[word]), None)
        assert entry is not None, f"the trail does not tell: {word}"
        entries = entries[entries.index(entry) + 1 :]
        assert person in (None, entry.actor), f"{word} by {entry.actor}"
        facts = json.dumps(dict(entry.facts))
        for part in said:
            if letter := re.fullmatch(r"digest (\w+)", part):
                found = re.findall(r'"fingerprint": "(\w+)"', facts)
                assert digests.setdefault(letter[1], found[0]) == found[0], f"{word}: another digest"
            elif part not in subs:
                assert f'"{part}"' in facts, f"{word} does not say {part}"
    assert len(set(digests.values())) == len(digests), digests


_TOLD_BY = {
    "proposed": AuditKind.REVIEW_ASKED,
    "decided": AuditKind.REVIEW_DECIDED,
    "expired": AuditKind.REVIEW_EXPIRED,
    "executed": AuditKind.CALL_STARTED,
    "outcome": AuditKind.CALL_EXECUTED,
}


def _expired_by_the_system(world: World) -> None:
    """A review that expired says so by an entry of the system's; nobody decided it."""
    expired = [e for e in world.site.trail() if e.kind == AuditKind.REVIEW_EXPIRED]
    assert expired, "no expiry is told"
    people = set(world.site.setup.fixtures.principals)
    assert not {entry.actor for entry in expired} & people, expired


def _only_real_subjects(world: World) -> None:
    """Every decision in the trail is by somebody whose decision was accepted; refused tries left none."""
    accepted: set[str] = set()
    refused: set[str] = set()
    for place, step in enumerate(world.case.steps, start=1):
        if step["op"] == "decide":
            (accepted if world.results[place].outcome == "accepted" else refused).add(step["by"])
    decided = {e.actor for e in world.site.trail() if e.kind == AuditKind.REVIEW_DECIDED}
    assert decided == accepted, (decided, accepted)
    assert not decided & (refused - accepted), (decided, refused)


def _holds(arguments: str, value: str) -> bool:
    """Whether arguments hold a value somewhere, as it is written."""
    return value in _written(json.loads(arguments))


def _written(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*(_written(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_written(item) for item in value))
    return {value if isinstance(value, str) else json.dumps(value)}
