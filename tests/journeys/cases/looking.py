"""The steps that look: what a surface shows of a review, what the trail says, and raw requests."""

import json
import shlex
from typing import Any
from urllib.parse import quote

from tests.journeys.cases.http_door import API
from tests.journeys.cases.loading import CaseError, Step, expand
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World


@op("view")
def view(world: World, scope: Scope, step: Step) -> Result:
    """What a surface shows of a review; it is kept for the checks."""
    only(step, "surface", "review", "by", "columns")
    review_id, by = world.review(step["review"], scope).id, step.get("by", "rita")
    match step["surface"]:
        case "cli":
            shown = world.console.read("show", review_id, by=by, columns=step.get("columns", 200))
        case "api":
            answer = world.http.send("GET", f"{API}/reviews/{quote(review_id)}", by=by)
            shown = json.dumps(answer.body, ensure_ascii=False)
        case "audit export":
            world.site.trail()
            shown = world.console.read("audit", "export", by=by)
        case "logs":
            shown = world.site.said()
        case other:
            raise CaseError(f"The interpreter knows no surface {other!r}.")
    world.shown.setdefault(step["surface"], []).append(shown)
    return Result("accepted")


@op("logs")
def logs(world: World, _: Scope, step: Step) -> Result:
    """What the servers have written."""
    only(step)
    world.shown.setdefault("logs", []).append(world.site.said())
    return Result("accepted")


@op("audit")
def audit(world: World, _: Scope, step: Step) -> Result:
    """The trail, exported or verified by the command line."""
    only(step, "what")
    if step["what"] not in ("export", "verify"):
        raise CaseError(f"The interpreter does not know how to {step['what']} the trail.")
    world.site.trail()
    done = world.console.run("audit", step["what"], by="rita")
    return Result("accepted" if done.exit_code == 0 else "refused", done.stderr)


@op("poll")
def poll(world: World, scope: Scope, step: Step) -> Result:
    """A client that looks at a review again and again, and loses patience."""
    only(step, "review", "timeout_s", "times")
    path = f"{API}/reviews/{quote(world.review(step['review'], scope).id)}"
    answers = [world.http.send("GET", path, by="tom") for _ in range(step.get("times", 1))]
    return Result("accepted" if all(answer.ok for answer in answers) else "refused")


@op("http")
def http(world: World, scope: Scope, step: Step) -> Result:
    """A raw request; labels in its path stand for the product's own ids."""
    only(step, "method", "path", "actor", "body", "times")
    place, _, query = step["path"].partition("?")
    parts = [_id(world, scope, part) for part in place.split("/")]
    path = f"{API}{'/'.join(parts)}" + (f"?{query}" if query else "")
    answers = [
        world.http.send(step["method"], path, by=step.get("actor"), body=expand(step.get("body")))
        for _ in range(step.get("times", 1))
    ]
    answer = answers[-1]
    reason = answer.reason or str(answer.status)
    return Result("accepted" if answer.ok else "refused", reason, about=answer)


@op("client_history")
def client_history(world: World, scope: Scope, step: Step) -> Result:
    """A request that brings the whole conversation along; the product keeps its own."""
    only(step, "by", "thread", "messages", "text")
    path = f"{API}/threads/{quote(scope.thread(step['thread']))}/messages"
    body = {"text": step.get("text", "go on"), "messages": expand(step["messages"])}
    answer = world.http.send("POST", path, by=step.get("by", "tom"), body=body)
    return Result("accepted" if answer.ok else "refused", answer.reason, answer.faults, about=answer)


@op("shell")
def shell(world: World, scope: Scope, step: Step) -> Result:
    """A command of the product, typed by a person or by an agent that has a shell."""
    only(step, "as", "cmd")
    program, *words = shlex.split(step["cmd"])
    if program != "clearance":
        raise CaseError(f"The interpreter runs no {program!r}.")
    known = {f"r{place}": review.id for place, review in enumerate(world.reviews(scope), start=1)}
    done = world.console.run(*[known.get(word, word) for word in words], by=step["as"])
    return Result("accepted" if done.exit_code == 0 else "refused", done.stderr or done.stdout)


def _id(world: World, scope: Scope, part: str) -> str:
    if part in scope.threads:
        return quote(scope.threads[part])
    if part.startswith("r") and part[1:].isdigit():
        return quote(world.review(part, scope).id)
    return part


def check_shown(world: World, check: dict[str, Any]) -> None:
    """A surface showed these texts, and not those; line breaks of a terminal do not count."""
    unknown = sorted(set(check) - {"check", "surface", "must_contain", "must_not_contain", "note"})
    if unknown:
        raise CaseError(f"The interpreter knows no {', '.join(unknown)} in a check 'shown'.")
    seen = world.shown.get(check["surface"], [])
    assert seen, f"{check['surface']} was not looked at"
    together = "".join("".join(text.split()) for text in seen)
    for text in check["must_contain"]:
        assert "".join(text.split()) in together, f"{check['surface']} does not show {text!r}"
    for text in check["must_not_contain"]:
        assert "".join(text.split()) not in together, f"{check['surface']} shows {text!r}"
