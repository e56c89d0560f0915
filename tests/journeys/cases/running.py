"""Running a case: its steps in turn, then its checks; what failed is said in sentences."""

import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from pathlib import Path

# The steps and the properties register themselves.
from tests.journeys.cases import (  # noqa: F401
    administering,
    looking,
    nested,
    other_callers,
    outside,
    pipelines,
    properties_of_decisions,
    properties_of_messages,
    properties_of_pipelines,
    properties_of_rules,
    rarer_steps,
    steps,
    surfaces,
    surroundings,
)
from tests.journeys.cases.checks import run_check
from tests.journeys.cases.doors import ByHand
from tests.journeys.cases.http_door import HttpDoor
from tests.journeys.cases.loading import Case, CaseError, Fixtures, Step, every_step
from tests.journeys.cases.messages_door import ChatDoor, MailDoor
from tests.journeys.cases.pages_door import Pages
from tests.journeys.cases.reaching import wanted
from tests.journeys.cases.setup import Setup
from tests.journeys.cases.site import Site
from tests.journeys.cases.steps import each_step
from tests.journeys.cases.waiting import missing
from tests.journeys.cases.world import World


@dataclass(frozen=True)
class Report:
    """How one case ended: every reason for which it failed, or the doors that it waits for."""

    case: Case
    failures: list[str] = field(default_factory=list)
    waits_for: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One word, or what is waited for."""
        if self.failures:
            return "failed"
        return f"waits for {', '.join(self.waits_for)}" if self.waits_for else "ok"


@dataclass(frozen=True)
class Place:
    """Where cases run: an empty database with the product's tables, a folder, and processes to fork from."""

    url: str
    folder: Path
    processes: ForkServerContext
    fixtures: Fixtures
    repeat_at_most: int | None = None


def run_case(case: Case, place: Place) -> Report:
    """Run one form of a case. Words that are not known are a failure, too; nothing is raised."""
    try:
        doors = missing(case)
        return Report(case, waits_for=doors) if doors else _run(case, place)
    except CaseError as error:
        return Report(case, [str(error)])
    except Exception as error:  # noqa: BLE001 - whatever it is, the case has failed
        return Report(case, [_said(error)])


def known_steps() -> set[str]:
    """Return the words of the steps that are played here."""
    return set(steps.OPS)


def _run(case: Case, place: Place) -> Report:
    failures: list[str] = []
    with _world(case, place) as world:
        try:
            _play(world)
        except CaseError as error:
            return Report(case, [str(error)])
        except Exception as error:  # noqa: BLE001 - as above
            return Report(case, [_said(error), *world.site.said().splitlines()[-20:]])
        for check in case.expected:
            try:
                run_check(world, check)
            except CaseError as error:
                failures.append(str(error))
            except AssertionError as error:
                failures.append(f"{_named(check)}: {error}")
            except Exception as error:  # noqa: BLE001 - as above
                failures.append(f"{_named(check)}: {_said(error)}")
    return Report(case, failures)


def _play(world: World) -> None:
    """Do the steps; a door that a case may name is there before the first."""
    for number, result in enumerate(each_step(world, world.scope, world.case.steps), start=1):
        world.results[number] = result
        world.note_states(number)


@contextmanager
def _world(case: Case, place: Place) -> Iterator[World]:
    moved = any(_moves_time(step) for step in every_step(case.steps))
    setup = Setup(place.url, place.folder, place.fixtures, clock=moved)
    site = Site(setup, place.processes)
    world = World(case, site, repeat_at_most=place.repeat_at_most)
    world.doors["api"] = HttpDoor(site)
    world.doors["cli"] = world.console
    world.doors["web"] = Pages(site)
    world.doors["framework resume"] = ByHand(site, lambda: world.hand)
    with ExitStack() as closing:
        closing.callback(site.close)
        if wanted(case.steps).anything:
            world.outside = closing.enter_context(outside.opened(site.seconds))
            world.doors["email"] = MailDoor(world.messages_to_people)
            world.doors["slack"] = ChatDoor(world.messages_to_people)
        closing.callback(lambda: [probe.close() for probe in world.probes])
        yield world


def _moves_time(step: Step) -> bool:
    return step.get("op") in ("clock", "two_servers", "email_server") or "down_s" in step


def _named(check: Step) -> str:
    return " ".join(str(value) for name, value in check.items() if name not in ("note", "why"))[:160]


def _said(error: Exception) -> str:
    """Return an error as a sentence; it may be the case that lacks a word, or has it in another form."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    if Path(where.filename).parent == Path(__file__).parent:
        if isinstance(error, KeyError):
            return f"The interpreter needs {error} there, or knows no such name ({place})."
        if isinstance(error, TypeError | AttributeError):
            return f"The interpreter knows no value of this form: {error} ({place})."
    return f"{type(error).__name__}: {error} ({place})"
