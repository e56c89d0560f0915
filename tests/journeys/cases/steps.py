"""The steps of the cases: what each `op` does, through the doors."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from clearance.review import Review, ReviewStatus, latest
from tests.journeys.cases.crashes import place_of
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.fixture_tools import Behaviour, check_behaviour, written
from tests.journeys.cases.loading import TOLD, CaseError, Step, expand, substituted
from tests.journeys.cases.payloads import has_untouched_form, sent_forms
from tests.journeys.cases.speaking import Said, Script, keep_script, read_habit
from tests.journeys.cases.world import Result, Scope, World

Op = Callable[[World, Scope, Step], Result]
Told = Callable[[World, Scope, re.Match[str]], Result]
WAIT = 60.0
OPS: dict[str, Op] = {}
SENTENCES: list[tuple[re.Pattern[str], Told]] = []


def op(name: str) -> Callable[[Op], Op]:
    """Make a function the meaning of an `op`."""

    def keep(function: Op) -> Op:
        OPS[name] = function
        return function

    return keep


def told(pattern: str) -> Callable[[Told], Told]:
    """Make a function the meaning of every step in plain text that the pattern fits."""

    def keep(function: Told) -> Told:
        SENTENCES.append((re.compile(pattern), function))
        return function

    return keep


def run_step(world: World, scope: Scope, step: Step) -> Result:
    """Do one step. Raises `CaseError` for one that is not known."""
    found = OPS.get(str(step.get("op", "")))
    if found is None:
        raise CaseError(f"The interpreter knows no step {step.get('op')!r}.")
    return found(world, scope, step)


@op(TOLD)
def run_sentence(world: World, scope: Scope, step: Step) -> Result:
    """A step in plain text."""
    text = str(step["text"])
    for pattern, function in SENTENCES:
        if (said := pattern.fullmatch(text.strip())) is not None:
            return function(world, scope, said)
    raise CaseError(f"The interpreter knows no step {text!r}.")


def only(step: Step, *known: str) -> None:
    """Raise `CaseError` for a step that says more than the interpreter understands."""
    unknown = sorted(set(step) - {"op", "note", *known})
    if unknown:
        raise CaseError(f"The interpreter knows no {', '.join(unknown)} in a step {step['op']!r}.")


# --- what is proposed ---


@op("propose")
def propose(world: World, scope: Scope, step: Step) -> Result:
    """A user turn whose model emits one AI message with these calls."""
    only(
        step,
        "thread",
        "calls",
        "then",
        "model",
        "tool_results",
        "text",
        "summary",
        "by",
        "on_behalf_of",
        "deadline_s",
        "idempotency_key",
        "client_wait_s",
        "step_timeout_s",
    )
    step = expand(step)
    if scope is world.scope:
        world.proposals.append(step)
    if "deadline_s" in step:
        ask_until(world, step["deadline_s"], {call["tool"] for call in step["calls"]})
    if "step_timeout_s" in step:
        world.site.configure(replace(world.site.setup, timeout=float(step["step_timeout_s"])))
    thread = scope.thread(step["thread"])
    messages = [Said(step["calls"], step.get("text", ""))]
    messages += [Said(said.get("calls", []), said.get("text", "")) for said in step.get("then", [])]
    if any(_beyond_64_bits(call.get("args")) for call in step["calls"]):
        from tests.journeys.cases.other_callers import propose_from_elsewhere

        scope.labels |= {str(call["id"]) for call in step["calls"]}
        return propose_from_elsewhere(world, scope, step)
    if "tool_results" in step:
        calls = [call for said in messages for call in said.calls]
        Behaviour(results=looked_up(step["tool_results"], calls)).keep(world.site.folder)
    again, times = read_habit(step["model"]) if "model" in step else (None, 0)
    for said in messages:
        scope.labels |= {str(call["id"]) for call in said.calls if call.get("id")}
    text = keep_script(world.site.folder, Script(messages, again, times))
    key = f"{step['idempotency_key']}{scope.name}" if "idempotency_key" in step else None
    patience = float(step.get("client_wait_s", WAIT))
    return send(world, thread, text, by=step.get("by", "tom"), key=key, wait=patience)


def _beyond_64_bits(value: Any) -> bool:
    """Whether a value holds an integer that the checkpoint of a conversation does not hold."""
    match value:
        case dict():
            return any(_beyond_64_bits(item) for item in value.values())
        case list():
            return any(_beyond_64_bits(item) for item in value)
        case bool():
            return False
        case int():
            return not -(2**63) <= value < 2**64
        case _:
            return False


def ask_until(world: World, seconds: float, tools: set[str]) -> None:
    """Have the rules ask about tools for so long: a deadline is a rule's, never a proposal's."""
    override = tuple({"tools": [tool], "deadline_s": seconds} for tool in sorted(tools))
    if world.site.setup.override != override:
        world.site.configure(replace(world.site.setup, override=(*override, *world.site.setup.override)))


@op("propose_each")
def propose_each(world: World, _: Scope, step: Step) -> Result:
    """The same for one value after the other, each in a fresh thread."""
    only(step, "thread", "tool", "args", "raw_args", "sibling", "base")
    given = [{"raw": text} for text in step.get("raw_args", [])]
    given += [{"args": {**step.get("base", {}), **args}} for args in step.get("args", [])]
    parts = []
    for place, call in enumerate(expand(given), start=1):
        calls = [{"id": f"v{place}", "tool": step["tool"], **call}]
        calls += [step["sibling"]] if "sibling" in step else []
        each = world.new_scope(value=call.get("args", call.get("raw")), tool=step["tool"])
        said = {"op": "propose", "thread": f"{step['thread']}-{place}", "calls": calls}
        part = propose(world, each, said)
        part.about = {"label": f"v{place}", "scope": each, **each.about}
        parts.append(part)
    return Result(parts=parts)


def send(
    world: World, thread: str, text: str, *, by: str, key: str | None = None, wait: float = WAIT
) -> Result:
    """Send a message, and return when its thread has come to a stop."""
    if world.hand is not None:
        world.by_hand[thread] = world.hand
        world.hand.propose(thread, text, by=by)
        return Result("accepted")
    return _sent(world, thread, world.door.message(thread, text, by=by, wait=wait, key=key))


def _sent(world: World, thread: str, answer: Answer) -> Result:
    """Return what came of a message, when its thread has come to a stop."""
    if answer.lost:
        return Result("lost")
    if answer.ok:
        world.site.rest(thread)
    return Result("accepted" if answer.ok else "refused", answer.reason, answer.faults, about=answer)


@op("message")
def message(world: World, scope: Scope, step: Step) -> Result:
    """A chat message of a person."""
    only(step, "by", "thread", "text", "process", "server")
    thread = scope.thread(step["thread"])
    server = world.server_of(step)
    if thread in world.by_hand:
        raise CaseError("A thread that is driven by hand takes no second message here.")
    return _sent(
        world, thread, world.door.message(thread, step["text"], by=step["by"], wait=WAIT, server=server)
    )


# --- what is decided ---


@op("decide")
def decide(world: World, scope: Scope, step: Step) -> Result:
    """A decision payload of a person, through a door."""
    only(step, "by", "via", "review", "decisions", "process", "server", "hold_execution")
    review = world.review(step["review"], scope)
    if has_untouched_form(step["decisions"]) and step.get("via") != "web":
        raise CaseError("There is no untouched form but on a page.")
    if step.get("hold_execution"):
        world.site.hold(held=True)
    results = [
        decide_once(world, scope, step, review_id=review.id, payload=form, door=step.get("via", "api"))
        for form in sent_forms(world, scope, review, expand(step["decisions"]))
    ]
    accepted = [result for result in results if result.outcome != "refused"]
    return (accepted or results)[0]


@op("decide_each")
def decide_each(world: World, scope: Scope, step: Step) -> Result:
    """Payloads one after the other, each through every door that is named."""
    only(step, "by", "review", "payloads", "doors", "via")
    review = world.review(step["review"], scope)
    parts = []
    for payload in expand(step["payloads"]):
        for door in step.get("doors", [step.get("via", "api")]):
            tried = [
                decide_once(world, scope, step, review_id=review.id, payload=form, door=door)
                for form in sent_forms(world, scope, review, payload)
            ]
            parts.append(Result(parts=tried, about={"payload": payload, "door": door}))
    return Result(parts=parts)


@op("decide_all")
def decide_all(world: World, scope: Scope, step: Step) -> Result:
    """The same answer to every review that waits, until none does."""
    only(step, "by", "type", "message", "via")
    parts: list[Result] = []
    while waiting := [review for review in world.reviews(scope) if review.status == "pending"]:
        said = {name: step[name] for name in ("type", "message") if name in step}
        payload = [{**said, "call": call.key} for call in waiting[0].waiting]
        result = decide_once(
            world, scope, step, review_id=waiting[0].id, payload=payload, door=step.get("via", "api")
        )
        parts.append(result)
        if result.outcome != "accepted" or len(parts) > 100:
            return Result(parts=parts, reason=result.reason)
    return Result("accepted", parts=parts)


def decide_once(
    world: World, scope: Scope, step: Step, *, review_id: str, payload: object, door: str
) -> Result:
    """Send one payload through one door, and say what became of the review."""
    before = world.site.review(review_id)
    seen = scope.shown.get(review_id, before.version)
    answer = world.through(door, before).decide(
        review_id, payload, by=step["by"], version=seen, server=world.server_of(step)
    )
    if answer.lost:
        return Result("lost")
    if answer.ok:
        go_on(world, before.thread_id)
    after = world.site.review(review_id)
    if not answer.ok:
        if (
            before.status is ReviewStatus.PENDING and after.status is not before.status
        ):  # who came too late has ended it
            go_on(world, before.thread_id)
        if scope.shown.get(review_id) is None and _was_decided(before, after):
            return Result("accepted", f"it was refused ({answer.reason}) and changed the review all the same")
        repeats = _repeats(before, payload, by=step["by"])
        return Result("refused", answer.reason, answer.faults, repeats=repeats, about=answer)
    same = after.version == before.version and after.status == before.status
    return Result("no_effect" if same else "accepted", answer.reason, about=answer)


def _was_decided(before: Review, after: Review) -> bool:
    """Whether a decision was kept between two looks; that a review expires meanwhile is nobody's decision."""
    expired = after.status is ReviewStatus.EXPIRED and before.status is ReviewStatus.PENDING
    return after != before and not (
        expired and [call.decisions for call in after.calls] == [call.decisions for call in before.calls]
    )


def _repeats(before: Review, payload: object, *, by: str) -> bool:
    """Whether a payload says what this person has decided already."""
    said = {call.key: latest(call).get(by) for call in before.calls}
    items = payload if isinstance(payload, list) else []
    return bool(items) and all(
        isinstance(item, dict)
        and (mine := said.get(str(item.get("call")))) is not None
        and mine.type.value == item.get("type")
        for item in items
    )


def go_on(world: World, thread: str) -> None:
    """Let a thread go on as far as it can without people."""
    if world.site.is_held:
        return
    if thread in world.by_hand:
        world.by_hand[thread].go_on(thread, by="tom")
    else:
        world.site.rest(thread)


@op("resume")
def resume(world: World, scope: Scope, step: Step) -> Result:
    """Go on without a new decision."""
    only(step, "thread")
    thread = scope.thread(step["thread"])
    if thread not in world.by_hand:
        world.site.server(1)
    go_on(world, thread)
    return Result()


# --- what is repeated ---


@op("for_each")
def for_each(world: World, scope: Scope, step: Step) -> Result:
    """Some steps once for each value, each time on threads of their own."""
    names = [name for name in step if name not in ("op", "note", "do")]
    if len(names) != 1:
        raise CaseError("A for_each has one list of values.")
    own = any(inner.get("op") == "propose" for inner in step["do"])
    parts = []
    for place, value in enumerate(step[names[0]]):
        about = {names[0]: value, "place": place + 1}
        if own:
            each = world.new_scope(**about)
        elif place == 0:
            each = scope
            each.about = about
        else:
            each = again(world, **about)
        inner = substituted(step["do"], {names[0]: value})
        if names[0] == "behaviour":
            check_behaviour(value)
            Behaviour(tools={tool_of_first_call(step["do"]): value}).keep(world.site.folder)
        parts.append(Result(parts=list(each_step(world, each, inner)), about={"scope": each, **about}))
    return Result(parts=parts)


@op("parallel")
def parallel(world: World, scope: Scope, step: Step) -> Result:
    """Some steps at the same moment, as often as it says, each time on threads of their own."""
    from concurrent.futures import ThreadPoolExecutor

    only(step, "steps", "repeat")
    wanted = step.get("repeat", 1)
    times = min(wanted, world.repeat_at_most or wanted)
    for number in sorted({world.server_of(inner) for inner in step["steps"]}):
        world.site.server(number)
    parts = []
    with ThreadPoolExecutor(len(step["steps"])) as pool:
        for place in range(times):
            each = scope if place == 0 else again(world)
            if place > 0:
                for said in world.started:
                    run_step(world, each, said)
            for review in world.reviews(each):
                each.shown[review.id] = review.version
            world.at_once = True
            done = list(pool.map(lambda inner, each=each: run_step(world, each, inner), step["steps"]))
            world.at_once = False
            for thread in each.threads.values():
                world.site.server(1)
                go_on(world, thread)
            each.shown.clear()
            parts.append(Result(parts=done, about={"scope": each}))
    return Result(parts=parts)


def again(world: World, **about: Any) -> Scope:
    """Propose anew, in a scope of its own, what was proposed before."""
    each = world.new_scope(**about)
    for said in world.proposals:
        propose(world, each, said)
    return each


def each_step(world: World, scope: Scope, steps: list[Step]) -> Iterator[Result]:
    """Do some steps, and give what came of each; one before a crash is done with the crash prepared."""
    for place, step in enumerate(steps):
        if place + 1 < len(steps) and steps[place + 1].get("op") == "crash":
            world.site.arm(place_of(steps[place + 1]["at"]))
        yield run_step(world, scope, step)


def tool_of_first_call(steps: list[Step]) -> str:
    """Return the tool of the first call that some steps propose."""
    for step in steps:
        for call in step.get("calls", []):
            return str(call["tool"])
    raise CaseError("No call is proposed here.")


def looked_up(results: Mapping[str, str], calls: list[Step]) -> dict[tuple[str, str], str]:
    """Return what tools give back for calls by their labels, as the tools look it up."""
    return {
        (call["tool"], written(call["args"])): results[call["id"]] for call in calls if call["id"] in results
    }
