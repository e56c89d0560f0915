"""Properties of kinds E, F, J and M: what rules hold, who may decide, deadlines, and the trail."""

import re
from datetime import datetime
from typing import Any

from tests.journeys.cases.loading import expand
from tests.journeys.cases.properties import says
from tests.journeys.cases.properties_of_decisions import number
from tests.journeys.cases.world import Result, World
from tests.journeys.invariants import replayed_reviews

SAMPLES = {
    "delete_file": {"path": "/srv/tmp/a"},
    "pay": {"account": "A-1", "amount_cents": 1},
    "send_email": {"to": "ann@corp.example", "subject": "s", "body": "b"},
    "write_record": {"data": 1},
    "run_shell": {"command": "ls"},
    "deploy": {"env": "eu", "sha": "a" * 40},
    "submit_job": {"plan_path": "/p", "gpu_hours": 1},
}


@says(
    r"each wrong configuration: refused at load, naming the entry; if a product accepts one of them, "
    r"(\w+) is still held for approval"
)
def wrong_rules_are_refused_or_hold(world: World, said: re.Match[str]) -> None:
    """Rules that could never do what they say are refused by name, or people are asked all the same."""
    parts = _configured(world, "configs")
    for part in parts:
        rules = part.about["given"]["rules"]
        if part.outcome == "refused":
            entries = {str(word) for rule in rules for word in _words(rule)}
            assert any(word in part.reason for word in entries), part.reason
        else:
            assert part.about["probe"].held(said[1], SAMPLES[said[1]]) is True, part.about["given"]


@says(r"each predicate: (\w+) is held for approval \(fail closed\) and the fault is visible to the operator")
def broken_rule_functions_hold(world: World, said: re.Match[str]) -> None:
    """A rule function that gives no boolean in time asks people, and the review says what is wrong."""
    for part in _configured(world, "predicates"):
        assert part.about["held"] is True, part.about["given"]
        [asked] = part.about["probe"].asked
        [request] = asked["action_requests"]
        assert request["name"] == said[1], request
        assert request["faults"], f"{part.about['given']}: nothing is said of the fault"


@says(r"only (.*) run without a review; the other (\w+) are held(?: \(none is silently changed\))?")
def only_these_run(world: World, said: re.Match[str]) -> None:
    """The values that are named ran as they were; all others wait, unchanged."""
    named = re.findall(r"'([^']*)'", said[1])
    tried = _proposed_each(world)
    held = 0
    for part in tried:
        value, each = part.about["value"], part.about["scope"]
        ran = [effect.args for _, effect in world.effects(each)]
        if set(value.values()) & set(named):
            assert ran == [value], value
            assert not world.reviews(each), value
        else:
            held += 1
            assert ran == [], value
            [review] = world.reviews(each)
            [shown] = [world.arguments(call) for call in review.calls]
            assert shown == value, value
    assert held == number(said[2]), held


@says(r"without a review run exactly the first (\w+); all others are held or refused(?: \(.*\))?")
def only_the_first_run(world: World, said: re.Match[str]) -> None:
    """The first values ran; each of the others waits, or was refused with an error result."""
    for place, part in enumerate(_proposed_each(world)):
        value, each = part.about["value"], part.about["scope"]
        ran = [effect.args for _, effect in world.effects(each)]
        if place < number(said[1]):
            assert ran == [value], value
            continue
        assert ran == [], value
        told = world.told(part.about["label"], each)
        waits = [review.status for review in world.reviews(each)] == ["pending"]
        assert waits or (told is not None and told.status == "error"), value


@says(r"empty allow-list: everything is held")
def an_empty_list_allows_nothing(world: World, _: re.Match[str]) -> None:
    """Under rules with an empty list, nothing that was proposed before runs."""
    tried = _proposed_each(world)
    for part in _configured(world, "configs"):
        if part.outcome == "refused":
            continue
        for proposed in tried:
            value = proposed.about["value"]
            assert part.about["probe"].held(proposed.about["tool"], value) is not False, value


@says(r"answers of step (\d+) and step (\d+) cannot be told apart(?: \(status, body, time\))?")
def answers_are_alike(world: World, said: re.Match[str]) -> None:
    """What is foreign and what is not there look the same, but for the name that was asked for."""
    one, other = (world.results[int(step)].about for step in said.groups())
    assert one.status == other.status, (one.status, other.status)
    assert _without_ids(one.body) == _without_ids(other.body), (one.body, other.body)


@says(
    r"only the values with an explicit offset that name a real instant are accepted; "
    r"a refused one changes nothing"
)
def instants_name_their_offset(world: World, _: re.Match[str]) -> None:
    """A deadline that is no instant, or names no offset, is refused."""
    for part in _configured(world, "deadlines"):
        given = part.about["given"]
        if part.outcome == "refused":
            assert part.reason, given
            continue
        assert datetime.fromisoformat(given).tzinfo is not None, f"{given} was accepted"


@says(r"replaying the records alone gives the state of every review")
def the_trail_tells_every_state(world: World, _: re.Match[str]) -> None:
    """The trail alone says how every review and each of its calls stands."""
    told = replayed_reviews(world.site.trail())
    threads = {thread for scope in world.scopes for thread in scope.threads.values()}
    for review in world.site.reviews(threads):
        states = {call.key: call.state.value for call in review.calls}
        assert told[review.id] == (review.status.value, states), review.id


def _words(rule: Any) -> list[object]:
    """Return what a rule says of its own: the tools it names, and the words and values that it uses."""
    usual = ("tools", "require", "approval", "allowed", "roles")
    found = [word for item in rule.items() for part in item for word in _each(part)]
    return [word for word in found if word not in usual]


def _each(value: Any) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _configured(world: World, kind: str) -> list[Result]:
    found = [
        part
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == "configure_each" and kind in step
        for part in world.results[place].parts
    ]
    assert found, f"no {kind} were tried"
    return found


def _proposed_each(world: World) -> list[Result]:
    found = [
        part
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == "propose_each"
        for part in world.results[place].parts
    ]
    assert found, "nothing was proposed one by one"
    return found


def _without_ids(body: Any) -> str:
    return re.sub(r"(?<=review )\S+", "…", str(expand(body)))
