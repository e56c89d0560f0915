"""What a review adds to a turn: ask, decide and go on, over the same turn that nobody decides."""

from collections.abc import Callable

import clearance
from benchmarks.agents import PERSON, LangChains, Reviewed, saver_in
from benchmarks.figures import Aim, Figure, Surroundings, Taken, median, timed

MOST = Aim(0.5, of_langchain=True)


def measure(here: Surroundings) -> list[Figure]:
    """Take reviewed and free turns of both products in turn, on fresh threads and on long ones."""
    folder, other = here.folder(), here.folder()
    figures = []
    with (
        clearance.open(here.database("sqlite", folder), home=folder, person=PERSON) as workspace,
        saver_in(other) as saver,
    ):
        agents: dict[str, Reviewed | LangChains] = {
            "ours": Reviewed(workspace),
            "ours, free": Reviewed(workspace, free=True),
            "theirs": LangChains(saver),
            "theirs, free": LangChains(saver, free=True),
        }
        for messages in (0, here.sizes.long_thread):
            where = f"on a thread of {messages} messages" if messages else "on a fresh thread"
            here.tell(f"turns {where}")
            taken = _turns(agents, messages, samples=here.sizes.samples)
            figures.append(_figure(taken, f"a review adds, {where}", lambda turn: turn.wall, aim=MOST))
            figures.append(_figure(taken, f"the same in processor time, {where}", lambda turn: turn.cpu))
            figures.append(_whole(taken, f"a reviewed turn takes, {where}"))
    return figures


def _turns(
    agents: dict[str, Reviewed | LangChains], messages: int, *, samples: int
) -> dict[str, list[Taken]]:
    taken: dict[str, list[Taken]] = {name: [] for name in agents}
    for number in range(samples + 1):
        for name, agent in agents.items():
            thread = f"{name} {messages} {number}"
            if messages:
                agent.begin(thread, messages)
            taken[name].append(timed(lambda agent=agent, thread=thread: agent.turn(thread)))  # type: ignore[misc]
    # The first of each warms up what is made once.
    return {name: turns[1:] for name, turns in taken.items()}


def _figure(
    taken: dict[str, list[Taken]], what: str, of: Callable[[Taken], float], *, aim: Aim | None = None
) -> Figure:
    def extra(name: str) -> float:
        reviewed, free = taken[name], taken[f"{name}, free"]
        return median([of(turn) for turn in reviewed]) - median([of(turn) for turn in free])

    return Figure(what, extra("ours"), "ms", langchain=extra("theirs"), aim=aim)


def _whole(taken: dict[str, list[Taken]], what: str) -> Figure:
    ours, theirs = (median([turn.wall for turn in taken[name]]) for name in ("ours", "theirs"))
    return Figure(what, ours, "ms", langchain=theirs)
