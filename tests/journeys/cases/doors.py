"""The ways in that a case uses: what a person sends, and what the product answers."""

from dataclasses import dataclass
from typing import Any, Protocol

from tests.journeys.cases.site import Site


@dataclass(frozen=True)
class Answer:
    """What a door answered. `lost`: none came, because the process behind the door died."""

    ok: bool
    reason: str = ""
    faults: tuple[str, ...] = ()
    body: Any = None
    status: int = 0
    lost: bool = False


class Door(Protocol):
    """A way in for messages and decisions."""

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer: ...
    def decide(
        self, review_id: str, payload: object, *, by: str, version: int, server: int = 1
    ) -> Answer: ...


@dataclass(frozen=True)
class ByHand:
    """A resume value of LangGraph's own, for threads that this process drives."""

    site: Site
    hand: Any  # a call, as the agent is built by a step

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """Messages come in by another door."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        thread = self.site.review(review_id).thread_id
        sent = {"decisions": payload, "review_id": review_id, "version": version}
        refused = self.hand().resume(thread, sent, by=by)
        return Answer(ok=not refused, reason=refused)
