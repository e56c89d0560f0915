"""Links as people and programs follow them: the page over HTTP, without any sign-in."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import Connection

from clearance.assembly import new_id
from clearance.channel import Channel, ChannelKind, Serves
from clearance.policy import Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.review import Review
from clearance.store import channels, reviews
from clearance.toolcall import Tool
from clearance.web.app import create_app
from clearance.workspace import Clearance
from tests.notices.office import Office, opened

STRICT = Policy(
    rules=(Rule("send", risk=Risk.LOW, reason=True, who=(Threshold(approve=2),), name="two people"),)
)


@dataclass
class Visit:
    """The office and the site that its links lead to."""

    office: Office
    http: TestClient

    def token(self, review: Review, *, person: str = "ben") -> str:
        """Return a fresh token for a review as it is now."""
        return link_to(self.office.workspace, review, person=person)

    def look(self, token: str) -> Response:
        """Open the page."""
        return self.http.get(f"/l/{token}", follow_redirects=False)

    def press(self, token: str, answer: str = "approve", **more: str) -> Response:
        """Press a button of the page."""
        form = {"answer": answer, **more}
        return self.http.post(f"/l/{token}", data=form, follow_redirects=False)

    def review(self, review: Review) -> Review:
        """Return a review as it is now."""
        with self.office.workspace.database.read() as tx:
            return reviews.review(tx, review.id)

    def ask_strictly(self) -> Review:
        """Have something asked that two people decide, with reasons."""
        tool = Tool(name="send", schema={"type": "object"}, run=lambda *_: "done")
        self.office.workspace.register(Program("strict", tools={"send": tool}, policy=STRICT))
        return self.office.ask(program="strict")


@contextmanager
def visiting(url: str, home: Path) -> Iterator[Visit]:
    """Open the office and its site."""
    with (
        opened(url, home) as office,
        TestClient(create_app(office.workspace), raise_server_exceptions=False) as http,
    ):
        yield Visit(office, http)


def link_to(workspace: Clearance, review: Review, *, person: str, now: datetime | None = None) -> str:
    """Return a fresh token for a review as it is now, sent by the mail of its person."""
    database, linking = workspace.database, workspace.worker.messenger.linking
    with database.write() as tx:
        at = database.now(tx) if now is None else now
        found = linking.make(tx, review, person=person, channel=mail_of(tx, person, now=at), now=at)
    assert found is not None
    return found


def mail_of(tx: Connection, person: str, *, now: datetime) -> str:
    """Return the id of a channel to a person, kept when there was none; nothing can be sent by it."""
    known = {channel.name: channel.id for channel in channels.listed(tx)}
    name = f"mail to {person}"
    if name not in known:
        kind, address = ChannelKind.APPRISE, "mailtos://mail.example.org"
        channels.add(tx, Channel(new_id(), name, kind, Serves.PERSON, person, now, address, events=()))
    return channels.named(tx, name).id


def links_in(text: str) -> list[str]:
    """Return the tokens in a message."""
    return re.findall(r"/l/([\w.-]+)", text)


WEBHOOK = ChannelKind.WEBHOOK
