"""The pages as a browser without scripts uses them: it sends the forms that it finds in what was answered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

import clearance
from clearance.people import Person, Role
from clearance.signing_in import Client, SignedIn, start_session
from clearance.store import passwords, people
from clearance.web.app import create_app
from clearance.workspace import Clearance

OWNER = "ann"
PASSWORD = "four words in a row"
# A hash says what it costs to check: this one is cheap.
_HASH = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),)).hash(PASSWORD)
PLAIN, SECURE = "http://127.0.0.1:8000", "https://clearance.example.org"
Routers = Callable[[Clearance], Sequence[APIRouter]]
"""Makes a program known to a workspace, and returns its routes."""
COOKIES = ("clearance", "__Host-clearance")


@dataclass
class Fields:
    """One form of a page: where it goes, and what its fields hold."""

    action: str
    method: str
    values: list[tuple[str, str]] = field(default_factory=list)

    def with_(self, **typed: str) -> list[tuple[str, str]]:
        """Return what is sent when these fields were typed into."""
        kept = [(name, value) for name, value in self.values if name not in typed]
        return [*kept, *typed.items()]


class Page(HTMLParser):
    """What a page holds, as its parser sees it: forms, and the text that is read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Fields] = []
        self._texts: list[str] = []
        self.feed(html)

    @property
    def text(self) -> str:
        """The text, with single spaces."""
        return " ".join("".join(self._texts).split())

    def form(self, action: str) -> Fields:
        """Return the one form that goes there."""
        [found] = [each for each in self.forms if each.action == action]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note forms and fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Fields(given.get("action", ""), given.get("method", "get")))
        elif tag == "input" and self.forms and "name" in given:
            self.forms[-1].values.append((given["name"], given.get("value", "")))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self._texts.append(data)


@dataclass
class Browser:
    """One browser: its cookies, and the pages that it opens. Redirects are not followed."""

    http: TestClient

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Response:
        """Open an address."""
        return self.http.get(path, headers=dict(headers or {}), follow_redirects=False)

    def page(self, path: str) -> Page:
        """Open a page that is there."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def send(
        self, path: str, form: str, *, headers: Mapping[str, str] | None = None, **typed: str
    ) -> Response:
        """Type into a form of a page, and send it as a browser does."""
        fields = self.page(path).form(form)
        return self.post(form, dict(fields.with_(**typed)), headers=headers)

    def post(
        self, path: str, data: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a form."""
        given = dict(headers) if headers is not None else {"Sec-Fetch-Site": "same-origin"}
        return self.http.post(path, data=dict(data), headers=given, follow_redirects=False)

    def sign_in(self, name: str = OWNER, password: str = PASSWORD, *, next: str = "/me/sessions") -> Response:
        """Sign in by the page."""
        return self.send(f"/login?next={next}", "/login", name=name, password=password)

    @property
    def token(self) -> str | None:
        """The session's cookie."""
        return next((self.http.cookies[name] for name in COOKIES if name in self.http.cookies), None)


@dataclass
class Clock:
    """The database's clock, as a test moves it."""

    now: datetime

    def pass_(self, **span: float) -> None:
        """Let so much time pass."""
        self.now += timedelta(**span)


@dataclass
class Site:
    """An open workspace and its pages. `ann` is its first person, an admin, with a password."""

    workspace: Clearance
    app: FastAPI

    @classmethod
    @contextmanager
    def open(
        cls, url: str, *, home: Path, worker: bool = False, routers: Routers = lambda _: ()
    ) -> Iterator["Site"]:
        """Open the workspace and serve it in this process, perhaps with the routes of a program."""
        with clearance.open(url, home=home, person=OWNER, worker=worker) as workspace:
            app = create_app(workspace, routers=routers(workspace))
            with TestClient(app, raise_server_exceptions=False):
                site = cls(workspace, app)
                site.give_password(OWNER)
                yield site

    def browser(self, base: str = PLAIN, *, address: str = "127.0.0.1") -> Browser:
        """Give another browser, on this address."""
        client = TestClient(self.app, base_url=base, raise_server_exceptions=False, client=(address, 50000))
        return Browser(client)

    def signed_in(self, name: str = OWNER, *, base: str = PLAIN) -> Browser:
        """Give a browser in which somebody has signed in."""
        browser = self.browser(base)
        assert browser.sign_in(name).status_code == 303
        return browser

    def add(self, name: str, *, role: Role = Role.REVIEWER, groups: tuple[str, ...] = ()) -> str:
        """Let another person in, with the password that all have here, and return their name."""
        database = self.workspace.database
        with database.write() as tx:
            people.add(tx, Person(name, name, role=role, groups=groups), now=database.now(tx))
        self.give_password(name)
        return name

    def give_password(self, name: str) -> None:
        """Let somebody sign in with the password that all have here."""
        with self.workspace.database.write() as tx:
            passwords.put(tx, name, _HASH, now=self.workspace.database.now(tx))

    def stop_the_clock(self) -> "Clock":
        """Have time pass only when a test says so."""
        database = self.workspace.database
        with database.read() as tx:
            clock = Clock(database.now(tx))
        database._clock = lambda: clock.now
        return clock

    def session(self, name: str = OWNER, *, how: str = "password") -> SignedIn:
        """Begin a session without the page."""
        database = self.workspace.database
        with database.write() as tx:
            person = people.person(tx, name)
            limits = self.workspace.session_limits
            return start_session(
                database, tx, person, client=Client("127.0.0.1", "a test"), limits=limits, how=how
            )
