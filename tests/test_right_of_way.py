"""Turns that give way to webhooks and to the writer: in order, a few a pass of the loop, never for good."""

import asyncio
import threading
import time
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from app.channels.whatsapp.webhook import WhatsAppWebhook
from app.right_of_way import MOST_AT_ONCE, RightOfWay
from app.store.database import Database

LIMIT = 10.0


def one(connection: Connection) -> int:
    return int(connection.execute("SELECT 1").fetchone()[0])


async def went_on(way: RightOfWay, number: int, order: list[int], seconds: float = 0.0) -> None:
    await way.give()
    time.sleep(seconds)  # a step of a turn, which keeps the loop
    order.append(number)


@pytest.mark.parametrize(("step_seconds", "at_once"), [(0.0, MOST_AT_ONCE), (0.002, 1)])
async def test_of_many_few_go_on_in_each_pass_of_the_loop_and_of_long_steps_one(
    step_seconds: float, at_once: int
) -> None:
    way, order = RightOfWay(), list[int]()
    turns = [asyncio.create_task(went_on(way, number, order, step_seconds)) for number in range(20)]
    most = 0
    async with asyncio.timeout(LIMIT):
        while not all(turn.done() for turn in turns):
            before = len(order)
            await asyncio.sleep(0)
            most = max(most, len(order) - before)
    assert order == list(range(20))
    assert most <= at_once


async def test_no_turn_goes_on_while_a_webhook_is_taken_in() -> None:
    way, order = RightOfWay(longest_seconds=60), list[int]()
    with way:
        turn = asyncio.create_task(went_on(way, 1, order))
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert order == []
    await asyncio.wait_for(turn, LIMIT)
    assert order == [1]


async def test_no_turn_goes_on_while_the_writer_runs_functions_and_all_do_right_after(tmp_path: Path) -> None:
    way, order = RightOfWay(longest_seconds=60), list[int]()
    store, runs, may_end = Database(tmp_path / "recado.db", way), threading.Event(), threading.Event()

    def takes_long(connection: Connection) -> int:
        runs.set()
        assert may_end.wait(LIMIT)
        return one(connection)

    await store.open()
    try:
        written = store.submit(takes_long)
        await asyncio.to_thread(runs.wait, LIMIT)
        turn = asyncio.create_task(went_on(way, 1, order))
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert order == []
        may_end.set()
        await asyncio.wait_for(turn, LIMIT)
        assert await asyncio.wait_for(written, LIMIT) == 1
    finally:
        may_end.set()
        await store.close()


async def test_a_commit_that_is_not_urgent_gives_way(tmp_path: Path) -> None:
    way = RightOfWay(longest_seconds=60)
    store = Database(tmp_path / "recado.db", way)
    await store.open()
    try:
        with way:
            ordinary = asyncio.create_task(store.tx(one))
            assert await asyncio.wait_for(store.submit(one, urgent=True), LIMIT) == 1
            await asyncio.wait_for(store.submit(one), LIMIT)  # what came before it is committed too
            assert not ordinary.done()
        assert await asyncio.wait_for(ordinary, LIMIT) == 1
    finally:
        await store.close()


async def test_a_webhook_that_takes_long_holds_nobody_up_for_good() -> None:
    way, order = RightOfWay(), list[int]()
    with way:
        turns = (went_on(way, number, order) for number in range(5))
        await asyncio.wait_for(asyncio.gather(*turns), LIMIT)
    assert order == list(range(5))


async def test_webhooks_one_upon_the_other_hold_nobody_up_for_good() -> None:
    way, order = RightOfWay(longest_seconds=0.2), list[int]()
    async with asyncio.timeout(LIMIT):
        with way:
            turns = asyncio.gather(*(went_on(way, number, order) for number in range(3)))
            await asyncio.sleep(0)
        while not turns.done():
            with way:
                await asyncio.sleep(0.001)
    assert order == list(range(3))


async def test_who_has_not_signed_or_sends_slowly_has_no_right_of_way(tmp_path: Path) -> None:
    way = RightOfWay(longest_seconds=60)
    webhook = WhatsAppWebhook(
        Database(tmp_path / "recado.db"),
        lambda: pytest.fail("nothing was signed"),
        app_secret="secret",
        verify_token="",
        arrival=lambda message: pytest.fail("nothing was signed"),
        on_received=lambda received: None,
        on_answer=lambda status: None,
        right_of_way=way,
    )
    asked, ended = asyncio.Event(), asyncio.Event()
    answers: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        asked.set()
        await ended.wait()
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"x-hub-signature-256", b"sha256=" + b"0" * 64)]
    scope = {"type": "http", "method": "POST", "path": "/webhook", "headers": headers}
    sending = asyncio.create_task(webhook(scope, receive, send))
    async with asyncio.timeout(LIMIT):
        await asked.wait()
        for _ in range(3):
            await way.give()
        ended.set()
        await sending
    assert answers[0]["status"] == 401


async def test_one_that_was_cancelled_keeps_nobody_waiting() -> None:
    way, order = RightOfWay(), list[int]()
    turns = [asyncio.create_task(went_on(way, number, order)) for number in range(4)]
    await asyncio.sleep(0)
    turns[1].cancel()
    await asyncio.wait(turns, timeout=LIMIT)
    assert order == [0, 2, 3]
