"""How fast a question finds what was said, among one person's many messages and everybody else's."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from app.cli.evaluation import Message, write_messages
from app.memory.history import rank, read_question, text_weights, weights
from app.store import recall
from app.store.database import Database
from bench.measure import Plan, Row, absolute, quantile, ratio
from bench.process import Release
from tests.memory.talks import talks

FRIEND = "friend"
EXCHANGES = 10_000  # of the friend, that is 20,000 messages
OTHERS = 1_225
EACH = 400  # exchanges of each other person: 980,000 messages in all
INDEXED_AT_ONCE = 2_000
READ_WHOLE = 5  # questions that the baseline answers
GOAL_MS = 15.0


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    folder.mkdir(parents=True, exist_ok=True)
    store = Database(folder / "recado.db")
    await store.open()
    try:
        questions = await _write(store, plan)
        found = [await store.read(lambda conn, one=one: _timed(conn, one)) for one in questions]
        whole = [
            await store.read(lambda conn, one=one: _read_whole(conn, one)) for one in questions[:READ_WHOLE]
        ]
    finally:
        await store.close()
    slow = f"p95 of a search in {2 * plan.of(EXCHANGES):,} messages among {2 * plan.of(OTHERS) * EACH:,}"
    return [
        absolute(slow, [quantile(found, 0.95)], "ms", goal=GOAL_MS),
        ratio("a search, beside reading all their messages", found, whole, "ms", goal=0.2),
    ]


async def _write(store: Database, plan: Plan) -> list[str]:
    """Write and index the conversations of everybody; return the friend's questions."""
    for number in range(plan.of(OTHERS)):
        history = _as_said_by(f"other{number}", talks(1, EACH, seed=number).history)
        await store.tx(lambda conn, said=list(history): write_messages(conn, said))
    talk = talks(1, plan.of(EXCHANGES))
    await store.tx(lambda conn: write_messages(conn, list(_as_said_by(FRIEND, talk.history))))
    while await store.tx(lambda conn: recall.index(conn, weights, INDEXED_AT_ONCE)):
        continue
    asked = [question["query"] for question in talk.questions]
    return list(islice((one for _ in range(10) for one in asked), 200))


def _as_said_by(person: str, history: list[dict[str, Any]]) -> Iterator[Any]:
    return (Message.model_validate({**one, "person": person}) for one in history)


def _timed(conn: Connection, question: str) -> float:
    started = time.perf_counter()
    rank(conn, FRIEND, read_question(question))
    return 1000 * (time.perf_counter() - started)


def _read_whole(conn: Connection, question: str) -> float:
    """Weigh every message of the person for one question."""
    started = time.perf_counter()
    asked = {term for answers in read_question(question) for term in answers}
    texts = conn.execute("SELECT text FROM messages WHERE person_id = ?", (FRIEND,))
    sum(len(asked & text_weights(text).keys()) for (text,) in texts)
    return 1000 * (time.perf_counter() - started)
