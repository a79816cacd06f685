"""What the assistant can do right now: skills, their tools and the index over them, in one view."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1

from app.messages import JSON
from app.people import Person
from app.search.index import Document, ToolIndex
from app.skills import SkillLoader
from app.skills.skill import Skill
from app.tools import Tool, ToolRegistry

_SLOT = re.compile(r"\{\w+\}")
INSTRUCTIONS_LIMIT = 40_000
"""Characters of skill instructions in one prompt."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """A skill as the prompt shows it."""

    name: str
    description: str
    body: str


class Abilities:
    """Follows the skill folders, and keeps registry and index in step with them."""

    def __init__(self, loader: SkillLoader, registry: ToolRegistry, environment: Mapping[str, str]) -> None:
        self.index = ToolIndex()
        self.registry = registry
        self.version = ""
        """Hash of what is offered, so that a trace can tell which catalogue a turn saw."""
        self._loader = loader
        self._environment = environment
        self._hashes: dict[str, str] = {}

    def refresh(self) -> None:
        """Takes over what changed on disk since the last turn."""
        if not self._loader.refresh() and self.version:
            return
        phrases = self._loader.phrases()
        tools = {tool.name: tool for tool in self._loader.tools()}
        for name in self._hashes.keys() - tools.keys():
            self.registry.unregister(name)
        self.index.remove(self._hashes.keys() - tools.keys())
        for tool in tools.values():
            self.registry.register(tool, allow_override=True)
        self.index.add(document(tool, phrases.get(tool.name, {})) for tool in tools.values())
        self._hashes = {name: tool.definition_hash for name, tool in tools.items()}
        self.version = sha1(repr(sorted(self._hashes.items())).encode(), usedforsecurity=False).hexdigest()[
            :12
        ]

    def tool(self, name: str) -> Tool | None:
        return self.registry.get(name) if self.registry.has_tool(name) else None

    def tool_categories(self, person: Person) -> dict[str, str]:
        """The tools that a person may be offered, with their categories."""
        return {
            tool.name: tool.category
            for tool in self.registry.list_all()
            if tool.audience != "owners" or person.is_owner
        }

    def categories(self, person: Person) -> tuple[tuple[str, str], ...]:
        """Name and description of every skill that a person may use."""
        return tuple((skill.name, skill.description) for skill in self._skills(person))

    def schemas(self, names: Sequence[str]) -> list[dict[str, JSON]]:
        """The offered tools as the model reads them, in their order; those gone meanwhile are left out."""
        return [tool.get_schema() for name in names if (tool := self.tool(name)) is not None]

    def instructions(self, categories: Sequence[str], tools: Sequence[str]) -> list[Instructions]:
        """The texts of the chosen skills: the chosen categories', else those of the offered tools."""
        chosen = list(categories) or sorted({tool.category for name in tools if (tool := self.tool(name))})
        texts: list[Instructions] = []
        left = INSTRUCTIONS_LIMIT
        for name in sorted(chosen):
            skill = self._loader.skill(name)
            if skill is None or not skill.available:
                continue
            body = skill.instructions.strip()[: max(left, 0)]
            left -= len(body)
            texts.append(Instructions(skill.name, skill.description, body))
        return texts

    def settings(self, category: str) -> dict[str, str]:
        """The variables that a skill declared, from the environment."""
        skill = self._loader.skill(category)
        names = skill.settings if skill is not None else ()
        return {name: self._environment[name] for name in names if name in self._environment}

    def summary(self, person: Person, language: str) -> list[str]:
        """What a person can be helped with, a line a skill, by examples in `language`."""
        return [_examples(skill, language) or skill.description for skill in self._skills(person)]

    def phrases(self) -> dict[str, tuple[str, ...]]:
        """Example phrases of every tool, all languages together."""
        return {
            tool: tuple(phrase for phrases in languages.values() for phrase in phrases)
            for tool, languages in self._loader.phrases().items()
        }

    def _skills(self, person: Person) -> list[Skill]:
        return [
            skill
            for skill in self._loader.skills
            if skill.available and (skill.audience != "owners" or person.is_owner)
        ]


def document(tool: Tool, phrases: Mapping[str, Sequence[str]]) -> Document:
    """A tool as the index reads it."""
    properties: Mapping[str, JSON] = tool.input_schema.get("properties", {})
    return Document(
        id=tool.name,
        name=tool.name,
        description=tool.description,
        category=tool.category,
        parameters={
            name: str(schema.get("description", "")) if isinstance(schema, dict) else ""
            for name, schema in properties.items()
        },
        examples=tuple(phrase for texts in phrases.values() for phrase in texts),
    )


def _examples(skill: Skill, language: str) -> str:
    """Something to write for each of up to three tools, those first that one word or none completes."""
    listed = (skill.phrases.get(tool.name, {}).get(language, ()) for tool in skill.tools)
    simplest = (min(phrases, key=_blanks) for phrases in listed if phrases)
    examples = sorted(simplest, key=lambda phrase: _blanks(phrase) > 1)[:3]
    return " · ".join(f"“{_SLOT.sub('…', example)}”" for example in examples)


def _blanks(phrase: str) -> int:
    return len(_SLOT.findall(phrase))
