"""What is known of a case while it runs: what its words stand for, and what came of each step."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from clearance.adapters.history import run_of
from clearance.audit import AuditKind
from clearance.review import Review, ReviewedCall, ReviewKind
from clearance.toolcall import parse_arguments
from tests.journeys.cases.console import CommandLine
from tests.journeys.cases.doors import Door
from tests.journeys.cases.fixture_tools import Effect, read_effects
from tests.journeys.cases.flows import read_label
from tests.journeys.cases.http_door import HttpDoor
from tests.journeys.cases.in_browser import Looked
from tests.journeys.cases.loading import Case, CaseError, Step
from tests.journeys.cases.messages_door import Messages, Seen, body_of, link_in
from tests.journeys.cases.outside import Outside
from tests.journeys.cases.pages_door import Pages
from tests.journeys.cases.plan_door import PlanDoor, gate_reviews
from tests.journeys.cases.reaching import wanted
from tests.journeys.cases.setup import KEEPER
from tests.journeys.cases.site import Site


@dataclass
class Result:
    """What came of a step: `accepted`, `refused`, `no_effect`, `lost` (no answer came) or `done`.

    `reason` is the sentence that a refusal gave, `parts` what came of each value that was tried. `repeats`:
    what was refused is what its person had decided before.
    """

    outcome: str = "done"
    reason: str = ""
    faults: tuple[str, ...] = ()
    repeats: bool = False
    parts: list["Result"] = field(default_factory=list)
    about: Any = None

    @property
    def every(self) -> list["Result"]:
        """The parts, or the result itself where it has none."""
        return [inner for part in self.parts for inner in part.every] if self.parts else [self]


@dataclass
class Scope:
    """One repetition of some steps: its own threads, whose reviews are r1, r2, … and calls c1, c2, …"""

    name: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    shown: dict[str, int] = field(default_factory=dict)
    last_review: str | None = None

    def thread(self, label: str) -> str:
        """Return the id of a thread, made when it is new."""
        return self.threads.setdefault(label, f"{label}{self.name}")


@dataclass
class World:
    """One case while it runs."""

    case: Case
    site: Site
    scopes: list[Scope] = field(default_factory=lambda: [Scope()])
    results: dict[int, Result] = field(default_factory=dict)
    states: dict[int, dict[str, str]] = field(default_factory=dict)
    proposals: list[Step] = field(default_factory=list)
    by_hand: dict[str, Any] = field(default_factory=dict)
    pipelines: dict[str, str] = field(default_factory=dict)
    started: list[Step] = field(default_factory=list)
    doors: dict[str, Door] = field(default_factory=dict)
    probes: list[Any] = field(default_factory=list)
    hand: Any = None
    shown: dict[str, list[Seen]] = field(default_factory=dict)
    looked: list[Looked] = field(default_factory=list)
    outside: Outside | None = None
    reached: set[str] = field(default_factory=set)
    repeat_at_most: int | None = None
    at_once: bool = False

    @property
    def door(self) -> Door:
        """The door that most steps use: the API."""
        return self.doors["api"]

    @property
    def http(self) -> HttpDoor:
        """The API, for requests of every kind."""
        door = self.doors["api"]
        assert isinstance(door, HttpDoor)
        return door

    def through(self, name: str, review: Review | None = None) -> Door:
        """Return the door of this name to a review. Raises `CaseError` for one that is not there."""
        name = "email" if name.startswith("email") else name
        if name == "api" and review is not None and review.kind is ReviewKind.PLAN:
            return PlanDoor(self.http)
        if name not in self.doors:
            raise CaseError(f"There is no door {name!r}.")
        return self.doors[name]

    @property
    def pages(self) -> Pages:
        """The pages."""
        door = self.doors["web"]
        assert isinstance(door, Pages)
        return door

    @property
    def messages_to_people(self) -> Messages:
        """What people were told. Raises `CaseError` where nobody is."""
        if self.outside is None:
            raise CaseError("There is no channel by which people are told.")
        return Messages(self.site, self.pages, self.outside)

    def link(self, review: Review) -> str:
        """Return the newest link that a mail about a review holds."""
        told = self.messages_to_people
        for person in wanted(self.case.steps).mails:
            mail = told.mail(person, review.id)
            if mail is not None and (link := link_in(body_of(mail))) is not None:
                return link
        raise LookupError("no mail holds a link to the review")

    def reach(self) -> None:
        """Have those told of what waits whom the case wants to be told, and who are here."""
        if self.outside is None:
            return
        told, asked = self.messages_to_people, wanted(self.case.steps)
        ways: dict[str, Callable[[], None]] = {
            f"mail {name}": partial(told.add_mail, name)
            for name in asked.mails
            if name in self.site.setup.names()
        }
        ways |= {"chat": told.add_chat} if asked.chat else {}
        ways |= {"hook": told.add_hook} if asked.hook else {}
        for way, add in ways.items():
            if way not in self.reached:
                add()
        self.reached |= set(ways)

    def server_of(self, step: Step) -> int:
        """Return the server that a step goes to: the processes of a case are shared out among two."""
        if "server" in step:
            return int(step["server"])
        return 1 + (int(step["process"]) + 1) % 2 if "process" in step else 1

    @property
    def scope(self) -> Scope:
        """The scope of the steps that are in none of their own."""
        return self.scopes[0]

    def new_scope(self, **about: Any) -> Scope:
        """Open a scope of its own for a repetition."""
        scope = Scope(name=f"~{len(self.scopes)}", about=about)
        self.scopes.append(scope)
        return scope

    def reviews(self, scope: Scope) -> list[Review]:
        """Return the reviews of a scope: r1, r2, …"""
        return self.site.reviews(scope.threads.values())

    def review(self, label: str, scope: Scope) -> Review:
        """Return the review that a label stands for."""
        if (gate := read_label(label)) is not None:
            at_gates = gate_reviews(self.site, self.run_of(gate.run))
            if (gate.gate, gate.revision) not in at_gates:
                raise LookupError(f"there is no {label}: what was asked is {sorted(at_gates)}")
            return at_gates[gate.gate, gate.revision]
        found = self.reviews(scope)
        if label == "$r":
            return found[-1]
        if label == "id from the notification":
            return self.site.review(self.announced()[-1])
        number = label.removeprefix("r")
        if not (label.startswith("r") and number.isdigit()):
            raise CaseError(f"The interpreter knows no review {label!r}.")
        if not 1 <= int(number) <= len(found):
            raise LookupError(f"there is no review {label}: {len(found)} were asked")
        return found[int(number) - 1]

    def run_of(self, label: str | None) -> str:
        """Return the id of a pipeline's run; without a label that of the last run."""
        if label is None and self.pipelines:
            return list(self.pipelines.values())[-1]
        if label is None or label not in self.pipelines:
            raise CaseError(f"There is no run {label or 'of a pipeline'}.")
        return self.pipelines[label]

    def announced(self) -> list[str]:
        """Return the ids of reviews in the order in which the event stream tells of them."""
        return [entry.subject for entry in self.site.trail() if entry.kind == AuditKind.REVIEW_ASKED]

    def note_states(self, step: int) -> None:
        """Note how every review stands after a step."""
        found = self.reviews(self.scope)
        self.states[step] = {f"r{place}": str(review.status) for place, review in enumerate(found, start=1)}
        for run, run_id in self.pipelines.items():
            for (gate, revision), review in gate_reviews(self.site, run_id).items():
                label = f"{gate} rev {revision}"
                self.states[step] |= {f"{run} {label}": str(review.status), label: str(review.status)}

    def key_of(self, label: str, scope: Scope) -> str | None:
        """Return the product's own key of the call that a label stands for; None where it has none."""
        return next((key for key, found in self.keyed(scope) if found == label), None)

    def keyed(self, scope: Scope) -> Iterator[tuple[str, str]]:
        """Give the key and the label of every call that a thread's history shows as one that could run."""
        for thread in scope.threads.values():
            elsewhere = getattr(self.by_hand.get(thread), "call_key", None)
            if elsewhere is not None:
                yield elsewhere, self.by_hand[thread].label
            run, number = "", 0
            for message in self.messages(thread):
                run_id = run_of(message)
                if message.type == "human" and message.name is None:
                    run, number = run_id or self._hand_run(thread), 0
                if isinstance(message, AIMessage):
                    number += 1
                    for place, call in enumerate(message.tool_calls):
                        yield f"{run}/{number}/{place}", str(call["id"])

    def hand_messages(self, thread: str) -> list[Any]:
        """Return what a thread keeps whose graph is driven by hand."""
        found: list[Any] = self.by_hand[thread].messages(thread)
        return found

    def messages(self, thread: str) -> list[Any]:
        """Return what a thread keeps, whoever drives it."""
        return self.hand_messages(thread) if thread in self.by_hand else self.site.messages(thread)

    def told(self, label: str, scope: Scope) -> ToolMessage | None:
        """Return the result of a call as the model gets it."""
        found = self.every_told(label, scope)
        return found[-1] if found else None

    def every_told(self, label: str, scope: Scope) -> list[ToolMessage]:
        """Return every result of a call; there must never be two."""
        return [
            message
            for thread in scope.threads.values()
            for message in self.messages(thread)
            if isinstance(message, ToolMessage) and message.tool_call_id == label
        ]

    def effects(self, scope: Scope) -> list[tuple[str | None, Effect]]:
        """Return what was really done in a scope, each with the label of its call."""
        labels = dict(self.keyed(scope))
        runs = {run.id for thread in scope.threads.values() for run in self.site.runs(thread)}
        done = [effect for effect in self.site.effects() if effect.key.partition("/")[0] in runs]
        return [(labels.get(effect.key), effect) for effect in done]

    def all_effects(self) -> list[tuple[str | None, Effect]]:
        """Return what was really done, in every scope, and by calls that belong to none."""
        known = [found for scope in self.scopes for found in self.effects(scope)]
        keys = {effect.key for _, effect in known}
        others = [effect for effect in self.site.effects() if effect.key not in keys]
        others += [effect for probe in self.probes for effect in read_effects(probe.setup.folder)]
        return known + [(None, effect) for effect in others]

    def times(self, label: str, scope: Scope) -> int:
        """Return how often a call was really done in a scope."""
        return Counter(found for found, _ in self.effects(scope))[label]

    def show(self, review_id: str, *, columns: int = 200) -> str:
        """Return a review as the command line draws it."""
        return self.console.read("show", review_id, by=KEEPER, columns=columns)

    def inbox(self) -> str:
        """Return what waits, as the command line lists it."""
        return self.console.read("inbox", "--json", by=KEEPER)

    def record_of_call(self, key: str) -> str:
        """Return what is shown of a call in its review."""
        [review] = [r for s in self.scopes for r in self.reviews(s) if r.call(key) is not None]
        record = json.loads(self.console.read("show", review.id, "--json", by=KEEPER))
        return json.dumps(next(call for call in record["calls"] if call["call"] == key))

    def arguments(self, call: ReviewedCall) -> Any:
        """Return the arguments that people are shown."""
        return parse_arguments(call.arguments)

    @property
    def console(self) -> CommandLine:
        """The command line of the site."""
        return CommandLine(self.site)

    def _hand_run(self, thread: str) -> str:
        found = self.site.runs(thread)
        return found[-1].id if found else ""
