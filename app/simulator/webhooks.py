"""Posting signed webhooks as Meta does: again and again until the answer is 200."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from app.http.endpoint import Endpoint, NoAnswer, NotSent
from app.messages import JSON
from app.simulator.bodies import Account, envelope, signature
from app.simulator.faults import Faults

ANSWER_SECONDS = 20.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """One update for the webhook. Those of one lane go out one after the other.

    `pause` is waited before the first attempt, then `value` makes the body's part; `taken` is called
    after the answer 200; `at` is when it came up (monotonic seconds).
    """

    lane: str
    value: Callable[[], JSON]
    taken: Callable[[], None]
    is_status: bool = False
    pause: float = 0.0
    at: float = field(default_factory=time.monotonic)


class WebhookPoster:
    """Owns the HTTP client and one task for each lane that has something to post.

    Retries start at `first_pause` seconds, double up to `longest_pause`, and end after `retry_for` seconds.
    """

    def __init__(
        self,
        url: str,
        app_secret: str,
        account: Account,
        faults: Faults,
        *,
        first_pause: float = 0.2,
        longest_pause: float = 5.0,
        retry_for: float = 900.0,
    ) -> None:
        self._url = url
        self._secret = app_secret
        self._account = account
        self._faults = faults
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._retry_for = retry_for
        self._endpoint: Endpoint | None = None
        self._lanes: dict[str, list[Notice]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: list[Notice] = []
        self._random = random.Random()  # noqa: S311 (it shuffles, it guards nothing)

    @property
    def waiting(self) -> int:
        """How many notices were not yet taken, held ones included."""
        return sum(map(len, self._lanes.values())) + len(self._held)

    async def start(self) -> None:
        self._endpoint = Endpoint(self._url, {"User-Agent": "facebookexternalua"})
        for lane in self._lanes:
            self._work(lane)

    async def stop(self) -> None:
        """Ends the tasks and forgets what waits: whoever posted it knows what was not taken."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._lanes.clear()
        self._held.clear()
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None

    def post(self, notice: Notice) -> None:
        """Queues a notice and returns; before `start()` it waits."""
        if notice.is_status and self._faults.hold_statuses:
            self._held.append(notice)
            return
        lane = "batch" if self._faults.batch > 1 else notice.lane
        self._lanes.setdefault(lane, []).append(notice)
        self._work(lane)

    def release(self) -> None:
        """Queues the statuses that were held, unless they still are to be."""
        held, self._held = self._held, []
        for notice in held:
            self.post(notice)

    async def idle(self) -> None:
        """Returns when nothing is left to post."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _work(self, lane: str) -> None:
        if lane not in self._tasks and self._endpoint is not None:
            self._tasks[lane] = asyncio.create_task(self._run(lane, self._endpoint), name=f"webhooks {lane}")

    async def _run(self, lane: str, endpoint: Endpoint) -> None:
        queue = self._lanes[lane]
        try:
            while queue:
                due = queue[0].at + self._faults.webhook_delay
                await asyncio.sleep(max(queue[0].pause, due - time.monotonic()))
                if self._faults.reorder:
                    self._random.shuffle(queue)
                notices = queue[: self._faults.batch]
                await self._deliver(notices, endpoint)
                del queue[: len(notices)]
            del self._lanes[lane]
        finally:
            self._tasks.pop(lane, None)

    async def _deliver(self, notices: list[Notice], endpoint: Endpoint) -> None:
        body = orjson.dumps(envelope(self._account, [notice.value() for notice in notices]))
        copies, pause, deadline = (
            self._faults.duplicate,
            self._first_pause,
            time.monotonic() + self._retry_for,
        )
        while True:
            answers = await asyncio.gather(*(self._is_taken(body, endpoint) for _ in range(copies)))
            copies = answers.count(False)
            if not copies:
                break
            if time.monotonic() > deadline:
                log.warning("webhook %s never answered 200; %d updates dropped", self._url, len(notices))
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest_pause)
        for notice in notices:
            notice.taken()

    async def _is_taken(self, body: bytes, endpoint: Endpoint) -> bool:
        signed = {"X-Hub-Signature-256": signature(body, self._secret)}
        try:
            answer = await endpoint.post("", body, ANSWER_SECONDS, headers=signed)
        except (NotSent, NoAnswer) as error:
            log.debug("webhook %s away: %s", self._url, error)
            return False
        return answer.status == 200
