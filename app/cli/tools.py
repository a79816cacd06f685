"""`recado catalog` and `recado route`: the tools, and the reasons why they are chosen."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.output import AsJson, command_settings, group, show, show_json, table
from app.cli.skills import read_skills
from app.errors import ConfigurationError
from app.i18n import program
from app.messages import JSON
from app.people import Person
from app.routing import Intent
from app.routing.tool_catalog import SEARCH_TOOLS, ToolCatalog
from app.settings import Settings, skill_environment
from app.tools import ToolRegistry
from app.tools.source import prompt_list

commands = group()

_WHY = {
    "few": "all are offered",
    "category": "best of a chosen category",
    "always": "in every call",
    "include": "a skill asks for it",
    "words": "its words fit",
    "sibling": "of the same category",
    "kept": "the conversation has it",
    "reading": "reads the chosen skills",
}

EXPLAINED = """\
SCORE (0 to 1) and COVERS (the share of telling words that it knows) are for the text that it fits
best, less what better tools answer too.
All of it by the words of the message alone: in a conversation the model's categories and phrases
and the tools that it had count too (recado trace TURN)."""


def reasons_table(reasons: Sequence[Mapping[str, JSON]], categories: Mapping[str, str] | None = None) -> str:
    """Return a table of the tools in their order, with their categories where known."""
    head = ["TOOL", "SCORE", "COVERS", "KEPT", "WHY", "BEST FOR"]
    rows = [_row(one) for one in reasons]
    if categories is not None:
        head.insert(1, "CATEGORY")
        for row in rows:
            row.insert(1, categories.get(row[0], "-"))
    return table(head, rows)


def _row(one: Mapping[str, JSON]) -> list[str]:
    fits = one["score"] > 0
    figures = [f"{one['score']:.2f}", f"{one['coverage']:.0%}"] if fits else ["-"] * 2
    phrase = (one["phrase"] or "the message") if fits else "-"
    why = str(_WHY.get(one["why"], one["why"]))
    return [one["name"], *figures, "yes" if one["kept"] else "-", why, phrase]


_MATCHES_SHOWN = 10


@commands.command()
def catalog(as_json: AsJson = False) -> None:
    """Show the tool catalogue.

    It is read without running any tool code.
    """
    settings = command_settings()
    abilities = _abilities(settings)
    known = abilities.catalog
    definitions = json.loads(known.body)
    tools = [tool for one in definitions if (tool := abilities.tool(one["name"])) is not None]
    if not as_json:
        show(prompt_list(tools) or f"There are no tools in {settings.skills_dir}.")
        return
    whole = {
        "version": known.version,
        "hash": known.hash,
        "count": len(definitions),
        "promptList": prompt_list(tools),
        "functionSchema": definitions,
    }
    show_json(whole)


@commands.command()
def route(message: Annotated[str, typer.Argument(help="What a person might write.")]) -> None:
    """Show the tools for a message, and why."""
    settings = command_settings()
    if not message.strip():
        raise ConfigurationError(f'route needs a message; try: {program()} route "what time is it in Tokyo"')
    abilities = _abilities(settings)
    owner = Person(id="", realm="terminal", role="owner")
    tools = abilities.tool_categories(owner)
    choice = abilities.choose(
        Intent(), message, owner, always=(SEARCH_TOOLS,), limit=settings.max_tools_per_call
    )
    offered = choice.tools
    counted = f"Offered: {len(offered)} of {len(tools)} tools"
    if set(offered) <= {SEARCH_TOOLS}:
        only = f" ({SEARCH_TOOLS})" if offered else ""
        show(f"{counted}{only}: no tool knows the words of this message.")
        return
    if len(tools) <= settings.max_tools_per_call:
        counted += f"; all of them, since MAX_TOOLS_PER_CALL is {settings.max_tools_per_call}"
    parts = [counted, reasons_table(list(map(asdict, choice.reasons)), tools)]
    hits = abilities.index.rank(message, among=tools.keys() - set(offered), limit=_MATCHES_SHOWN)
    if hits:
        rows = [(hit.id, tools[hit.id], f"{hit.score:.2f}", f"{hit.coverage:.0%}") for hit in hits]
        parts += ["", "Matched, but not offered:", table(("TOOL", "CATEGORY", "SCORE", "COVERS"), rows)]
    show("\n".join([*parts, "", EXPLAINED]))


def _abilities(settings: Settings) -> ToolCatalog:
    abilities = ToolCatalog(read_skills(settings), ToolRegistry(), skill_environment())
    asyncio.run(abilities.refresh())
    return abilities
