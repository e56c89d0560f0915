"""Properties of kinds A, B, C, H and K: decisions, values, what ran how often, and the chat around it."""

import json
import re
from itertools import permutations
from typing import Any

from clearance.outcome import CallState
from clearance.toolcall import canonical
from tests.journeys.cases.loading import Step, every_step
from tests.journeys.cases.properties import says
from tests.journeys.cases.steps import again, decide, decide_once, go_on, propose
from tests.journeys.cases.world import Result, Scope, World

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
           "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
           "twenty")  # fmt: skip


def number(said: str) -> int:
    """Return the number that a word or digits say."""
    return int(said) if said.isdigit() else NUMBERS.index(said)


@says(r"for all permutations p of a valid payload D: result\(p\(D\)\) == result\(D\)")
def order_does_not_matter(world: World, _: re.Match[str]) -> None:
    """Every accepted payload, in every order, on proposals of their own."""
    accepted = [
        step
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == "decide" and world.results[place].outcome == "accepted"
        if len(step["decisions"]) > 1
    ]
    assert accepted, "no payload of several decisions was accepted"
    for step in accepted:
        wanted = _outcome(world, world.scope, step)
        for order in permutations(step["decisions"]):
            each = again(world)
            assert decide(world, each, {**step, "decisions": list(order)}).outcome == "accepted", order
            assert _outcome(world, each, step) == wanted, order


@says(r"either executed args == \{(.*)\}, or the call is refused with a digest mismatch and a new review")
def runs_as_approved_or_is_asked_again(world: World, said: re.Match[str]) -> None:
    """What ran is what was shown; otherwise nothing ran, and people are asked anew."""
    pairs = (pair.split(": ") for pair in said[1].split(", "))
    wanted = {name: int(value) if value.isdigit() else value for name, value in pairs}
    ran = [effect.args for _, effect in world.all_effects()]
    if ran:
        assert ran == [wanted], ran
        return
    first, *later = world.reviews(world.scope)
    assert later, "nothing ran, and nobody is asked"
    assert later[-1].status == "pending", later[-1].status
    shown = {call.fingerprint for call in first.calls}
    assert not shown & {call.fingerprint for call in later[-1].calls}, "the same is asked again"
    [row] = world.site.ledger(first.thread_id)
    assert row.state is CallState.HELD, row.state


@says(r"digest\(a\) == digest\(b\) for all 'same' pairs, != for all 'different' pairs(?:;.*)?")
def digests_tell_values_apart(world: World, said: re.Match[str]) -> None:
    """Fingerprints of pairs; and that 7 and 7.0 are two values on every path, as the written rule says."""
    pairs = [
        part.about
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == "digest_pairs"
        for part in world.results[place].parts
    ]
    assert pairs, "no pairs were compared"
    for pair in pairs:
        assert pair["found"] == pair["wanted"], pair
    if "7.0" in said[0]:
        _whole_and_broken(world)


def _whole_and_broken(world: World) -> None:
    for value in (7, 7.0):
        each = world.new_scope()
        call = {"id": "c1", "tool": "write_record", "args": {"data": value}}
        propose(world, each, {"op": "propose", "thread": f"whole-{value}", "calls": [call]})
        review = world.reviews(each)[0]
        assert review.calls[0].arguments == json.dumps({"data": value}, separators=(",", ":")), "store"
        shown = world.show(review.id)
        assert str(value) in shown, shown
        assert "7.0" in shown or (value == 7 and isinstance(value, int)), shown
        payload = [{"type": "approve", "call": review.calls[0].key}]
        decide_once(world, each, {"by": "rita"}, review_id=review.id, payload=payload, door="api")
        [(_, effect)] = world.effects(each)
        assert type(effect.args["data"]) is type(value), effect


@says(
    r"for each raw text: (\w+) not run, no review without readable arguments, "
    r"one error result, (\w+) runs once"
)
def unreadable_calls_never_wait(world: World, said: re.Match[str]) -> None:
    """A call whose arguments cannot be read is answered at once; the call beside it runs."""
    parts = _parts_of(world, "propose_each")
    for part in parts:
        each, label = part.about["scope"], part.about["label"]
        ran = [(found, effect.tool) for found, effect in world.effects(each)]
        assert [found for found, _ in ran] == [said[2]], ran
        assert said[1] not in [tool for _, tool in ran], ran
        assert world.reviews(each) == [], part.about["value"]
        told = world.every_told(label, each)
        assert len(told) == 1, part.about["value"]
        assert told[0].status == "error", part.about["value"]


@says(
    r"exactly one caller is 'accepted', the others 'no_effect' with the same result"
    r"(; on sqlite and postgresql)?(; with two server processes)?"
)
def one_caller_wins(world: World, said: re.Match[str]) -> None:
    """One decision is taken; every other caller is told what became of the review, and changes nothing."""
    if said[2]:
        assert len(world.site.servers) == 2, "there was one server process"
    for part in _parts_of(world, "parallel"):
        each: Scope = part.about["scope"]
        steps = _step(world, "parallel")["steps"]
        answers = [r for r, step in zip(part.parts, steps, strict=True) if step["op"] == "decide"]
        won = [found for found in answers if found.outcome == "accepted"]
        assert len(won) == 1, [(found.outcome, found.reason) for found in answers]
        [review] = world.reviews(each)
        decisions = [item for call in review.calls for item in call.decisions]
        assert len(decisions) == len(review.calls), decisions
        for lost in (found for found in answers if found.outcome != "accepted"):
            assert lost.outcome in ("no_effect", "refused"), lost.outcome
            told = f"{decisions[0].by}: {decisions[0].type} {review.calls[0].tool}"
            assert told in lost.reason or lost.outcome == "no_effect", lost.reason


@says(r"one review for (\w+)(?:, one for (\w+))*")
def one_review_a_key(world: World, said: re.Match[str]) -> None:
    """Proposing once more under a key asks once."""
    for key in re.findall(r"for (\w+)", said[0]):
        threads = {
            world.scope.thread(step["thread"])
            for step in every_step(world.case.steps)
            if step.get("idempotency_key") == key
        }
        assert len(world.site.reviews(threads)) == 1, key


@says(r"queued messages, if any, reach the model after the tool result, in order, once")
def nothing_was_queued(world: World, _: re.Match[str]) -> None:
    """Messages that were refused are in no history: none was queued."""
    refused = [
        step["text"]
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == "message" and world.results[place].outcome == "refused"
    ]
    for thread in world.scope.threads.values():
        said = [str(message.content) for message in world.messages(thread) if message.type == "human"]
        assert not set(said) & set(refused), said


@says(r"(\w+): at most (\d+) reviews, then the turn ends with an answer to the user; never executed")
def repetition_ends(world: World, said: re.Match[str]) -> None:
    """A model that repeats what was rejected is asked about a few times; then the turn ends."""
    thread = world.scope.thread(said[1])
    asked = world.site.reviews([thread])
    assert 1 <= len(asked) <= int(said[2]), len(asked)
    _ended_with_an_answer(world, thread)


@says(r"(\w+): bounded by the cap per turn")
def turns_are_bounded(world: World, said: re.Match[str]) -> None:
    """A turn in which everything is rejected comes to its end."""
    thread = world.scope.thread(said[1])
    assert 1 <= len(world.site.reviews([thread])) <= 10
    _ended_with_an_answer(world, thread)


def _ended_with_an_answer(world: World, thread: str) -> None:
    [run] = world.site.runs(thread)
    assert run.state == "done", run
    assert run.answer, run
    ran = [row for row in world.site.ledger(thread) if row.started_at is not None]
    assert not ran, ran


@says(
    r"crash points? ([\d, ]+): (\w+) runs exactly once and the run ends; points? ([\d, ]+): "
    r"side effects <= 1, state 'outcome unknown' is visible in inbox, CLI and to the model, "
    r"key passed to the tool is the same in every attempt"
)
def crashes_lose_nothing(world: World, said: re.Match[str]) -> None:
    """Where it is known that the tool did not start, or how it ended, it ran once; else it is unknown."""
    label = said[2]
    sure, unsure = ({int(item) for item in found.split(",")} for found in (said[1], said[3]))
    places = {scope.about["place"] for scope in world.scopes if "place" in scope.about}
    assert places == sure | unsure, f"these crash points were tried: {sorted(places)}"
    for scope in world.scopes:
        key, place = world.key_of(label, scope), scope.about["place"]
        keys = [effect.key for _, effect in world.effects(scope)]
        assert set(keys) <= {key}, keys
        if place in sure:
            assert len(keys) == 1, f"{scope.about}: {keys}"
        else:
            assert len(keys) <= 1, f"{scope.about}: {keys}"
            _is_shown_as_unknown(world, scope, label)
        [run] = [run for thread in scope.threads.values() for run in world.site.runs(thread)]
        assert run.state == "done", f"{scope.about}: {run}"


def _is_shown_as_unknown(world: World, scope: Scope, label: str) -> None:
    [thread] = scope.threads.values()
    [row] = world.site.ledger(thread)
    assert row.state is CallState.UNCERTAIN, f"{scope.about}: {row}"
    [asked] = world.site.outcome_reviews(thread)
    assert asked.id in world.inbox(), "the inbox does not show the unknown outcome"
    assert "outcome" in world.show(asked.id), world.show(asked.id)
    told = world.told(label, scope)
    assert told is not None
    assert "its outcome is unknown" in str(told.content), told


@says(
    r"within (\d+) s each thread takes the next user message; the review shows the outcome; "
    r"timeouts and process exit give 'unknown', not 'failed'"
)
def tools_that_end_badly_hold_nothing_up(world: World, said: re.Match[str]) -> None:
    """Each call has one outcome, and its thread goes on."""
    import time

    for scope in world.scopes[1:]:
        told = str(scope.about["behaviour"])
        [thread] = scope.threads.values()
        unknown = bool(re.match(r"sleeps|ignores|calls os\._exit", told))
        first, second = world.site.ledger(thread)
        wanted = (
            CallState.UNCERTAIN if unknown else CallState.FAILED if "raises" in told else CallState.EXECUTED
        )
        assert first.state is wanted, f"{told}: {first.state}"
        assert second.state is CallState.EXECUTED, f"{told}: {second.state}"
        assert len((first.result or "").encode()) <= 65536, told
        for row in (first, second):
            assert row.state.value in world.record_of_call(row.key), (
                f"{told}: the review does not show {row.state}"
            )
        begun = time.monotonic()
        answer = world.door.message(thread, "and now?", by="tom", wait=float(said[1]))
        assert answer.ok, f"{told}: {answer.reason}"
        world.site.rest(thread, patience=float(said[1]))
        assert time.monotonic() - begun < float(said[1]), told


@says(r"step (\d+): each time either approved-and-run-once or expired-and-not-run")
def in_time_or_not(world: World, said: re.Match[str]) -> None:
    """A decision at the deadline counts, and the call runs once; or it does not, and nothing runs."""
    for part in world.results[int(said[1])].parts:
        review = world.reviews(part.about["scope"])[-1]
        ran = [
            effect for _, effect in world.effects(part.about["scope"]) if effect.key == review.calls[0].key
        ]
        states = {("settled", 1), ("expired", 0)}
        assert (review.status.value, len(ran)) in states, (review.status, ran)


def _outcome(world: World, scope: Scope, step: Step) -> Any:
    """Return what became of the calls of a decided review, by their labels, and what ran."""
    review = world.review(step["review"], scope)
    go_on(world, review.thread_id)
    labels = dict(world.keyed(scope))
    states = {labels[call.key]: (call.state, call.arguments) for call in review.calls}
    told = {label: str(getattr(world.told(label, scope), "content", None)) for label in states}
    ran = sorted((label or "", canonical(effect.args)) for label, effect in world.effects(scope))
    return states, told, ran


def _parts_of(world: World, op: str) -> list[Result]:
    found = [
        part
        for place, step in enumerate(world.case.steps, start=1)
        if step["op"] == op
        for part in world.results[place].parts
    ]
    assert found, f"there is no step {op!r} with parts"
    return found


def _step(world: World, op: str) -> Step:
    return next(step for step in world.case.steps if step["op"] == op)
