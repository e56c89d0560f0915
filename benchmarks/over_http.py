"""How many calls can be proposed and how many reviews decided over HTTP in a second, by 1 to 64 clients."""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Self

import httpx

from benchmarks import parked
from benchmarks.figures import Aim, Figure, Surroundings, median, timed
from benchmarks.in_process import APPROVE, figures_of
from benchmarks.load import put_load
from benchmarks.many_parked import LOOKS, MOST_WAIT, PAGE
from clearance.credential import EVERY_SCOPE, Credential
from clearance.people import Kind, Person, Role
from clearance.store import keys, people
from tests.journeys.front import Front
from tests.journeys.program import PERSON, Stage

AT_LEAST = Aim(300.0, at_least=True)
SLOWEST = Aim(100.0)
STARTS_WITHIN = 60.0


def measure(here: Surroundings) -> list[Figure]:
    """Serve a workspace on SQLite from a process of its own, without a worker, and put load on it."""
    with parked.many(here, "sqlite") as (front, copies):
        person, agent = _key(front, PERSON), _key(front, _agent(front))
        port = _free_port()
        api = f"http://127.0.0.1:{port}/api/v1"
        with (
            parked.running(_serve, front.stage, port),
            _Clients(api, agent) as as_agent,
            _Clients(api, person) as as_person,
        ):
            _wait_until_it_serves(api)
            reviews, numbers = iter(copy.review for copy in copies), count()
            works: dict[str, Callable[[], None]] = {
                "creates": lambda: _propose(as_agent, next(numbers)),
                "decisions": lambda: _decide(as_person, next(reviews)),
            }
            figures = [_first_page(as_person, here)]
            for what, work in works.items():
                for clients in here.sizes.clients:
                    here.tell(f"{what} over HTTP by {clients} clients")
                    loads = put_load(work, clients, here.sizes)
                    figures += figures_of(f"{what} over HTTP", loads, aim=AT_LEAST, slowest=SLOWEST)
            return figures


class _Clients:
    """One HTTP connection for each thread, all with one key."""

    def __init__(self, api: str, key: str) -> None:
        self._api = api
        self._headers = {"Authorization": f"Bearer {key}"}
        self._own = threading.local()
        self._opened: list[httpx.Client] = []

    def send(self, method: str, path: str, body: object = None) -> None:
        """Send a request; anything but success is an error of the benchmark."""
        client: httpx.Client | None = getattr(self._own, "client", None)
        if client is None:
            client = self._own.client = httpx.Client(headers=self._headers, timeout=60, trust_env=False)
            self._opened.append(client)
        client.request(method, f"{self._api}/{path}", json=body).raise_for_status()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection."""
        for client in self._opened:
            client.close()


def _propose(clients: _Clients, number: int) -> None:
    body = {"key": f"call-{number}", "tool": "send", "arguments": {"what": f"{number}"}}
    clients.send("POST", "calls", body)


def _decide(clients: _Clients, review: str) -> None:
    clients.send("POST", f"reviews/{review}/decide", {"decisions": APPROVE, "version": 1})


def _first_page(clients: _Clients, here: Surroundings) -> Figure:
    looks = [timed(lambda: clients.send("GET", f"reviews?limit={PAGE}")).wall for _ in range(LOOKS)]
    what = f"first inbox page over HTTP, {here.sizes.parked:,} parked"
    return Figure(what, median(looks), "ms", aim=MOST_WAIT)


def _key(front: Front, person: str) -> str:
    """Make a key for somebody, and return its text."""
    made = Credential(secrets.token_hex(6), secrets.token_urlsafe(32))
    with front.opened.database.write() as tx:
        now = front.opened.database.now(tx)
        key = keys.Key(
            made.id,
            f"of {person}",
            person,
            created_at=now,
            used_at=None,
            revoked_at=None,
            scopes=EVERY_SCOPE,
        )
        keys.add(tx, key, digest=made.digest)
    return made.text


def _agent(front: Front) -> str:
    with front.opened.database.write() as tx:
        agent = Person(id="bot", name="bot", role=Role.VIEWER, kind=Kind.AGENT)
        people.add(tx, agent, now=front.opened.database.now(tx))
    return agent.id


def _serve(stage: Stage, port: int) -> None:
    import uvicorn

    from clearance.web.app import create_app

    # What is measured is how many calls and decisions there can be.
    os.environ |= {
        f"CLEARANCE_{name}": "0" for name in ("AGENT_CALLS", "AGENT_SAME_CALLS", "PERSON_DECISIONS")
    }
    with stage.open() as opened:
        uvicorn.run(create_app(opened), host="127.0.0.1", port=port, log_level="error", access_log=False)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_until_it_serves(api: str) -> None:
    for _ in _moments(STARTS_WITHIN):
        try:
            httpx.get(f"{api}/me", timeout=1, trust_env=False)
        except httpx.TransportError:
            continue
        return
    raise TimeoutError("The server of the benchmark does not start.")


def _moments(seconds: float) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.1)
