"""Recall over long conversations: what was said is found, by the person who said it and nobody else."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.cli.evaluation import Message, write_messages
from app.memory.history import rank, read_question, weights
from app.store import recall
from app.store.database import Database
from tests.forks import run_recado
from tests.memory.talks import talks


def _recalled(
    folder: Path, history: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> dict[str, float]:
    """Return what `recado eval recall` says."""
    for name, rows in (("history", history), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["eval", "recall", "--json", "--history", "history.jsonl", "--queries", "queries.jsonl"]
    ran = run_recado(command, folder, {"PATH": os.environ["PATH"]})
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def test_what_was_planted_in_long_conversations_is_found(tmp_path: Path) -> None:
    talk = talks(6, 200)
    shared = [one for one in talk.questions if one["shares"]]
    assert _recalled(tmp_path, talk.history, shared)["recall_at_10"] >= 85
    assert _recalled(tmp_path, talk.history, talk.questions)["recall_at_10"] >= 60


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"person": "a", "id": "1", "at": "noon", "text": "x"}, "history.jsonl, line 1: at: "),
        ({"id": "1", "at": 1, "text": "x"}, "line 1: person: Field required"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        _recalled(tmp_path, [row], [])


async def test_nobody_is_shown_the_words_of_another(store: Database) -> None:
    talk = talks(6, 200)
    rows = await store.tx(lambda conn: write_messages(conn, list(map(Message.model_validate, talk.history))))
    while await store.tx(lambda conn: recall.index(conn, weights, 1_000)):
        continue
    seen = 0
    for question in talk.questions:
        person, asked = question["person"], read_question(question["query"])
        found = await store.tx(partial(rank, person=person, question=asked))
        assert all(rows[id].startswith(f"{person}:") for id, _ in found)
        seen += len(found)
    assert seen > 500
