"""What the assistant can do right now: skills, servers, their tools and the index over them, in one view."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from app.messages import JSON
from app.people import Person
from app.routing.intent import MOST_CATEGORIES, Intent
from app.routing.looks import Looks
from app.routing.selector import ROOM, Chosen, select_tools
from app.routing.snapshot import Catalog, CatalogSnapshot, Phrases, ServerAbility, Servers, is_for, view_of
from app.search.index import Document, ToolIndex
from app.search.learned import NOTHING_LEARNED, Fits
from app.search.words import says_something, without_given
from app.skills import SkillLoader
from app.skills.disclosure import (
    LOAD_SKILL,
    READ_SKILL_FILE,
    narrowed,
    place,
    reading_tools,
    text_of,
)
from app.skills.skill import Skill
from app.tools import Tool, ToolRegistry
from app.tools.threads import DaemonThreads

log = structlog.get_logger(__name__)

_INDEXED_AT_ONCE = 16
_FITTING = 2
_FITTING_COVERAGE = 0.34
_NEARLY_AS_GOOD = 0.7
_SLOT = re.compile(r"\{\w+\}")


@dataclass(frozen=True, slots=True)
class Instructions:
    """A skill as the prompt shows it; `files` can be read with a tool."""

    name: str
    description: str
    body: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What a turn begins with: tools by name, the skills it is about, and those whose texts the prompt
    holds, in the order in which they came."""

    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    reasons: tuple[Chosen, ...] = field(default=(), compare=False)
    """Why each of the tools, in their order."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools as a model call gives them, and in the same order as a trace keeps them: a name stands for its
    definition in the catalogue."""

    schemas: list[dict[str, JSON]] = field(default_factory=list)
    names: list[JSON] = field(default_factory=list)
    catalog: Catalog = field(default_factory=Catalog)
    wanted: Sequence[str] = ()
    """The names that it was made of; with `person` and `catalog` it says whether it can be used again."""
    person: Person | None = None


class ToolCatalog:
    """Follows skill folders and servers, and keeps registry and index in step with them.

    `environment`: the variables that skills may ask for; `patience`: seconds that a turn waits for a look
    at the folders; `on_change` is called on the loop once another view is in use.
    """

    def __init__(
        self,
        loader: SkillLoader,
        registry: ToolRegistry,
        environment: Mapping[str, str],
        *,
        servers: Servers | None = None,
        patience: float = 5.0,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.index = ToolIndex()
        """Of tools."""
        self.skill_index = ToolIndex()
        """Of skills, for those that have no tools: apart, so that they never move a tool's rank."""
        self.registry = registry
        self._loader = loader
        self._servers = servers
        self._environment = environment
        self._on_change = on_change
        self._view = CatalogSnapshot()
        self._is_asked = False
        self._indexed: CatalogSnapshot | None = None
        """What the indexes hold; None until somebody asks them."""
        self._served: Sequence[ServerAbility] = ()
        self._outdated = True
        self._reading = {tool.name: tool for tool in reading_tools(self.skill)}
        for tool in self._reading.values():
            registry.register(tool)
        self._thread = DaemonThreads(limit=1)
        self._looks = Looks(self._look, patience)

    @property
    def catalog(self) -> Catalog:
        return self._view.catalog

    async def load(self) -> None:
        """Takes over what there is, for nobody who looks for a tool yet: the indexes wait for the first."""
        await self._looks.wait()

    async def refresh(self, since: float | None = None) -> None:
        """Takes over what changed on disk; `since` and what it waits for: `Looks.wait`."""
        self._is_asked = True
        await self._looks.wait(since, lacks=self._indexed is None)

    async def refresh_for_message(self, received_at: float | None) -> None:
        """Takes over what changed before a message came (None: nobody knows when), and what servers bring
        that start for the first time."""
        await self.refresh(since=received_at)
        if self._servers is not None and await self._servers.first_starts():
            await self.refresh()

    def look(self) -> None:
        """Takes over in the background what has just changed."""
        self._looks.begin()

    async def close(self) -> None:
        """Waits for no look any more."""
        await self._looks.close()

    async def _look(self) -> None:
        if self._servers is not None:
            await self._servers.refresh()
        view = await self._thread.run(self._changed)
        if view is not None:
            self._take_over(view)
            self._on_change()
            if self._servers is not None:
                await self._servers.refresh()  # a skill that came or went may have brought some

    def _changed(self) -> CatalogSnapshot | None:
        """What there is now, None where that is known; in a thread, for it may take long."""
        served = self._servers.abilities() if self._servers is not None else ()
        if self._loader.refresh() or served is not self._served:
            self._outdated = True
        view = self._seen(served) if self._outdated else None
        if self._is_asked and (view is not None or self._indexed is None):
            self._index(view or self._view)
        self._served, self._outdated = served, False
        return view

    def _seen(self, served: Sequence[ServerAbility]) -> CatalogSnapshot:
        skills = [skill for skill in self._loader.skills if skill.available]
        return view_of(self._view, skills, self._tools(), self._loader.phrases(), served)

    def _index(self, view: CatalogSnapshot) -> None:
        before = self._indexed or CatalogSnapshot()
        self.index.remove(before.tools.keys() - view.tools.keys())
        self.skill_index.remove(before.skills.keys() - view.skills.keys())
        _add(self.index, view.documents())
        _add(self.skill_index, view.skill_documents())
        self._indexed = view

    def _tools(self) -> list[Tool]:
        """The skills' tools; one that is named like ours is left out."""
        taken = [tool.name for tool in self._loader.tools() if tool.name in self._reading]
        for name in taken:
            log.warning("a skill's tool is left out: its name is taken", tool=name)
        return [tool for tool in self._loader.tools() if tool.name not in taken]

    def _take_over(self, view: CatalogSnapshot) -> None:
        for name in self._view.tools.keys() - view.tools.keys():
            self.registry.unregister(name)
        for tool in view.tools.values():
            self.registry.register(tool, allow_override=True)
        self._view = view

    def tool(self, name: str) -> Tool | None:
        return self.registry.find(name)

    def skill(self, name: str) -> Skill | None:
        """The skill of that name that is in use."""
        return self._view.skills.get(name)

    @property
    def skill_names(self) -> Collection[str]:
        """Names of all skills in use."""
        return self._view.skills.keys()

    def is_outside(self, name: str) -> bool:
        """Whether a tool's results may hold what others wrote."""
        tool = self.tool(name)
        return tool is None or tool.outside

    def is_learned(self, name: str) -> bool:
        """Whether successful calls of a tool teach anything: not of those that only lead to others."""
        tool = self.tool(name)
        return tool is not None and bool(tool.category) and not tool.harmless

    def is_bundled(self, name: str) -> bool:
        """Whether a tool belongs to a skill of the release, which may use our services."""
        tool = self.tool(name)
        skill = self.skill(tool.category) if tool is not None else None
        return skill is not None and skill.bundled

    def hosts(self, tool: Tool) -> tuple[str, ...] | None:
        """The only hosts that a tool may ask; None where all public ones are meant."""
        skill = self.skill(tool.category)
        installed = skill.installed if skill is not None else None
        return installed.hosts if installed is not None else None

    def foreign(self, skills: Iterable[str], tools: Iterable[str]) -> tuple[str, ...]:
        """Which of these skills, and of the skills and servers with these tools, came from elsewhere or are
        gone."""
        known = filter(None, map(self.registry.find, tools))
        named = dict.fromkeys((*skills, *filter(None, [tool.category for tool in known])))
        return tuple(name for name in named if name not in self._view.trusted)

    def tool_categories(self, person: Person) -> Mapping[str, str]:
        """The tools that a person may be offered, with their categories."""
        return self._view.tool_categories(person)

    def categories(self, person: Person) -> tuple[tuple[str, str], ...]:
        """Name and description of every skill and server that a person may use."""
        skills = ((skill.name, skill.description) for skill in self._view.usable(person).values())
        return (*skills, *((server.name, server.description) for server in self._view.servers_of(person)))

    def choose(
        self,
        intent: Intent,
        said: str,
        person: Person,
        *,
        sticky: Sequence[str] = (),
        active: Sequence[str] = (),
        always: Sequence[str] = (),
        learned: Fits = NOTHING_LEARNED,
        limit: int = 8,
    ) -> Selection:
        """What a message gets. `sticky` tools and `active` skills are those that the conversation had;
        `learned` is of the person."""
        usable = self._view.usable(person)
        about = self._about(intent, said, usable)
        lengths = {name: len(text_of(usable[name])) for name in {*active, *about} if name in usable}
        shown = place(active, about, lengths)
        longest = max((lengths[name] for name in about if name in shown), default=0)
        tools = self.tool_categories(person)
        chosen = {category for category in tools.values() if category in intent.categories}
        needed = len(chosen) if intent.categories else 1  # the best tool, where no category was chosen
        reading = self._reading_for(about, shown)[: max(limit - needed, 0)]
        selected = select_tools(
            intent,
            said,
            self.index,
            tools,
            sticky=sticky,
            always=always,
            beside=[name for skill in about for name in usable[skill].include_tools],
            learned=learned,
            sizes=self._view.sizes,
            room=max(ROOM - longest, ROOM // 2),
            limit=limit - len(reading),
        )
        reasons = (*selected, *(Chosen(name, "reading", kept=name in sticky) for name in reading))
        names = tuple(one.name for one in reasons)
        if names != tuple(sticky):  # the prompt changes anyway: what it needs no more leaves
            shown = tuple(one for one in shown if one in about or _is_of_use(usable[one], names))
        return Selection(names, about, shown, reasons)

    def offer(
        self, names: Sequence[str], person: Person, about: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> ToolSet:
        """The tools of these names as the model reads them, in their order, without those that are gone
        or not for this person. `about` are the skills that may be loaded; files of `shown` ones are read
        too."""
        view = self._view
        offer = ToolSet(catalog=view.catalog, wanted=names, person=person)
        for name in names:
            tool = self._narrowed(name, about, shown) if name in self._reading else self.tool(name)
            if tool is not None and is_for(person, tool):
                in_catalog = view.tools.get(name) is tool
                schema = view.definitions[name] if in_catalog else tool.get_schema()
                offer.schemas.append(schema)
                offer.names.append(name if in_catalog else schema["function"])
        return offer

    def instructions(self, names: Sequence[str]) -> list[Instructions]:
        """The texts of these skills, in their order; those gone meanwhile are left out."""
        skills = [skill for name in names if (skill := self.skill(name)) is not None]
        return [
            Instructions(one.name, one.description, text_of(one), self._view.files[one.name])
            for one in skills
        ]

    def settings(self, category: str) -> dict[str, str]:
        """The variables that a skill declared, from the environment; none for a skill from elsewhere."""
        skill = self.skill(category)
        names = skill.settings if skill is not None and skill.installed is None else ()
        return {name: self._environment[name] for name in names if name in self._environment}

    def summary(self, person: Person, language: str, *, offline: bool) -> list[str]:
        """What a person can be helped with, a line a skill or server, by examples in `language`.

        The built-in model follows no instructions: `offline` leaves out skills that have no tools.
        """
        view = self._view
        skills = [skill for skill in view.usable(person).values() if skill.tools or not offline]
        lines = [_examples(skill.tools, skill.phrases, language) or skill.description for skill in skills]
        for server in view.servers_of(person):
            said = _examples(server.tools, server.phrases, language)
            lines.append(said or f"{server.name}: {server.description}".rstrip(": "))
        return lines

    def phrases(self) -> dict[str, tuple[str, ...]]:
        """Example phrases of every tool, all languages together."""
        return {
            tool: tuple(phrase for phrases in languages.values() for phrase in phrases)
            for tool, languages in self._view.phrases.items()
        }

    def for_owners(self) -> frozenset[str]:
        """Names of the tools that nobody but an owner is offered."""
        return frozenset(name for name, tool in self._view.tools.items() if tool.audience == "owners")

    def _about(self, intent: Intent, said: str, usable: Mapping[str, Skill]) -> tuple[str, ...]:
        """The skills among the chosen categories; where these are not clear, also those whose words fit.
        Beside categories only such as have no tools: tools are found by themselves."""
        names = dict.fromkeys(intent.categories)
        for text in dict.fromkeys((*intent.phrases, said)) if not intent.is_clear else ():
            hits = self.skill_index.rank(text, among=usable, limit=_FITTING) if says_something(text) else []
            names |= {
                hit.id: None
                for hit in hits
                if hit.coverage >= _FITTING_COVERAGE
                and hit.score >= _NEARLY_AS_GOOD * hits[0].score
                and not (intent.categories and usable[hit.id].tools)
            }
        return tuple(name for name in names if name in usable)[:MOST_CATEGORIES]

    def _reading_for(self, about: Sequence[str], shown: Sequence[str]) -> list[str]:
        """Which of our two tools are of use: a text that the prompt does not hold, files that there are."""
        named = dict.fromkeys((*about, *shown))
        wanted = {
            LOAD_SKILL: any(name not in shown for name in about),
            READ_SKILL_FILE: any(self._view.files[name] for name in named),
        }
        return [name for name, useful in wanted.items() if useful]

    def _narrowed(self, name: str, about: Sequence[str], shown: Sequence[str]) -> Tool | None:
        """One of our two tools with the skills that it can be asked for; None where those are gone."""
        names = about if name == LOAD_SKILL else dict.fromkeys((*about, *shown))
        skills = [skill for one in names if (skill := self.skill(one)) is not None]
        if name == READ_SKILL_FILE:
            skills = [skill for skill in skills if self._view.files[skill.name]]
        parameter = "name" if name == LOAD_SKILL else "skill"
        return narrowed(self._reading[name], parameter, skills) if skills else None


def _add(index: ToolIndex, documents: Iterable[Document]) -> None:
    """Adds those that are new or changed; in small batches, for whoever searches waits for each."""
    new = [one for one in documents if index.document(one.id) != one]
    for start in range(0, len(new), _INDEXED_AT_ONCE):
        index.add(new[start : start + _INDEXED_AT_ONCE])


def _is_of_use(skill: Skill, offered: Collection[str]) -> bool:
    """Whether a skill's text tells of anything but tools that are not offered."""
    return not skill.tools or any(tool.name in offered for tool in skill.tools)


def _examples(tools: Iterable[Tool], phrases: Phrases, language: str) -> str:
    """Something to write for each of up to three tools, those first that one word or none completes."""
    listed = (phrases.get(tool.name, {}).get(language, ()) for tool in tools)
    simplest = (min(said, key=_blanks) for said in listed if said)
    examples = map(without_given, sorted(simplest, key=lambda phrase: _blanks(phrase) > 1)[:3])
    return " · ".join(f"“{_SLOT.sub('…', example)}”" for example in examples)


def _blanks(phrase: str) -> int:
    return len(_SLOT.findall(phrase))
