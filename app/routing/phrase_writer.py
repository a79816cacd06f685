"""Example phrases for installed tools, written by the model in the background."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import structlog

from app.i18n import LANGUAGES
from app.llm.model import Model, ModelRequest
from app.mcp import installed
from app.mcp.definitions import is_server_name
from app.messages import JSON
from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.skills.phrases import FILE, write_phrases
from app.store import people
from app.store.database import Database

log = structlog.get_logger(__name__)

_Wanted = tuple[Path, Mapping[str, str]]  # the file of the phrases, and tools without any: name → description


class PhraseWriter:
    """Asks the model once for each installed tool; what failed is tried again after a restart."""

    def __init__(
        self, loader: SkillLoader, catalog: ToolCatalog, model: Model, store: Database, data_dir: Path
    ) -> None:
        self._loader = loader
        self._model = model
        self._store = store
        self._data_dir = data_dir
        self._catalog = catalog
        self._changed = asyncio.Event()
        self._tried: set[tuple[Path, frozenset[tuple[str, str]]]] = set()
        self._writing: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Look for tools without phrases in the background."""
        self._changed.set()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="write example phrases")

    async def close(self) -> None:
        """Stop writing."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                for file, tools in await asyncio.to_thread(list, self._wanted()):
                    await self._write_one(file, tools)
            except Exception:
                log.exception("example phrases could not be written")

    async def _write_one(self, file: Path, tools: Mapping[str, str]) -> None:
        tried = (file, frozenset(tools.items()))
        if tried in self._tried:
            return
        self._tried.add(tried)
        languages = await people.languages(self._store) or LANGUAGES
        if await write_phrases(self._ask, file, tools, languages):
            await self._catalog.refresh()

    def _wanted(self) -> Iterator[_Wanted]:
        """Yield the tools without phrases of their author. It reads files: it blocks."""
        for skill in self._loader.skills:
            if skill.installed is not None and skill.available:
                brought = skill.phrases.keys() - skill.written
                tools = {tool.name: tool.description for tool in skill.tools if tool.name not in brought}
                yield from _some(skill.installed.phrases, tools)
        for server in self._catalog.server_tools():
            if is_server_name(server.name) and installed.read(self._data_dir, server.name) is not None:
                tools = {tool.name: tool.description for tool in server.tools}
                yield from _some(installed.home_of(self._data_dir, server.name) / FILE, tools)

    async def _ask(self, instructions: str, text: str) -> str:
        """Ask the model. Raises ModelError."""
        messages: list[JSON] = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": text},
        ]
        return (await self._model.complete(ModelRequest("answer", messages, said=text))).text


def _some(file: Path, tools: Mapping[str, str]) -> Iterable[_Wanted]:
    return [(file, tools)] if tools else []
