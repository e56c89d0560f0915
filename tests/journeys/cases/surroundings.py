"""The steps that change what is around a review: rules, time, processes, and what lies in memory."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from clearance.errors import ClearanceError
from clearance.fingerprint import fingerprint
from clearance.toolcall import ToolCall, argument_text
from tests.journeys.cases.hand import HandDriven, check_hooks
from tests.journeys.cases.loading import CaseError, Step, every_step, expand
from tests.journeys.cases.secret_parts import check_secrets
from tests.journeys.cases.setup import Setup
from tests.journeys.cases.speaking import Said, Script, keep_script
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World

_CONFIGURED = (
    "policy", "override", "hooks", "hook_order", "principals_extra", "tool_timeout_s", "notify",
    "email_delay_s", "secrets", "agents", "links", "tenants",
)  # fmt: skip
# What is fixed in the product, and at least as strict as these ask for.
_FIXED = {"repeat_limit": 1, "step_limit": 8, "result_limit_bytes": 65536}


@op("configure")
def configure(world: World, _: Scope, step: Step) -> Result:
    """Tools, people and policy of the product; again later: a deployment with other rules."""
    only(step, *_CONFIGURED, *_FIXED)
    for name, ours in _FIXED.items():
        if step.get(name, ours) < ours:
            raise CaseError(f"The product's {name} is {ours}, which is less strict than {step[name]}.")
    setup = replace(
        world.site.setup,
        policy=step.get("policy", "P0"),
        override=tuple(step.get("override", ())),
        principals=step.get("principals_extra", {}),
        timeout=float(step.get("tool_timeout_s", 60.0)),
        secrets=tuple(step.get("secrets", ())),
        agents=step.get("agents", {}),
        tenants={name: tuple(names) for name, names in step.get("tenants", {}).items()},
    )
    check_secrets(setup.secrets)
    check_links(step.get("links", {}), setup)
    world.site.configure(setup)
    world.reach()
    if world.outside is not None:
        world.outside.mail.delay = float(step.get("email_delay_s", 0.0))
    hooks = step.get("hooks", [])
    check_hooks(hooks, step.get("hook_order"))
    by_hand = hooks or any(_in_memory(each) or _by_resume(each) for each in every_step(world.case.steps))
    world.hand = HandDriven(world.site, setup, hooks, step.get("hook_order")) if by_hand else None
    return Result("accepted")


@op("two_servers")
def two_servers(world: World, _: Scope, step: Step) -> Result:
    """Servers whose own clocks differ by some seconds."""
    only(step, "skew_s")
    world.site.configure(replace(world.site.setup, skews=tuple(step["skew_s"])))
    for number in range(1, len(step["skew_s"]) + 1):
        world.site.server(number)
    return Result()


@op("clock")
def clock(world: World, _: Scope, step: Step) -> Result:
    """Move the database's clock."""
    only(step, "advance_s", "set_back_s")
    seconds = step.get("advance_s", 0) - step.get("set_back_s", 0)
    if world.at_once:  # what happens at the same moment waits for nothing
        world.site.move_clock(seconds)
    else:
        world.site.pass_time(seconds, held=lambda: world.outside is not None and world.outside.mail.held > 0)
    return Result()


@op("email_server")
def email_server(world: World, _: Scope, step: Step) -> Result:
    """A mail server that goes away for some seconds, or comes back."""
    only(step, "state", "for_s")
    if step["state"] not in ("down", "up"):
        raise CaseError(f"The interpreter knows no mail server that is {step['state']}.")
    away = float(step.get("for_s", "inf")) if step["state"] == "down" else 0.0
    world.messages_to_people.outside.mail.away_until = world.site.seconds() + away
    return Result()


@op("crash")
def crash(world: World, _: Scope, step: Step) -> Result:
    """A process that died at a place; it was prepared before the step that led there."""
    only(step, "at", "signal")
    world.site.wait_until_killed()
    return Result()


@op("restart")
def restart(world: World, _: Scope, step: Step) -> Result:
    """Every server killed, and started again, after some seconds by the database's clock."""
    only(step, "signal", "processes", "down_s")
    numbers = world.site.stop_all()
    world.site.move_clock(step.get("down_s", 0))
    for number in numbers or [1]:
        world.site.server(number)
    return Result()


@op("mutate")
def mutate(world: World, _: Scope, step: Step) -> Result:
    """Change what the caller holds in memory of a call that waits."""
    only(step, "what", "set")
    if not _in_memory(step):
        raise CaseError(f"The interpreter cannot change {step['what']!r}.")
    label = step["what"].rpartition(" of ")[2]
    world.hand.model.handed[label].update(step["set"])
    return Result()


@op("fault")
def fault(world: World, _: Scope, step: Step) -> Result:
    """Have the database refuse to write, until the steps are over."""
    only(step, "at", "error")
    if step["at"] != "audit write":
        raise CaseError(f"The interpreter knows no fault at {step['at']!r}.")
    world.http.let_in(world.site.setup.names())
    with world.site.opened.database.write() as tx:
        if world.site.opened.database.is_sqlite:
            tx.exec_driver_sql(
                "CREATE TRIGGER full_disk BEFORE INSERT ON entries BEGIN SELECT RAISE(FAIL, 'disk full'); END"
            )
        else:
            tx.exec_driver_sql(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$"
            )
            tx.exec_driver_sql(
                "CREATE TRIGGER full_disk BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION full_disk()"
            )
    return Result()


def lift_fault(world: World) -> None:
    """Let the database write again."""
    with world.site.opened.database.write() as tx:
        on = "" if world.site.opened.database.is_sqlite else " ON entries"
        tx.exec_driver_sql(f"DROP TRIGGER full_disk{on}")


@op("digest_pairs")
def digest_pairs(world: World, _: Scope, step: Step) -> Result:
    """Whether arguments are bound to the same fingerprint, pair by pair."""
    only(step, "tool", "same", "different")
    schema = world.site.setup.fixtures.tools[step["tool"]]["schema"]

    def digest(args: Any) -> str:
        call = ToolCall("r/1/0", step["tool"], argument_text(args))
        return fingerprint(call, run="r", schema=schema, salt="00" * 16)

    parts = []
    for wanted in ("same", "different"):
        for one, other in expand(step.get(wanted, [])):
            found = "same" if digest(one) == digest(other) else "different"
            parts.append(Result(about={"wanted": wanted, "found": found, "pair": (one, other)}))
    return Result(parts=parts)


@op("configure_each")
def configure_each(world: World, _: Scope, step: Step) -> Result:
    """Several policies, rule functions or deadlines in turn, each in a workspace of its own."""
    only(step, "configs", "predicates", "on", "then_propose", "deadlines")
    parts = []
    for config in step.get("configs", []):
        parts.append(_loaded(world, config, about=config))
    for said in step.get("predicates", []):
        rule = {"tools": [step["on"]], "require": "approval", "function": said}
        config = {"rules": [rule], "unknown_tool": "none"}
        part = _loaded(world, config, about=said)
        call = step["then_propose"]
        part.about["held"] = _probe(part).held(call["tool"], call["args"])
        parts.append(part)
    for instant in step.get("deadlines", []):
        rule = {"tools": ["pay"], "require": "approval", "deadline_s": instant}
        parts.append(_loaded(world, {"rules": [rule]}, about=instant))
    refused = [part for part in parts if part.outcome == "refused"]
    return Result("refused" if len(refused) == len(parts) else "done", parts=parts)


def check_links(links: Mapping[str, str], setup: Setup) -> None:
    """Raise `CaseError` for an address elsewhere that belongs to nobody here: ours are of persons already."""
    subjects = {said.get("sub") for said in setup.known.values()}
    if strangers := sorted(set(links.values()) - subjects):
        raise CaseError(f"There is no person {', '.join(strangers)}.")


@dataclass
class Probe:
    """A policy in a workspace of its own, to see what becomes of calls under it."""

    setup: Setup
    opened: Any = None
    agent: Any = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def load(self) -> None:
        """Load the policy. Raises what the product raises."""
        self.opened = self.setup.open()
        self.agent = self.setup.agent(self.opened, checkpointer=InMemorySaver(), name="probe")

    def held(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        """Propose a call; return whether people are asked about it, None where it cannot be asked about."""
        self.count += 1
        said = Said([{"id": "p", "tool": tool, "args": args}])
        text = keep_script(self.setup.folder, Script([said]))
        config: Any = {"configurable": {"thread_id": f"p{self.count}"}}
        result = self.agent.invoke({"messages": [("user", text)]}, config)
        if "__interrupt__" in result:
            self.asked.append(result["__interrupt__"][0].value)
            return True
        told = [message for message in result["messages"] if message.type == "tool"]
        return None if told and told[0].status == "error" else False

    def close(self) -> None:
        """Close the workspace."""
        if self.opened is not None:
            self.opened.close()
        shutil.rmtree(self.setup.folder)


def _loaded(world: World, config: Mapping[str, Any], *, about: Any) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="probe-", dir=world.site.folder))
    probe = Probe(
        replace(
            world.site.setup,
            url=f"sqlite:///{folder / 'clearance.db'}",
            folder=folder,
            policy=config,
            override=(),
            clock=False,
        )
    )
    world.probes.append(probe)
    try:
        probe.load()
    except (ClearanceError, ValueError, TypeError) as error:
        return Result("refused", str(error), about={"given": about, "probe": probe})
    return Result("accepted", about={"given": about, "probe": probe})


def _probe(result: Result) -> Probe:
    if result.outcome == "refused":
        raise LookupError(f"the rules were refused: {result.reason}")
    probe: Probe = result.about["probe"]
    return probe


def _by_resume(step: Step) -> bool:
    return "framework resume" in (step.get("via"), *step.get("doors", ()))


def _in_memory(step: Step) -> bool:
    return step.get("op") == "mutate" and str(step.get("what", "")).startswith("caller's argument object of ")
