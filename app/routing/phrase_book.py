"""Example phrases that the model writes for installed tools, so that messages in any language find them.

They are for the index alone: neither prompts nor `/help` show them. They are kept beside the record of the
skill or server, never in the approved files.
"""

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import structlog

from app.errors import RecadoError
from app.i18n import LANGUAGES
from app.llm.model import PROMPTS, Model, ModelRequest
from app.mcp.approved import has_record, home_of
from app.messages import JSON, array, mapping
from app.routing.classifier import json_values
from app.routing.snapshot import CatalogSnapshot, Phrases
from app.security import write_private
from app.skills.folder import read_regular
from app.store import people
from app.store.database import Database
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

FILE = "phrases.json"
MOST_TOOLS = 20  # of a skill or server
MOST_PHRASES = 5  # of a tool in a language
LONGEST_PHRASE = 120
_AT_ONCE = 10  # tools in a call: more make an answer that servers cut
_CODES = {"en": "en (English)", "es": "es (Spanish)", "pt": "pt (Brazilian Portuguese)"}


class PhraseBook:
    """Reads phrases, and has each tool's written once; what failed is tried again at the next start."""

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self._silent: Mapping[Path, Mapping[str, str]] = {}  # by file: tool → description
        self._times: Mapping[Path, int] = {}  # of the files as they were read
        self._tried: set[tuple[Path, str]] = set()
        self._writer: tuple[Model, Database] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def has_news(self) -> bool:
        """Return True if phrases were written since they were read, here or in another process. Blocks."""
        return _times(self._silent) != self._times

    def start(self, model: Model, store: Database) -> None:
        """Have the model write from the next `look` on."""
        self._writer = model, store

    def look(self) -> None:
        """Write in the background what the last snapshot lacks."""
        if self._writer is None or not self._writer[1].is_leader:  # one process writes for all
            return
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all(*self._writer), name="write example phrases")

    async def close(self) -> None:
        await end_tasks(self._task)

    def read(self, snapshot: CatalogSnapshot) -> Phrases:
        """Return the phrases of the tools whose authors wrote none. Blocks."""
        data, skills = self._data_dir, snapshot.skills.items()
        homes = {name: skill.installed.folder.parent for name, skill in skills if skill.installed}
        homes |= {name: home_of(data, name) for name in snapshot.servers if data and has_record(data, name)}
        silent: dict[Path, dict[str, str]] = {}
        for name, tool in snapshot.tools.items():
            if tool.category in homes and not any(tool.phrases.values()):
                silent.setdefault(homes[tool.category] / FILE, {})[name] = tool.description
        self._silent = {file: dict(islice(tools.items(), MOST_TOOLS)) for file, tools in silent.items()}
        self._times = _times(self._silent)
        return {
            name: said
            for file, tools in self._silent.items()
            for name, said in _phrases(_read(file), tools).items()
        }

    async def _write_all(self, model: Model, store: Database) -> None:
        seen = None
        while seen is not self._silent:
            seen = self._silent
            for file, tools in seen.items():
                try:
                    while await self._write_some(model, store, file, tools):
                        continue
                except (OSError, RecadoError) as error:
                    log.info("no example phrases were written", file=str(file), reason=str(error))

    async def _write_some(self, model: Model, store: Database, file: Path, tools: Mapping[str, str]) -> bool:
        """Write for the first few that lack some; return False if none does. Raises OSError, RecadoError."""
        kept = await asyncio.to_thread(_read, file)
        new = (one for one in tools.items() if one[0] not in kept and (file, one[0]) not in self._tried)
        if not (asked := dict(islice(new, _AT_ONCE))):
            return False
        self._tried.update((file, name) for name in asked)
        languages = await people.languages(store) or LANGUAGES
        order = PROMPTS["phrases"] % ", ".join(_CODES[one] for one in LANGUAGES if one in languages)
        shown = json.dumps([{"tool": name, "description": text[:300]} for name, text in asked.items()])
        messages: list[JSON] = [{"role": "system", "content": order}, {"role": "user", "content": shown}]
        answer = await model.complete(ModelRequest("answer", messages))
        found = await asyncio.to_thread(read_answer, answer.text, asked)
        if not found or not file.parent.is_dir():
            raise RecadoError("the answer holds none, or its folder was removed meanwhile")
        written = kept | {name: found.get(name, {}) for name in asked}
        await asyncio.to_thread(write_private, file, json.dumps(written))
        return True


def read_answer(answer: str, tools: Collection[str]) -> Phrases:
    """Return the phrases of these tools in a model's answer, whatever stands around them."""
    values = json_values(answer[: 64 * 1024])
    return next(filter(None, (_phrases(mapping(value), tools) for value in values)), {})


def _read(file: Path) -> dict[str, JSON]:
    """Return what the file holds by tool, also those for which the model wrote nothing."""
    try:
        return mapping(json.loads(read_regular(file)))
    except (OSError, ValueError, RecursionError):
        return {}


def _times(files: Iterable[Path]) -> dict[Path, int]:
    """Return when each of the files that exist was written."""
    times = {}
    for file in files:
        with suppress(OSError):
            times[file] = file.stat().st_mtime_ns
    return times


def _phrases(written: Mapping[str, JSON], tools: Collection[str]) -> Phrases:
    said = {
        name: {str(one): lines for one in LANGUAGES if (lines := _lines(mapping(entry).get(one)))}
        for name, entry in written.items()
        if name in tools
    }
    return {name: texts for name, texts in said.items() if texts}


def _lines(written: JSON) -> tuple[str, ...]:
    """Return the first few short lines with nothing invisible, and without braces, which would be slots."""
    texts = (" ".join(one.split()) for one in array(written) if isinstance(one, str))
    fitting = (one for one in texts if 0 < len(one) <= LONGEST_PHRASE and one.isprintable())
    return tuple(dict.fromkeys(one for one in fitting if not set("{}") & set(one)))[:MOST_PHRASES]
