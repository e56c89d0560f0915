"""The tools of the example support agent. What they do is real: mail, refunds and deletions happen.

`metadata["clearance"]` says what the gate may rely on: `read_only`, or `idempotent` for a tool that does its
work once for each `configurable.idempotency_key` in the configuration that it is run with.
`metadata["offline"]` says how people ask for the tool, for the offline model.
"""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel

from clearance.apps.chat.support import arguments, orders, outbox, records, spoken, weather
from clearance.apps.chat.support.outbox import SmtpSettings
from clearance.apps.chat.support.records import Table


def support_tools(folder: Path, *, smtp: SmtpSettings | None = None) -> list[BaseTool]:
    """Return get_weather, search_orders, send_email, issue_refund and delete_record.

    Orders, refunds and records are kept in `support.db` in the folder, which is made and filled
    with example rows at the first use. Mail is handed to the server in `smtp`, else written to
    files in the folder's `outbox`. Each tool returns a JSON object as text, and raises
    `SupportError` with a sentence when it does nothing.
    """
    desk = _Desk(folder, smtp)
    read_only = {"read_only": True}
    idempotent = {"idempotent": True}
    return [
        _tool(desk.get_weather, arguments.GetWeather, clearance=read_only, said=spoken.WEATHER),
        _tool(desk.search_orders, arguments.SearchOrders, clearance=read_only, said=spoken.ORDERS),
        _tool(desk.send_email, arguments.SendEmail, clearance={}, said=spoken.EMAIL),
        _tool(desk.issue_refund, arguments.IssueRefund, clearance=idempotent, said=spoken.REFUND),
        _tool(desk.delete_record, arguments.DeleteRecord, clearance=idempotent, said=spoken.DELETE),
    ]


def _tool(
    run: Callable[..., str],
    takes: type[BaseModel],
    *,
    clearance: dict[str, Any],
    said: dict[str, Any],
) -> BaseTool:
    return StructuredTool.from_function(
        run,
        name=run.__name__,
        description=inspect.getdoc(run),
        args_schema=takes,
        metadata={"clearance": clearance, "offline": said},
    )


@dataclass(frozen=True)
class _Desk:
    """The tools on one folder. Their docstrings are what a model reads about them."""

    folder: Path
    smtp: SmtpSettings | None

    def get_weather(self, city: str) -> str:
        """Get the typical January and July temperatures of a city.

        They are stored values, not a live reading or a forecast; say so when you answer. Changes
        nothing.
        """
        return _text(weather.typical_weather(city))

    def search_orders(self, query: str) -> str:
        """Find orders, with what was paid and paid back, and the customer's name and address.

        Use it before a refund, to learn the order's id and what is left. Changes nothing.
        """
        return _text(orders.search(self.folder, query))

    def send_email(self, to: str, subject: str, body: str) -> str:
        """Send one email to one address.

        It goes out at once and cannot be taken back; a second call sends a second email.
        """
        sent = outbox.send(self.folder, to, subject=subject, body=body, smtp=self.smtp)
        return _text(sent)

    def issue_refund(self, order_id: str, amount: str, reason: str, config: RunnableConfig) -> str:
        """Pay money back for an order, in euros.

        It is refused for an unknown order, and for more than was paid and is not yet paid back.
        Moves money; there is no undo.
        """
        key = _idempotency_key(config)
        paid = orders.refund(self.folder, order_id, amount=amount, reason=reason, idempotency_key=key)
        return _text(paid)

    def delete_record(self, table: str, record_id: str, config: RunnableConfig) -> str:
        """Delete one customer or one order for good.

        A customer's orders stay, without a customer. An order for which money was paid back is not
        deleted. There is no undo.
        """
        key = _idempotency_key(config)
        gone = records.delete(self.folder, Table(table), record_id=record_id, idempotency_key=key)
        return _text(gone)


def _idempotency_key(config: RunnableConfig) -> str | None:
    """Return the key under which the gate runs a call; a tool that is called by hand has none."""
    key: str | None = config.get("configurable", {}).get("idempotency_key")
    return key


def _text(result: dict[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False)
