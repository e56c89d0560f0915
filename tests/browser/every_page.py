"""Every page that people open, and what it needs to be there. A new page adds its line here."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

from clearance import turns
from clearance.ledger import new_id
from clearance.store import audit
from clearance.web import following
from tests.browser import settings_pages, ways_in
from tests.browser.site import OWNER, Site
from tests.notices.visiting import link_to
from tests.pages.reviewing import ARGUMENTS, asked
from tests.research.pipelines import Lab
from tests.scripted import ScriptedModel, calls
from tests.web.asked import ask
from tests.web.talking import talks, until


@dataclass(frozen=True)
class Case:
    """A page: `make` puts there what it shows, and returns its address. `person` is who is signed in.

    `then` is done on the page of that address, where it is not the page itself. `fails`: it answers with 4xx.
    """

    make: Callable[[Site], str]
    person: str | None = OWNER
    fails: bool = False
    then: Callable[[Site, Page], None] = lambda _site, _page: None


def empty_inbox(_: Site) -> str:
    """The inbox, when nothing waits."""
    return "/"


def inbox(site: Site) -> str:
    """The inbox with a page full of all that it can show."""
    with_texts(site)
    for number in range(46):
        ask(site.workspace, ("send", f'{{"to":"customer-{number}@example.org"}}'), by=f"agent-{number}")
    return "/"


def with_texts(site: Site) -> None:
    """Ask about one call of each kind, some of them with text that could break a page."""
    ask(site.workspace, ("wipe", "{}"))
    ask(site.workspace, ("pay", '{"amount":48250.0}'))
    ask(site.workspace, ("send", '{"to":"<b>\\u202eeve@example.org</b>' + "x" * 200 + '"}'))
    for number in range(3):
        ask(site.workspace, ("note", f'{{"text":"{number}"}}'))


def decided(site: Site) -> str:
    """The reviews that were decided."""
    for answer in ("approve", "reject"):
        review = ask(site.workspace)
        site.workspace.gate.decide(review.id, [{"type": answer}], by=OWNER, version=review.version)
    return "/?tab=decided"


def nothing_fits(_: Site) -> str:
    """The inbox with a filter that nothing fits."""
    return "/?q=nothing&risk=high"


def not_there(_: Site) -> str:
    """An address under which nothing is."""
    return "/no/such/page"


def link_of_a_message(site: Site) -> str:
    """The page behind a link in a message to a reviewer."""
    ben = site.add("ben")
    review = ask(site.workspace, ("send", '{"to":"<b>\\u202eeve@example.org</b>' + "x" * 200 + '"}'))
    return f"/l/{link_to(site.workspace, review, person=ben)}"


def review(site: Site) -> str:
    """A review with all that is hard to show."""
    return f"/reviews/{asked(site.workspace).id}"


def edited(site: Site) -> str:
    """The form of a review with several calls."""
    calls = ("pay", ARGUMENTS), ("send", '{"to":"<b>\\u202eeve@example.org</b>"}')
    return f"/reviews/{asked(site.workspace, *calls).id}?edit=1"


def conversations(site: Site) -> str:
    """The chat with a few conversations."""
    for number in range(3):
        _talked(site, f"Hello {number} <b>\u202e" + "x" * 200, ScriptedModel(["Good morning."]))
    return "/chat"


def conversation(site: Site) -> str:
    """A conversation with calls that ran, and one that waits."""
    steps = [calls(("get_weather", {"city": "Bandung"})), calls(("send_email", {"to": "<b>" + "x" * 200}))]
    return f"/chat/{_talked(site, 'Write to Ana', ScriptedModel(steps))}"


def _talked(site: Site, text: str, model: ScriptedModel) -> str:
    talks(site.workspace, model)
    run = turns.start(site.workspace.ledger, new_id(), text, run_id=new_id(), program="chat", by=OWNER)
    until(lambda: following.standing(site.workspace, run.id).has_stopped)
    return run.thread_id


def runs(site: Site) -> str:
    """The runs: some wait, one has ended."""
    with_texts(site)
    decided(site)
    return "/runs"


def run(site: Site) -> str:
    """A run with a call that was decided, and its trail."""
    review = asked(site.workspace)
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by=OWNER, version=review.version)
    until(lambda: numbered(site))
    return f"/runs/{review.run_id}"


def trail(site: Site) -> str:
    """A page full of entries."""
    for _ in range(20):
        decided(site)
    until(lambda: numbered(site))
    return "/audit"


def numbered(site: Site) -> bool:
    """Whether the worker has numbered and sealed all that happened."""
    with site.workspace.database.read() as tx:
        found = audit.standing(tx)
    return not found.waiting and found.sealed_to == found.last_seq


def no_pipelines(_: Site) -> str:
    """The list of research runs, when there is none, with the form that starts one."""
    return "/pipeline"


def pipelines(site: Site) -> str:
    """The list of research runs."""
    lab = Lab(site.workspace, site.research)
    lab.start(objective="<b>\u202ecodon usage</b> " + "x" * 200)
    lab.start("run2", symbol="BRAC1")
    return "/pipeline"


def pipeline(site: Site) -> str:
    """A research run whose second plan waits."""
    lab = Lab(site.workspace, site.research)
    lab.start(objective="<b>\u202ecodon usage</b> " + "x" * 200)
    lab.decide("revise", message="<b>\u202eless</b>" + "x" * 200, changes={"exclude": ["gc-profile"]})
    return "/pipeline/run1"


def edited_plan(site: Site) -> str:
    """A plan that is edited by hand."""
    Lab(site.workspace, site.research).start()
    return "/pipeline/run1?edit=1"


def reported(site: Site) -> str:
    """A research run that is done, with all of its files."""
    lab = Lab(site.workspace, site.research)
    lab.start()
    lab.decide("approve")
    return "/pipeline/run1"


def file_of_a_run(site: Site) -> str:
    """A text among the files of a run."""
    Lab(site.workspace, site.research).start()
    return "/pipeline/run1/look/plan.v1.json"


PAGES: dict[str, Case] = {
    "an empty inbox": Case(empty_inbox),
    "the inbox": Case(inbox),
    "what was decided": Case(decided),
    "a review": Case(review),
    "a review that is edited": Case(edited),
    "the chat before anybody answers": Case(lambda _: "/chat"),
    "the chat": Case(conversations),
    "a conversation": Case(conversation),
    "the runs": Case(runs),
    "a run": Case(run),
    "the trail": Case(trail),
    "the settings": Case(lambda _: "/settings"),
    "the policies": Case(settings_pages.policies),
    "the people": Case(settings_pages.people),
    "a person": Case(settings_pages.person),
    "the channels": Case(settings_pages.channels),
    "the keys": Case(settings_pages.keys),
    "the standing rules": Case(settings_pages.rules),
    "a call that is remembered": Case(settings_pages.new_rule),
    "a filter that nothing fits": Case(nothing_fits),
    "an address under which nothing is": Case(not_there, fails=True),
    "a link of a message": Case(link_of_a_message, person=None),
    "a link that was used": Case(ways_in.link, person=None, fails=True, then=ways_in.press_it),
    "a link that is too old": Case(ways_in.old_link, person=None, fails=True),
    "a link that was never sent": Case(lambda _: "/l/none", person=None, fails=True),
    "the way in": Case(lambda _: "/login", person=None),
    "a wrong password": Case(
        lambda site: ways_in.with_password(site, "/login"),
        person=None,
        fails=True,
        then=ways_in.wrong_password,
    ),
    "signing in again": Case(lambda site: ways_in.with_password(site, "/login?again=1")),
    "signing in again by a link": Case(lambda _: "/login?again=1"),
    "a first link": Case(ways_in.welcome, person=None),
    "a first link that is none": Case(lambda _: "/welcome/none", person=None, fails=True),
    "a first password": Case(lambda _: "/me/password"),
    "another password": Case(lambda site: ways_in.with_password(site, "/me/password")),
    "where one is signed in": Case(lambda _: "/me/sessions"),
    "who it is, once more": Case(
        lambda site: ways_in.with_password(site, "/settings/keys"), fails=True, then=ways_in.new_key
    ),
    "what was decided together": Case(ways_in.similar, then=ways_in.decide_together),
    "a list of no research runs": Case(no_pipelines),
    "the list of research runs": Case(pipelines),
    "a plan that waits": Case(pipeline),
    "a plan that is edited": Case(edited_plan),
    "a research run that is done": Case(reported),
    "a file of a research run": Case(file_of_a_run),
}
