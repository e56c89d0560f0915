"""Column types that mean the same on both databases."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

from clearance.toolcall import canonical

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Instant(TypeDecorator[datetime]):
    """An aware instant, kept as whole microseconds since 1970 in UTC: exact and sortable everywhere."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Write microseconds."""
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """Read an aware datetime."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class Json(TypeDecorator[Any]):
    """A JSON value, kept as canonical text: databases must not touch its numbers."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write canonical JSON."""
        return None if value is None else canonical(_plain(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read the value."""
        return None if value is None else json.loads(value)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
