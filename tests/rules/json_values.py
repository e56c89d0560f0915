"""JSON values of every kind for Hypothesis, and what it means that two of them are the same."""

import struct
from typing import Any

from hypothesis import strategies as st

# Characters: all that are text (no halves of surrogate pairs).
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
integers = st.one_of(
    st.integers(),
    st.sampled_from([2**53, 2**53 + 1, 2**63, 2**64, -(2**64) - 1, 10**30, 10**4300 - 1]),
)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**60), 2**60).map(float),
    st.sampled_from([0.0, -0.0, 1e16, 1e-5, 1e22, 5e-324, 2.2250738585072014e-308, 48250.0]),
)
scalars = st.one_of(st.none(), st.booleans(), integers, floats, texts)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4))


json_values: st.SearchStrategy[Any] = st.recursive(scalars, _containers, max_leaves=12)
json_objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, max_size=5)


def same(one: object, other: object) -> bool:
    """Whether two JSON values are the same for a tool: 7, 7.0 and "7" differ, and so do 0.0 and -0.0."""
    if type(one) is not type(other):
        return False
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
        case float(), float():
            return struct.pack(">d", one) == struct.pack(">d", other)
        case _:
            return one == other
