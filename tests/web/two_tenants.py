"""A workspace of two groups of people who see nothing of each other, and all who may knock at a route."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from httpx2 import Response

from clearance.credential import EVERY_SCOPE, Scope
from clearance.keyring import add_agent
from clearance.membership import disable, set_sight
from clearance.people import Person, Role, Sight
from clearance.review import Review
from clearance.signing_in import Client, start_session
from clearance.store import people
from clearance.web.pages.viewer import csrf_of
from tests.web.asked import ask
from tests.web.researching import start
from tests.web.served import OWNER, Served

CALLERS = ("nobody", "disabled", "wrong", "agent", "outsider", "viewer", "reviewer", "operator", "admin")
"""Who knocks: `agent` and `outsider` (a reviewer) are of the other group; `wrong` is the admin with a cookie
where a key belongs, and with a key where a cookie does."""
ACME, OTHER = ("acme",), ("other",)
_PEOPLE = (
    ("disabled", Role.ADMIN, ACME),
    ("outsider", Role.REVIEWER, OTHER),
    ("viewer", Role.VIEWER, ACME),
    ("reviewer", Role.REVIEWER, ACME),
    ("operator", Role.OPERATOR, ()),
    ("tom", Role.VIEWER, ACME),
)
_PERSON_OF = {"wrong": OWNER, "admin": OWNER}
_BY_KEY = ("/api/", "/langgraph/", "/agui", "/metrics")
_ALIASES = (
    "/chat/{thread_id:path}/messages",
    "/chat/{thread_id:path}/review",
    "/pipeline/start",
    "/pipeline/{run_id}/resume",
)


def is_page(path: str) -> bool:
    """Whether a route is a page, which cookies open; keys open the others."""
    return not path.startswith(_BY_KEY) and path not in _ALIASES


@dataclass
class Tenants:
    """Both groups, served. `tom` and his agent `bot` are of acme; what they asked for is to be found."""

    served: Served
    tokens: dict[str, str]
    pipeline: str
    _looked_at: Review | None = None

    @classmethod
    @contextmanager
    def open(cls, url: str, *, home: Path) -> Iterator["Tenants"]:
        """Serve the workspace. Streams end as soon as they have begun."""
        with Served.open(url, home=home, research=True) as served:
            database = served.workspace.database
            with database.write() as tx:
                for name, role, groups in _PEOPLE:
                    people.add(tx, Person(name, name, role=role, groups=groups), now=database.now(tx))
            set_sight(database, Sight.OWN_GROUPS, by=OWNER)
            add_agent(database, "bot", behind="tom", by=OWNER)
            add_agent(database, "agent", behind="outsider", by=OWNER)
            tokens = {"disabled": _session(served, "disabled")}
            served.key("disabled")
            disable(database, "disabled", by=OWNER)
            pipeline = start(served, by="bot")
            # Ended, so that nobody who may decide on it changes what the next one finds.
            served.http.post(f"/api/v1/pipeline/{pipeline}/cancel", headers=served.key())
            served.workspace.worker.stop()
            _propose(served, "k1")
            found = cls(served, tokens, pipeline)
            found.app.state.changes.end()
            yield found

    @property
    def app(self) -> FastAPI:
        """The application."""
        found: Any = self.served.http.app
        assert isinstance(found, FastAPI)
        return found

    def ids(self, route: tuple[str, str], sent: Mapping[str, Any] | None) -> dict[str, str]:
        """Return what a route can be about; for what changes something, of a call of its own."""
        method, path = route
        review = self._asked() if method != "get" else self._kept
        found = {
            "pipeline": self.pipeline,
            "review_id": review.id,
            "run_id": review.run_id,
            "thread_id": review.thread_id,
            "key": "k1",
            "agent": "bot",
            "person_id": "tom",
            "name": "sequence.json",
        }
        if "{rule_id}" in path + json.dumps(sent or {}):
            found["rule_id"] = self._rule(review.id)
        return found

    def call(
        self,
        route: tuple[str, str],
        who: str,
        *,
        sent: Mapping[str, Any] | None,
        ids: Mapping[str, str],
        scopes: Collection[Scope] = EVERY_SCOPE,
    ) -> Response:
        """Knock as somebody. `sent` is a body, or the fields of a form; `{…}` in it stands for an id."""
        method, path = route
        named = {**ids, "run_id": ids["pipeline"]} if "/pipeline" in path else dict(ids)
        address = path.replace(":path", "").format(**named)
        said = json.loads(_filled(json.dumps(sent or {}), named))
        address += str(said.pop("?", ""))
        headers = {"Accept": "text/html"} if is_page(path) else {}
        cookies, key = self._shown(who, by_key=not is_page(path))
        headers |= {} if key is None else self.served.key(key, scopes=scopes)
        headers |= {} if cookies is None else {"Cookie": f"clearance={cookies}"}
        self.served.http.cookies.clear()
        where = f"http://127.0.0.1{address}"
        if not is_page(path) or method == "get":
            body = None if method in ("get", "delete") else said
            return self.served.http.request(method, where, json=body, headers=headers, follow_redirects=False)
        form = {**said, "csrf": csrf_of(cookies or "")}
        headers |= {"Sec-Fetch-Site": "same-origin"}
        return self.served.http.request(method, where, data=form, headers=headers, follow_redirects=False)

    def _shown(self, who: str, *, by_key: bool) -> tuple[str | None, str | None]:
        """Return the token of a cookie and the name of a key, of which one is None."""
        person = _PERSON_OF.get(who, who)
        if who == "nobody":
            return None, None
        if who == "agent":
            return None, person
        if by_key is not (who == "wrong"):
            return None, person
        return self.tokens.get(person) or _session(self.served, person), None

    def _asked(self) -> Review:
        return ask(self.served, by="bot")

    @property
    def _kept(self) -> Review:
        if self._looked_at is None:
            self._looked_at = self._asked()
        return self._looked_at

    def _rule(self, review_id: str) -> str:
        body = {"review_id": review_id, "uses": 1, "for": "1h", "thread_only": True}
        answer = self.served.http.post("/api/v1/standing-rules", json=body, headers=self.served.key())
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["rule_id"]
        return found


def _session(served: Served, name: str) -> str:
    database = served.workspace.database
    with database.write() as tx:
        limits = served.workspace.session_limits
        client = Client("127.0.0.1", "a test")
        person = people.person(tx, name)
        return start_session(database, tx, person, client=client, limits=limits, how="password").token


def _propose(served: Served, key: str) -> None:
    body = {"key": key, "tool": "pay", "arguments": {}}
    answer = served.http.post("/api/v1/calls", json=body, headers=served.key("bot"))
    assert answer.status_code == 200, answer.text


def _filled(text: str, ids: Mapping[str, str]) -> str:
    for name, value in ids.items():
        text = text.replace("{" + name + "}", value)
    return text
