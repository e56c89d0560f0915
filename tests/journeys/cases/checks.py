"""The checks of the cases: what must be true of a case when its steps are over."""

import re
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from clearance.adapters.history import HistoryError, check_history
from clearance.toolcall import canonical
from tests.journeys.cases.fixture_tools import Effect
from tests.journeys.cases.loading import CaseError, Step, expand
from tests.journeys.cases.properties import check_property
from tests.journeys.cases.speaking import BROKEN
from tests.journeys.cases.steps import run_step
from tests.journeys.cases.surfaces import check_shown
from tests.journeys.cases.surroundings import lift_fault
from tests.journeys.cases.trails import check_audit
from tests.journeys.cases.world import Result, World

Check = Callable[[World, Step], None]


def run_check(world: World, check: Step) -> None:
    """Check one thing. Raises `AssertionError` when it is not so, `CaseError` when it is not known."""
    known = CHECKS.get(check.get("check", ""))
    if known is None:
        raise CaseError(f"The interpreter knows no check {check.get('check')!r}.")
    known(world, check)


def check_step(world: World, check: Step) -> None:
    """A step ended as it must: accepted, refused with a reason, or without effect."""
    _only(check, "n", "outcome", "why")
    wanted = set(str(check["outcome"]).split(" or "))
    unknown = wanted - {"accepted", "refused", "no_effect", "queued", "warned"}
    if unknown:
        raise CaseError(f"The interpreter knows no outcome {', '.join(sorted(unknown))}.")
    for number in _numbers(check["n"]):
        if number not in world.results:
            raise CaseError(f"There is no step {number}.")
        result = world.results[number]
        for found in result.every:
            if found.repeats and "no_effect" in wanted:
                continue  # it was said that this was decided before, and nothing changed
            if "one documented meaning of None" in str(check.get("why", "")) and _gives_none(found):
                continue  # a rule without a time: docs/reference/policy.md
            assert found.outcome in wanted, f"step {number} was {found.outcome}: {found.reason}"
            if found.outcome == "refused":
                assert found.reason, f"step {number} was refused without a reason"
                _check_why(world, number, found, str(check.get("why", "")))


def check_review(world: World, check: Step) -> None:
    """A review stood as it must, at the times at which it must."""
    _only(check, "ref", "state")
    label, said = check["ref"], check["state"]
    stood = {number: states[label] for number, states in world.states.items() if label in states}
    assert stood, f"there is no review {label}"
    if found := re.match(r"pending until step (\d+)", said):
        end = int(found[1])
        early = {number: state for number, state in stood.items() if number < end}
        assert early, f"{label} was not asked before step {end}"
        assert set(early.values()) == {"pending"}, f"{label}: {early}"
        assert stood[end] != "pending", f"{label} is pending after step {end}"
    elif found := re.match(r"(\w+) \(before step (\d+)\)$", said):
        assert stood[int(found[2]) - 1] == found[1], f"{label}: {stood}"
    elif found := re.match(r"(\w+) after step (\d+)(?::|$)", said):
        assert stood[int(found[2])] == found[1], f"{label}: {stood}"
    elif said in ("pending", "settled", "expired", "withdrawn", "invalidated"):
        assert stood[max(stood)] == said, f"{label} is {stood[max(stood)]}"
    else:
        raise CaseError(f"The interpreter knows no state {said!r} of a review.")


def check_executed(world: World, check: Step) -> None:
    """Exactly these calls ran, each once."""
    _only(check, "exactly")
    left = world.all_effects()
    for wanted in expand(check["exactly"]):
        found = next((done for done in left if _is(done, wanted)), None)
        assert found is not None, f"{wanted} did not run; what ran: {left}"
        left.remove(found)
    assert not left, f"these ran, too: {left}"


def check_not_executed(world: World, check: Step) -> None:
    """No call of this kind ran; `args` are those that must not have come together."""
    _only(check, "tool", "args", "call")
    wanted = {name: value for name, value in expand(check).items() if name != "check"}
    ran = [done for done in world.all_effects() if _is(done, wanted, partly=True)]
    assert not ran, f"{wanted} ran: {ran}"


def check_times(world: World, check: Step) -> None:
    """A call ran so often, in every repetition in which it was proposed."""
    _only(check, "call", "min", "max")
    scopes = [scope for scope in world.scopes if check["call"] in scope.labels]
    assert scopes, f"{check['call']} was never proposed"
    for scope in scopes:
        times = world.times(check["call"], scope)
        where = f" ({scope.about})" if scope.about else ""
        assert check["min"] <= times <= check["max"], f"{check['call']} ran {times} times{where}"


def check_model_told(world: World, check: Step) -> None:
    """The model got a result for a call that says why it did not run, and is no success."""
    _only(check, "call", "kind")
    words = {"rejection": "rejected", "expired": "Nobody cleared this call in time", "error": ""}
    if check["kind"] not in words:
        raise CaseError(f"The interpreter knows no result of the kind {check['kind']!r}.")
    told = world.told(check["call"], world.scope)
    assert told is not None, f"the model was told nothing of {check['call']}"
    assert told.status == "error", f"{check['call']} was told as a success: {told.content}"
    assert words[check["kind"]] in str(told.content), f"{check['call']} was told as: {told.content}"
    assert "did not run" in str(told.content) or check["kind"] == "error", told.content


def check_history_valid(world: World, check: Step) -> None:
    """Each call of each thread has exactly one result, next to it; calls that wait may have none yet."""
    _only(check)
    broken = world.site.folder / BROKEN
    assert not broken.exists(), f"the model was shown a broken history: {broken.read_text()}"
    for scope in world.scopes:
        for thread in scope.threads.values():
            messages = world.messages(thread)
            waits = any(run.is_open for run in world.site.runs(thread))
            try:
                check_history(_without_open_end(messages) if waits else messages)
            except HistoryError as error:
                raise AssertionError(f"the history of {thread}: {error}") from None


CHECKS: dict[str, Check] = {
    "step": check_step,
    "review": check_review,
    "executed": check_executed,
    "not_executed": check_not_executed,
    "times": check_times,
    "model_told": check_model_told,
    "history_valid": check_history_valid,
    "shown": check_shown,
    "property": lambda world, check: check_property(world, check["text"]),
    "audit": lambda world, check: check_audit(world, check["must"]),
}


def _gives_none(found: Result) -> bool:
    """Whether what was tried is a rule that leaves something out by saying null."""
    given = found.about.get("given") if isinstance(found.about, dict) else None
    rules = given.get("rules", []) if isinstance(given, dict) else []
    return any(value is None for rule in rules for value in rule.values())


def _check_why(world: World, number: int, found: Result, why: str) -> None:
    """Check what a `why` says of a refusal, where it says more than what the case is about."""
    if "with the path of the field" in why:
        named = [pointer for pointer in found.faults if "/0/edited_action" in pointer]
        assert named, f"step {number} names no field: {found.reason}"
    if why.startswith("names the review"):
        assert any(review.id in found.reason for review in world.reviews(world.scope)), found.reason
    if why.startswith("expired"):
        assert "expired" in found.reason, found.reason
    if "the decision can be given again" in why:
        lift_fault(world)
        again = run_step(world, world.scope, world.case.steps[number - 1])
        assert again.outcome == "accepted", f"step {number}, once more: {again.outcome} {again.reason}"
    if "carry no ids" in why:
        assert "'call'" in found.reason, found.reason


def _numbers(said: Any) -> list[int]:
    if isinstance(said, int):
        return [said]
    if isinstance(said, list):
        return [number for each in said for number in _numbers(each)]
    if not re.fullmatch(r"\d+(-\d+)?", str(said)):
        raise CaseError(f"The interpreter knows no step {said!r}.")
    first, _, last = str(said).partition("-")
    return list(range(int(first), int(last or first) + 1))


def _is(done: tuple[str | None, Effect], wanted: Step, *, partly: bool = False) -> bool:
    label, effect = done
    if "call" in wanted and label != wanted["call"]:
        return False
    if "tool" in wanted and effect.tool != wanted["tool"]:
        return False
    if "args" not in wanted:
        return True
    if partly:
        given = {name: value for name, value in effect.args.items() if name in wanted["args"]}
        return canonical(given) == canonical(wanted["args"])
    return canonical(effect.args) == canonical(wanted["args"])


def _only(check: Step, *known: str) -> None:
    unknown = sorted(set(check) - {"check", "note", *known})
    if unknown:
        raise CaseError(f"The interpreter knows no {', '.join(unknown)} in a check {check['check']!r}.")


def _without_open_end(messages: list[Any]) -> list[Any]:
    """Return the messages without a last AI message whose calls have no result at all yet."""
    last = max((i for i, m in enumerate(messages) if isinstance(m, AIMessage)), default=None)
    if last is None or any(isinstance(m, ToolMessage) for m in messages[last:]):
        return messages
    return messages[:last]
