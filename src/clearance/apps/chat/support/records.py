"""Records of the support desk: deleting a customer or an order for good."""

import sqlite3
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never
from uuid import uuid4

from clearance.apps.chat.support.database import writing
from clearance.apps.chat.support.errors import SupportError


class Table(StrEnum):
    """A table whose records can be deleted."""

    CUSTOMERS = "customers"
    ORDERS = "orders"


def delete(
    folder: Path, table: Table, *, record_id: str, idempotency_key: str | None = None
) -> dict[str, Any]:
    """Delete one record, and return which, with the number of orders that stay without a customer.

    With a key that was used before nothing more is deleted, and the first deletion is returned. The
    deletion itself is kept, without the record's content. Raises `SupportError` for an unknown
    record, an order for which money was paid back, or a key that was used for another deletion.
    """
    key = idempotency_key or uuid4().hex
    with writing(folder) as connection:
        earlier = connection.execute("SELECT * FROM deletions WHERE idempotency_key = ?", (key,)).fetchone()
        if earlier is not None:
            if (earlier["record_table"], earlier["record_id"]) != (table, record_id):
                raise SupportError("This key was used for another deletion; nothing was deleted.")
            return _deleted(table, record_id, orders_kept=earlier["orders_kept"])
        orders_kept = _delete(connection, table, record_id)
        connection.execute(
            "INSERT INTO deletions (idempotency_key, record_table, record_id, orders_kept)"
            " VALUES (?, ?, ?, ?)",
            (key, table, record_id, orders_kept),
        )
    return _deleted(table, record_id, orders_kept=orders_kept)


def _delete(connection: sqlite3.Connection, table: Table, record_id: str) -> int:
    """Delete the record, and return how many orders stay without a customer."""
    kept = 0
    match table:
        case Table.CUSTOMERS:
            kept = _count(connection, "orders WHERE customer_id = ?", record_id)
            gone = connection.execute("DELETE FROM customers WHERE id = ?", (record_id,))
        case Table.ORDERS:
            if _count(connection, "refunds WHERE order_id = ?", record_id):
                raise SupportError(
                    f"Order {record_id} must be kept: money was paid back for it. Nothing was deleted."
                )
            gone = connection.execute("DELETE FROM orders WHERE id = ?", (record_id,))
        case _:
            assert_never(table)
    if gone.rowcount != 1:
        raise SupportError(f"There is no record {record_id} in {table}; nothing was deleted.")
    return kept


def _count(connection: sqlite3.Connection, what: str, record_id: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {what}", (record_id,)).fetchone()[0]
    return count


def _deleted(table: Table, record_id: str, *, orders_kept: int) -> dict[str, Any]:
    return {"table": table.value, "record_id": record_id, "orders_kept": orders_kept}
