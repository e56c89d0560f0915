"""The pages as a door: a browser without scripts, signed in by a one-time link, that sends their forms."""

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from clearance.review import Review, ReviewKind
from tests.journeys.cases.console import CommandLine
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.http_door import LONGEST
from tests.journeys.cases.setup import KEEPER
from tests.journeys.cases.site import Site
from tests.pages.reviewing import Shown

UNTOUCHED = "$untouched_form"
_BROWSER = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Pages:
    """The pages of a site's servers, and who is signed in."""

    site: Site
    sessions: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """Messages come in by another door."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Open the page of a review, fill its form in as the payload says, and press the button."""
        review, path = self.site.review(review_id), f"/reviews/{quote(review_id)}"
        said = payload if isinstance(payload, list) else []
        edits = [item for item in said if isinstance(item, dict) and "edited_action" in item]
        untouched = [item for item in edits if _is_untouched(item)]
        mode = "" if not edits else "?edit=1" if untouched == edits else "?raw=1"
        found = self.get(path + mode, by=by, server=server)
        if not found.ok:
            return found
        return self.send(
            f"{path}/decide", _filled_in(Shown.read(found.body), review, payload), by=by, server=server
        )

    def get(
        self,
        path: str,
        *,
        by: str | None,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        server: int = 1,
    ) -> Answer:
        """Open an address, as somebody who is signed in or as nobody. Redirects are not followed."""
        return self._sent(method, path, by=by, headers=headers or {}, server=server)

    def read(self, path: str, *, by: str) -> str:
        """Return the text of a page that is there."""
        found = self.get(path, by=by)
        if not found.ok:
            raise LookupError(f"the page {urlsplit(path).path} answered {found.status}: {found.reason}")
        return text_of(found.body)

    def send(self, path: str, pairs: Sequence[tuple[str, str]], *, by: str | None, server: int = 1) -> Answer:
        """Send a form, as a browser does from a page of the same site."""
        return self._sent("POST", path, by=by, headers=_FORM, server=server, content=urlencode(pairs))

    def fields(
        self, path: str, *, by: str | None, typed: Mapping[str, str], csrf: bool
    ) -> list[tuple[str, str]]:
        """Return what the form of a page sends when a button is pressed, with or without its token."""
        page = Shown.read(self.get(path, by=by).body)
        sent = {name: text for name, text in page.fields if csrf or name != "csrf"}
        for name, text in typed.items():
            sent["decision" if name == "answer" and path.startswith("/reviews/") else name] = str(text)
        return list(sent.items())

    def cookie(self, person: str) -> str:
        """Return the cookie of a person's session, who signs in when they have none."""
        with self._lock:
            if person not in self.sessions:
                self.sessions[person] = self._sign_in(person)
            return self.sessions[person]

    def _sign_in(self, person: str) -> str:
        """Let somebody in by the link that an admin makes for them; empty for who cannot get in."""
        made = CommandLine(self.site).run("people", "link", person, "--json", by=KEEPER)
        if made.exit_code != 0:
            return ""
        path, password = urlsplit(json.loads(made.stdout)["link"]).path, secrets.token_urlsafe(16)
        with _client() as client:
            found = client.post(
                self.site.address() + path,
                content=urlencode([("password", password), ("repeated", password)]),
                headers={**_BROWSER, **_FORM},
            )
        token = found.cookies.get("clearance") or ""
        assert token, f"{person} could not sign in: {_refusal_in(found.text)}"
        return token

    def _sent(
        self,
        method: str,
        path: str,
        *,
        by: str | None,
        headers: Mapping[str, str],
        server: int,
        content: str | None = None,
    ) -> Answer:
        shown = {"Cookie": f"clearance={self.cookie(by)}"} if by is not None else {}
        try:
            found = _client().request(
                method,
                self.site.address(server) + path,
                content=content,
                headers={**_BROWSER, **shown, **headers},
            )
        except httpx.TransportError as error:
            return Answer(ok=False, reason=f"no answer came: {type(error).__name__}", lost=True)
        return answer_of(found)


def _client() -> httpx.Client:
    """Return what sends one request: nothing is kept of the cookies that another one was given."""
    once = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(timeout=LONGEST, trust_env=False, verify=False, limits=once)


def answer_of(found: httpx.Response) -> Answer:
    """Return what a page answered: to a form that was taken a browser is sent on, but not to sign in."""
    leads = found.headers.get("location", "")
    ok = found.status_code == 200 or (found.status_code == 303 and not leads.startswith("/login"))
    reason = "" if ok else _refusal_in(found.text) or f"it answered {found.status_code} {leads}"
    return Answer(ok=ok, reason=reason, body=found.text, status=found.status_code)


def _refusal_in(html: str) -> str:
    """Return what a page says went wrong: its alerts, else the beginning of its text."""
    alerts = _Alerts()
    alerts.feed(html)
    return " ".join("".join(alerts.texts).split()) or " ".join(text_of(html).split())[:500]


def text_of(html: str) -> str:
    """Return the text of a page as it is read: nothing that only its parser sees."""
    reader = _Text()
    reader.feed(html)
    return "".join(reader.texts)


def _filled_in(page: Shown, review: Review, payload: object) -> list[tuple[str, str]]:
    """Return what the form sends; a payload that no field can say stands in the button's place."""
    sent = dict(page.fields)
    places = {call.key: place for place, call in enumerate(review.calls, 1)}
    one = len(review.waiting) == 1 or review.kind is ReviewKind.PLAN
    if not isinstance(payload, list) or not payload or not all(isinstance(each, dict) for each in payload):
        return [*sent.items(), ("decision", json.dumps(payload, default=str))]
    for number, item in enumerate(payload, 1):
        place = places.get(item.get("call"), number) if "call" in item else number
        kind = item.get("type")
        said = "approve" if kind == "edit" and "edited_action" in item else kind
        sent["decision" if one else f"d{place}"] = said if isinstance(said, str) else json.dumps(said)
        if item.get("message"):
            sent[f"c{place}"] = str(item["message"])
        if "edited_action" in item and not _is_untouched(item):
            sent[f"t{place}"] = json.dumps(item["edited_action"].get("args"), default=str)
    if not one:
        sent["decision"] = "each"
    if one and len(payload) != 1:
        sent["decision"] = json.dumps(payload, default=str)
    return list(sent.items())


def _is_untouched(item: Mapping[str, Any]) -> bool:
    args = item.get("edited_action", {}).get("args")
    return isinstance(args, dict) and UNTOUCHED in args


class _Text(HTMLParser):
    """Reads the text of a page, and what stands in its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self._unread += tag in ("script", "style", "head")

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in ("script", "style", "head")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.texts.append(data)


class _Alerts(_Text):
    """Reads what a page says went wrong, at the top or at a field."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("role") == "alert" or "error" in given.get("class", "").split():
            self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = None
            self.texts.append(" ")

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.texts.append(data)
