"""Messages to people as doors: a mail's own link, and the page that a message in the chat leads to.

Nobody decides in a message. Who wants to act on one follows it, and presses the button of a page.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TypeVar
from urllib.parse import quote, urlsplit

from tests.journeys.cases.console import CommandLine
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.outside import Outside, address_of
from tests.journeys.cases.pages_door import Pages, text_of
from tests.journeys.cases.setup import KEEPER, PUBLIC
from tests.journeys.cases.site import Site
from tests.journeys.processes import until

Found = TypeVar("Found")
_ADDRESS = re.compile(re.escape(PUBLIC) + r"/[^\s\"<>)]+")


@dataclass(frozen=True)
class Seen:
    """What a surface shows. `behind` is the page that it leads to, where more is shown after signing in."""

    text: str
    subject: str = ""
    behind: str = ""
    review_id: str = ""


@dataclass(frozen=True)
class Messages:
    """What was told to whom about a review."""

    site: Site
    pages: Pages
    outside: Outside

    def add_mail(self, person: str) -> None:
        """Have a person told by mail."""
        server = f"127.0.0.1:{self.outside.mail.port}"
        address = (
            f"mailto://robot:secret@{server}/?smtp=127.0.0.1&from=robot@example.org"
            f"&to={address_of(person)}&mode=insecure"
        )
        self._add(f"{person}'s mail", address, "--person", person)

    def add_chat(self) -> None:
        """Have everybody who reviews told in one chat."""
        self._add("chat", self.outside.chat, "--role", "reviewer")

    def add_hook(self) -> None:
        """Have a server told."""
        self._add("hook", self.outside.hook, "--role", "reviewer", "--kind", "webhook")

    def mail(self, person: str, review_id: str) -> EmailMessage | None:
        """Return the newest mail to a person about a review; None when none will come."""
        return self._awaited(lambda: [m for m in self.outside.mail.to(person) if review_id in body_of(m)])

    def post(self, review_id: str) -> str | None:
        """Return the newest message in the chat about a review; None when none will come."""
        return self._awaited(lambda: [each for each in self.outside.said_in_chat() if review_id in each])

    def told(self, review_id: str) -> str | None:
        """Return the newest message to the server about a review; None when none will come."""
        return self._awaited(lambda: [each for each in self.outside.told() if review_id in each])

    def seen_in_mail(self, person: str, review_id: str) -> Seen:
        """Return what a person's mail shows, with the page that its own link opens without signing in."""
        mail = self.mail(person, review_id)
        if mail is None:
            raise LookupError(f"no mail to {person} tells of the review")
        link = link_in(body_of(mail))
        page = self.pages.get(link, by=None) if link is not None else None
        opened = text_of(page.body) if page is not None and page.ok else ""
        whole = f"{mail['subject']}\n{mail.as_string()}\n{body_of(mail)}\n{opened}"
        return Seen(whole, str(mail["subject"]), self._behind(body_of(mail), by=person), review_id)

    def seen_in_chat(self, person: str, review_id: str) -> Seen:
        """Return what the chat shows, and the page that its message leads a person to."""
        post = self.post(review_id)
        if post is None:
            raise LookupError("no message in the chat tells of the review")
        return Seen(post, "", self._behind(post, by=person), review_id)

    def _behind(self, text: str, *, by: str) -> str:
        path = page_in(text)
        return self.pages.read(path, by=by) if path is not None else ""

    def _awaited(self, look: Callable[[], list[Found]]) -> Found | None:
        until(lambda: look() or self.site.is_told(), what="a message to people")
        found = look()
        return found[-1] if found else None

    def _add(self, name: str, address: str, *words: str) -> None:
        done = CommandLine(self.site).run("channels", "add", name, *words, by=KEEPER, typed=address)
        assert done.exit_code == 0, done.output


@dataclass(frozen=True)
class MailDoor:
    """The link in a person's mail: its page decides when its button is pressed, once."""

    messages: Messages

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """Nobody reads answers to mails."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Press the button that says the payload; one that no button says is sent in a button's place."""
        mail = self.messages.mail(by, review_id)
        if mail is None:
            return Answer(ok=False, reason=f"No mail came to {by}.")
        link = link_in(body_of(mail))
        if link is None:  # only the page behind the login decides it
            return self.messages.pages.decide(review_id, payload, by=by, version=version, server=server)
        return self.messages.pages.send(link, _pressed(payload), by=None, server=server)


@dataclass(frozen=True)
class ChatDoor:
    """The message in the chat: whoever follows it signs in, and decides as who they are."""

    messages: Messages

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """Nobody reads answers to the chat's messages."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Follow the message to the page of the review, and decide there."""
        post = self.messages.post(review_id)
        if post is None:
            return Answer(ok=False, reason="No message came to the chat.")
        assert page_in(post) == f"/reviews/{quote(review_id)}", post
        return self.messages.pages.decide(review_id, payload, by=by, version=version, server=server)


def body_of(mail: EmailMessage) -> str:
    """Return the text of a mail."""
    body = mail.get_body(("plain", "html"))
    return str(body.get_content()) if body is not None else ""


def page_in(text: str) -> str | None:
    """Return the page of the review that a message leads to."""
    return next((path for path in _paths(text) if path.startswith("/reviews/")), None)


def link_in(text: str) -> str | None:
    """Return the personal link in a message, which decides."""
    return next((path for path in _paths(text) if path.startswith("/l/")), None)


def _paths(text: str) -> list[str]:
    return [urlsplit(found).path for found in _ADDRESS.findall(text)]


def _pressed(payload: object) -> list[tuple[str, str]]:
    items = payload if isinstance(payload, list) else []
    kinds = {item.get("type") for item in items if isinstance(item, dict)}
    said = next(iter(kinds)) if len(kinds) == 1 else None
    edits = any(isinstance(item, dict) and "edited_action" in item for item in items)
    if not isinstance(said, str) or edits or not all(isinstance(item, dict) for item in items):
        return [("answer", json.dumps(payload, default=str))]
    words = next((str(item["message"]) for item in items if item.get("message")), "")
    return [("answer", said), ("message", words)]
