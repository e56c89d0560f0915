"""Steps that few cases have: several proposals at once, a lost client, a loss in the store, a deadline."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.journeys.cases.http_door import API
from tests.journeys.cases.loading import CaseError, Step
from tests.journeys.cases.steps import ask_until, only, op, propose
from tests.journeys.cases.world import Result, Scope, World


@op("propose_parallel")
def propose_parallel(world: World, scope: Scope, step: Step) -> Result:
    """Several proposals at the same moment: each written out, or the same calls in several threads."""
    only(step, "proposals", "threads", "calls", "by")
    same = {name: step[name] for name in ("calls", "by") if name in step}
    wanted = [{**same, "thread": thread} for thread in step.get("threads", [])]
    wanted += [{**same, **said} for said in step.get("proposals", [])]
    if not wanted:
        raise CaseError("The interpreter knows no proposals in this step: give `proposals` or `threads`.")
    for said in wanted:
        scope.thread(said["thread"])
    world.site.server(1)
    with ThreadPoolExecutor(len(wanted)) as pool:
        parts = list(pool.map(lambda said: propose(world, scope, {"op": "propose", **said}), wanted))
    return Result(parts=parts)


@op("drop_connection")
def drop_connection(world: World, _: Scope, step: Step) -> Result:
    """A client that goes away in the middle of an answer: it hears of events, and hangs up."""
    only(step, "client")
    shown = world.http.shown(step["client"])
    with (
        httpx.Client(trust_env=False) as client,
        client.stream("GET", f"{world.site.address()}{API}/events", headers=shown) as answer,
    ):
        assert answer.is_success, answer.status_code
        next(answer.iter_raw())
    return Result()


@op("store")
def store(world: World, scope: Scope, step: Step) -> Result:
    """A loss in the store: the checkpoints of a thread."""
    only(step, "delete")
    what, _, label = str(step["delete"]).partition(" of ")
    if what not in ("checkpoint", "checkpoints"):
        raise CaseError(f"The interpreter knows no loss of {step['delete']!r}.")
    world.site.opened.checkpointer().delete_thread(scope.thread(label))
    return Result()


@op("deadline")
def deadline(world: World, _: Scope, step: Step) -> Result:
    """Have the rules ask about some tools for so long: a deadline is a rule's."""
    only(step, "tool", "tools", "deadline_s")
    ask_until(world, step["deadline_s"], {step["tool"]} if "tool" in step else set(step["tools"]))
    return Result()
