"""The doors that are not there yet, and the cases that wait for them.

A door is found by looking for it, so a case cannot be left here after its doors were built.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

import httpx

import clearance
from clearance.people import Person, seen_by_groups
from clearance.policy import Rule
from clearance.settings import Settings
from clearance.web.app import create_app
from tests.journeys.cases.flows import has_own_steps
from tests.journeys.cases.loading import Case, Step, every_step

PAGES = "web pages"
MESSAGES = "messages to people"
BUTTONS = "buttons in a chat's message"
LINKS = "links in messages"
MCP = "the MCP gateway"
PIPELINE = "the pipeline over HTTP"
OWN_STEPS = "pipelines with steps of one's own"
PEOPLE = "commands for people and policy"
REMINDERS = "reminders"
TENANTS = "reviews that only some may see"
SECRETS = "arguments marked as secret"
NESTED = "agents within agents"
DATABASE_USERS = "a database user of the agent's own"
HELD_BACK = "execution that is held back and released"
FILES = "files that a call is bound to"
GENERATED = "trails that are generated"

WAITING: Mapping[str, tuple[str, ...]] = {
    "E5": (MCP,),
    "E8": (PAGES, MCP),
    "F2": (PAGES, MESSAGES, MCP, DATABASE_USERS),
    "I1": (PAGES, MESSAGES, BUTTONS, LINKS),
    "N3": (PIPELINE, OWN_STEPS),
}


def doors_of(case: Case) -> tuple[str, ...]:
    """Return the doors that a case uses, of those that have not always been there."""
    used = {door for step in every_step(case.steps) for door in _doors_of(step)}
    used |= {PAGES for check in case.expected if check.get("check") == "shown" and check["surface"] == "web"}
    return tuple(sorted(used, key=list(DOORS).index))


def missing(case: Case) -> tuple[str, ...]:
    """Return the doors that a case uses and that are not there."""
    return tuple(door for door in doors_of(case) if not DOORS[door]())


def _doors_of(step: Step) -> Iterator[str]:
    for word in (step.get("via"), step.get("surface"), *step.get("doors", []), step.get("op")):
        if str(word) in _BY_WORD:
            yield _BY_WORD[str(word)]
    if str(step.get("via", "")).startswith("email"):
        yield LINKS
    if str(step.get("path", "")).startswith(("link of", "page of")):
        yield LINKS
    for name, door in _BY_OPTION.items():
        if name in step:
            yield door
    if has_own_steps(step):
        yield OWN_STEPS
    rules: list[Any] = [*step.get("override", [])]
    if any("warn_s" in rule for rule in rules if isinstance(rule, Mapping)):
        yield REMINDERS


_BY_WORD = {
    "web": PAGES,
    "slack": MESSAGES,
    "email": MESSAGES,
    "webhook": MESSAGES,
    "slack_click": BUTTONS,
    "slack_api": BUTTONS,
    "email_server": MESSAGES,
    "link": LINKS,
    "mcp_call": MCP,
    "pipeline": PIPELINE,
    "admin": PEOPLE,
    "propose_nested": NESTED,
    "sql_user": DATABASE_USERS,
    "release_execution": HELD_BACK,
    "files": FILES,
    "generate": GENERATED,
}
_PLAYED_HERE = {NESTED, DATABASE_USERS, HELD_BACK, FILES, GENERATED}
_BY_OPTION = {"notify": MESSAGES, "mcp": MCP, "tenants": TENANTS, "secrets": SECRETS}


def _is_there(module: str) -> Callable[[], bool]:
    return lambda: find_spec(module) is not None


@cache
def answers(path: str) -> bool:
    """Whether the web application knows an address: it then says which methods it takes there."""

    async def status() -> int:
        with (
            tempfile.TemporaryDirectory(prefix="doors-") as folder,
            clearance.open(home=folder, worker=False) as c,
        ):
            transport = httpx.ASGITransport(create_app(c))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await client.request("TRACE", path)).status_code

    return asyncio.run(status()) != HTTPStatus.NOT_FOUND


@cache
def _document() -> dict[str, Any]:
    """Return what the web application says of itself, with the routes of the bundled programs."""
    from clearance.apps.research.routes import routers_of
    from clearance.apps.research.setup import is_installed, open_research

    with (
        tempfile.TemporaryDirectory(prefix="doors-") as folder,
        clearance.open(home=folder, worker=False) as c,
    ):
        routers = routers_of(open_research(c)) if is_installed() else []
        found: dict[str, Any] = create_app(c, routers=routers).openapi()
        return found


def _bodies() -> Iterator[set[str]]:
    """Give the fields of every body that a route of a pipeline takes; steps of one's own are named there."""
    schemas = _document()["components"]["schemas"]
    for path, operations in _document()["paths"].items():
        for operation in operations.values() if "pipeline" in path else ():
            content = operation.get("requestBody", {}).get("content", {})
            for kind in content.values():
                name = str(kind["schema"].get("$ref", "")).rpartition("/")[2]
                yield set(schemas.get(name, {}).get("properties", {}))


def _channels() -> set[str]:
    """Return the modules that send messages to people; webhooks to agents are none of them."""
    package = find_spec("clearance.notices")
    places = (package.submodule_search_locations if package is not None else None) or []
    return {module.name for module in iter_modules(places)} - {"targets", "webhook"}


def _paths() -> set[str]:
    """Return the addresses that the web application knows, pages too."""
    with (
        tempfile.TemporaryDirectory(prefix="doors-") as folder,
        clearance.open(home=folder, worker=False) as c,
    ):
        return {str(getattr(route, "path", "")) for route in create_app(c).routes}


def _commands() -> set[str]:
    import typer

    from clearance.cli import build

    group: Any = typer.main.get_command(build())
    return set(group.commands)


def _only_some_see() -> bool:
    asker = Person("asker", "asker", groups=("one",))
    outsider = Person("outsider", "outsider", groups=("other",))
    return asker.id not in seen_by_groups(outsider, {each.id: each for each in (asker, outsider)})


def _is_played(word: str) -> Callable[[], bool]:
    """Return whether a step is played here: of some doors the product's part is there, or none is needed."""

    def played() -> bool:
        from tests.journeys.cases import running

        return word in running.known_steps()

    return played


DOORS: Mapping[str, Callable[[], bool]] = {
    PAGES: lambda: answers("/"),
    MESSAGES: lambda: bool(_channels()),
    BUTTONS: lambda: any("slack" in path for path in _paths()),
    LINKS: lambda: answers("/l/a-link"),
    MCP: _is_there("clearance.mcp"),
    PIPELINE: lambda: "/pipeline/start" in _document()["paths"],
    OWN_STEPS: lambda: any("flow" in body for body in _bodies()),
    PEOPLE: lambda: {"people", "policy"} <= _commands(),
    REMINDERS: lambda: "remind" in {field.name for field in fields(Rule)},
    TENANTS: lambda: "people_see" in Settings.model_fields,
    SECRETS: lambda: "secret" in {field.name for field in fields(Rule)},
    **{door: _is_played(word) for word, door in _BY_WORD.items() if door in _PLAYED_HERE},
}
