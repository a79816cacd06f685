"""Futures with a time limit and one timer for all."""

import asyncio

from app.deadlines import Deadlines

LIMIT = 10.0


async def test_each_has_its_time_and_one_that_ended_keeps_its_result() -> None:
    loop, deadlines = asyncio.get_running_loop(), Deadlines(0.1)
    began = loop.time()
    first, early, last, again = (loop.create_future() for _ in range(4))
    deadlines.add(first)
    deadlines.add(early)
    early.set_result("done")
    loop.call_later(0.05, deadlines.add, last)
    await asyncio.wait({first}, timeout=LIMIT)
    assert not last.done()
    await asyncio.wait({last}, timeout=LIMIT)
    assert loop.time() - began >= 0.14
    deadlines.add(again)  # after a time in which nobody waited
    await asyncio.wait({again}, timeout=LIMIT)
    assert [type(one.exception()) for one in (first, last, again)] == [TimeoutError] * 3
    assert await early == "done"
