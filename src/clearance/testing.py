"""The contract of an adapter, as tests: what every way to put the gate into an agent framework must keep.

    class TestMyAdapter(AdapterContract):
        def build(self, scene: Scene) -> Driven:
            return MyDriven(scene)

pytest collects the tests of the subclass; nothing here needs pytest. Each test has a workspace of its own in
files, and two tools whose effects are counted in a file as well, so that a process may be killed. The class
must be importable by its name: what is to be killed runs in a process of its own.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from clearance.store import reviews
from clearance.workspace import Clearance

__all__ = ["APPROVE", "LOOK", "PAY", "REJECT", "AdapterContract", "Driven", "Proposal", "Scene", "Stop"]

PERSON = "ann"
THREAD = "t"
TIMEOUT = 1.0
PAY = ("pay", {"account": "A", "cents": 5})
LOOK = ("look", {"place": "shop"})
APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "not now"}
UNKNOWN = "outcome is unknown"

Proposal = Sequence[tuple[str, Mapping[str, Any]]] | str
"""What the model says: the tool calls of one message, or the text that ends a turn."""


@dataclass(frozen=True)
class Stop:
    """Where an agent stopped: at the `question` that waits, or at the end of its turn, where that is None.

    The question is what `payload.build_review_request` makes. `results` are those of the turn's calls as the
    model sees them, in the order of the history; `text` is what the turn ended with.
    """

    question: Mapping[str, Any] | None
    results: tuple[str, ...]
    text: str


class Driven(Protocol):
    """An agent that a caller drives: built by an adapter on the scene of a test."""

    def begin(self, thread: str, text: str) -> Stop:
        """Send a person's message, and return where the agent stops."""
        ...

    def go_on(self, thread: str, value: object = None) -> Stop:
        """Go on in the framework's own way, with a value that may hold decisions, or with none."""
        ...


@dataclass(frozen=True)
class Scene:
    """What an adapter builds an agent on.

    `script` is what its model says: the n-th entry answers a history with n messages of the model since the
    person's last one, so that another process goes on where one was killed. The agent has the tools `pay` and
    `look`, each with `timeout` seconds; `pay` waits for people, with all four decisions, and `look` does not.
    `home` is a folder that is there again after a restart.
    """

    workspace: Clearance
    home: Path
    script: tuple[Proposal, ...]
    timeout: float = TIMEOUT

    def pay(self, account: str, cents: int) -> str:
        """Pay money."""
        return self._did(f"pay {account} {cents}", f"paid {cents}")

    def look(self, place: str) -> str:
        """Look at a place."""
        return self._did(f"look {place}", f"seen {place}")

    def effects(self) -> list[str]:
        """Return what the tools really did, in its order."""
        file = self.home / "effects"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def _did(self, what: str, result: str) -> str:
        with (self.home / "effects").open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        return result


@dataclass
class Stage:
    """One test's agent, and the same after a restart."""

    contract: "AdapterContract"
    home: Path
    script: tuple[Proposal, ...]
    scene: Scene = field(init=False)
    agent: Driven = field(init=False)

    def open(self) -> None:
        """Open the workspace, and build the agent anew."""
        # By name: what builds a workspace stands above this file.
        workspace = importlib.import_module("clearance").open(home=self.home, person=PERSON, worker=False)
        self.scene = Scene(workspace, self.home, self.script)
        self.agent = self.contract.build(self.scene)

    def restart(self) -> None:
        """Close everything, and open it again."""
        self.scene.workspace.close()
        self.open()

    def ask(self) -> Mapping[str, Any]:
        """Begin a turn, and return the question that it stops with."""
        return asked(self.agent.begin(THREAD, "Go"))

    def decide(self, *decisions: Mapping[str, Any], **more: Any) -> Stop:
        """Go on with decisions."""
        return self.agent.go_on(THREAD, {"decisions": list(decisions), **more})

    def killed(self, place: str, value: object = None, *, begin: bool = False) -> None:
        """Begin, or go on with a value, in a process that is killed at a named place (`killpoints`)."""
        said = {"home": str(self.home), "script": self.script, "value": value, "begin": begin}
        kind = type(self.contract)
        program = f"from clearance.testing import act; act({kind.__module__!r}, {kind.__qualname__!r})"
        path = os.pathsep.join(entry for entry in sys.path if entry)
        ended = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(said),
            env={**os.environ, "PYTHONPATH": path, "CLEARANCE_KILL_AT": place},
            text=True,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL, f"it did not come by {place}: {ended.stderr}"


class AdapterContract(ABC):
    """The tests. A subclass builds the agent; its own tests may stand beside them."""

    races = 10
    """How often the race is run."""

    @abstractmethod
    def build(self, scene: Scene) -> Driven:
        """Return an agent on the scene. It is called again, on the same files, after a restart."""

    @contextmanager
    def stage(self, *script: Proposal) -> Iterator[Stage]:
        """Return an agent in files of its own, whose model says this."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            stage = Stage(self, Path(folder), script)
            stage.open()
            try:
                yield stage
            finally:
                stage.scene.workspace.close()

    def test_a_call_that_nobody_needs_to_see_runs_at_once(self) -> None:
        with self.stage([LOOK], "Done.") as stage:
            assert stage.agent.begin(THREAD, "Go") == Stop(None, ("seen shop",), "Done.")

    def test_nothing_runs_while_a_call_waits(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            first = stage.ask()
            assert asked(stage.agent.go_on(THREAD)) == first
            assert stage.scene.effects() == []

    def test_an_approved_call_runs_once_as_it_was_shown(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            [request] = stage.ask()["action_requests"]
            assert (request["name"], request["args"]) == PAY
            assert stage.decide(APPROVE) == Stop(None, ("paid 5",), "Done.")
            assert stage.scene.effects() == ["pay A 5"]

    def test_an_edited_call_runs_as_edited_and_the_model_is_told(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            stage.ask()
            args = {"account": "B", "cents": 1}
            [told] = stage.decide({"type": "edit", "edited_action": {"name": "pay", "args": args}}).results
            assert stage.scene.effects() == ["pay B 1"]
            assert '{"account":"B","cents":1}' in told
            assert told.endswith("paid 1")

    def test_a_rejected_call_does_not_run_and_the_model_is_told_why(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            stage.ask()
            [told] = stage.decide(REJECT).results
            assert "did not run" in told
            assert "not now" in told
            assert stage.scene.effects() == []

    def test_an_answered_call_does_not_run_and_gives_the_answer(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            stage.ask()
            assert stage.decide({"type": "respond", "message": "it is paid"}).results == ("it is paid",)
            assert stage.scene.effects() == []

    def test_each_call_of_a_message_gets_its_own_decision_and_its_place(self) -> None:
        with self.stage([PAY, LOOK, PAY, PAY], "Done.") as stage:
            keys = [request["call"] for request in stage.ask()["action_requests"]]
            respond = {"type": "respond", "message": "it is paid"}
            said = [each | {"call": key} for each, key in zip((REJECT, APPROVE, respond), keys, strict=True)]
            stop = stage.decide(*reversed(said))
            assert sorted(stage.scene.effects()) == ["look shop", "pay A 5"]
            assert "did not run" in stop.results[0]
            assert stop.results[1:] == ("seen shop", "paid 5", "it is paid")

    def test_decisions_by_their_place_are_refused_where_several_calls_wait(self) -> None:
        with self.stage([PAY, PAY], "Done.") as stage:
            stage.ask()
            assert asked(stage.decide(APPROVE, REJECT))["refused"]
            assert stage.scene.effects() == []

    def test_a_bad_value_changes_nothing_and_the_question_stands(self) -> None:
        foreign = {"decisions": [APPROVE], "review_id": "other/1/1"}
        for bad in ("yes", {"decisions": "approve"}, {"decisions": [{"type": "yes"}]}, foreign):
            with self.stage([PAY], "Done.") as stage:
                first = stage.ask()
                again = asked(stage.agent.go_on(THREAD, bad))
                assert again["refused"]
                assert again["review_id"] == first["review_id"]
                assert again["version"] == first["version"]
                assert stage.scene.effects() == []
                assert stage.decide(APPROVE).results == ("paid 5",)

    def test_a_late_repetition_of_an_approval_does_not_approve_the_next_call(self) -> None:
        other = ("pay", {"account": "B", "cents": 9})
        with self.stage([PAY], [other], "Done.") as stage:
            stage.ask()
            stage.decide(APPROVE)
            waits = asked(stage.decide(APPROVE))
            assert waits["refused"]
            assert stage.scene.effects() == ["pay A 5"]
            stage.decide(APPROVE, review_id=waits["review_id"])
            assert stage.scene.effects() == ["pay A 5", "pay B 9"]

    def test_two_resumes_at_once_run_a_call_once(self) -> None:
        for _ in range(self.races):
            with self.stage([PAY], "Done.") as stage:
                stage.ask()
                _at_once(lambda stage=stage: stage.decide(APPROVE), times=2)  # type: ignore[misc]
                assert stage.scene.effects() == ["pay A 5"]
                assert stage.agent.go_on(THREAD).results == ("paid 5",)

    def test_a_decision_from_elsewhere_is_found_when_the_agent_goes_on(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            waits = stage.ask()
            stage.scene.workspace.gate.decide(
                waits["review_id"], [APPROVE], by=PERSON, version=waits["version"]
            )
            assert stage.agent.go_on(THREAD) == Stop(None, ("paid 5",), "Done.")

    def test_what_waits_is_there_after_a_restart(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            first = stage.ask()
            stage.restart()
            assert asked(stage.agent.go_on(THREAD)) == first
            stage.restart()
            assert stage.decide(APPROVE) == Stop(None, ("paid 5",), "Done.")
            stage.restart()
            stage.agent.go_on(THREAD)
            assert stage.scene.effects() == ["pay A 5"]

    def test_a_turn_that_is_killed_before_its_question_is_shown_asks_it_once(self) -> None:
        for place in ("asked", "read-pending"):
            with self.stage([PAY], "Done.") as stage:
                stage.killed(place, begin=True)
                waits = asked(stage.agent.go_on(THREAD))
                assert waits["review_id"].endswith("/1/1"), place
                assert stage.scene.effects() == []
                assert stage.decide(APPROVE).results == ("paid 5",)

    def test_a_decision_that_is_killed_before_its_commit_was_not_taken(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            first = stage.ask()
            stage.killed("in-decide", {"decisions": [APPROVE]})
            with stage.scene.workspace.database.read() as tx:
                assert reviews.review(tx, first["review_id"]).version == first["version"]
            assert stage.scene.effects() == []

    def test_a_call_that_is_killed_before_it_started_runs_once(self) -> None:
        for place in ("read-settled", "before-take"):
            with self.stage([PAY], "Done.") as stage:
                stage.ask()
                stage.killed(place, {"decisions": [APPROVE]})
                assert stage.scene.effects() == []
                assert stage.agent.go_on(THREAD).results == ("paid 5",), place
                assert stage.scene.effects() == ["pay A 5"]

    def test_a_call_that_is_killed_while_it_ran_is_not_run_again(self) -> None:
        for place, effects in (("taken", 0), ("tool-ran", 1)):
            with self.stage([PAY], "Done.") as stage:
                stage.ask()
                stage.killed(place, {"decisions": [APPROVE]})
                [told] = stage.agent.go_on(THREAD).results
                assert UNKNOWN in told, place
                assert len(stage.scene.effects()) == effects

    def test_a_call_that_is_killed_after_its_outcome_was_kept_gives_that_outcome(self) -> None:
        with self.stage([PAY], "Done.") as stage:
            stage.ask()
            stage.killed("outcome-kept", {"decisions": [APPROVE]})
            assert stage.agent.go_on(THREAD) == Stop(None, ("paid 5",), "Done.")
            assert stage.scene.effects() == ["pay A 5"]


def asked(stop: Stop) -> Mapping[str, Any]:
    """Return the question that an agent stopped with; it must have stopped with one."""
    assert stop.question is not None, f"the turn has ended: {stop.text}"
    return stop.question


def act(module: str, qualname: str) -> None:
    """Do what standard input says, in the process that `Stage.killed` starts."""
    said = json.load(sys.stdin)
    kind: Any = importlib.import_module(module)
    for name in qualname.split("."):
        kind = getattr(kind, name)
    stage = Stage(kind(), Path(said["home"]), tuple(said["script"]))
    stage.open()
    if said["begin"]:
        stage.agent.begin(THREAD, "Go")
    else:
        stage.agent.go_on(THREAD, said["value"])


def _at_once(what: Callable[[], object], *, times: int) -> None:
    """Call something in several threads at once; each must come back without an error."""
    together = threading.Barrier(times)
    errors: list[BaseException] = []

    def call() -> None:
        together.wait()
        try:
            what()
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            errors.append(error)

    callers = [threading.Thread(target=call) for _ in range(times)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    if errors:
        raise errors[0]
