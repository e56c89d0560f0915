"""Decisions on plans: the reviews of a pipeline's gates, and the door by which they are decided."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from clearance.apps.research.plan_calls import EXECUTE
from clearance.review import Review, ReviewKind, ReviewStatus
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.http_door import API, HttpDoor
from tests.journeys.cases.site import Site

PLACE = f"{API}/pipeline"
_SAID = {"type", "message", "changes"}


@dataclass(frozen=True)
class PlanDoor:
    """Decisions on a plan: a resume names the plan that was seen, which binds it to one revision.

    A decision on a revision that does not wait any more is sent in every form there is: by the name of its
    review, and by the hash of its plan where another plan waits.
    """

    http: HttpDoor

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """A pipeline takes no messages."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Decide on a plan; a payload that a resume cannot say goes to the review itself."""
        review = self.http.site.review(review_id)
        said = _one(payload)
        if said is None:
            return self.http.decide(review_id, payload, by=by, version=version, server=server)
        run = self._get(f"/{quote(review.run_id)}")
        plan = self._get(f"/{quote(review.run_id)}/plan?version={review.message % EXECUTE}")
        waits = run["review_id"] == review_id
        answers = []
        if waits or run["plan_sha256"] != plan["plan_sha256"]:
            body = {**said, "plan_sha256": plan["plan_sha256"], "review_id": review_id}
            path = f"{PLACE}/{quote(review.run_id)}/resume"
            answers.append(self.http.send("POST", path, by=by, body=body, server=server))
        taken = any(answer.ok or answer.lost for answer in answers)
        if not answers or not (taken or self._still_waits(review_id)):
            answers.append(self.http.decide(review_id, payload, by=by, version=version, server=server))
        return next((answer for answer in answers if answer.ok or answer.lost), answers[-1])

    def _still_waits(self, review_id: str) -> bool:
        return self.http.site.review(review_id).status is ReviewStatus.PENDING

    def _get(self, path: str) -> Any:
        answer = self.http.send("GET", PLACE + path, by="rita")
        assert answer.ok, answer.reason
        return answer.body


def _one(payload: object) -> dict[str, Any] | None:
    """Return the body of a resume for a payload of one decision; None for what a resume cannot say."""
    if not isinstance(payload, list) or len(payload) != 1 or not isinstance(payload[0], dict):
        return None
    item = payload[0]
    if not set(item) <= _SAID or not isinstance(item.get("type"), str):
        return None
    return {("decision" if name == "type" else name): value for name, value in item.items()}


def gate_reviews(site: Site, run_id: str) -> dict[tuple[str, int], Review]:
    """Return the newest review of each gate and revision of a run.

    A revision at the first gate is the plan's version; at the second it is the number of the question.
    """
    found: dict[tuple[str, int], Review] = {}
    for review in site.reviews([run_id]):
        if review.kind is ReviewKind.PLAN:
            number, version = divmod(review.message, EXECUTE)
            found[("S5_execute", number) if number else ("S4_plan", version)] = review
    return found
