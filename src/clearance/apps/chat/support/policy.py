"""What the example support agent may do by itself, and what waits for a person, how urgently."""

from decimal import Decimal
from typing import Any

from clearance.policy import DEFAULT_DECISIONS, DecisionType, Effect, Policy, Risk, Rule, predicate

OWN_DOMAIN = "example.org"
LARGE_REFUND = Decimal(100)

_WITH_ANSWER = (*DEFAULT_DECISIONS, DecisionType.RESPOND)


@predicate(version="1")
def outside(arguments: dict[str, Any]) -> bool:
    """Whether a mail leaves the shop's own domain."""
    address: str = arguments["to"]
    return address.rpartition("@")[2].lower() != OWN_DOMAIN


@predicate(version="1")
def large(arguments: dict[str, Any]) -> bool:
    """Whether a refund is at or above the limit."""
    return Decimal(arguments["amount"]) >= LARGE_REFUND


SUPPORT_POLICY = Policy(
    rules=(
        Rule("get_weather", Effect.ALLOW, risk=Risk.LOW, name="look up the weather"),
        Rule("search_orders", Effect.ALLOW, risk=Risk.LOW, name="look up orders"),
        Rule("send_email", decisions=_WITH_ANSWER, name="mail"),
        Rule(
            "send_email",
            when=outside,
            risk=Risk.HIGH,
            flags={"to": f"an address outside {OWN_DOMAIN}"},
            name="mail to outside",
        ),
        Rule("issue_refund", decisions=_WITH_ANSWER, flags={"amount": "euros go out"}, name="refund"),
        Rule(
            "issue_refund",
            when=large,
            risk=Risk.HIGH,
            flags={"amount": f"{LARGE_REFUND} euros or more"},
            name="large refund",
        ),
        Rule(
            "delete_record",
            risk=Risk.CRITICAL,
            flags={"record_id": "gone for good; there is no undo"},
            name="deletion",
        ),
    ),
    default=Effect.HOLD,
)
"""Only look-ups run at once; a tool that no rule names waits for a person."""
