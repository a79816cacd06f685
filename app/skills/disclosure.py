"""Disclosure of skills in tiers: the texts in a prompt, and the tools that read the rest."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from app.messages import JSON
from app.skills.folder import read_regular
from app.skills.manifest import shortened
from app.skills.skill import Skill
from app.tools import PathTraversalError, Tool, ToolContext, ToolResult, validate_path
from app.tools.files import PAGE, pages

LOAD_SKILL = "load_skill"
READ_SKILL_FILE = "read_skill_file"

NEW_CHARACTERS = 16_000  # of skill texts that enter a prompt in one turn without having been asked for
ALL_CHARACTERS = 40_000  # of skill texts in one prompt
LONGEST_PATH = 1024  # characters of a path that a model names
LARGEST_FILE = 1024 * 1024
_LONGEST_DESCRIPTION = 160


class SkillFinder(Protocol):
    """Finds a skill that is in use by its name."""

    def skill(self, name: str) -> Skill | None: ...


def place(active: Sequence[str], chosen: Sequence[str], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Choose the skills whose texts the prompt holds, in the order in which they came.

    The beginning of the prompt stays the same. `active` are there already; of the `chosen` those enter that
    fit. Where it becomes too much the oldest leave, whole, those first that are not chosen now. `sizes`:
    characters of every text that may be shown.
    """
    shown = [name for name in active if sizes.get(name, ALL_CHARACTERS + 1) <= ALL_CHARACTERS]
    left = NEW_CHARACTERS
    for name in chosen:
        if name not in shown and name in sizes and sizes[name] <= left:
            shown.append(name)
            left -= sizes[name]
    surplus = sum(sizes[name] for name in shown) - ALL_CHARACTERS
    for name in sorted(shown, key=lambda one: one in chosen):
        if surplus <= 0:
            break
        shown.remove(name)
        surplus -= sizes[name]
    return tuple(shown)


def reading_tools(skills: SkillFinder) -> tuple[Tool, Tool]:
    """Make `load_skill` and `read_skill_file`, for the skills that a call's context names as chosen."""
    reader = _Reader(skills)
    options: dict[str, Any] = {"idempotent": True, "harmless": True, "outside": False}
    return (
        Tool.from_function(reader.load_skill, check=partial(require_chosen, "name"), **options),
        Tool.from_function(reader.read_skill_file, check=partial(require_chosen, "skill"), **options),
    )


def narrowed(tool: Tool, parameter: str, skills: Collection[Skill]) -> Tool:
    """Return the tool with just these skills to choose from."""
    properties = dict(tool.input_schema["properties"])
    listed = "; ".join(f"{one.name}: {shortened(one.description, _LONGEST_DESCRIPTION)}" for one in skills)
    properties[parameter] = {"type": "string", "enum": [one.name for one in skills], "description": listed}
    return tool.replace(input_schema={**tool.input_schema, "properties": properties})


class _Reader:
    """Reads skills for a model; blocks, and so is called in threads."""

    def __init__(self, skills: SkillFinder) -> None:
        self._skills = skills

    def load_skill(self, name: str, page: int = 1) -> ToolResult:
        """Gives the instructions of a skill that fits this message. Call it before you use the skill.

        Args:
            name: The skill.
            page: Which part of very long instructions, counted from 1.
        """
        skill = self._skills.skill(name)
        if skill is None:
            return _gone(name)
        form = {"skill": name, "files": list(skill.files)}
        return _page(form, "instructions", skill.instructions, page)

    def read_skill_file(self, skill: str, path: str, page: int = 1) -> ToolResult:
        """Reads a text file of a skill that is in use: a reference, a template, a script.

        Args:
            skill: The skill.
            path: The file, as the skill names it, such as references/guide.md.
            page: Which part of a long file, counted from 1.
        """
        found = self._skills.skill(skill)
        if found is None:
            return _gone(skill)
        text = _text(found, path)
        if isinstance(text, ToolResult):
            return text
        return _page({"skill": skill, "path": os.path.normpath(path)}, "text", text, page)


def require_chosen(parameter: str, args: Mapping[str, JSON], context: ToolContext) -> None:
    """Refuse a skill that was not chosen for the turn. Raises ValueError."""
    if args[parameter] not in context.chosen:
        listed = ", ".join(sorted(context.chosen)) or "none"
        raise ValueError(f"{parameter}: {args[parameter]!r} was not chosen here; chosen are: {listed}")


def _gone(name: str) -> ToolResult:
    return ToolResult.failure("UNAVAILABLE", f"the skill {name} is gone", "go on without it")


def _text(skill: Skill, path: str) -> str | ToolResult:
    if len(path) > LONGEST_PATH:
        return _refused(path, f"has more than {LONGEST_PATH} characters")
    try:
        real = validate_path(path, skill.folder)
    except PathTraversalError:
        return _refused(path, "leads out of the skill's folder")
    inside = real.relative_to(os.path.realpath(skill.folder))
    if any(part.startswith(".") for part in inside.parts):
        return _refused(path, "is hidden")
    try:
        if not real.is_file():
            listed = ", ".join(skill.files) or "none"
            return ToolResult.failure("NOT_A_FILE", f"{path} is no file of {skill.name}", f"files: {listed}")
        if real.stat().st_size > LARGEST_FILE:
            return _refused(path, f"has more than {LARGEST_FILE // 1024} KiB")
        content = read_regular(real)
    except OSError as error:
        return ToolResult.failure("UNAVAILABLE", f"{path} cannot be read: {error.strerror}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    return ToolResult.failure("NOT_TEXT", f"{path} is not a text file") if "\0" in text else text


def _refused(path: str, why: str) -> ToolResult:
    return ToolResult.failure(
        "BAD_REQUEST", f"{path[:200]!r} {why}", "name a file of the skill by its path in it"
    )


def _page(form: dict[str, JSON], name: str, text: str, page: int) -> ToolResult:
    """Return the form with one page of the text, which ends with a line where one is near."""
    found = pages(text, PAGE)
    if not 1 <= page <= len(found):
        return ToolResult.failure("BAD_REQUEST", f"page is {page}, and there are {len(found)}")
    more: dict[str, JSON] = {"page": page, "pages": len(found)} if len(found) > 1 else {}
    return ToolResult.success({**form, name: found[page - 1], **more})
