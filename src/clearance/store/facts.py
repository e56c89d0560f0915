"""Facts: what a workspace remembers about itself, by name."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select

from clearance.store.tables import facts

CHAT_MODEL = "chat.model"
"""The model that the workspace's own chat goes on with; set by the demo, and by nobody else."""


def get(tx: Connection, name: str) -> Any:
    """Return a fact, None when the workspace has none of that name."""
    return tx.execute(select(facts.c.value).where(facts.c.name == name)).scalar()


def put(tx: Connection, name: str, value: object) -> None:
    """Remember a fact, in place of what it was."""
    tx.execute(delete(facts).where(facts.c.name == name))
    tx.execute(insert(facts).values(name=name, value=value))
