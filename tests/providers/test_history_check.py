"""The check of histories finds what it is there to find, in each provider's format."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.providers.history import Body, Check, anthropic_faults, chat_faults, responses_faults


def _chat() -> list[Body]:
    def call(name: str) -> Body:
        return {"id": name, "type": "function", "function": {"name": "pay", "arguments": "{}"}}

    return [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Pay."},
        {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "paid"},
        {"role": "tool", "tool_call_id": "b", "content": "paid"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]


def _responses() -> list[Body]:
    def call(name: str) -> Body:
        return {"type": "function_call", "call_id": name, "name": "pay", "arguments": "{}"}

    return [
        {"role": "user", "content": "Pay."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call("a"),
        call("b"),
        {"type": "function_call_output", "call_id": "a", "output": "paid"},
        {"type": "function_call_output", "call_id": "b", "output": "paid"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"role": "user", "content": "Thanks."},
    ]


def _anthropic() -> list[Body]:
    def call(name: str) -> Body:
        return {"type": "tool_use", "id": name, "name": "pay", "input": {}}

    def result(name: str) -> Body:
        return {"type": "tool_result", "tool_use_id": name, "content": "paid"}

    return [
        {"role": "user", "content": "Pay."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, call("a"), call("b")]},
        {"role": "user", "content": [result("a"), result("b")]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]


def _in(history: list[Body], body: Body) -> tuple[list[Body], int]:
    """Return the list that holds the body, and its place in it."""
    for each in (history, *(m["content"] for m in history if isinstance(m.get("content"), list))):
        for place, item in enumerate(each):
            if item is body:
                return each, place
    raise AssertionError(body)


def _results(history: list[Body]) -> list[Body]:
    flat = [
        item for m in history for item in [m, *(m["content"] if isinstance(m.get("content"), list) else [])]
    ]
    return [item for item in flat if {"tool_call_id", "tool_use_id", "output"} & item.keys()]


def _said(history: list[Body]) -> Body:
    alone = {"role": "user", "content": "Hurry up!"}
    return {"type": "text", "text": "Hurry up!"} if "tool_use_id" in str(history) else alone


def _without_one(history: list[Body]) -> None:
    held, place = _in(history, _results(history)[1])
    del held[place]


def _without_any(history: list[Body]) -> None:
    for result in _results(history):
        held, place = _in(history, result)
        del held[place]


def _twice(history: list[Body]) -> None:
    held, place = _in(history, _results(history)[1])
    held.insert(place, deepcopy(held[place]))


def _for_no_call(history: list[Body]) -> None:
    for key in ("tool_call_id", "tool_use_id", "call_id"):
        if key in _results(history)[0]:
            _results(history)[0][key] = "z"


def _swapped(history: list[Body]) -> None:
    held, place = _in(history, _results(history)[0])
    held[place], held[place + 1] = held[place + 1], held[place]


def _with_a_person_between(history: list[Body]) -> None:
    held, place = _in(history, _results(history)[1])
    held.insert(place, _said(history))


def _with_a_person_before(history: list[Body]) -> None:
    held, place = _in(history, _results(history)[0])
    held.insert(place, _said(history))


def _empty(history: list[Body]) -> None:
    result = _results(history)[0]
    result["output" if "output" in result else "content"] = ""


def _late(history: list[Body]) -> None:
    late = _results(history)[1]
    held, place = _in(history, late)
    del held[place]
    history.append({"role": "user", "content": [late]} if "tool_use_id" in late else late)


def _of_one_name(history: list[Body]) -> None:
    for name in ("id", "call_id", "tool_use_id", "tool_call_id"):
        _rename(history, name)


def _rename(value: Any, name: str) -> None:
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        _rename(item, name)
    if isinstance(value, dict) and value.get(name) == "b":
        value[name] = "a"


def _strange(history: list[Body]) -> None:
    history.append({"role": "oracle", "content": [{"type": "vision"}]})


BREAKS: list[Callable[[list[Body]], None]] = [
    _without_one, _without_any, _twice, _for_no_call, _swapped, _with_a_person_between,
    _with_a_person_before, _empty, _late, _of_one_name, _strange,
]  # fmt: skip
FORMATS = [
    pytest.param(_chat, "messages", chat_faults, id="chat"),
    pytest.param(_responses, "input", responses_faults, id="responses"),
    pytest.param(_anthropic, "messages", anthropic_faults, id="anthropic"),
]


@pytest.mark.parametrize(("good", "key", "check"), FORMATS)
def test_a_good_history_has_no_faults(good: Callable[[], list[Body]], key: str, check: Check) -> None:
    assert check({key: good()}) == []


@pytest.mark.parametrize("break_it", BREAKS, ids=lambda made: made.__name__.strip("_"))
@pytest.mark.parametrize(("good", "key", "check"), FORMATS)
def test_a_broken_history_is_found(
    good: Callable[[], list[Body]], key: str, check: Check, break_it: Callable[[list[Body]], None]
) -> None:
    history = good()
    break_it(history)
    assert history != good()
    assert check({key: history}) != []
