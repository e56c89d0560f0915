"""Properties of what people are told and shown: messages, pages in a browser, and warnings in time."""

import json
import re
import time
from urllib.parse import quote, urlsplit

from clearance.audit import AuditKind
from clearance.store.deliveries import DeliveryStatus
from tests.journeys.cases.administering import rules_of
from tests.journeys.cases.http_door import API
from tests.journeys.cases.in_browser import Looked, look
from tests.journeys.cases.loading import expand
from tests.journeys.cases.other_callers import AGENT
from tests.journeys.cases.properties import says
from tests.journeys.cases.reaching import wanted
from tests.journeys.cases.world import World

_HOSTILE = "<img src=x onerror=alert(1)><script>document.forms[0].submit()</script>"


@says(
    r"(\d+) MB: either refused at intake with an error result to the model, or stored, shown, decided and "
    r"executed byte for byte; page answers within (\d+) s"
)
def large_values_are_refused_or_whole(world: World, said: re.Match[str]) -> None:
    """A call of such a size is an error to the model; or its page shows it whole, and in time."""
    large = [
        call
        for step in world.proposals
        for call in expand(step["calls"])
        if len(json.dumps(call.get("args"))) >= int(said[1]) * 1_000_000
    ]
    assert large, f"no call of {said[1]} MB was proposed"
    for call in large:
        told = world.told(str(call["id"]), world.scope)
        if told is not None and told.status == "error":
            assert world.times(str(call["id"]), world.scope) == 0, call["id"]
            continue
        [review] = [
            r for r in world.reviews(world.scope) if any(world.arguments(c) == call["args"] for c in r.calls)
        ]
        begun = time.monotonic()
        page = world.pages.read(f"/reviews/{quote(review.id)}", by="rita")
        assert time.monotonic() - begun < int(said[2])
        texts = [item for item in call["args"].values() if isinstance(item, str)]
        assert all("".join(text.split()) in "".join(page.split()) for text in texts)
    for label in re.findall(r"r\d+", " ".join(str(step.get("review")) for step in world.case.steps)):
        begun = time.monotonic()
        answer = world.pages.get(f"/reviews/{quote(_id(world, label))}", by="rita")
        assert time.monotonic() - begun < int(said[2]), label
        assert answer.status < 500, answer.reason


@says(
    r"no request leaves the page but to its own origin; no script of the argument runs; "
    r"the argument area stays visible(; the same for the reject message and for tool names)?"
)
def pages_hold_nothing_active(world: World, said: re.Match[str]) -> None:
    """What came from outside is text on every page that a browser opened, however it is written."""
    looked = list(world.looked)
    assert looked, "no page was opened in a browser"
    if said[1]:
        messages = [
            item["message"]
            for step in world.case.steps
            if step["op"] == "decide"
            for item in step["decisions"]
            if item.get("message")
        ]
        together = "".join(each.text for each in looked)
        for message in messages:
            assert _plain(message) in _plain(together), f"no page shows {message!r}"
        looked += _with_a_hostile_name(world)
    for each in looked:
        origins = {urlsplit(url).netloc for url in each.requests if not url.startswith("data:")}
        assert origins == {urlsplit(world.site.address()).netloc}, origins
        assert each.foreign == (), each.foreign
        assert each.dialogs == (), each.dialogs
        assert all(each.arguments), each.arguments


def _with_a_hostile_name(world: World) -> list[Looked]:
    """Have an agent elsewhere propose a tool of such a name; return its page, where it is taken at all."""
    body = {"key": "hostile", "tool": _HOSTILE, "arguments": {"x": _HOSTILE}, "schema": {"type": "object"}}
    answer = world.http.send("POST", f"{API}/calls", by=AGENT, body=body)
    if not answer.ok or answer.body.get("review_id") is None:
        return []
    address = f"{world.site.address()}/reviews/{quote(answer.body['review_id'])}"
    return [look(address, cookie=world.pages.cookie("rita"))]


@says(r"a warning after step (\d+)")
def people_were_warned(world: World, _: re.Match[str]) -> None:
    """People were told again, once, before the review's deadline, and as it was due by then."""
    review = world.reviews(world.scope)[0]
    assert review.deadline is not None, "the review has no deadline"
    warned = [
        entry
        for entry in world.site.trail()
        if entry.kind == AuditKind.REVIEW_REMINDED and entry.subject == review.id
    ]
    assert len(warned) == 1, warned
    first = min(after for call in review.calls for after in call.verdict.remind)
    assert review.asked_at + first <= warned[0].time < review.deadline, (warned[0].time, review.deadline)


@says(r"the mail is sent once the server is back, or shown as undelivered")
def mails_come_or_are_missed(world: World, _: re.Match[str]) -> None:
    """Whoever was to be told by mail was, or the operator reads that it could not be sent."""
    outside = world.messages_to_people.outside
    outside.mail.away_until = 0.0
    for review in world.reviews(world.scope):
        for person in wanted(world.case.steps).mails:
            mail = world.messages_to_people.mail(person, review.id)
            assert mail is not None or _is_shown_as_undelivered(world, review.id), f"no mail to {person}"


def _is_shown_as_undelivered(world: World, review_id: str) -> bool:
    shown = json.loads(world.console.read("channels", "deliveries", "--undelivered", "--json", by="keeper"))
    return any(
        each["about"] == review_id and each["status"] == DeliveryStatus.UNDELIVERED
        for each in shown["deliveries"]
    )


@says(r"after step (\d+) both rules are in the policy, or one writer was told to retry")
def no_rule_is_lost(world: World, said: re.Match[str]) -> None:
    """Every rule whose writer was told that it is taken holds; the other writer was told that it is not."""
    tried = world.results[int(said[1])].every
    assert len(tried) > 1, "there was one writer"
    names = {rule.name for rule in rules_of(world)[0].rules}
    wanted_names = [
        str(step["what"]).removeprefix("add rule ") for step in world.case.steps[int(said[1]) - 1]["steps"]
    ]
    for name, result in zip(wanted_names, tried, strict=True):
        if result.outcome == "accepted":
            assert name in names, f"rule {name} was taken and is lost: {sorted(names)}"
        else:
            assert "meanwhile" in result.reason, result.reason


@says(r"step (\d+) says 'waiting for review (\w+)'")
def the_thread_says_what_it_waits_for(world: World, said: re.Match[str]) -> None:
    """The answer of a step names the review, and says that the thread waits."""
    answer = world.results[int(said[1])].about
    text = json.dumps(answer.body)
    assert "waiting" in text, text
    assert _id(world, said[2]) in text, text


def _id(world: World, label: str) -> str:
    try:
        return world.review(label, world.scope).id
    except LookupError:
        return label


def _plain(text: str) -> str:
    return "".join(text.split())
