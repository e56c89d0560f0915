"""What the example support agent may do by itself, and how urgent the rest is."""

from typing import Any

import pytest

from clearance.apps.chat.support.policy import SUPPORT_POLICY
from clearance.policy import DecisionType, Effect, Risk, judge
from clearance.policy_checks import check_policy

TOOLS = ["get_weather", "search_orders", "send_email", "issue_refund", "delete_record"]
MAIL = {"subject": "s", "body": "b"}
REFUND = {"order_id": "SO-1003", "reason": "r"}

JUDGED: list[tuple[str, dict[str, Any], Effect, Risk, set[str]]] = [
    ("get_weather", {"city": "Oslo"}, Effect.ALLOW, Risk.LOW, set()),
    ("search_orders", {"query": "x"}, Effect.ALLOW, Risk.LOW, set()),
    ("send_email", {**MAIL, "to": "ana@example.org"}, Effect.HOLD, Risk.MEDIUM, set()),
    ("send_email", {**MAIL, "to": "ana@EXAMPLE.org"}, Effect.HOLD, Risk.MEDIUM, set()),
    ("send_email", {**MAIL, "to": "ana@example.com"}, Effect.HOLD, Risk.HIGH, {"to"}),
    ("send_email", {**MAIL, "to": "ana@example.org.evil.com"}, Effect.HOLD, Risk.HIGH, {"to"}),
    ("issue_refund", {**REFUND, "amount": "0.01"}, Effect.HOLD, Risk.MEDIUM, {"amount"}),
    ("issue_refund", {**REFUND, "amount": "99.99"}, Effect.HOLD, Risk.MEDIUM, {"amount"}),
    ("issue_refund", {**REFUND, "amount": "100.00"}, Effect.HOLD, Risk.HIGH, {"amount"}),
    ("issue_refund", {**REFUND, "amount": "1000000.00"}, Effect.HOLD, Risk.HIGH, {"amount"}),
    ("delete_record", {"table": "orders", "record_id": "x"}, Effect.HOLD, Risk.CRITICAL, {"record_id"}),
    ("format_disk", {}, Effect.HOLD, Risk.MEDIUM, set()),
]


@pytest.mark.parametrize(("tool", "arguments", "effect", "risk", "flagged"), JUDGED)
def test_each_call_has_its_effect_its_risk_and_its_flags(
    tool: str, arguments: dict[str, Any], effect: Effect, risk: Risk, flagged: set[str]
) -> None:
    verdict = judge(SUPPORT_POLICY, tool, arguments=arguments)
    assert (verdict.effect, verdict.risk, set(verdict.flags)) == (effect, risk, flagged)
    assert verdict.faults == ()


@pytest.mark.parametrize("amount", ["much", 100, None])
def test_a_condition_that_fails_holds(amount: object) -> None:
    verdict = judge(SUPPORT_POLICY, "issue_refund", arguments={**REFUND, "amount": amount})
    assert verdict.effect is Effect.HOLD


def test_the_policy_fits_its_tools_and_every_held_call_can_be_edited() -> None:
    check_policy(SUPPORT_POLICY, TOOLS)
    for tool in ("send_email", "issue_refund", "delete_record"):
        decisions = judge(SUPPORT_POLICY, tool, arguments={}).decisions
        assert {DecisionType.APPROVE, DecisionType.EDIT, DecisionType.REJECT} <= set(decisions)
