"""What a case asks the product to be: its rules, people, tools and surroundings, in every process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import clearance
from clearance.apps.chat import create_reviewed_agent
from clearance.people import Kind, Person, Role
from clearance.policy import Effect, Policy, Rule
from clearance.workspace import Clearance
from tests.journeys.cases.fixture_tools import tools
from tests.journeys.cases.loading import Fixtures, Step
from tests.journeys.cases.policies import groups_in, read_policy
from tests.journeys.cases.secret_parts import hiding, with_secret_fields
from tests.journeys.cases.speaking import Speaker

KEEPER = "keeper"
PROGRAM = "cases"
CLOCK = "clock"
PUBLIC = "http://127.0.0.1"
"""Where people reach the pages, as messages say it: in front of whichever server runs."""
ENVIRONMENT = {"CLEARANCE_PUBLIC_URL": PUBLIC, "CLEARANCE_WEBHOOK_ALLOW": "127.0.0.0/8"}


@dataclass(frozen=True)
class Setup:
    """What a `configure` step asks for, and where."""

    url: str
    folder: Path
    fixtures: Fixtures
    policy: Any = "P0"
    override: tuple[Mapping[str, Any], ...] = ()
    principals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timeout: float = 60.0
    clock: bool = False
    research: bool = False
    skews: tuple[float, ...] = ()
    secrets: tuple[str, ...] = ()
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    tenants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def open(self) -> Clearance:
        """Open the workspace in this process; it advances nothing until its worker is started."""
        opened = clearance.open(self.url, home=self.folder, person=KEEPER, worker=False)
        if self.clock:
            opened.database._clock = lambda: datetime.now(UTC) + timedelta(seconds=offset(self.folder))
        return opened

    def agent(self, opened: Clearance, **more: Any) -> Any:
        """Build the agent on an open workspace. Raises what the product raises for its policy."""
        model = more.pop("model", None) or Speaker(self.folder)
        offered = self.tools()
        name = more.pop("name", PROGRAM)
        return create_reviewed_agent(model, offered, policy=self.rules(), using=opened, name=name, **more)

    def inner_agent(self, opened: Clearance, name: str) -> Any:
        """Build one of several agents that reach one another: its own tools, under the same rules."""
        from tests.journeys.cases.nested import handing_on

        own = self.agents[name]["tools"]
        passing = [each for each in handing_on(opened, self.path) if each.name in own]
        offered = [each for each in self.tools() if each.name in own]
        rules = self.rules()
        # To hand on does nothing by itself: what comes of it is judged where it is called.
        free = tuple(Rule(each.name, effect=Effect.ALLOW) for each in passing)
        # Rules name the tools of a program: those about others' tools are theirs.
        about = tuple(rule for rule in rules.rules if any(rule.covers(each) for each in own))
        policy = Policy((*free, *about), default=rules.default)
        model = Speaker(self.folder)
        return create_reviewed_agent(model, [*passing, *offered], policy=policy, using=opened, name=name)

    def tools(self) -> list[Any]:
        """Return the tools of the fixtures, with what is secret in their arguments."""
        schemas = {
            name: {**said, "schema": with_secret_fields(said["schema"], self.secrets)}
            for name, said in self.fixtures.tools.items()
        }
        return list(tools(schemas, self.folder, timeout=self.timeout))

    def rules(self) -> Policy:
        """Return the policy. Raises what the product raises for it."""
        policy = read_policy(self.policy, self.fixtures, override=self.override, folder=self.folder)
        return hiding(policy, self.fixtures.tools, self.secrets)

    def names(self) -> list[str]:
        """Return the names of the people and agents of the case."""
        return list(self.known)

    def everybody(self) -> list[Person]:
        """Return the people and agents of the case, as ours."""
        decide = groups_in(self.rules())
        agents = {name: {"type": "agent", "acts_for": "tom"} for name in self.agents}
        found = [person(name, said, decide) for name, said in {**agents, **self.known}.items()]
        return [replace(each, groups=(*each.groups, *self._tenants_of(each.id))) for each in found]

    def _tenants_of(self, name: str) -> list[str]:
        return [tenant for tenant, names in self.tenants.items() if name in names]

    @property
    def known(self) -> Mapping[str, Mapping[str, Any]]:
        """What the case says of its people and agents."""
        return {**self.fixtures.principals, **self.principals}


def offset(folder: Path) -> float:
    """Return by how many seconds the clock of the case was moved."""
    try:
        return float((folder / CLOCK).read_text())
    except FileNotFoundError:
        return 0.0


def person(name: str, said: Step | Mapping[str, Any], decide: set[str]) -> Person:
    """Return a person or an agent of a case as one of ours; `decide` are the groups that decide something."""
    roles = set(said.get("roles", []))
    groups = {group for group in decide if roles & set(group.split("-or-"))} | roles
    return Person(
        id=name,
        name=name,
        role=Role.REVIEWER if roles & {"reviewer", "lead"} else Role.VIEWER,
        groups=tuple(sorted(groups)),
        kind=Kind.AGENT if said.get("type") == "agent" else Kind.PERSON,
        behind=said.get("acts_for"),
    )
