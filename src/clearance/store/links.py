"""Rows of links in messages: what each is bound to, and whether it was used."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from clearance.links import Link
from clearance.store.tables import links


def add(tx: Connection, link: Link) -> None:
    """Keep a new link."""
    tx.execute(insert(links), link.__dict__)


def link(tx: Connection, link_id: str) -> Link | None:
    """Return a link."""
    row = tx.execute(select(links).where(links.c.id == link_id)).mappings().first()
    return None if row is None else Link(**row)


def use(tx: Connection, link_id: str, *, now: datetime) -> bool:
    """Use a link up; False when it was used before."""
    unused = update(links).where(links.c.id == link_id, links.c.used_at.is_(None))
    return tx.execute(unused.values(used_at=now).returning(links.c.id)).first() is not None
