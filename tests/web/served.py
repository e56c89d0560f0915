"""A workspace as it is served: the application in this process, and callers with keys of their own."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi.testclient import TestClient

import clearance
from clearance.apps.research.routes import routers_of
from clearance.apps.research.setup import open_research
from clearance.credential import EVERY_SCOPE, Scope, in_words
from clearance.keyring import add_agent, add_key, new_credential
from clearance.people import Person, Role
from clearance.store import people
from clearance.web.app import create_app
from clearance.workspace import Clearance

OWNER = "ann"


@dataclass
class Served:
    """An open workspace and its application. `ann` is its first person, an admin."""

    workspace: Clearance
    http: TestClient
    _keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, url: str, *, home: Path, research: bool = False) -> Iterator["Served"]:
        """Open the workspace and serve it in this process, perhaps with the routes of research runs."""
        with clearance.open(url, home=home, person=OWNER) as workspace:
            routers = routers_of(open_research(workspace)) if research else ()
            app = create_app(workspace, routers=routers)
            with TestClient(app, raise_server_exceptions=False) as http:
                yield cls(workspace, http)

    def add(self, name: str, *, role: Role = Role.REVIEWER) -> str:
        """Let another person in, and return their name."""
        database = self.workspace.database
        with database.write() as tx:
            people.add(tx, Person(id=name, name=name, role=role), now=database.now(tx))
        return name

    def add_agent(self, name: str, *, behind: str = OWNER) -> str:
        """Let an agent in, and return its name."""
        return add_agent(self.workspace.database, name, behind=behind, by=OWNER).id

    def key(self, person: str = OWNER, *, scopes: Collection[Scope] = EVERY_SCOPE) -> dict[str, str]:
        """Return the header by which somebody is known, with a key that goes so far."""
        name = f"key of {person}" + ("" if EVERY_SCOPE.issubset(scopes) else f": {in_words(scopes)}")
        if name not in self._keys:
            made = new_credential()
            add_key(self.workspace.database, name, person=person, by=OWNER, made=made, scopes=scopes)
            self._keys[name] = made.text
        return {"Authorization": f"Bearer {self._keys[name]}"}
