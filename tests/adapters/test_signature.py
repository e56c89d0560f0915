"""A function's signature as a tool's schema: what fits it, and which functions JSON cannot stand for."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional

import pytest
from pydantic import BaseModel, Field, JsonValue, PositiveInt
from typing_extensions import TypedDict

from clearance.adapters.signature import read_signature
from clearance.errors import InvalidArgumentsError

OrderId = NewType("OrderId", int)


class Line(TypedDict):
    """One line of an order."""

    sku: str
    count: Annotated[int, Field(ge=1)]
    note: NotRequired[str]


class Colour(StrEnum):
    """Not JSON: what comes back is a text."""

    RED = "red"


class Model(BaseModel):
    """Not JSON either."""


def _order(  # type: ignore[no-untyped-def]
    order_id: OrderId,
    lines: list[Line],
    *,
    amount: float = 3.0,
    why: Literal["broken", "late"] = "late",
    note: str | None = None,
    schema: Mapping[str, int] | None = None,
    _more: Optional[Sequence[PositiveInt]] = None,  # noqa: UP045 - both spellings are read
    model_config: JsonValue = None,
    anything=2**70,
) -> None: ...


def test_the_schema_is_strict_about_names_and_says_every_default() -> None:
    schema = read_signature(_order, tool="order").schema
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["order_id", "lines"]
    defaults = {name: part["default"] for name, part in schema["properties"].items() if "default" in part}
    assert defaults == {
        "amount": 3.0, "why": "late", "note": None, "schema": None, "_more": None, "model_config": None,
        "anything": 2**70,
    }  # fmt: skip


def test_arguments_are_bound_by_name_with_defaults_written_out() -> None:
    text = read_signature(_order, tool="order").text((7, []), {"note": "\u202eabc"})
    assert text == (
        '{"order_id":7,"lines":[],"amount":3.0,"why":"late","note":"\u202eabc","schema":null,"_more":null,'
        '"model_config":null,"anything":1180591620717411303424}'
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"order_id": "7"}, "/order_id: must be integer"),
        ({"order_id": 7.0}, "/order_id: must be integer"),
        ({"order_id": True}, "/order_id: must be integer"),
        ({"lines": [{"sku": "a", "count": 0}]}, "/lines/0/count: must be at least 1"),
        ({"lines": [{"sku": "a"}]}, "/lines/0/count: is missing"),
        ({"lines": ()}, "hold a tuple"),
        ({"amount": "3"}, "/amount: must be number"),
        ({"amount": float("nan")}, "NaN"),
        ({"why": "other"}, "/why: must be one of broken or late"),
        ({"schema": {1: 2}}, "a key that is no text"),
        ({"anything": datetime(2026, 1, 1)}, "hold a datetime"),  # noqa: DTZ001 - no time is meant
        ({"anything": {1}}, "hold a set"),
        ({"anything": Colour.RED}, "hold a Colour"),
        ({"anything": "\ud800"}, "half of a surrogate pair"),
        ({"anything": "x" * 300_000}, "are larger than"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], fault: str) -> None:
    signature = read_signature(_order, tool="order")
    with pytest.raises(InvalidArgumentsError) as refused:
        signature.text((), {"order_id": 7, "lines": [], **arguments})
    assert fault in str(refused.value)


def test_a_call_that_the_function_does_not_take_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'lines'"):
        read_signature(_order, tool="order").text((7,), {})


def _positional(a: int, /) -> None: ...
def _several(*a: int) -> None: ...
def _by_name(**a: int) -> None: ...
def _method(self, a: int) -> None: ...  # type: ignore[no-untyped-def]
def _when(a: datetime) -> None: ...
def _pair(a: tuple[int, int]) -> None: ...
def _by_number(a: dict[int, str]) -> None: ...
def _coloured(a: list[Colour | None]) -> None: ...
def _literal(a: Literal[Colour.RED]) -> None: ...
def _modelled(a: Model) -> None: ...
def _bytes() -> bytes: ...  # type: ignore[empty-body]
def _default(a: Any = ()) -> None: ...
def _field(a: int = Field(3)) -> None: ...
def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_positional, "'a: int' has none"),
        (_several, "has none"),
        (_by_name, "has none"),
        (_method, "is a method"),
        (_when, "'a' has a type that JSON does not have"),
        (_pair, "'a' has a type"),
        (_by_number, "'a' has a type"),
        (_coloured, "'a' has a type"),
        (_literal, "'a' has a type"),
        (_modelled, "'a' has a type"),
        (_bytes, "its result has a type"),
        (_default, "the default of 'a' is no JSON value"),
        (_field, "the default of 'a' is no JSON value"),
        (_generator, "is a generator"),
        (_async_generator, "is a generator"),
    ],
)
def test_a_function_that_json_cannot_stand_for_is_refused(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(TypeError, match="gated") as refused:
        read_signature(function, tool="gated")
    assert why in str(refused.value)
