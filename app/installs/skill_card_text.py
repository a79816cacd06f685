"""A card in words, in a person's language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.i18n import say, say_plural
from app.installs.skill_cards import Card, CardTool, Difference, quoted
from app.skills.findings import Kind
from app.skills.servers import Server

FEW = 5
"""What a shortened card names of a list of little danger; the others are counted."""
SHORT = 120
"""Characters of a text in a shortened card."""
_MILD: frozenset[Kind] = frozenset({"path", "runs-code"})
"""What a third of honest skills have."""


@dataclass(frozen=True, slots=True)
class CardText:
    """`whole` is everything that an answer is given for, `question` the last line, which names it."""

    whole: str
    question: str
    is_shortened: bool = False


def card_text(
    language: str,
    card: Card,
    change: Difference | None = None,
    *,
    sandboxed: bool = True,
    most_bytes: int | None = None,
) -> CardText:
    """The card, and for an update what changes by it. Without `sandboxed` its code would run unconfined.

    One of more than `most_bytes` is shortened: what it could do and what is suspicious stays, of the rest
    some is named and the others counted. It may take a while: not for the event loop.
    """
    whole = "\n".join(_Lines(language, card, change, sandboxed).all())
    question = _question(language, card, change)
    if most_bytes is None or len(whole.encode()) <= most_bytes:
        return CardText(whole, question)
    return CardText("\n".join(_Lines(language, card, change, sandboxed, FEW).all()), question, True)


def came_from(language: str, source: str, sent_on: str) -> str:
    """The line of the person's address, and of the one on another host that it led to."""
    if not sent_on:
        return say(language, "From: {source}", source=quoted(source))
    return say(
        language,
        "From: {source}, which sent me on to {address}",
        source=quoted(source),
        address=quoted(sent_on),
    )


def asking(language: str, mode: str) -> str:
    """What each of the two kinds of yes means for its tools, in this mode of confirmation."""
    if mode == "yolo":
        return say(
            language,
            "I am set to ask about no tool (CONFIRMATION_MODE=yolo): its calls run without a question.",
        )
    if mode == "confirm-all":
        return say(language, "I am set to ask about every tool: I ask before each of its calls.")
    return say(
        language,
        "Install: I ask before each of its calls. Install+trust: only where it says so itself, and where a "
        "call goes to an address that you did not write.",
    )


class _Lines:
    """The lines of a card, the most dangerous first; with `few` of a shortened one."""

    def __init__(
        self, language: str, card: Card, change: Difference | None, sandboxed: bool, few: int | None = None
    ) -> None:
        self._language = language
        self._card = card
        self._change = change
        self._sandboxed = sandboxed
        self._few = few

    def all(self) -> Iterator[str]:
        language, card = self._language, self._card
        title, description = self._text(card.title), self._text(card.description)
        yield say(language, "Skill {name}: {description}", name=title, description=description)
        yield came_from(language, card.source, card.sent_on)
        yield f"sha256: {card.sha256}"
        if self._change is not None:
            yield from self._changes(self._change)
        yield from self._findings()
        yield from self._servers()
        yield from self._reach()
        yield from self._tools()
        if card.tools:
            yield self._confinement()
        if card.licence:
            yield say(language, "Licence, as it says: {licence}", licence=self._text(card.licence))
        yield say_plural(
            language, "{n} file, {size}:", "{n} files, {size}:", len(card.files), size=_size(card.size)
        )
        shown = card.files[: self._few]
        yield from (f"- {quoted(file.path)} {_size(file.size)}" for file in shown)
        if more := len(card.files) - len(shown):
            yield say(language, "- and {n} more", n=more)

    def _changes(self, change: Difference) -> Iterator[str]:
        language = self._language
        if not change:
            yield say(language, "Nothing changes by this update.")
        if change.source_before:
            source = quoted(change.source_before)
            yield say(language, "It came from another address before: {source}", source=source)
        if change.host_before:
            yield say(
                language, "Its files came from another host before: {host}", host=quoted(change.host_before)
            )
        if change.hosts_added:
            yield say(language, "New hosts: {names}", names=_all(change.hosts_added))
        if change.settings_added:
            yield say(language, "New settings: {names}", names=_all(change.settings_added))
        if change.tools_added:
            yield say(language, "New tools: {names}", names=_all(change.tools_added))
        if change.tools_changed:
            yield say(language, "Tools that change: {names}", names=_all(change.tools_changed))
        if change.tools_removed:
            yield say(language, "Tools that go: {names}", names=self._some(change.tools_removed))
        if change.files_added:
            yield say(language, "New files: {names}", names=self._some(change.files_added))
        if change.files_changed:
            yield say(language, "Files that change: {names}", names=self._some(change.files_changed))
        if change.files_removed:
            yield say(language, "Files that go: {names}", names=self._some(change.files_removed))

    def _findings(self) -> Iterator[str]:
        language, card = self._language, self._card
        if not card.findings:
            yield say(language, "Nothing conspicuous was found in it.")
            return
        yield say(language, "Worth a look before you say yes:")
        names = kind_names(language)
        for kind in names:
            found = [finding for finding in card.findings if finding.kind == kind]
            if not found:
                continue
            unlisted = [one for one in card.unlisted if one.kind == kind]
            count = len(found) + sum(one.count for one in unlisted)
            yield f"- {names[kind]} ({count})"
            shown = found[: self._few if kind in _MILD else None]
            yield from (f"   {quoted(one.file)} {one.line}: {quoted(one.excerpt)}" for one in shown)
            if more := count - len(shown):
                files = [one.file for one in found[len(shown) :]] + [
                    file for one in unlisted for file in one.files
                ]
                where = self._some(tuple(dict.fromkeys(files)))
                yield "   " + say(language, "and {n} more in {files}", n=more, files=where)

    def _servers(self) -> Iterator[str]:
        for server in self._card.servers:
            name, place = quoted(server.name), _place(server)
            yield say(self._language, "MCP server {name}: {place}", name=name, place=place)
        for refused in self._card.refused:
            name, reason = quoted(refused.name), self._text(refused.reason)
            yield say(self._language, "MCP server {name} is refused: {reason}", name=name, reason=reason)

    def _reach(self) -> Iterator[str]:
        language, card = self._language, self._card
        if card.hosts:
            yield say(language, "Hosts it names: {names}", names=_all(card.hosts))
        if card.settings:
            names = _all(card.settings)
            yield say(language, "Settings and secrets it asks for: {names}", names=names)
        if card.mentions:
            names = self._some(card.mentions)
            yield say(language, "Variables it mentions and does not get: {names}", names=names)
        if card.audience == "owners":
            yield say(language, "Who may use it: only owners.")
        else:
            yield say(language, "Who may use it: everyone here, and all share its data.")

    def _tools(self) -> Iterator[str]:
        language, card = self._language, self._card
        if card.tools_fault:
            yield say(language, "Its tools cannot be read: {fault}", fault=self._text(card.tools_fault))
        elif not card.tools:
            yield say(language, "Tools: none, only instructions.")
        else:
            yield say(language, "Tools:")
            for tool in card.tools:
                yield f"- {self._text(tool.name)}: {self._text(tool.description)}"
                if self._few is None:
                    yield from _parameters(tool)

    def _confinement(self) -> str:
        language = self._language
        if not self._sandboxed:
            return say(language, "The sandbox is turned off: its code gets all the rights that I have.")
        if self._card.hosts:
            return say(language, "Its code runs shut off from this machine and reaches only the hosts above.")
        return say(language, "Its code runs shut off from this machine and from the internet.")

    def _text(self, text: str) -> str:
        """A text of its author's; what a shortened one leaves out is counted."""
        if self._few is None or len(text) <= SHORT:
            return quoted(text)
        return f"{quoted(text[:SHORT])}… (+{len(text) - SHORT})"

    def _some(self, names: Sequence[str]) -> str:
        shown = _all([name if self._few is None else name[:SHORT] for name in names[: self._few]])
        if more := len(names) - len(names[: self._few]):
            return say(self._language, "{names} and {n} more", names=shown, n=more)
        return shown


def _question(language: str, card: Card, change: Difference | None) -> str:
    values = {"name": card.name, "hash": card.sha256[:12]}
    if change is None:
        return say(language, "Install the skill {name}? ({hash})", **values)
    return say(language, "Update the skill {name}? ({hash})", **values)


def _parameters(tool: CardTool) -> Iterator[str]:
    for parameter in tool.parameters:
        name = parameter.name if parameter.required else f"[{parameter.name}]"
        description = f": {quoted(parameter.description)}" if parameter.description else ""
        yield f"   {name} ({quoted(parameter.type)}){description}"


def _place(server: Server) -> str:
    texts = [server.url or f"{server.registry} {server.version}".rstrip()]
    texts += [f"{name}: {value}" for name, value in server.headers]
    texts += [f"{name}={value}" for name, value in server.env]
    return _all(texts)


def kind_names(language: str) -> dict[Kind, str]:
    """What each kind of finding is, in the order of how much a reader should mind."""
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


def _all(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _size(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size / 1024:.1f} KiB"
