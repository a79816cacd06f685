"""Sentences about installs beside their cards: refusals, lists, states, changed tools, receipts."""

from collections.abc import Iterator, Sequence

from app.errors import RecadoError
from app.http.address import FetchError
from app.i18n import program, said, say, say_plural
from app.installs.card_text import kind_names
from app.installs.cards import quoted
from app.installs.directory import nearest_topics
from app.installs.entries import Entry, Reason
from app.installs.pipeline import InstallError
from app.mcp.adapter import findings
from app.mcp.approved import InstalledServer, differences
from app.mcp.definitions import NEEDS_SIGN_IN, HeldBack, Phase, ServerState
from app.text import shortened, visible
from app.tools import ToolResult
from app.tools.result import fetch_code

_SHORT = 160  # characters of a description in a list
_MAX_NAMED = 6  # tools that are named one by one
LONGEST_NAME = 100


def refusal(language: str, error: RecadoError) -> ToolResult:
    """Return the failed result for an error; its detail may quote programs, so it is outside text."""
    if isinstance(error, FetchError):
        hint = say(language, "If you have another address, send it to me.")
        return ToolResult.failure(fetch_code(error), _not_fetched(language, error), hint)
    code, about = (error.code, error.about) if isinstance(error, InstallError) else ("UNAVAILABLE", "")
    if reason := _reasons(language).get(code):
        said = say(language, "I could not do it: {reason}", reason=_with_detail(reason, about))
    else:
        said = say(language, "I could not do it just now.")
    hint = say(language, "If you have another address, send it to me.") if code == "NOT_A_SKILL" else ""
    detail = visible(str(error))  # in English: for the model and the log
    return ToolResult.failure(code, said, hint, outside=True, detail=detail)


def needs_folder(language: str, name: str, folders: Sequence[str]) -> ToolResult:
    """Ask which folder a server may use; `folders` are names of those that there are."""
    lines = [
        say(language, "{name} works in a folder of yours, and I give it none by myself.", name=quoted(name)),
        say(
            language,
            "Which one may it use? Write for example: “install the server {name} for the folder {folder}”",
            name=visible(name),
            folder=visible(folders[0]) if folders else say(language, "project"),
        ),
    ]
    if folders:
        lines.append(say(language, "You have these: {names}", names=", ".join(map(quoted, folders))))
    return ToolResult.failure("NEEDS_FOLDER", "\n".join(lines))


def not_found(language: str, name: str) -> ToolResult:
    """Say that the registry has no such server, and what it has servers for; commands are never taken."""
    said = say(language, "I found no server like {name} in the registry.", name=quoted(name[:LONGEST_NAME]))
    topics = ", ".join(nearest_topics(name, language))
    said += " " + say(language, "There are servers for, among others: {topics}.", topics=topics)
    hint = say(
        language,
        "I never take a command or an address of a server from a chat: for those there is {recado} mcp add "
        "in a shell.",
    )
    return ToolResult.failure("SERVER_NOT_FOUND", said, hint)


def reason_said(language: str, reason: Reason) -> str:
    """Say why something of the registry cannot be installed; the word at fault is quoted."""
    return _with_detail(_reasons(language)[reason.code], reason.detail)


def list_text(language: str, entries: Sequence[Entry], *, asks: bool = False) -> str:
    """List servers by exact name; where one can be installed, say how, or ask which is meant."""
    lines = [say(language, "I found these servers:")]
    for number, entry in enumerate(entries, start=1):
        lines.append(f"{number}. {entry.name} — {quoted(shortened(entry.description, _SHORT))}")
        if (reason := entry.reason) is not None:
            lines.append("   " + say(language, "not here: {reason}", reason=reason_said(language, reason)))
    name = next((entry.name for entry in entries if entry.reason is None), "")
    if name and asks:
        lines += ["", say(language, "Which one do you mean? Answer with its number.")]
    elif name:
        how = say(language, "To install one, write for example: “install the server {name}”", name=name)
        lines += ["", how]
    return "\n".join(lines)


def states_text(language: str, states: Sequence[ServerState]) -> str:
    """List every server here with its state, and what is to be done about it."""
    if not states:
        return say(language, "There are no MCP servers here yet.")
    return "\n".join(line for state in states for line in _state(language, state))


def state_text(language: str, state: ServerState) -> str:
    """Describe one server: its state, description and tools."""
    definition = state.definition
    lines = list(_state(language, state))
    if definition is not None and definition.description:
        about = quoted(definition.description)
        lines.append(say(language, "Its description: {description}", description=about))
    if state.tools:
        lines.append(say(language, "Tools: {names}", names=", ".join(map(visible, state.tools))))
    return "\n".join(lines)


def installed_text(language: str, record: InstalledServer, state: ServerState) -> str:
    """Write the receipt of an install, and what is still to be done."""
    undo = say(language, "Undo: “{words}”", words=undo_words(language, record))
    if record.updated_from:  # removing it would bring nothing back
        undo = say(language, "It took the place of version {version}.", version=visible(record.updated_from))
    label = f"{record.name} {record.version}".strip()
    if state.phase == "ready" and state.tools:
        start = f"mcp_{state.name}_"
        named = [visible(name.removeprefix(start)) for name in state.tools[:_MAX_NAMED]]
        names = ", ".join(named) + (" …" if len(state.tools) > _MAX_NAMED else "")
        count = say_plural(language, "{n} tool: {names}", "{n} tools: {names}", len(state.tools), names=names)
        done = say(language, "✓ Installed: {server} · {tools}. {undo}", server=label, tools=count, undo=undo)
        usable = say(language, "You can use it from your next message on.")
        return "\n".join([done, usable, *_trouble(language, state)])
    done = say(language, "✓ Installed: {server}. {undo}", server=label, undo=undo)
    return "\n".join([done, *_trouble(language, state)])


def held_back_text(language: str, state: ServerState) -> str:
    """Write every tool of the server that is held back, its differences old and new, and findings."""
    lines = [
        say(
            language,
            "The server {name} has new or changed tools. I use none of them before your yes:",
            name=quoted(state.name),
        )
    ]
    for one in state.held_back:
        lines += _held_back_tool(language, one)
    return "\n".join(lines)


def undo_words(language: str, record: InstalledServer) -> str:
    """Return the sentence that removes a server again."""
    return say(language, "remove the server {name}", name=record.name)


def _state(language: str, state: ServerState) -> Iterator[str]:
    definition = state.definition
    version = f" {definition.version}" if definition is not None and definition.version else ""
    phase = _phases(language)[state.phase]
    tools = say_plural(language, "{n} tool", "{n} tools", len(state.tools)) if state.phase == "ready" else ""
    yield f"- {visible(state.name)}{version}: {', '.join(filter(None, (phase, tools)))}"
    if state.phase != "ready" or state.held_back:
        yield from (f"   {line}" for line in _trouble(language, state))


def _trouble(language: str, state: ServerState) -> Iterator[str]:
    definition = state.definition
    missing = definition.missing if definition is not None else ()
    if missing:
        names = ", ".join(map(visible, missing))
        yield say(
            language, "It needs {names}. Never write such a secret here: give it in a shell:", names=names
        )
        yield from (f"{program()} mcp secret {visible(state.name)} {visible(name)}" for name in missing)
    elif NEEDS_SIGN_IN in state.reason:
        yield say(language, "It needs a sign-in, which I do not support yet.")
    elif state.phase not in ("ready", "off") and state.reason:
        yield say(language, "It does not run: {reason}", reason=quoted(said(state.reason, language)))
    if state.held_back:
        yield say_plural(
            language,
            "{n} new or changed tool waits for your yes: “approve the tools of {name}”",
            "{n} new or changed tools wait for your yes: “approve the tools of {name}”",
            len(state.held_back),
            name=visible(state.name),
        )


def _held_back_tool(language: str, held: HeldBack) -> Iterator[str]:
    name = quoted(held.tool)
    if held.before is None:
        yield "- " + say(language, "new: {tool}", tool=name)
    else:
        yield "- " + say(language, "changed: {tool}", tool=name)
    for place, before, after in differences(held.before, held.after):
        if before is not None:
            yield f"   - {quoted(place)}: {quoted(before)}"
        if after is not None:
            yield f"   + {quoted(place)}: {quoted(after)}"
    if found := findings(held.after):
        names = kind_names(language)
        kinds = ", ".join(dict.fromkeys(names[one.kind] for one in found))
        yield "   ⚠ " + say(language, "Worth a look: {kinds}", kinds=kinds)
        yield from (f"   - {names[one.kind]}: {quoted(one.excerpt)}" for one in found)


def _phases(language: str) -> dict[Phase, str]:
    return {
        "off": say(language, "turned off"),
        "starting": say(language, "is starting"),
        "ready": say(language, "runs"),
        "broken": say(language, "set aside"),
    }


def _not_fetched(language: str, error: FetchError) -> str:
    not_taken = say(language, "I fetch skills only from https addresses on the public internet.")
    known = {
        "BAD_ADDRESS": not_taken,
        "NOT_PUBLIC": not_taken,
        "NO_SUCH_HOST": say(language, "There is no site of that name, or I have no connection."),
        "TOO_LARGE": say(language, "What is there is too large for a skill."),
    }
    other = say(language, "I could not fetch it: {reason}", reason=visible(str(error)))
    return known.get(error.code, other)


def _with_detail(reason: str, detail: str) -> str:
    return f"{reason} ({quoted(detail)})" if detail else reason


def _reasons(language: str) -> dict[str, str]:
    return {
        "WITHDRAWN": say(language, "its publisher says that it should not be used any more"),
        "OTHER_KIND": say(language, "it comes in a form that I do not install"),
        "ODD_ENTRY": say(language, "its entry asks for something that I do not do"),
        "NOT_A_SKILL": say(language, "what is there is no skill, or none that I may take"),
        "NOT_FOUND": say(language, "the package is not there"),
        "AWAY": say(language, "I cannot reach the registry now"),
        "TOO_LARGE": say(language, "it is too large"),
        "NO_SPACE": say(language, "my disk is nearly full"),
        "TOO_SLOW": say(language, "it took too long"),
        "CHANGED": say(language, "it is not what you were shown"),
        "NOT_INSTALLABLE": say(language, "it holds or needs what I do not install or start"),
        "NO_SANDBOX": say(language, "programs of others run only in a sandbox, and there is none here"),
        "NO_INSTALLER": say(language, "this machine lacks a program for it"),
        "NEEDS_VALUE": say(language, "it needs a value that nobody gave"),
        "BAD_VALUE": say(language, "a value does not fit"),
        "UNKNOWN": say(language, "nothing of that name was installed"),
        "FAILED": say(language, "the package could not be installed"),
    }
