"""The running summary of a conversation: what outgrows its window is folded into it by the model.

It is made of the person's own words, and of answers that hold no text of others: so it grants nothing that
they did not, and a turn that reads it is not under the rules for such text.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from zoneinfo import ZoneInfo

import orjson
import structlog

from app.errors import RecadoError
from app.llm.model import PROMPTS, Model, ModelRequest
from app.messages import JSON
from app.routing.classifier import json_values
from app.store import journal, turn_state
from app.store.database import Connection, Database
from app.store.statistics import day_of
from app.store.turn_state import Exchange, Parts, Unfolded
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

PARTS = ("who", "facts", "promises", "open_questions", "preferences")
LINE_CHARACTERS = 200
MOST_LINES = 40  # of a part
SUMMARY_CHARACTERS = 6_000
TEXT_CHARACTERS = 2_000  # of a message that is folded in
WINDOW_CHARACTERS = 18_000  # of exchanges, beyond which the older half is folded into the summary
WINDOW_EXCHANGES = 30


def outgrows_window(exchanges: Sequence[Exchange]) -> bool:
    """Tell whether the older exchanges should be folded into the summary."""
    return len(exchanges) > WINDOW_EXCHANGES or sum(map(_size, exchanges)) > WINDOW_CHARACTERS


def summary_line(parts: Parts) -> str:
    """Return a summary as the prompt holds it, "" for none."""
    if not any(parts.values()):
        return ""
    return f"[What was said before this, in short, as information: {orjson.dumps(parts).decode()}]"


class Summarizer:
    """Folds what is due into the summaries, one after the other, beside the turns."""

    def __init__(self, store: Database, model: Model, daily_tokens: int) -> None:
        self._store = store
        self._model = model
        self._daily_tokens = daily_tokens
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Take up what is due, unless that is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._fold_all(), name="fold summaries")

    async def stop(self) -> None:
        await end_tasks(self._task)

    async def _fold_all(self) -> None:
        while taken := await self._store.tx(lambda conn: turn_state.take_due_summary(conn, time.time())):
            try:
                await self._fold(taken)
            except RecadoError as error:
                log.warning("a summary waits", conversation=taken.conversation, error=type(error).__name__)

    async def _fold(self, taken: Unfolded) -> None:
        """Ask the model for the new summary and keep it. Raises ModelError or StoreError."""
        old, kept = _halves(taken.exchanges)
        used = await self._store.read(
            lambda conn: journal.tokens_used(conn, taken.person, day_of(time.time()))
        )
        if not old or (self._daily_tokens and used >= self._daily_tokens):
            return
        messages = [
            {"role": "system", "content": PROMPTS["summarize"] % MOST_LINES},
            {"role": "user", "content": _told(taken, old)},
        ]
        answer = await self._model.complete(ModelRequest("answer", messages))
        parts = read_summary(answer.text)
        now = time.time()

        def write(conn: Connection) -> bool:
            journal.count_tokens(conn, taken.person, answer.tokens, day_of(now), now)
            return bool(parts) and turn_state.keep_summary(conn, taken, parts, kept[0].at)

        if not await self._store.tx(write):
            log.info("a summary was not kept", conversation=taken.conversation, readable=bool(parts))


def read_summary(text: str) -> Parts:
    """Read a model's summary tolerantly; {} if it is none."""
    for value in json_values(text):
        if isinstance(value, dict) and any(name in value for name in PARTS):
            return _bounded({name: _lines(value.get(name)) for name in PARTS})
    return {}


def _lines(value: JSON) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    lines = [" ".join(one.split())[:LINE_CHARACTERS] for one in listed if isinstance(one, str)]
    return list(dict.fromkeys(filter(None, lines)))[-MOST_LINES:]


def _bounded(parts: Parts) -> Parts:
    """Leave out lines beyond the room for a summary, those of the last parts first."""
    room = SUMMARY_CHARACTERS
    kept: dict[str, list[str]] = {}
    for name, lines in parts.items():
        kept[name] = [line for line in lines if (room := room - len(line) - 4) >= 0]
    return kept


def _halves(exchanges: Sequence[Exchange]) -> tuple[Sequence[Exchange], Sequence[Exchange]]:
    """Split exchanges into those to fold and those that stay: at least the last two."""
    half = min(sum(map(_size, exchanges)), WINDOW_CHARACTERS) / 2
    newest_first = list(accumulate(map(_size, reversed(exchanges))))
    stay = sum(size <= half for size in newest_first[: WINDOW_EXCHANGES // 2])
    stay = max(stay, 2)
    return (exchanges[:-stay], exchanges[-stay:]) if len(exchanges) > stay else ((), exchanges)


def _told(taken: Unfolded, exchanges: Sequence[Exchange]) -> str:
    zone = ZoneInfo(taken.zone)
    said = []
    for one in exchanges:
        moment = f"{datetime.fromtimestamp(one.at, zone):%A %Y-%m-%d %H:%M}"
        reply = "" if one.sources else one.reply[:TEXT_CHARACTERS]
        who = "business" if one.by_business else "assistant"
        said.append({"at": moment, "person": one.own[:TEXT_CHARACTERS], who: reply})
    return orjson.dumps({"summary": taken.parts, "exchanges": said}).decode()


def _size(exchange: Exchange) -> int:
    return len(exchange.said) + len(exchange.reply)
