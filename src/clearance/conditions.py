"""Conditions in time: a policy's Python condition that takes too long has given no answer.

It is asked about inside a transaction that others wait for, and no call may run, or wait unseen, because a
condition hangs. So it counts as one that raised: the call is held, and the verdict says why.
"""

import contextvars
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clearance.expression import Cel
from clearance.policy import Policy, Predicate

LIMIT = 2.0
"""Seconds that a condition may take."""

Function = Callable[[dict[str, Any]], bool]


def in_time(policy: Policy, *, limit: float = LIMIT) -> Policy:
    """Return the policy with conditions that raise `TimeoutError` after `limit` seconds without an answer.

    A condition that still runs from an earlier call is not started again: it raises at once.
    """
    bounded: dict[int, Function] = {}

    def condition(given: Predicate | Cel | None) -> Predicate | Cel | None:
        if not isinstance(given, Predicate):
            # What CEL may say is bounded by its text.
            return given
        if given.function is None or isinstance(given.function, _InTime):
            return given
        function = bounded.setdefault(id(given.function), _InTime(given.function, limit))
        return replace(given, function=function)

    return replace(policy, rules=tuple(replace(rule, when=condition(rule.when)) for rule in policy.rules))


class _InTime:
    """A condition that is waited for up to a limit. Its thread cannot be stopped, only left behind."""

    def __init__(self, function: Function, limit: float) -> None:
        self._function = function
        self._limit = limit
        self._left_behind: threading.Thread | None = None

    def __call__(self, arguments: dict[str, Any]) -> bool:
        if self._left_behind is not None and self._left_behind.is_alive():
            raise TimeoutError
        answers: list[bool] = []
        errors: list[BaseException] = []

        def ask() -> None:
            try:
                answers.append(context.run(self._function, arguments))
            except BaseException as error:  # noqa: BLE001 - handed to whoever asks
                errors.append(error)

        context = contextvars.copy_context()
        thread = threading.Thread(target=ask, name="condition", daemon=True)
        thread.start()
        thread.join(self._limit)
        if errors:
            raise errors[0]
        if not answers:
            self._left_behind = thread
            raise TimeoutError
        return answers[0]
