"""What an administrator does while reviews wait: people and rules are changed by the product's commands."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from sqlalchemy import update

from clearance.ledger import new_id
from clearance.policy import Effect, Policy, Predicate, Rule
from clearance.policy_json import policy_from_json
from clearance.policy_writing import write_policy
from clearance.store import tables
from tests.journeys.cases.loading import CaseError, Step
from tests.journeys.cases.policies import groups_in
from tests.journeys.cases.setup import KEEPER, PROGRAM, person
from tests.journeys.cases.steps import go_on, only, op
from tests.journeys.cases.world import Result, Scope, World

Rules = tuple[Rule, ...]
_EFFECTS = {"never": Effect.DENY, "approval": Effect.HOLD, "none": Effect.ALLOW}


@op("admin")
def admin(world: World, _: Scope, step: Step) -> Result:
    """Change people, or the rules that hold."""
    only(step, "what", "display_name", "quorum")
    what = str(step["what"])
    if found := re.fullmatch(r"rename (\S+)", what):
        return _rename(world, found[1], step["display_name"])
    if found := re.fullmatch(r"(remove|add|give) role (\S+) (?:from|to) (\S+)", what):
        return _regroup(world, found[3], found[2], out=found[1] == "remove")
    if found := re.fullmatch(r"(disable|enable) (\S+)", what):
        return _done(world, "people", found[1], found[2])
    if re.fullmatch(r"(lower|raise|set) quorum in policy", what):
        return _change_rules(world, lambda rules: _with_quorum(rules, step["quorum"]))
    if found := re.fullmatch(r"policy: (\S+) -> (\S+)", what):
        tool, said = found.groups()
        if said not in _EFFECTS:
            raise CaseError(f"The interpreter knows no rule {said!r}.")
        return _change_rules(world, lambda rules: _with_effect(rules, tool, _EFFECTS[said]))
    if found := re.fullmatch(r"add rule (.+)", what):
        name = found[1]
        return _change_rules(world, lambda rules: _with_rule(rules, name))
    raise CaseError(f"The interpreter knows no administrator who does {what!r}.")


@op("release_execution")
def release_execution(world: World, scope: Scope, step: Step) -> Result:
    """Let calls that were held back begin."""
    only(step)
    world.site.hold(held=False)
    for thread in scope.threads.values():
        go_on(world, thread)
    return Result()


def rules_of(world: World) -> tuple[Policy, int]:
    """Return the rules that hold, and their number, as the command shows them."""
    shown = json.loads(world.console.read("policy", "show", "--program", PROGRAM, "--json", by=KEEPER))
    return policy_from_json(shown["policy"]), shown["number"]


def _rename(world: World, name: str, display_name: str) -> Result:
    """Change how somebody is called: names come from where people sign in, and no command gives them."""
    if name not in world.site.setup.names():
        raise CaseError(f"There is no person {name!r}.")
    with world.site.opened.database.write() as tx:
        people = tables.people
        tx.execute(update(people).where(people.c.id == name).values(name=display_name))
    return Result("accepted")


def _regroup(world: World, name: str, role: str, *, out: bool) -> Result:
    said = world.site.setup.known[name]
    roles = [each for each in said.get("roles", []) if each != role] + ([] if out else [role])
    after = person(name, {**said, "roles": roles}, groups_in(world.site.setup.rules()))
    results = [
        _done(world, "people", "groups", name, *after.groups),
        _done(world, "people", "role", name, after.role.value),
    ]
    return next((each for each in results if each.outcome == "refused"), results[0])


def _change_rules(world: World, change: Callable[[Rules], Iterable[Rule]]) -> Result:
    """Read the rules, change them, and apply them in place of those that were read."""
    policy, number = rules_of(world)
    changed = replace(policy, rules=tuple(change(policy.rules)))
    if any(isinstance(rule.when, Predicate) for rule in changed.rules):
        raise CaseError("There is no form in a policy file for a condition that is a function.")
    file = Path(world.site.folder) / f"policy-{new_id()}.toml"
    file.write_text(write_policy(changed), encoding="utf-8")
    return _done(world, "policy", "apply", str(file), "--program", PROGRAM, "--instead-of", str(number))


def _done(world: World, *words: str) -> Result:
    done = world.console.run(*words, by=KEEPER)
    return Result("accepted" if done.exit_code == 0 else "refused", done.stderr.strip(), about=words)


def _with_quorum(rules: Rules, quorum: int) -> Iterable[Rule]:
    return (replace(rule, who=tuple(replace(who, approve=quorum) for who in rule.who)) for rule in rules)


def _with_effect(rules: Rules, tool: str, effect: Effect) -> Iterable[Rule]:
    """Return the rules with another effect for a tool, in place of the one that it had."""
    own = [rule for rule in rules if rule.tool == tool] or [Rule(tool)]
    return [*(rule for rule in rules if rule.tool != tool), *(replace(rule, effect=effect) for rule in own)]


def _with_rule(rules: Rules, name: str) -> Iterable[Rule]:
    """Return the rules with one more, about a tool that people are asked about already."""
    held = next(rule for rule in rules if rule.effect is Effect.HOLD)
    return [*rules, Rule(held.tool, name=name)]
