"""The steps that look: what the trail says, a client that polls, raw requests, and commands."""

import re
import shlex
from contextlib import suppress
from urllib.parse import parse_qs, quote

import httpx

from clearance.review import Review
from tests.journeys.cases.http_door import API
from tests.journeys.cases.loading import CaseError, Step, expand
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World

_LISTENS = 3.0


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
    only(step, "method", "path", "actor", "body", "times", "csrf")
    if (found := re.fullmatch(r"(link|page) of (\w+)(?:/\w+)?", step["path"])) is not None:
        return _of_pages(world, step, world.review(found[2], scope), is_link=found[1] == "link")
    if step["path"].partition("?")[0] == "/events":
        return _events(world, scope, step)
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


def _events(world: World, scope: Scope, step: Step) -> Result:
    """Listen to what happens, from the beginning: refused is also who hears nothing of the thread."""
    shown = world.http.shown(step["actor"]) if step.get("actor") is not None else {}
    asked = parse_qs(step["path"].partition("?")[2])
    threads = [scope.thread(label) for label in asked.get("thread", [])] or list(scope.threads.values())
    told = {run.id for thread in threads for run in world.site.runs(thread)}
    told |= {review.id for review in world.site.reviews(threads)} | set(threads)
    world.site.trail()
    heard = ""
    with (
        httpx.Client(trust_env=False, timeout=_LISTENS, verify=False) as client,
        suppress(httpx.ReadTimeout),
        client.stream(
            "GET", f"{world.site.address()}{API}/events", headers={**shown, "Last-Event-ID": "0"}
        ) as answer,
    ):
        if not answer.is_success:
            return Result("refused", f"it answered {answer.status_code}")
        for line in answer.iter_lines():
            heard += line
            if any(each in heard for each in told):
                return Result("accepted")
    return Result("refused", "nothing of it was told")


def _of_pages(world: World, step: Step, review: Review, *, is_link: bool) -> Result:
    """Ask for the page of a review, or of its link in somebody's mail; a form is sent from its own page.

    Who is known here shows the cookie of their session, and every look says that it only looks ahead.
    """
    actor = step.get("actor")
    by = actor if actor in world.site.setup.names() else None
    path = world.link(review) if is_link else f"/reviews/{quote(review.id)}"
    if step["method"] == "POST":
        before = world.site.review(review.id)
        pairs = world.pages.fields(path, by=by, typed=step.get("body") or {}, csrf=step.get("csrf", True))
        answer = world.pages.send(path if is_link else f"{path}/decide", pairs, by=by)
        world.site.rest(review.thread_id)
        changed = world.site.review(review.id) != before
        return Result("accepted" if answer.ok and changed else "refused", answer.reason, about=answer)
    answers = [
        world.pages.get(path, by=by, method=step["method"], headers={"Sec-Purpose": "prefetch"})
        for _ in range(step.get("times", 1))
    ]
    answer = answers[-1]
    return Result("accepted" if answer.ok else "refused", answer.reason, about=answer)


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
