"""Every page that people open, and what it needs to be there. A new page adds its line here."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.browser.site import OWNER, Site
from tests.pages.reviewing import ARGUMENTS, asked
from tests.web.asked import ask


@dataclass(frozen=True)
class Case:
    """A page: `make` puts there what it shows, and returns its address. `person` is who is signed in."""

    make: Callable[[Site], str]
    person: str | None = OWNER
    fails: bool = False


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
    database = site.workspace.database
    with database.write() as tx:
        linking = site.workspace.worker.messenger.linking
        return f"/l/{linking.make(tx, review, person=ben, now=database.now(tx))}"


def review(site: Site) -> str:
    """A review with all that is hard to show."""
    return f"/reviews/{asked(site.workspace).id}"


def edited(site: Site) -> str:
    """The form of a review with several calls."""
    calls = ("pay", ARGUMENTS), ("send", '{"to":"<b>\\u202eeve@example.org</b>"}')
    return f"/reviews/{asked(site.workspace, *calls).id}?edit=1"


PAGES: dict[str, Case] = {
    "an empty inbox": Case(empty_inbox),
    "the inbox": Case(inbox),
    "what was decided": Case(decided),
    "a review": Case(review),
    "a review that is edited": Case(edited),
    "a filter that nothing fits": Case(nothing_fits),
    "an address under which nothing is": Case(not_there, fails=True),
    "a link of a message": Case(link_of_a_message, person=None),
}
