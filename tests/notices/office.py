"""An office: a workspace with several people and channels, whose time a test moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import clearance
from clearance.assembly import new_id
from clearance.audit import Entry
from clearance.channel import DEFAULT_EVENTS, Channel, ChannelKind, Event, Serves
from clearance.notices.channels import add_channel
from clearance.notices.messenger import Messenger
from clearance.notices.targets import Allowed
from clearance.people import Person, Role
from clearance.policy import Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.review import Review
from clearance.store import audit, deliveries, people
from clearance.store.database import Database
from clearance.store.deliveries import Delivery, DeliveryStatus
from clearance.toolcall import Tool
from clearance.workspace import Clearance
from tests.web.asked import ask

OWNER = "ann"
LOOPBACK = Allowed.read("127.0.0.0/8")
PUBLIC = "https://clearance.example.org"
FINANCE = Policy(rules=(Rule("*", who=(Threshold(group="finance"),), risk=Risk.MEDIUM, name="money"),))


@dataclass
class Office:
    """The open workspace without a worker, and a messenger of its own whose clock stands until it is moved.

    `ann` is an admin and asks, `ben` and `cleo` are reviewers, `cleo` in the group finance.
    """

    workspace: Clearance
    messenger: Messenger
    now: datetime

    def pass_time(self, **span: float) -> None:
        """Move the messenger's clock."""
        self.now += timedelta(**span)

    def channel(
        self,
        address: str,
        *,
        whom: str = "ben",
        serves: Serves = Serves.PERSON,
        kind: ChannelKind = ChannelKind.APPRISE,
        events: tuple[Event, ...] = DEFAULT_EVENTS,
        min_risk: Risk = Risk.LOW,
    ) -> Channel:
        """Have somebody told at an address."""
        return add_channel(
            self.workspace.database,
            f"channel {new_id()}",
            kind=kind,
            address=address,
            serves=serves,
            whom=whom,
            by=OWNER,
            id=new_id(),
            allowed=LOOPBACK,
            events=events,
            min_risk=min_risk,
        )

    def ask(self, *calls: tuple[str, str], program: str = "desk") -> Review:
        """Have ann ask for something."""
        review = ask(self.workspace, *calls, by=OWNER, program=program)
        self.number()
        return review

    def ask_finance(self) -> Review:
        """Have ann ask for what only finance decides."""
        tool = Tool(name="send", schema={"type": "object"}, run=lambda *_: "done")
        self.workspace.register(Program("bank", tools={"send": tool}, policy=FINANCE))
        return self.ask(program="bank")

    def number(self) -> None:
        """Have what was written numbered."""
        notary = self.workspace.worker.notary
        assert notary is not None
        notary.turn()

    def turn(self) -> int:
        """Have the messenger do what is due."""
        self.number()
        return self.messenger.turn()

    def waits(self) -> bool:
        """Whether any message is still to be sent, now or later."""
        return any(each.status is DeliveryStatus.WAITING for each in self.deliveries())

    def deliveries(self) -> list[Delivery]:
        """Return every message that was or is to be sent, the newest first."""
        with self.workspace.database.read() as tx:
            return deliveries.listed(tx, limit=500)

    def trail(self) -> list[Entry]:
        """Return the trail."""
        self.number()
        with self.workspace.database.read() as tx:
            return audit.read_after(tx, 0, limit=500)


@contextmanager
def opened(url: str, home: Path, *, public_url: str | None = PUBLIC) -> Iterator[Office]:
    """Open the office."""
    with clearance.open(url, home=home, person=OWNER, worker=False) as workspace:
        with workspace.database.write() as tx:
            now = workspace.database.now(tx)
            people.add(tx, Person("ben", "Ben", role=Role.REVIEWER), now=now)
            people.add(tx, Person("cleo", "Cleo", role=Role.REVIEWER, groups=("finance",)), now=now)
        office: Office
        database = Database(url, clock=lambda: office.now)
        messenger = Messenger(database, workspace.worker.messenger.linking, LOOPBACK, public_url)
        office = Office(workspace, messenger, now + timedelta(minutes=1))
        yield office
        database.close()
