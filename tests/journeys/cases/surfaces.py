"""What a surface shows of a review, and the checks of it: of texts, and of what a check says in words."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from clearance.redaction import masked
from clearance.review import Review
from tests.journeys.cases.http_door import API
from tests.journeys.cases.in_browser import look
from tests.journeys.cases.loading import CaseError, Step, every_step, expand
from tests.journeys.cases.messages_door import Seen, link_in, page_in
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World


@op("view")
def view(world: World, scope: Scope, step: Step) -> Result:
    """What a surface shows of a review; it is kept for the checks."""
    only(step, "surface", "review", "by", "columns", "browser", "html")
    by, surface = step.get("by", "rita"), step["surface"]
    if surface not in _SURFACES:
        raise CaseError(f"The interpreter knows no surface {surface!r}.")
    try:
        world.shown.setdefault(surface, []).append(_SURFACES[surface](world, scope, step, by))
    except LookupError as error:  # what was refused before anybody was asked is shown nowhere
        return Result("refused", str(error))
    return Result("accepted")


@op("logs")
def logs(world: World, _: Scope, step: Step) -> Result:
    """What the servers have written."""
    only(step)
    world.shown.setdefault("logs", []).append(Seen(world.site.said()))
    return Result("accepted")


def check_shown(world: World, check: dict[str, Any]) -> None:
    """A surface showed these texts, and not those; line breaks do not count.

    A message to people holds no argument and decides nothing: what must be shown is looked for on the page
    that it leads to, too. What must not be shown is not in the message, nor where it leads without a login.
    """
    unknown = sorted(set(check) - {"check", "surface", "must_contain", "must_not_contain", "note"})
    if unknown:
        raise CaseError(f"The interpreter knows no {', '.join(unknown)} in a check 'shown'.")
    surface = check["surface"]
    if surface not in world.shown:  # no step has looked: every review is looked at as it is now
        for place in range(1, len(world.reviews(world.scope)) + 1):
            view(world, world.scope, {"op": "view", "surface": surface, "review": f"r{place}"})
    seen = world.shown.get(surface, [])
    assert seen, f"{surface} was not looked at"
    for text in check.get("must_contain", []):
        assert any(_shows(world, each, text) for each in seen), (
            f"{surface} does not show {text!r}: {_beginning(seen)}"
        )
    for text in check.get("must_not_contain", []):
        assert not any(_lets_out(each, text) for each in seen), f"{surface} shows {text!r}"
    note = str(check.get("note", ""))
    if "before" in note and "model's text" in note:
        for text in check.get("must_contain", []):
            _stands_first(world, seen, text)
    if "approve button only if" in note:
        assert not any(link_in(each.text) for each in seen), f"{surface} has a link that decides"


def _web(world: World, scope: Scope, step: Step, by: str) -> Seen:
    path, review_id = _page_of(world, scope, step["review"], by=by)
    if not step.get("browser"):
        return Seen(world.pages.read(path, by=by), review_id=review_id)
    looked = look(world.site.address() + path, cookie=world.pages.cookie(by))
    world.looked.append(looked)
    return Seen(looked.text, review_id=review_id)


def _page_of(world: World, scope: Scope, label: str, *, by: str) -> tuple[str, str]:
    """Return the page of a review, or of a thread's history: its conversation, else its last review."""
    if (found := re.fullmatch(r"(\w+) history", label)) is None:
        review_id = world.review(label, scope).id
        return f"/reviews/{quote(review_id)}", review_id
    thread = scope.thread(found[1])
    if world.pages.get(f"/chat/{quote(thread)}", by=by).ok:
        return f"/chat/{quote(thread)}", ""
    review_id = world.site.reviews([thread])[-1].id
    return f"/reviews/{quote(review_id)}", review_id


def _cli(world: World, scope: Scope, step: Step, by: str) -> Seen:
    review_id = world.review(step["review"], scope).id
    return Seen(world.console.read("show", review_id, by=by, columns=step.get("columns", 200)))


def _api(world: World, scope: Scope, step: Step, by: str) -> Seen:
    review_id = world.review(step["review"], scope).id
    answer = world.http.send("GET", f"{API}/reviews/{quote(review_id)}", by=by)
    return Seen(json.dumps(answer.body, ensure_ascii=False))


def _mail(world: World, scope: Scope, step: Step, by: str) -> Seen:
    return world.messages_to_people.seen_in_mail(by, world.review(step["review"], scope).id)


def _chat(world: World, scope: Scope, step: Step, by: str) -> Seen:
    return world.messages_to_people.seen_in_chat(by, world.review(step["review"], scope).id)


def _hook(world: World, scope: Scope, step: Step, _: str) -> Seen:
    review_id = world.review(step["review"], scope).id
    told = world.messages_to_people.told(review_id)
    if told is None:
        raise LookupError("no server was told of the review")
    return Seen(told, review_id=review_id)


def _export(world: World, _: Scope, __: Step, by: str) -> Seen:
    world.site.trail()
    return Seen(world.console.read("audit", "export", by=by))


def _logs(world: World, _: Scope, __: Step, ___: str) -> Seen:
    return Seen(world.site.said())


_SURFACES: dict[str, Callable[[World, Scope, Step, str], Seen]] = {
    "web": _web,
    "cli": _cli,
    "api": _api,
    "email": _mail,
    "slack": _chat,
    "webhook": _hook,
    "audit export": _export,
    "logs": _logs,
}


def _shows(world: World, seen: Seen, text: str) -> bool:
    """Whether a surface shows a text, or what a text says in words that it must show."""
    if text == "masked":  # the word alone may stand on any page
        return "••••" in seen.text or "parts masked" in seen.text
    if _plain(text) in _plain(seen.text + seen.behind):
        return True
    match text:
        case "digest":
            return "fingerprint" in seen.text
        case "the number of characters not shown":
            return f"{_length(world.site.review(seen.review_id)):,} characters" in seen.text
        case "a link to the full view":
            return page_in(seen.text) is not None and _is_whole(
                world.site.review(seen.review_id), seen.behind
            )
        case _:
            return False


def _lets_out(seen: Seen, text: str) -> bool:
    if (found := re.fullmatch(r"(.+) as the subject line", text)) is not None:
        return found[1] in seen.subject
    return _plain(text) in _plain(seen.text)


def _length(review: Review) -> int:
    return sum(len(masked(call.arguments, call.verdict.secret)) for call in review.calls)


def _is_whole(review: Review, page: str) -> bool:
    """Whether a page shows every text in the arguments of a review to its end."""
    texts = [text for call in review.calls for text in _texts(json.loads(call.arguments))]
    return all(_plain(text) in _plain(page) for text in texts)


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.values() for text in _texts(item)]
        case list():
            return [text for item in value for text in _texts(item)]
        case _:
            return [json.dumps(value)]


def _stands_first(world: World, seen: list[Seen], text: str) -> None:
    """A text of the arguments stands before whatever the model has said of it, or that is not there."""
    said = [expand(step["text"]) for step in every_step(world.case.steps) if step.get("text")]
    for each in seen:
        shown = _plain(each.text)
        for claim in said:
            at = shown.find(_plain(claim)[:40])
            assert at < 0 or shown.find(_plain(text)) < at, f"{claim[:40]!r} stands before {text!r}"


def _beginning(seen: list[Seen]) -> str:
    return " / ".join(" ".join(each.text.split())[:300] for each in seen)


def _plain(text: str) -> str:
    return "".join(text.split())
