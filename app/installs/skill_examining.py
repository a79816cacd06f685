"""A skill from elsewhere looked through in a process of its own.

Python's parser and the searches hold up every other thread of their process, for seconds where a file is made
for it; here they hold up nobody, and end at their limits.
"""

import dataclasses
import json
import os
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.installs.quarantine import Quarantined, QuarantineError
from app.installs.skill_cards import Card, card

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SECONDS = 20
"""A hundred times what an honest skill takes."""
MEMORY = 1024 * 1024 * 1024

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import app.installs.skill_examining as e; e.main()"


def examine(tree: Quarantined, seconds: float = SECONDS) -> Card:
    """The card of a tree. Blocks its thread for so long at most, and nothing else.

    Raises QuarantineError for a skill that no card can show, or that takes more than it may.
    """
    command = [sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, str(_ROOT)]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            input=_packed(tree),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise QuarantineError(f"it cannot be looked through within {seconds:g} seconds") from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise QuarantineError("it cannot be looked through: that took more than it may") from error
    answer = _answers().validate_json(done.stdout)
    if isinstance(answer, str):
        raise QuarantineError(answer)
    return answer


def main() -> None:
    """In the process of its own: a tree comes in, its card goes out, or why there is none."""
    _limit()
    answer: Card | str
    try:
        answer = card(_unpacked())
    except QuarantineError as error:
        answer = str(error)
    # Not by pydantic, as it is read: to import that takes longer than all else here.
    written = answer if isinstance(answer, str) else dataclasses.asdict(answer)
    sys.stdout.buffer.write(json.dumps(written, ensure_ascii=False).encode())


def _packed(tree: Quarantined) -> bytes:
    """A line of JSON that says what follows, and the files' bytes."""
    sizes = {path: len(content) for path, content in tree.files.items()}
    origin = {"source": tree.source, "folder": tree.folder, "sent_on": tree.sent_on, "sizes": sizes}
    return b"".join([json.dumps(origin).encode(), b"\n", *tree.files.values()])


def _unpacked() -> Quarantined:
    origin = json.loads(sys.stdin.buffer.readline())
    files = {path: sys.stdin.buffer.read(size) for path, size in origin["sizes"].items()}
    return Quarantined(origin["source"], origin["folder"], files, origin["sent_on"])


@cache
def _answers() -> "TypeAdapter[Card | str]":
    from pydantic import TypeAdapter

    return TypeAdapter(Card | str)


def _limit() -> None:
    """Behind all that answers somebody, and never without end."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
