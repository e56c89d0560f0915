"""The API over HTTP as a door: real connections to the server processes, with each person's own key."""

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx

from clearance.errors import NotFoundError
from clearance.keyring import add_key, new_credential
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.setup import KEEPER, PROGRAM
from tests.journeys.cases.site import Site

API = "/api/v1"
LONGEST = 90.0
MOST_WAIT = 60.0


@dataclass(frozen=True)
class HttpDoor:
    """The API of a site's servers."""

    site: Site
    keys: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """Say something in a thread."""
        body = {"text": text, "program": PROGRAM, "wait": min(wait, MOST_WAIT)}
        headers = {"Idempotency-Key": key} if key is not None else {}
        return self.send(
            "POST",
            f"{API}/threads/{quote(thread)}/messages",
            by=by,
            body=body,
            server=server,
            headers=headers,
        )

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Decide a review; a payload that is no list is sent as the body too."""
        bodies: list[object] = [{"decisions": payload, "version": version}]
        if not isinstance(payload, list):
            bodies.append({**payload, "version": version} if isinstance(payload, dict) else payload)
        path = f"{API}/reviews/{quote(review_id)}/decide"
        answers = [self.send("POST", path, by=by, body=body, server=server) for body in bodies]
        return next((answer for answer in answers if answer.ok or answer.lost), answers[0])

    def send(
        self,
        method: str,
        path: str,
        *,
        by: str | None,
        body: object = None,
        server: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send any request as a person, or as nobody."""
        shown = self.shown(by) if by is not None else {}
        try:
            content = None if method in ("GET", "HEAD", "OPTIONS") else json.dumps(body)
        except TypeError as error:
            return Answer(ok=False, reason=f"JSON has no form for it: {error}")
        kind = {"Content-Type": "application/json"} if content is not None else {}
        try:
            found = _client().request(
                method,
                self.site.address(server) + path,
                content=content,
                headers={**shown, **kind, **(headers or {})},
            )
        except httpx.TransportError as error:
            return Answer(ok=False, reason=f"no answer came: {type(error).__name__}", lost=True)
        return _answer(found)

    def shown(self, person: str) -> dict[str, str]:
        """Return the headers that show a person's key."""
        return {"Authorization": f"Bearer {self._key(person)}"}

    def let_in(self, persons: Iterable[str]) -> None:
        """Give keys to these persons, so that none has to be made later."""
        for person in persons:
            self._key(person)

    def _key(self, person: str) -> str:
        with self._lock:
            if person not in self.keys:
                made = new_credential()
                with suppress(NotFoundError):  # who is not known shows a key that opens nothing
                    add_key(self.site.opened.database, f"{person}'s", person=person, by=KEEPER, made=made)
                self.keys[person] = made.text
            return self.keys[person]


@cache
def _client() -> httpx.Client:
    """Return what sends: each request on a connection of its own, as servers come and go."""
    return httpx.Client(
        timeout=LONGEST, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0), verify=False
    )


def _answer(found: httpx.Response) -> Answer:
    is_json = "json" in found.headers.get("content-type", "") and found.content
    said: Any = found.json() if is_json else found.text
    problem = said if isinstance(said, dict) and not found.is_success else {}
    return Answer(
        ok=found.is_success,
        reason=str(problem.get("detail", "")),
        faults=tuple(str(item["pointer"]) for item in problem.get("errors", [])),
        body=said,
        status=found.status_code,
    )
