"""What each tool of the support desk takes: strict schemas, for models and for the people who edit.

Unknown arguments are refused.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from clearance.apps.chat.support.money import AMOUNT

# One plain address: no list, no display name, no comment, nothing that two readers could read
# differently.
ADDRESS = r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)+$"
# No control characters or line separators: the subject is one line of the mail's head.
ONE_LINE = r"^[^\x00-\x1f\x7f\u0085\u2028\u2029]+$"

NOT_BLANK = r"\S"


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GetWeather(_Arguments):
    """The arguments of get_weather."""

    city: str = Field(
        description="The city, in English or in its own language.",
        pattern=NOT_BLANK,
        max_length=60,
        examples=["Jakarta"],
    )


class SearchOrders(_Arguments):
    """The arguments of search_orders."""

    query: str = Field(
        description="Words that must all occur in the order: its id, item, status or date, or the "
        "customer's name, address or id.",
        pattern=NOT_BLANK,
        max_length=200,
        examples=["SO-1003"],
    )


class SendEmail(_Arguments):
    """The arguments of send_email."""

    to: str = Field(
        description="Exactly one address, without a name.",
        pattern=ADDRESS,
        max_length=254,
        examples=["ana@example.org"],
    )
    subject: str = Field(
        description="The subject, one line.",
        pattern=ONE_LINE,
        max_length=200,
        examples=["Your order SO-1001"],
    )
    body: str = Field(
        description="The whole text of the mail, as plain text.",
        pattern=NOT_BLANK,
        max_length=100_000,
        examples=["Your lamp is on its way."],
    )


class IssueRefund(_Arguments):
    """The arguments of issue_refund."""

    order_id: str = Field(description="The order's id.", pattern=r"^SO-[0-9]{4}$", examples=["SO-1003"])
    amount: str = Field(
        description="The amount to pay back in euros, with two decimals: 49.90 is 49 euros and 90 "
        "cents. At most what was paid for the order and is not yet paid back.",
        pattern=AMOUNT,
        examples=["49.90"],
    )
    reason: str = Field(
        description="Why the money is paid back, in one sentence.",
        pattern=NOT_BLANK,
        max_length=500,
        examples=["One cup was broken."],
    )


class DeleteRecord(_Arguments):
    """The arguments of delete_record."""

    table: Literal["customers", "orders"] = Field(description="The kind of record.", examples=["customers"])
    record_id: str = Field(
        description="The record's id: CU-… for a customer, SO-… for an order.",
        pattern=r"^(?:CU|SO)-[0-9]{4}$",
        examples=["CU-1005"],
    )
