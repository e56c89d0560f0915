"""The same thing, done by many at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from clearance.errors import ClearanceError

Result = TypeVar("Result")


def together(*calls: Callable[[], Result]) -> Sequence[Result | ClearanceError]:
    """Do all of these at the same moment; return what each gave, or how it was refused."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], Result]) -> Result | ClearanceError:
        barrier.wait()
        try:
            return call()
        except ClearanceError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))
