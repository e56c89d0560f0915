"""The check of decisions against a pending review, for whoever resumes an agent by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from clearance.decision import read_decisions
from clearance.errors import Fault, InvalidArgumentsError, InvalidReviewDecisionError
from clearance.policy import DecisionType, Effect, Risk, Verdict
from clearance.review import Decision, Review, ReviewedCall, ReviewKind, ReviewStatus
from clearance.schema import check_arguments

_NO_TIME = datetime.fromtimestamp(0, UTC)


def validate_decisions(decisions: object, pending_review: Mapping[str, Any]) -> None:
    """Raise `InvalidReviewDecisionError`, with every fault, unless the decisions fit the pending review.

    `pending_review` is what `build_review_request` made, or any payload in LangChain's words. Nothing is
    changed by a check; what is submitted is checked again where it is stored.
    """
    requests = pending_review["action_requests"]
    configs = pending_review["review_configs"]
    calls = [
        _call(request, config, place)
        for place, (request, config) in enumerate(zip(requests, configs, strict=True))
    ]
    read = read_decisions(decisions, _review(calls), by="", now=_NO_TIME)
    schemas = {config["action_name"]: config.get("args_schema") for config in configs}
    faults: list[Fault] = []
    for place, (decision, call) in enumerate(zip(read, calls, strict=True)):
        faults += [
            Fault(f"/{place}{fault.pointer}", fault.message) for fault in _faults(decision, call, schemas)
        ]
    if faults:
        raise InvalidReviewDecisionError("The decisions cannot be taken.", faults=faults)


def _faults(decision: Decision, call: ReviewedCall, schemas: Mapping[str, Any]) -> list[Fault]:
    allowed = call.verdict.decisions
    if decision.type not in allowed:
        return [Fault("/type", f"is not allowed for {call.tool}; allowed: {', '.join(allowed)}")]
    schema = schemas.get(decision.tool or "")
    if decision.type is not DecisionType.EDIT or not schema:
        return []
    try:
        check_arguments(call.tool, schema, decision.arguments or "")
    except InvalidArgumentsError as error:
        return [Fault(f"/edited_action/args{fault.pointer}", fault.message) for fault in error.faults]
    return []


def _call(request: Mapping[str, Any], config: Mapping[str, Any], place: int) -> ReviewedCall:
    verdict = Verdict(
        effect=Effect.HOLD,
        risk=Risk.MEDIUM,
        decisions=tuple(DecisionType(item) for item in config["allowed_decisions"]),
        who=(),
        rules=(),
        policy="",
    )
    return ReviewedCall(
        key=request.get("call") or str(place),
        tool_call_id="",
        proposed_tool=request["name"],
        proposed="{}",
        tool=request["name"],
        arguments="{}",
        schema_hash="",
        salt="",
        fingerprint="",
        verdict=verdict,
    )


def _review(calls: list[ReviewedCall]) -> Review:
    return Review(
        id="",
        run_id="",
        thread_id="",
        program="",
        kind=ReviewKind.CALLS,
        message=0,
        round=1,
        status=ReviewStatus.PENDING,
        version=1,
        requester="",
        asked_at=_NO_TIME,
        deadline=None,
        calls=tuple(calls),
    )
