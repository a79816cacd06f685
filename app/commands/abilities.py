"""What the assistant can do, as the shell shows it: the catalogue, routing, skills and their faults."""

import json
import os
from collections.abc import Iterator, Sequence
from hashlib import sha1
from pathlib import Path

from app.commands.tables import table
from app.errors import ConfigurationError, RecadoError
from app.messages import JSON
from app.settings import Settings
from app.skills import RELEASE_SKILLS, Skill, SkillLoader, load_skill
from app.skills.skill import bundled_names
from app.tools.confirmation import visible

_MATCHES_SHOWN = 10


def catalog_text(settings: Settings, *, as_json: bool) -> str:
    """The static catalogue of every skill folder; nothing of them is imported."""
    catalog = _catalog(settings.skills_dir)
    if as_json:
        return json.dumps(catalog, ensure_ascii=False, indent=2)
    return str(catalog["promptList"]) or f"There are no tools in {settings.skills_dir}."


def route_text(settings: Settings, message: str) -> str:
    """Which tools a message would be offered, and what the word index thinks of each; no model is asked.

    Raises ConfigurationError for a message without words.
    """
    if not message.strip():
        raise ConfigurationError('route needs a message; try: recado route "what time is it in Tokyo"')
    from app.people import Person
    from app.routing import Intent, select_tools
    from app.routing.abilities import Abilities
    from app.tools import ToolRegistry

    abilities = Abilities(SkillLoader(settings.skills_dir), ToolRegistry(), os.environ)
    abilities.refresh()
    tools = abilities.tool_categories(Person(id="", realm="terminal", role="owner"))
    offered = select_tools(Intent(), message, abilities.index, tools, limit=settings.max_tools_per_call)
    hits = {hit.id: hit for hit in abilities.index.rank(message, among=tools, limit=len(tools))}

    def row(name: str) -> Sequence[str]:
        hit = hits.get(name)
        score, covers = (f"{hit.score:.2f}", f"{hit.coverage:.0%}") if hit else ("-", "-")
        return name, tools[name], score, covers

    head = ("TOOL", "CATEGORY", "SCORE", "COVERS")
    parts = [f"Offered: {len(offered)} of {len(tools)} tools"]
    if not offered:
        return f"{parts[0]}: no tool knows the words of this message."
    parts.append(table(head, [row(name) for name in offered]))
    if len(tools) <= settings.max_tools_per_call:
        parts[0] += f"; all of them, since MAX_TOOLS_PER_CALL is {settings.max_tools_per_call}"
    others = [name for name in hits if name not in offered][:_MATCHES_SHOWN]
    if others:
        parts += ["", "Matched, but not offered:", table(head, [row(name) for name in others])]
    parts += [
        "",
        "By the words of the message alone: SCORE ranks (0 to 1), COVERS is the share of its telling words",
        "that a tool knows. In a conversation the model's categories and the tools used before count too.",
    ]
    return "\n".join(parts)


def skills_table(settings: Settings) -> str:
    """Every skill, its tools and whether it can be used."""
    loader = SkillLoader(settings.skills_dir)
    loader.refresh()
    if not loader.skills:
        return f"There are no skills in {settings.skills_dir}; a skill is a folder with a SKILL.md."
    rows = [
        (
            visible(skill.name),
            visible(", ".join([tool.name for tool in skill.tools] + list(skill.idle_tools))) or "-",
            _state(skill),
        )
        for skill in loader.skills
    ]
    return "\n".join([table(("SKILL", "TOOLS", "STATE"), rows), *loader.clashes])


def check_skills(settings: Settings, path: Path | None) -> tuple[str, bool]:
    """What was found in the skill folders, in words, and whether it is without fault.

    Raises RecadoError where `path` holds no skill.
    """
    if path is not None:
        skills: Sequence[Skill] = [load_skill(folder) for folder in _skill_folders(path)]
        clashes: Sequence[str] = ()
    else:
        loader = SkillLoader(settings.skills_dir)
        loader.refresh()
        skills, clashes = loader.skills, loader.clashes
    faulty = [skill for skill in skills if skill.faults]
    lines = [line for skill in skills for line in _report(skill)]
    lines += [f"clash: {clash}" for clash in clashes]
    lines.append(f"{len(skills)} checked, {len(faulty)} with faults")
    return "\n".join(lines), not faulty


def _catalog(skills_dir: Path) -> dict[str, JSON]:
    """One catalogue for the release's skills and the operator's own."""
    from app.tools import build_catalog

    found = [build_catalog(folder) for folder in _catalog_folders(skills_dir)]
    if len(found) == 1:
        return found[0]
    digest = sha1(" ".join(one["hash"] for one in found).encode(), usedforsecurity=False).hexdigest()
    return {
        "version": digest[:12],
        "hash": digest,
        "count": sum(one["count"] for one in found),
        "promptList": "\n".join(one["promptList"] for one in found if one["promptList"]),
        "functionSchema": [schema for one in found for schema in one["functionSchema"]],
    }


def _catalog_folders(skills_dir: Path) -> Iterator[Path]:
    if not skills_dir.is_dir() or skills_dir.resolve() != RELEASE_SKILLS.resolve():
        for name in sorted(bundled_names(RELEASE_SKILLS)):
            if (RELEASE_SKILLS / name).is_dir():
                yield RELEASE_SKILLS / name
    if skills_dir.is_dir():
        yield skills_dir


def _skill_folders(path: Path) -> list[Path]:
    if (path / "SKILL.md").exists():
        return [path]
    found = sorted(manifest.parent for manifest in path.glob("*/SKILL.md")) if path.is_dir() else []
    if not found:
        raise RecadoError(
            f"{path}: no SKILL.md here or one folder below; a skill is a folder with a SKILL.md"
        )
    return found


def _state(skill: Skill) -> str:
    if skill.faults:
        return f"faulty: {visible('; '.join(skill.faults))}"
    if skill.reason:
        return visible(skill.reason)
    return "ready, shipped" if skill.bundled else "ready"


def _report(skill: Skill) -> Iterator[str]:
    """A skill's tools, what was left out and why, warnings and faults."""
    yield f"{visible(skill.name)} ({skill.folder})"
    for name in [*(tool.name for tool in skill.tools), *skill.idle_tools]:
        yield f"  tool: {visible(name)}"
    left_out, warnings = _from_source(skill)
    for line in left_out:
        yield f"  left out: {visible(line)}"
    for line in dict.fromkeys([*skill.warnings, *warnings]):
        if "it is not a tool" not in line:  # left out, as said above
            yield f"  warning: {visible(line)}"
    if skill.reason and skill.reason not in skill.faults:
        yield f"  not in use: {visible(skill.reason)}"
    for line in skill.faults:
        yield f"  FAULT: {visible(line)}"


def _from_source(skill: Skill) -> tuple[list[str], list[str]]:
    """Public functions that are no tools, and what is wrong with the signatures of those that are."""
    from app.tools.catalog import find_tools

    try:
        tools, left_out = find_tools((skill.folder / "scripts" / "tools.py").read_bytes())
    except (OSError, SyntaxError):  # none there, or a fault that the skill names already
        return [], []
    return (
        [f"{one.function}: {one.reason}" for one in left_out],
        [f"{tool.name}: {warning}" for tool in tools for warning in tool.warnings],
    )
