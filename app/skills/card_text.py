"""A card in words, in a person's language."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.language import say, say_plural
from app.skills.cards import Card, CardTool, Difference, quoted
from app.skills.findings import Finding, Kind
from app.skills.servers import Server


@dataclass(frozen=True, slots=True)
class CardText:
    """`whole` is everything that an answer is given for, `question` the last line, which names it."""

    whole: str
    question: str


def card_text(
    language: str, card: Card, change: Difference | None = None, *, sandboxed: bool = True
) -> CardText:
    """The card, and for an update what changes by it. Without `sandboxed` its code would run unconfined."""
    lines = _lines(language, card, change, sandboxed)
    return CardText("\n".join(lines), _question(language, card, change))


def _question(language: str, card: Card, change: Difference | None) -> str:
    values = {"name": card.name, "hash": card.sha256[:12]}
    if change is None:
        return say(language, "Install the skill {name}? ({hash})", **values)
    return say(language, "Update the skill {name}? ({hash})", **values)


def _lines(language: str, card: Card, change: Difference | None, sandboxed: bool) -> Iterator[str]:
    yield say(
        language, "Skill {name}: {description}", name=quoted(card.title), description=quoted(card.description)
    )
    yield say(language, "From: {source}", source=quoted(card.source))
    yield f"sha256: {card.sha256}"
    if card.licence:
        yield say(language, "Licence, as it says: {licence}", licence=quoted(card.licence))
    if change is not None:
        yield from _changes(language, change)
    yield from _tools(language, card)
    yield from _servers(language, card)
    yield from _reach(language, card)
    if card.tools:
        yield _confinement(language, card, sandboxed)
    yield from _findings(language, card.findings)
    yield say_plural(
        language, "{n} file, {size}:", "{n} files, {size}:", len(card.files), size=_size(card.size)
    )
    yield from (f"- {quoted(file.path)} {_size(file.size)}" for file in card.files)


def _changes(language: str, change: Difference) -> Iterator[str]:
    if not change:
        yield say(language, "Nothing changes by this update.")
    if change.source_before:
        yield say(
            language, "It came from another address before: {source}", source=quoted(change.source_before)
        )
    if change.tools_added:
        yield say(language, "New tools: {names}", names=_list(change.tools_added))
    if change.tools_removed:
        yield say(language, "Tools that go: {names}", names=_list(change.tools_removed))
    if change.tools_changed:
        yield say(language, "Tools that change: {names}", names=_list(change.tools_changed))
    if change.hosts_added:
        yield say(language, "New hosts: {names}", names=_list(change.hosts_added))
    if change.settings_added:
        yield say(language, "New settings: {names}", names=_list(change.settings_added))
    if change.files_added:
        yield say(language, "New files: {names}", names=_list(change.files_added))
    if change.files_removed:
        yield say(language, "Files that go: {names}", names=_list(change.files_removed))
    if change.files_changed:
        yield say(language, "Files that change: {names}", names=_list(change.files_changed))


def _tools(language: str, card: Card) -> Iterator[str]:
    if card.tools_fault:
        yield say(language, "Its tools cannot be read: {fault}", fault=quoted(card.tools_fault))
    elif not card.tools:
        yield say(language, "Tools: none, only instructions.")
    else:
        yield say(language, "Tools:")
        for tool in card.tools:
            yield f"- {quoted(tool.name)}: {quoted(tool.description)}"
            yield from _parameters(tool)


def _parameters(tool: CardTool) -> Iterator[str]:
    for parameter in tool.parameters:
        name = parameter.name if parameter.required else f"[{parameter.name}]"
        description = f": {quoted(parameter.description)}" if parameter.description else ""
        yield f"   {name} ({quoted(parameter.type)}){description}"


def _servers(language: str, card: Card) -> Iterator[str]:
    for server in card.servers:
        yield say(language, "MCP server {name}: {place}", name=quoted(server.name), place=_place(server))
    for refused in card.refused:
        yield say(
            language,
            "MCP server {name} is refused: {reason}",
            name=quoted(refused.name),
            reason=quoted(refused.reason),
        )


def _place(server: Server) -> str:
    texts = [server.url or f"{server.registry} {server.version}".rstrip()]
    texts += [f"{name}: {value}" for name, value in server.headers]
    texts += [f"{name}={value}" for name, value in server.env]
    return ", ".join(quoted(text) for text in texts)


def _reach(language: str, card: Card) -> Iterator[str]:
    if card.hosts:
        yield say(language, "Hosts it names: {names}", names=_list(card.hosts))
    if card.settings:
        yield say(language, "Settings and secrets it asks for: {names}", names=_list(card.settings))
    if card.mentions:
        yield say(language, "Variables it mentions and does not get: {names}", names=_list(card.mentions))
    if card.audience == "owners":
        yield say(language, "Who may use it: only owners.")
    else:
        yield say(language, "Who may use it: everyone here, and all share its data.")


def _confinement(language: str, card: Card, sandboxed: bool) -> str:
    if not sandboxed:
        return say(language, "The sandbox is turned off: its code gets all the rights that I have.")
    if card.hosts:
        return say(language, "Its code runs shut off from this machine and reaches only the hosts above.")
    return say(language, "Its code runs shut off from this machine and from the internet.")


def _findings(language: str, findings: tuple[Finding, ...]) -> Iterator[str]:
    if not findings:
        yield say(language, "Nothing conspicuous was found in it.")
        return
    yield say(language, "Worth a look before you say yes:")
    names = _kinds(language)
    for kind in names:
        found = [finding for finding in findings if finding.kind == kind]
        if found:
            yield f"- {names[kind]} ({len(found)})"
        for finding in found:
            yield f"   {quoted(finding.file)} {finding.line}: {quoted(finding.excerpt)}"


def _kinds(language: str) -> dict[Kind, str]:
    """In the order of how much a reader should mind."""
    return {
        "hidden-text": say(language, "text that cannot be seen"),
        "instruction": say(language, "orders to the model"),
        "encoded": say(language, "code in disguise"),
        "shell": say(language, "risky commands"),
        "credentials": say(language, "places where keys and passwords are kept"),
        "executable": say(language, "programs that cannot be read"),
        "unreadable": say(language, "code that cannot be read"),
        "runs-code": say(language, "starts programs or runs text as code"),
        "path": say(language, "paths outside its own folder"),
    }


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)


def _size(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size / 1024:.1f} KiB"
