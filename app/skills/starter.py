"""The files that `recado skills new` writes: a small skill that works, made to be changed."""

from string import Template


def starter_files(name: str) -> dict[str, str]:
    """Return the text of each file of a new skill, by its path in the folder."""
    words = name.replace("-", " ")
    names = {
        "name": name,
        "words": words,
        "title": words.capitalize(),
        "stem": name.replace("-", "_"),
        "upper": name.replace("-", "_").upper(),
    }
    return {path: template.substitute(names) for path, template in _FILES.items()}


def starter_sentence(name: str) -> str:
    """Return a message to the assistant that tries the new skill."""
    return f"add milk to {name.replace('-', ' ')}"


_MANIFEST = Template("""\
---
name: $name
description: The list "$words" - add something to it, show it. La lista "$words" - agregar algo, mostrarla. \
A lista "$words" - adicionar algo, mostrar.
# All below is optional. In `metadata` every value is a text in quotes; remove the # of what you need.
metadata:
  idempotent-tools: "show_$stem"
  # sensitive-tools: "add_to_$stem"
  # timeout-seconds: "30"
  # calls-per-minute: "20"
  # settings: "${upper}_ADDRESS"
  # include-tools: "calculate"
---
# $title

Each person has a list of their own; it is kept from one conversation to the next.

- `add_to_$stem`: puts one thing on the list. Call it once for each thing.
- `show_$stem`: what is on the list, urgent things first.

Say what a tool's `summary` says. Never say that something was added without it.
""")

_TOOLS = Template('''\
"""The tools of this skill: each public function with a docstring is one. Nothing of Recado is imported."""

import time
from typing import Literal

SAID = {
    "es": {"added": "✓ En la lista: {thing}", "none": "No hay nada.", "list": "En la lista: {things}."},
    "pt": {"added": "✓ Na lista: {thing}", "none": "Não há nada.", "list": "Na lista: {things}."},
    "en": {"added": "✓ On the list: {thing}", "none": "It is empty.", "list": "On the list: {things}."},
}


def add_to_$stem(
    thing: str,
    priority: Literal["normal", "urgent"] = "normal",
    tags: list[str] | None = None,
    context=None,
) -> dict:
    """Adds something to the list $words.

    Args:
        thing: what to add, in the person's own words.
        priority: how much it matters.
        tags: words to find it by.

    Example: add milk to $words
    """
    if not thing.strip():
        error = {"code": "NOTHING_TO_ADD", "message": "There is nothing to add.", "hint": "Ask what to add."}
        return {"ok": False, "error": error}
    entry = {"thing": thing.strip(), "priority": priority, "tags": tags or []}
    context.store.put(f"thing:{time.time_ns()}", entry)
    return {"summary": _said(context, "added").format(thing=entry["thing"]), "added": entry}


async def show_$stem(tag: str = "", context=None) -> dict:
    """Shows what is on the list $words.

    Args:
        tag: only things with this tag; empty means all.

    Example: what is on $words?
    """
    kept = (await context.store.list("thing:")).values()
    entries = [entry for entry in kept if not tag or tag in entry["tags"]]
    entries.sort(key=lambda entry: entry["priority"] != "urgent")
    if not entries:
        return {"summary": _said(context, "none"), "things": []}
    things = ", ".join(entry["thing"] for entry in entries)
    return {"summary": _said(context, "list").format(things=things), "things": entries}


def _said(context, key: str) -> str:
    """Our sentence in the person's language; a name that begins with _ is no tool."""
    return SAID.get(context.person.language, SAID["en"])[key]
''')

_PHRASES = Template("""\
# How people ask for each tool; {thing} stands where they say the parameter of that name.
add_to_$stem:
  es: ["agrega {thing} a $words", "pon {thing} en la lista $words", "añade {thing} a $words"]
  pt: ["adiciona {thing} em $words", "coloca {thing} na lista $words", "põe {thing} em $words"]
  en: ["add {thing} to $words", "put {thing} on the list $words"]
show_$stem:
  es: ["¿qué hay en $words?", "muéstrame la lista $words"]
  pt: ["o que tem em $words?", "mostra a lista $words"]
  en: ["what is on $words?", "show me the list $words"]
""")

_TESTS = Template('''\
"""Run with `pytest` in this folder: tools are plain functions, a context is anything of its shape."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import tools


class Store:
    """Stands in for `context.store` as a `def` tool sees it."""

    def __init__(self) -> None:
        self.rows = {}

    def get(self, key, default=None):
        return self.rows.get(key, default)

    def put(self, key, value):
        self.rows[key] = value

    def list(self, prefix="", limit=1000):
        return {key: self.rows[key] for key in sorted(self.rows) if key.startswith(prefix)}

    def delete(self, key):
        return self.rows.pop(key, None) is not None


class AsyncStore(Store):
    """The same as an `async def` tool sees it: each call is awaited."""

    async def list(self, prefix="", limit=1000):
        return Store.list(self, prefix, limit)


def context(store, language="en"):
    return SimpleNamespace(store=store, person=SimpleNamespace(language=language))


def test_what_was_added_is_shown_urgent_things_first():
    store = AsyncStore()
    tools.add_to_$stem("milk", tags=["drinks"], context=context(store))
    tools.add_to_$stem("bread", priority="urgent", context=context(store))
    shown = asyncio.run(tools.show_$stem(context=context(store)))
    assert shown["summary"] == tools.SAID["en"]["list"].format(things="bread, milk")
    tagged = asyncio.run(tools.show_$stem(tag="drinks", context=context(store)))
    assert [entry["thing"] for entry in tagged["things"]] == ["milk"]


def test_it_speaks_the_language_of_the_person():
    added = tools.add_to_$stem("leche", context=context(Store(), "es"))
    assert added["summary"] == tools.SAID["es"]["added"].format(thing="leche")


def test_nothing_is_not_added():
    store = Store()
    result = tools.add_to_$stem("  ", context=context(store))
    assert result["error"]["code"] == "NOTHING_TO_ADD"
    assert not store.rows
''')

_FILES = {
    "SKILL.md": _MANIFEST,
    "scripts/tools.py": _TOOLS,
    "assets/phrases.yaml": _PHRASES,
    "tests/test_tools.py": _TESTS,
}
