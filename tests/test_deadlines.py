"""How long a webhook waits for its commit."""

import asyncio

from app.deadlines import Deadlines


async def test_each_has_its_time_and_one_that_ended_keeps_its_result() -> None:
    loop, deadlines = asyncio.get_running_loop(), Deadlines(0.05)
    first, early, last = (loop.create_future() for _ in range(3))
    deadlines.add(first)
    deadlines.add(early)
    early.set_result("done")
    await asyncio.sleep(0.02)
    deadlines.add(last)
    await asyncio.sleep(0.2)
    assert [type(one.exception()) for one in (first, last)] == [TimeoutError, TimeoutError]
    assert await early == "done"
    again = loop.create_future()  # after a time in which nobody waited
    deadlines.add(again)
    await asyncio.sleep(0.2)
    assert type(again.exception()) is TimeoutError
