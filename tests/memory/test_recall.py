"""Recall over long conversations: what was said is found."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.slow
@pytest.mark.both
def test_what_was_planted_in_long_conversations_is_found(tmp_path: Path) -> None:
    talk = talks(3, 200)
    shared = [one for one in talk.questions if one["shares"]]
    assert _recalled(tmp_path, talk.history, shared)["recall_at_10"] >= 85
    assert _recalled(tmp_path, talk.history, talk.questions)["recall_at_10"] >= 60


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"history\.jsonl, line 1: at: "):
        _recalled(tmp_path, [{"person": "a", "id": "1", "at": "noon", "text": "x"}], [])
