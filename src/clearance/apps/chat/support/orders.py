"""Orders of the support desk: finding them, and paying money back for them."""

import sqlite3
from pathlib import Path
from typing import Any
from uuid import uuid4

from clearance.apps.chat.support.database import reading, writing
from clearance.apps.chat.support.errors import SupportError
from clearance.apps.chat.support.money import CURRENCY, from_cents, to_cents

MOST_FOUND = 20
_REFUNDED = """(
    SELECT coalesce(sum(amount_cents), 0) FROM refunds WHERE refunds.order_id = orders.id
)"""


def search(folder: Path, query: str) -> dict[str, Any]:
    """Return the orders in which every word of the query occurs, by id, at most `MOST_FOUND`.

    Looked at are the order's id, item, status and date, and the customer's id, name and address.
    Capital and small letters are the same. `count` is the number found, also of those left out.
    """
    words = query.casefold().split()
    with reading(folder) as connection:
        rows = connection.execute(
            f"""SELECT orders.*, name, email, {_REFUNDED} AS refunded_cents
            FROM orders LEFT JOIN customers ON customers.id = orders.customer_id
            ORDER BY orders.id"""
        ).fetchall()
    found = [_order(row) for row in rows if _has_all(row, words)]
    return {"query": query, "count": len(found), "orders": found[:MOST_FOUND]}


def refund(
    folder: Path, order_id: str, *, amount: str, reason: str, idempotency_key: str | None = None
) -> dict[str, Any]:
    """Pay an amount back for an order, and return what was paid and what now is paid back in all.

    With a key that was used before nothing is paid again, and the first refund is returned. Raises
    `SupportError` for an unknown order, more than what is left of the paid amount, or a key that
    was used for another refund.
    """
    cents = to_cents(amount)
    key = idempotency_key or uuid4().hex
    with writing(folder) as connection:
        earlier = connection.execute("SELECT * FROM refunds WHERE idempotency_key = ?", (key,)).fetchone()
        if earlier is None:
            _check_refund(connection, order_id, cents)
            connection.execute(
                "INSERT INTO refunds (order_id, amount_cents, reason, idempotency_key) VALUES (?, ?, ?, ?)",
                (order_id, cents, reason, key),
            )
        elif (earlier["order_id"], earlier["amount_cents"]) != (order_id, cents):
            raise SupportError("This key was used for another refund; nothing was paid back.")
        return _refunded(connection, key)


def _check_refund(connection: sqlite3.Connection, order_id: str, cents: int) -> None:
    order = connection.execute(
        f"SELECT paid_cents, {_REFUNDED} AS refunded_cents FROM orders WHERE id = ?", (order_id,)
    ).fetchone()
    if order is None:
        raise SupportError(f"There is no order {order_id}. Search for the order first.")
    left = order["paid_cents"] - order["refunded_cents"]
    if cents > left:
        raise SupportError(
            f"{from_cents(order['paid_cents'])} {CURRENCY} was paid for order {order_id}, "
            f"{from_cents(order['refunded_cents'])} {CURRENCY} was paid back before. "
            f"At most {from_cents(left)} {CURRENCY} is left; nothing was paid back now."
        )


def _refunded(connection: sqlite3.Connection, key: str) -> dict[str, Any]:
    row = connection.execute(
        f"""SELECT refunds.*, paid_cents, {_REFUNDED} AS refunded_cents
        FROM refunds JOIN orders ON orders.id = refunds.order_id WHERE idempotency_key = ?""",
        (key,),
    ).fetchone()
    return {
        "refund_id": f"RF-{row['id']:04}",
        "order_id": row["order_id"],
        "amount": from_cents(row["amount_cents"]),
        "currency": CURRENCY,
        "reason": row["reason"],
        "refunded_in_all": from_cents(row["refunded_cents"]),
        "paid": from_cents(row["paid_cents"]),
    }


def _has_all(row: sqlite3.Row, words: list[str]) -> bool:
    names = ("id", "item", "status", "ordered_on", "customer_id", "name", "email")
    text = " ".join(str(row[name] or "") for name in names).casefold()
    return all(word in text for word in words)


def _order(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "order_id": row["id"],
        "customer_id": row["customer_id"],
        "customer": row["name"],
        "email": row["email"],
        "item": row["item"],
        "status": row["status"],
        "ordered_on": row["ordered_on"],
        "paid": from_cents(row["paid_cents"]),
        "refunded": from_cents(row["refunded_cents"]),
        "currency": CURRENCY,
    }
