"""Cleared `async` functions: awaited in the loop of their caller, which stays free while they wait."""

import asyncio
from typing import Any

import pytest

from clearance import cleared
from clearance.errors import CallFailedError, CallUncertainError, ReviewPendingError
from clearance.workspace import Clearance
from tests.adapters.decided import decide, inbox
from tests.journeys.processes import PATIENCE


def test_it_is_awaited_once_in_its_callers_loop(workspace: Clearance, paid: list[Any]) -> None:
    @cleared(key=lambda order: f"pay-{order}")
    async def pay(order: int) -> str:
        """Pay."""
        paid.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return f"paid {order}"

    async def main() -> None:
        with pytest.raises(ReviewPendingError):
            await pay(7)
        decide(workspace, "pay-7/1/1")
        assert await asyncio.gather(*(pay(7) for _ in range(20))) == ["paid 7"] * 20
        assert paid == [asyncio.get_running_loop()]

    asyncio.run(main())
    assert asyncio.iscoroutinefunction(pay)
    assert asyncio.run(pay(7)) == "paid 7"


def test_more_calls_than_the_loop_has_threads_do_not_stand_in_each_others_way(workspace: Clearance) -> None:
    @cleared(key=lambda order: f"pay-{order}", wait=PATIENCE)
    async def pay(order: int) -> int:
        return await asyncio.to_thread(lambda: order)

    async def main() -> list[int]:
        calls = [asyncio.create_task(pay(order)) for order in range(40)]
        decided: set[str] = set()
        while len(decided) < 40:
            for review_id in await asyncio.to_thread(inbox, workspace):
                decide(workspace, review_id)
                decided.add(review_id)
            await asyncio.sleep(0)
        return await asyncio.gather(*calls)

    assert asyncio.run(main()) == list(range(40))


def test_one_that_raises_has_failed(workspace: Clearance, paid: list[Any]) -> None:
    @cleared(key="once")
    async def fail() -> None:
        paid.append("tried")
        raise LookupError("no order")

    async def main() -> None:
        with pytest.raises(ReviewPendingError):
            await fail()
        decide(workspace, "once/1/1")
        for _ in range(2):
            with pytest.raises(CallFailedError, match="LookupError: no order"):
                await fail()

    asyncio.run(main())
    assert paid == ["tried"]


def test_one_that_passes_its_time_is_uncertain(workspace: Clearance) -> None:
    @cleared(key="once", timeout=0.1)
    async def hang() -> None:
        await asyncio.sleep(PATIENCE)

    async def main() -> None:
        with pytest.raises(ReviewPendingError):
            await hang()
        decide(workspace, "once/1/1")
        with pytest.raises(CallUncertainError):
            await hang()

    asyncio.run(main())
