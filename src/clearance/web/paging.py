"""Paging: how a list goes on over HTTP. A cursor is opaque to the client, and only its own list takes it."""

import base64
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import AwareDatetime, StringConstraints, TypeAdapter, ValidationError

from clearance.errors import Fault, InvalidInputError

PAGE = 50

Cursor = Annotated[
    str | None, Query(max_length=4000, description="Where to go on: `next` of the page before.")
]
Limit = Annotated[int, Query(ge=1, le=PAGE, description="How many at most.")]

Place = TypeVar("Place")
_Id = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


class Cursors(Generic[Place]):
    """The cursors of one list, whose places have this form."""

    def __init__(self, name: str, form: TypeAdapter[Place]) -> None:
        self._name = name.encode()
        self._form = form

    def text(self, place: Place | None) -> str | None:
        """Return a place as a cursor; None is the end of the list."""
        if place is None:
            return None
        return base64.urlsafe_b64encode(self._name + b":" + self._form.dump_json(place)).decode().rstrip("=")

    def place(self, cursor: str | None) -> Place | None:
        """Return the place; None is the list's beginning. Raises `InvalidInputError` for any other text."""
        if cursor is None:
            return None
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            name, _, place = base64.b64decode(padded, altchars=b"-_", validate=True).partition(b":")
            if name == self._name:
                return self._form.validate_json(place)
        except (ValueError, ValidationError):
            pass
        fault = Fault("/query/cursor", "is not the `next` of a page of this list")
        raise InvalidInputError("The cursor cannot be used.", faults=[fault])


DATED: TypeAdapter[tuple[AwareDatetime, _Id]] = TypeAdapter(tuple[AwareDatetime, _Id])
WAITING: TypeAdapter[tuple[int, AwareDatetime | None, AwareDatetime, _Id]] = TypeAdapter(
    tuple[int, AwareDatetime | None, AwareDatetime, _Id]
)
