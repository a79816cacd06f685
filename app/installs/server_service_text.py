"""Servers in words, in a person's language: a list to choose from, those that are here, and how one does."""

from collections.abc import Iterator, Sequence

from app.i18n import say, say_plural
from app.installs.registry_entries import Entry
from app.installs.registry_reasons import reason_said
from app.installs.skill_cards import quoted
from app.llm.offline.answers import pick_question, undo_text
from app.mcp.definitions import Phase, ServerState
from app.mcp.installed import InstalledServer
from app.text import visible

_SHORT = 160
"""Characters of a description in a list."""
_MOST_NAMED = 6
"""Tools that are named one by one."""


def choices_text(language: str, entries: Sequence[Entry]) -> str:
    """A numbered list, by exact name with the publisher in it; asks which is meant where one can be had."""
    can_be_had = any(entry.reason is None for entry in entries)
    return _list_text(language, entries, pick_question(language) if can_be_had else "")


def found_text(language: str, entries: Sequence[Entry]) -> str:
    """The same as an answer to a search."""
    name = next((entry.name for entry in entries if entry.reason is None), "")
    how = say(language, "To install one, write for example: “install the server {name}”", name=name)
    return _list_text(language, entries, how if name else "")


def _list_text(language: str, entries: Sequence[Entry], ending: str) -> str:
    lines = [say(language, "I found these servers:"), *_listed(language, entries)]
    return "\n".join([*lines, "", ending] if ending else lines)


def _listed(language: str, entries: Sequence[Entry]) -> Iterator[str]:
    for number, entry in enumerate(entries, start=1):
        yield f"{number}. {entry.name} — {quoted(_cut(entry.description or entry.title))}"
        if (reason := entry.reason) is not None:
            yield "   " + say(language, "not here: {reason}", reason=reason_said(language, reason))


def states_text(language: str, states: Sequence[ServerState]) -> str:
    """Every server that is here, a line each and what is to be done about it."""
    if not states:
        return say(language, "There are no MCP servers here yet.")
    return "\n".join(line for state in states for line in _state(language, state))


def state_text(language: str, state: ServerState) -> str:
    """One server: what it is, how it does, its tools."""
    definition = state.definition
    lines = list(_state(language, state))
    if definition is not None and definition.description:
        lines.append(
            say(language, "Its description: {description}", description=quoted(definition.description))
        )
    if state.tools:
        lines.append(say(language, "Tools: {names}", names=", ".join(map(visible, state.tools))))
    return "\n".join(lines)


def installed_text(language: str, record: InstalledServer, state: ServerState) -> str:
    """The receipt of an install, and what is still to be done, on lines below it."""
    undo = undo_text(say(language, "remove the server {name}", name=record.name), language)
    if record.updated_from:  # removing it would bring nothing back
        undo = say(language, "It took the place of version {version}.", version=visible(record.updated_from))
    label = f"{record.name} {record.version}".strip()
    older = (
        [say(language, "It needed an older MCP library (mcp<2), so it has that one.")]
        if record.older_sdk
        else []
    )
    if state.phase == "ready" and state.tools:
        count = say_plural(
            language, "{n} tool: {names}", "{n} tools: {names}", len(state.tools), names=_named(state)
        )
        done = say(language, "✓ Installed: {server} · {tools}. {undo}", server=label, tools=count, undo=undo)
        usable = say(language, "You can use it from your next message on.")
        return "\n".join([done, *older, usable, *_trouble(language, state)])
    done = say(language, "✓ Installed: {server}. {undo}", server=label, undo=undo)
    return "\n".join([done, *older, *_trouble(language, state)])


def _state(language: str, state: ServerState) -> Iterator[str]:
    definition = state.definition
    version = f" {definition.version}" if definition is not None and definition.version else ""
    phase = _phases(language)[state.phase]
    tools = say_plural(language, "{n} tool", "{n} tools", len(state.tools)) if state.phase == "ready" else ""
    yield f"- {visible(state.name)}{version}: {', '.join(filter(None, (phase, tools)))}"
    if state.phase != "ready" or state.held_back:
        yield from (f"   {line}" for line in _trouble(language, state))


def _trouble(language: str, state: ServerState) -> Iterator[str]:
    """Why it does not run, with the cure, and what is held back."""
    definition = state.definition
    missing = definition.missing if definition is not None else ()
    if missing:
        names = ", ".join(map(visible, missing))
        yield say(
            language, "It needs {names}. Never write such a secret here: give it in a shell:", names=names
        )
        yield from (f"recado mcp secret {visible(state.name)} {visible(name)}" for name in missing)
    elif state.phase not in ("ready", "off") and state.reason:
        yield say(language, "It does not run: {reason}", reason=quoted(state.reason))
    if state.held_back:
        yield say_plural(
            language,
            "{n} new or changed tool waits for your yes: “approve the tools of {name}”",
            "{n} new or changed tools wait for your yes: “approve the tools of {name}”",
            len(state.held_back),
            name=visible(state.name),
        )


def _phases(language: str) -> dict[Phase, str]:
    return {
        "off": say(language, "turned off"),
        "starting": say(language, "is starting"),
        "ready": say(language, "runs"),
        "waiting": say(language, "stopped, will be tried again"),
        "broken": say(language, "set aside after too many failures"),
        "faulty": say(language, "cannot be started"),
    }


def _named(state: ServerState) -> str:
    start = f"mcp_{state.name}_"
    names = [visible(name.removeprefix(start)) for name in state.tools[:_MOST_NAMED]]
    return ", ".join(names) + (" …" if len(state.tools) > _MOST_NAMED else "")


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
