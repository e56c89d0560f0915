"""The demo's research run: it comes to its gate while the person looks at something else, and waits there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clearance.cli.options import Options, invocation

if TYPE_CHECKING:
    from clearance.apps.research.runs import ResearchRuns
    from clearance.assembly import Clearance

SYMBOL = "BRCA1"
_PATIENCE = 20.0


@dataclass(frozen=True)
class Begun:
    """A run that a worker brings to its gate."""

    research: "ResearchRuns"
    run_id: str


def begin_research(c: "Clearance", *, mark: str) -> Begun | None:
    """Start a run on shipped data; None where the research pipeline is not installed."""
    from clearance.apps.research.setup import is_installed, open_research

    if not is_installed():
        return None
    from clearance.apps.research.research_request import ResearchRequest

    research = open_research(c)
    run_id = f"{SYMBOL.lower()}-{mark}"
    research.start(ResearchRequest(SYMBOL, offline=True), run_id=run_id, by=c.person)
    return Begun(research, run_id)


def show_research(begun: Begun | None, *, options: Options) -> None:
    """Show the run as it waits, and say how it is looked at and decided."""
    from rich.text import Text

    from clearance.cli.screen import heading, line, out, shown

    if begun is None:
        return
    console, program = out(), f"{invocation(options)} pipeline"
    heading(console, f"Meanwhile: a research run on {SYMBOL}, offline")
    if _arrived(begun):
        state = begun.research.state(begun.run_id)
        line(console, "Its plan is made, and nothing of it has run. It waits, with no process, for you:")
        console.print()
        line(console, shown(state.planner_summary), lead=Text("  plan      ", "dim"))
        line(console, shown(state.plan_sha256), lead=Text("  sha256    ", "dim"))
        line(console, Text("S4_plan", "bold yellow"), lead=Text("  waits at  ", "dim"))
    else:
        line(console, "It has not come to its gate yet; a worker goes on with it.")
    console.print()
    console.print(f"  {program} show {begun.run_id}")
    console.print(f"  {program} resume {begun.run_id} --approve")


def research_record(begun: Begun | None) -> dict[str, Any] | None:
    """Return the run as JSON, once it waits."""
    from clearance.apps.research.records import short_record

    if begun is None:
        return None
    _arrived(begun)
    return short_record(begun.research, begun.research.run(begun.run_id))


def _arrived(begun: Begun) -> bool:
    """Wait a little, and return whether the run waits for its person."""
    from clearance.cli.screen import working
    from clearance.errors import RunUnfinishedError

    try:
        with working("Planning"):
            begun.research.wait_for(begun.run_id, wait=_PATIENCE)
    except RunUnfinishedError:
        return False
    return begun.research.waiting(begun.run_id) is not None
