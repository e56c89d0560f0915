"""Conversations as a test holds them on the chat's pages."""

from urllib.parse import urlencode

from httpx2 import Response

from clearance.store import runs
from tests.pages.reviewing import Shown
from tests.pages.site import OWNER, Browser, Site
from tests.scripted import ScriptedModel, Step
from tests.web.talking import Office, talks, until


def entered(site: Site, person: str = OWNER) -> Browser:
    """Give a browser in which somebody is signed in; how they do it is tested elsewhere."""
    browser = site.browser()
    browser.http.cookies.set("clearance", site.session(person).token)
    return browser


def says(site: Site, *steps: Step) -> Office:
    """Have the agent answer by a script."""
    return talks(site.workspace, ScriptedModel(steps))


def begun(browser: Browser, text: str = "Hello") -> str:
    """Begin a conversation by the page, and return its address."""
    answer = browser.send("/chat", "/chat", text=text)
    assert answer.status_code == 303, answer.text
    address: str = answer.headers["location"]
    return address.removesuffix("#end")


def settled(site: Site, address: str) -> None:
    """Wait until the agent works no more."""
    thread_id = address.removeprefix("/chat/")

    def stopped() -> bool:
        with site.workspace.database.read() as tx:
            newest = runs.list_runs(tx, thread_id=thread_id, limit=1)[0]
            thread = runs.thread(tx, thread_id)
        assert thread is not None
        return newest.state in ("waiting", "done", "failed", "cancelled") and thread.wanted == thread.done

    until(stopped)


def decide(browser: Browser, address: str, *button: str, **typed: str) -> Response:
    """Send the decision that the conversation asks for."""
    form = Shown.read(browser.get(address).text)
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(form.sent(*button, **typed))
    return browser.http.post(form.action, content=body, headers=headers, follow_redirects=False)


def newest(site: Site, address: str) -> str:
    """Return the newest run of a conversation."""
    with site.workspace.database.read() as tx:
        return runs.list_runs(tx, thread_id=address.removeprefix("/chat/"), limit=1)[0].id
