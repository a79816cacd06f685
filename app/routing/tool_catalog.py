"""The tool catalogue: skills, servers, their tools and the indexes over them, refreshed before each turn."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import structlog

from app.mcp.servers import McpServers
from app.messages import JSON
from app.people import Person, may_use
from app.routing.classifier import Intent
from app.routing.phrase_book import PhraseBook
from app.routing.selector import ROOM, Chosen, select_tools
from app.routing.snapshot import CatalogSnapshot, build_snapshot
from app.search.index import ToolIndex
from app.search.phrases import can_fill, without_given
from app.search.words import says_something
from app.skills import SkillLoader
from app.skills.model_tools import (
    LOAD_SKILL,
    READ_SKILL_FILE,
    RUN_SKILL_SCRIPT,
    SCRIPT_SENTENCES,
    ScriptRunner,
    narrowed,
    place,
    reading_tools,
)
from app.skills.skill import Skill, ToolSentences
from app.tasks import DaemonThreads, end_tasks, start_task
from app.tools import Tool, ToolRegistry
from app.tools.schema import Schema

log = structlog.get_logger(__name__)

SEARCH_TOOLS = "search_tools"  # the tool that searches all others, which may be called afterwards
REFRESH_SECONDS = 20.0  # the first one may compile all skills
LONGEST_DESCRIPTION = 200  # characters of what a search tells of a tool
_FITTING_COVERAGE = 0.34
_SLOT = re.compile(r"\{\w+\}")


@dataclass(frozen=True, slots=True)
class Selection:
    """The categories and tools that a turn begins with, the skills that it is about, and why.

    `shown` are the skills whose texts the prompt holds, in the order in which they came; `reasons` say for
    each of the tools why it was chosen.
    """

    categories: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    reasons: tuple[Chosen, ...] = field(default=(), compare=False)


class ToolCatalog:
    """Follows skill folders and servers, and keeps the registry and the indexes in step with them.

    `environment`: the variables that skills may ask for; `guest_tools`: see `build_snapshot`; `data_dir`
    holds the records of servers.
    """

    def __init__(
        self,
        loader: SkillLoader,
        registry: ToolRegistry,
        environment: Mapping[str, str],
        *,
        servers: McpServers | None = None,
        guest_tools: Collection[str] = (),
        data_dir: Path | None = None,
    ) -> None:
        self._guest_tools = guest_tools
        self.index = ToolIndex()
        self.phrase_book = PhraseBook(data_dir)
        self.skill_index = ToolIndex()  # apart, so that skills without tools never move a tool's rank
        self.registry = registry
        self._loader = loader
        self._servers = servers
        self._environment = environment
        self.snapshot = CatalogSnapshot()  # what there was at the last refresh
        self._outdated = True
        self._served: Sequence[Tool] = ()
        self._reading = {tool.name: tool for tool in reading_tools(self)}
        self._thread = DaemonThreads(limit=1)
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add_scripts(self, runner: ScriptRunner) -> None:
        """Offer the scripts of skills too, which `runner` runs."""
        self._reading[RUN_SKILL_SCRIPT] = runner.tool()

    async def refresh(self) -> None:
        """Take over what changed on disk; from a disk that hangs go on with what was loaded before."""
        _, late = await asyncio.wait({self.refresh_soon()}, timeout=REFRESH_SECONDS)
        if late:
            log.warning("the skill folders answer slowly: going on with what was loaded before")

    async def refresh_for_message(self) -> None:
        """Take over what changed on disk, and the tools of servers that start for the first time."""
        await self.refresh()
        if self._servers is not None and await self._servers.first_starts():
            await self.refresh()

    def refresh_soon(self) -> "asyncio.Task[None]":
        """Return the next refresh, in the background; all who ask before it begins share it."""
        if self._next is None:
            self._next = start_task(self._tasks, self._refresh(), name="refresh the tools")
        return self._next

    async def close(self) -> None:
        """End the refreshes under way."""
        await end_tasks(*self._tasks)
        await self.phrase_book.close()

    async def _refresh(self) -> None:
        async with self._one_at_a_time:
            self._next = None
            try:
                if self._servers is not None:
                    await self._servers.refresh()
                snapshot = await self._thread.run(self._look)
                if snapshot is not None:
                    self.snapshot = snapshot
                    self.registry.clear()
                    for tool in (*snapshot.tools.values(), *self._reading.values()):
                        self.registry.register(tool)
                    self.phrase_book.look()
                    if self._servers is not None:
                        await self._servers.refresh()  # a skill that came or went may have brought some
            except Exception:
                log.exception("the skill folders could not be read: going on with what was loaded before")

    def _look(self) -> CatalogSnapshot | None:
        """Return what there is now, None if nothing changed; in a thread, for it may take long."""
        served = self._servers.tools if self._servers is not None else ()
        self._outdated |= self._loader.refresh() or served is not self._served or self.phrase_book.has_news
        if not self._outdated:
            return None
        skills = [skill for skill in self._loader.skills if skill.available]
        taken = [tool.name for tool in self._loader.tools if tool.name in self._reading]
        for name in taken:
            log.warning("a skill's tool is left out: its name is taken", tool=name)
        tools = [tool for tool in self._loader.tools if tool.name not in taken]
        snapshot = build_snapshot(skills, tools, self._servers, self._guest_tools)
        self.index.remove(self.snapshot.tools.keys() - snapshot.tools.keys())
        self.skill_index.remove(self.snapshot.skills.keys() - snapshot.skills.keys())
        self.index.add(snapshot.documents(self.phrase_book.read(snapshot)))
        self.skill_index.add(snapshot.skill_documents())
        self._served, self._outdated = served, False
        return snapshot

    def tool(self, name: str) -> Tool | None:
        return self.registry.find(name)

    def skill(self, name: str) -> Skill | None:
        """Return the skill of that name that is in use."""
        return self.snapshot.skills.get(name)

    @property
    def skill_names(self) -> Collection[str]:
        """Return the names of all skills in use."""
        return self.snapshot.skills.keys()

    def is_outside(self, name: str) -> bool:
        """Return whether a tool's results may hold what others wrote."""
        tool = self.tool(name)
        return tool is None or tool.outside

    def acts(self, name: str) -> bool:
        """Return whether a tool does anything of its own; helpers do not."""
        tool = self.tool(name)
        return tool is not None and bool(tool.category) and not tool.harmless

    def is_bundled(self, name: str) -> bool:
        """Return whether a tool belongs to a skill of the release, which may use our services."""
        tool = self.tool(name)
        skill = self.skill(tool.category) if tool is not None else None
        return skill is not None and skill.bundled

    def sentences(self, tool: Tool) -> ToolSentences | None:
        """Return a skill's own words about a tool, but not those of a skill from elsewhere."""
        if tool.name == RUN_SKILL_SCRIPT:
            return SCRIPT_SENTENCES
        skill = self.skill(tool.category)
        return skill.sentences.get(tool.name) if skill is not None and skill.installed is None else None

    def hosts(self, tool: Tool) -> tuple[str, ...] | None:
        """Return the only hosts that a tool may ask; None for all public ones."""
        skill = self.skill(tool.category)
        return skill.installed.hosts if skill is not None and skill.installed is not None else None

    def foreign(self, skills: Iterable[str], tools: Iterable[str]) -> tuple[str, ...]:
        """Return those of these skills, and of these tools' categories, that are not trusted or are gone."""
        known = filter(None, map(self.registry.find, tools))
        named = dict.fromkeys((*skills, *filter(None, [tool.category for tool in known])))
        return tuple(name for name in named if name not in self.snapshot.trusted)

    def tool_categories(self, person: Person) -> Mapping[str, str]:
        """Return the tools that a person may be offered, sorted, with their categories."""
        tools = sorted(self.snapshot.tools.items())
        return {name: one.category for name, one in tools if one.category and may_use(person, one.audience)}

    def categories(self, person: Person) -> tuple[tuple[str, str], ...]:
        """Return name and description of every skill and server that a person may use."""
        skills = ((skill.name, skill.description) for skill in self.snapshot.usable(person).values())
        return (*skills, *((server.name, server.description) for server in self.snapshot.servers_of(person)))

    def choose(
        self,
        intent: Intent,
        said: str,
        person: Person,
        *,
        sticky: Sequence[str] = (),
        active: Sequence[str] = (),
        always: Sequence[str] = (),
        limit: int = 8,
    ) -> Selection:
        """Select tools and skills for a message.

        `sticky` tools and `active` skills are those that the conversation had.
        """
        usable = self.snapshot.usable(person)
        about = self._about(intent, said, usable)
        lengths = {name: len(usable[name].instructions) for name in {*active, *about} if name in usable}
        shown = place(active, about, lengths)
        longest = max((lengths[name] for name in about if name in shown), default=0)
        tools = self.tool_categories(person)
        chosen = {category for category in tools.values() if category in intent.categories}
        needed = len(chosen) if intent.categories else 1  # the best tool, where no category was chosen
        useful = [name for name in self._reading if self._readable(name, about, shown)]
        if set(about) <= set(shown):  # the prompt holds all texts
            useful = [name for name in useful if name != LOAD_SKILL]
        reading = useful[: max(limit - needed, 0)]
        selected = select_tools(
            intent,
            said,
            self.index,
            tools,
            sticky=sticky,
            always=always,
            beside=[name for skill in about for name in usable[skill].manifest.words("include-tools")],
            sizes=self.snapshot.sizes,
            room=max(ROOM - longest, ROOM // 2),
            limit=limit - len(reading),
        )
        reasons = (*selected, *(Chosen(name, "reading") for name in reading))
        names = tuple(one.name for one in reasons)
        if names != tuple(sticky):  # the prompt changes anyway: what it needs no more leaves
            shown = tuple(one for one in shown if one in about or _is_of_use(usable[one], names))
        return Selection(intent.categories, names, about, shown, reasons)

    def offer(
        self, names: Sequence[str], person: Person, about: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> list[Schema]:
        """Return the definitions of these tools, without those that are gone or not for this person.

        `about` are the skills that may be loaded; files of `shown` ones may be read too.
        """
        offered: list[Schema] = []
        for name in names:
            tool = self.tool(name)
            if name in self._reading:
                skills = self._readable(name, about, shown)
                parameter = "name" if name == LOAD_SKILL else "skill"
                tool = narrowed(self._reading[name], parameter, skills) if skills else None
            if tool is not None and may_use(person, tool.audience):
                in_catalog = self.snapshot.tools.get(name) is tool
                offered.append(self.snapshot.definitions[name] if in_catalog else tool.get_schema())
        return offered

    def definitions(self, person: Person) -> list[Schema]:
        """Return the definitions of all tools that a person may be offered."""
        return self.offer(list(self.tool_categories(person)), person)

    def instructions(self, names: Sequence[str]) -> list[Skill]:
        """Return these skills; those gone meanwhile are left out."""
        return [skill for name in names if (skill := self.skill(name)) is not None]

    def settings(self, category: str) -> dict[str, str]:
        """Return the variables that a skill declared; none for an installed skill."""
        skill = self.skill(category)
        names = skill.manifest.words("settings") if skill is not None and skill.installed is None else ()
        return {name: self._environment[name] for name in names if name in self._environment}

    def summary(self, person: Person, language: str, *, offline: bool) -> list[str]:
        """Return a line for each skill and server, with examples in `language`.

        `offline` leaves out what the built-in model cannot do: it follows no instructions, and finds values
        only where a phrase has a blank for them.
        """
        snapshot = self.snapshot
        lines: list[str] = []

        def can_be_filled(tool: Tool) -> bool:
            parameters = snapshot.definitions[tool.name]["function"]["parameters"]
            return can_fill(chain(*tool.phrases.values()), parameters.get("required", ()))

        for skill in snapshot.usable(person).values():
            tools = [tool for tool in skill.tools if not offline or can_be_filled(tool)]
            if (tools or not offline) and all(tool.name != SEARCH_TOOLS for tool in skill.tools):
                lines.append(_examples(tools, language) or skill.description)
        servers = snapshot.servers_of(person)
        return [*lines, *(f"{server.name}: {server.description}".rstrip(": ") for server in servers)]

    def phrases(self) -> dict[str, tuple[str, ...]]:
        """Return the example phrases of every tool, all languages together."""
        return {name: tuple(chain(*tool.phrases.values())) for name, tool in self.snapshot.tools.items()}

    def read_only(self) -> frozenset[str]:
        """Return the names of the tools that change nothing, without the one that only names others."""
        tools = self.snapshot.tools
        return frozenset(name for name, tool in tools.items() if tool.read_only and name != SEARCH_TOOLS)

    def _about(self, intent: Intent, said: str, usable: Mapping[str, Skill]) -> tuple[str, ...]:
        """Return the chosen skills, and where the choice is not clear the one whose words fit best.

        Beside chosen ones that is one without tools: tools are found by themselves.
        """
        chosen = [name for name in intent.categories if name in usable]
        if intent.is_clear or not says_something(said):
            return tuple(chosen)
        hits = self.skill_index.rank(said, among=usable, limit=1)
        near = [hit.id for hit in hits if hit.coverage >= _FITTING_COVERAGE]
        return tuple(dict.fromkeys((*chosen, *(one for one in near if not (chosen and usable[one].tools)))))

    def _readable(self, reading: str, about: Sequence[str], shown: Sequence[str]) -> list[Skill]:
        """Return the skills that one of our own tools may be asked for: for a text, a file, a script."""
        skills = self.instructions(list(dict.fromkeys(about if reading == LOAD_SKILL else (*about, *shown))))
        if reading == READ_SKILL_FILE:
            return [skill for skill in skills if skill.files]
        if reading == RUN_SKILL_SCRIPT:
            return [skill for skill in skills if any(not script.lacks for script in skill.scripts)]
        return skills


class ToolSearch:
    """The service `search`: the tools that a person may use, without helpers that only lead to others."""

    def __init__(self, catalog: ToolCatalog) -> None:
        self._catalog = catalog

    def search(self, words: str, person: Person, limit: int = 5) -> list[dict[str, str]]:
        """Return name, description and category of the tools that fit the words best.

        As in a turn, tools for each of several tasks are found.
        """
        tools = self._tools(person)
        found = [tools[hit.id] for hit in self._catalog.index.spread(words, among=tools, limit=limit)]
        return [
            {"name": tool.name, "description": _first_line(tool.description), "category": tool.category}
            for tool in found
        ]

    def categories(self, person: Person) -> list[dict[str, JSON]]:
        """Return name, description and tools of every skill that has any for the person."""
        tools: dict[str, list[str]] = {}
        for name, tool in self._tools(person).items():
            tools.setdefault(tool.category, []).append(name)
        return [
            {"name": name, "description": _first_line(description), "tools": tools[name]}
            for name, description in self._catalog.categories(person)
            if name in tools
        ]

    def names_others(self, skills: Iterable[str]) -> bool:
        """Return whether any of these skills was written by others."""
        return bool(self._catalog.foreign(skills, ()))

    def _tools(self, person: Person) -> dict[str, Tool]:
        found = {name: self._catalog.tool(name) for name in self._catalog.tool_categories(person)}
        return {name: tool for name, tool in found.items() if tool is not None and not tool.harmless}


def _is_of_use(skill: Skill, offered: Collection[str]) -> bool:
    """Return whether a skill's text is about anything but tools that are not offered."""
    return not skill.tools or any(tool.name in offered for tool in skill.tools)


def _examples(tools: Iterable[Tool], language: str) -> str:
    """Return an example for each of up to three tools, those with at most one blank first."""
    simplest = (min(said, key=_blanks) for tool in tools if (said := tool.phrases.get(language)))
    examples = map(without_given, sorted(simplest, key=lambda phrase: _blanks(phrase) > 1)[:3])
    return " · ".join(f"“{_SLOT.sub('…', example)}”" for example in examples)


def _blanks(phrase: str) -> int:
    return len(_SLOT.findall(phrase))


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0][:LONGEST_DESCRIPTION]
