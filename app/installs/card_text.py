"""The words of cards in a person's language: what a skill, a server or changed tools would bring."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.i18n import say, say_plural
from app.installs.cards import CardTool, Difference, SkillCard, quoted
from app.installs.pipeline import Candidate
from app.installs.plans import Plan
from app.installs.skills import SkillCandidate
from app.mcp import pins
from app.mcp.adapter import findings
from app.mcp.pins import HeldBack, ServerState
from app.messages import JSON
from app.skills.findings import Kind
from app.skills.servers import Server

FEW = 5  # names of a list of little danger on a shortened card; the others are counted
SHORT = 120  # characters of a text on a shortened card
_MILD: frozenset[Kind] = frozenset({"path", "runs-code"})  # found in a third of honest skills
_REGISTRIES = {"npm": "npm (registry.npmjs.org)", "pypi": "PyPI (pypi.org)"}


@dataclass(frozen=True)
class CardText:
    """The words of a card: `whole` is all that is approved, `question` the last line, which names it."""

    whole: str
    question: str
    is_shortened: bool = False


@dataclass(frozen=True)
class CardWriter:
    """Writes cards; if not `sandboxed`, code that came from an address would run unconfined.

    `mode` is the mode of confirmation.
    """

    sandboxed: bool
    mode: str

    def install(self, language: str, candidate: Candidate, max_bytes: int | None = None) -> CardText:
        """Write the card of an install; blocks for a large skill.

        The card of a skill that is longer than `max_bytes` is shortened: dangers and findings stay, of other
        lists some is named and the rest counted. The card of a server is never shortened.
        """
        if isinstance(candidate, SkillCandidate):
            return self._skill(language, candidate, max_bytes)
        assert isinstance(candidate, Plan)
        whole = "\n".join(_ServerLines(language, candidate, self.sandboxed).all())
        return CardText(whole, _server_question(language, candidate))

    def kinds_of_yes(self, language: str, candidate: Candidate) -> str:
        """Say what each kind of yes means for its tools; "" for a skill without tools."""
        if isinstance(candidate, SkillCandidate) and not candidate.card.tools:
            return ""
        if self.mode == "yolo":
            return say(
                language,
                "I am set to ask about no tool (CONFIRMATION_MODE=yolo): its calls run without a question.",
            )
        if self.mode == "confirm-all":
            return say(language, "I am set to ask about every tool: I ask before each of its calls.")
        if isinstance(candidate, SkillCandidate):
            return say(
                language,
                "Install: I ask before each call. Install+trust: only before those that it marks, or that go "
                "to an address you did not write.",
            )
        return say(
            language,
            "Install: I ask before each call. Install+trust: not before those that, as it says, only read.",
        )

    def _skill(self, language: str, candidate: SkillCandidate, max_bytes: int | None) -> CardText:
        card, change = candidate.card, candidate.change
        whole = "\n".join(_SkillLines(language, card, change, self.sandboxed).all())
        question = _skill_question(language, card, change)
        if max_bytes is None or len(whole.encode()) <= max_bytes:
            return CardText(whole, question)
        shortened = "\n".join(_SkillLines(language, card, change, self.sandboxed, FEW).all())
        return CardText(shortened, question, True)


def script_packages(card: SkillCard) -> list[str]:
    """Return the packages that a skill's programs name, each once."""
    return list(dict.fromkeys(name for script in card.scripts for name in script.packages))


def came_from(language: str, source: str, sent_on: str) -> str:
    """Name the person's address, and the one on another host that it redirected to."""
    if not sent_on:
        return say(language, "From: {source}", source=quoted(source))
    return say(
        language,
        "From: {source}, which sent me on to {address}",
        source=quoted(source),
        address=quoted(sent_on),
    )


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


def held_back_question(language: str, name: str) -> str:
    return say(language, "Approve these tools of {name}?", name=name)


def kind_names(language: str) -> dict[Kind, str]:
    """Name each kind of finding, the gravest first."""
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


@dataclass(frozen=True)
class _SkillLines:
    """The lines of a skill's card, the most dangerous first; shortened with `few`."""

    language: str
    card: SkillCard
    change: Difference | None
    sandboxed: bool
    few: int | None = None

    def all(self) -> Iterator[str]:
        language, card = self.language, self.card
        title, description = self._text(card.title), self._text(card.description)
        yield say(language, "Skill {name}: {description}", name=title, description=description)
        yield came_from(language, card.source, card.sent_on)
        yield f"sha256: {card.sha256}"
        if self.change is not None:
            yield from self._changes(self.change)
        yield from self._findings()
        yield from self._servers()
        yield from self._reach()
        yield from self._tools()
        if card.tools:
            yield self._confinement()
        yield from self._scripts()
        if card.licence:
            yield say(language, "Licence, as it says: {licence}", licence=self._text(card.licence))
        yield say_plural(
            language, "{n} file, {size}:", "{n} files, {size}:", len(card.files), size=_size(card.size)
        )
        shown = card.files[: self.few]
        yield from (f"- {quoted(file.path)} {_size(file.size)}" for file in shown)
        if more := len(card.files) - len(shown):
            yield say(language, "- and {n} more", n=more)

    def _changes(self, change: Difference) -> Iterator[str]:
        language = self.language
        if not change:
            yield say(language, "Nothing changes by this update.")
        if change.source_before:
            source = quoted(change.source_before)
            yield say(language, "It came from another address before: {source}", source=source)
        if change.host_before:
            yield say(
                language, "Its files came from another host before: {host}", host=quoted(change.host_before)
            )
        some, tools, files = self._some, change.tools_changed, change.files_changed
        for names, line in (
            (change.hosts_added, say(language, "New hosts: {names}", names=_all(change.hosts_added))),
            (
                change.settings_added,
                say(language, "New settings: {names}", names=_all(change.settings_added)),
            ),
            (change.tools_added, say(language, "New tools: {names}", names=_all(change.tools_added))),
            (tools, say(language, "Tools that change: {names}", names=_all(tools))),
            (change.tools_removed, say(language, "Tools that go: {names}", names=some(change.tools_removed))),
            (change.files_added, say(language, "New files: {names}", names=some(change.files_added))),
            (files, say(language, "Files that change: {names}", names=some(files))),
            (change.files_removed, say(language, "Files that go: {names}", names=some(change.files_removed))),
        ):
            if names:
                yield line

    def _findings(self) -> Iterator[str]:
        language, card = self.language, self.card
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
            shown = found[: self.few if kind in _MILD else None]
            yield from (f"   {quoted(one.file)} {one.line}: {quoted(one.excerpt)}" for one in shown)
            if more := count - len(shown):
                files = [one.file for one in found[len(shown) :]] + [
                    file for one in unlisted for file in one.files
                ]
                where = self._some(tuple(dict.fromkeys(files)))
                yield "   " + say(language, "and {n} more in {files}", n=more, files=where)

    def _servers(self) -> Iterator[str]:
        for server in self.card.servers:
            name, place = quoted(server.name), _server_place(server)
            yield say(self.language, "MCP server {name}: {place}", name=name, place=place)
        for refused in self.card.refused:
            name, reason = quoted(refused.name), self._text(refused.reason)
            yield say(self.language, "MCP server {name} is refused: {reason}", name=name, reason=reason)

    def _reach(self) -> Iterator[str]:
        language, card = self.language, self.card
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
        language, card = self.language, self.card
        if card.tools_fault:
            yield say(language, "Its tools cannot be read: {fault}", fault=self._text(card.tools_fault))
        elif not card.tools:
            yield say(language, "Tools: none, only instructions.")
        else:
            yield say(language, "Tools:")
            for tool in card.tools:
                yield f"- {self._text(tool.name)}: {self._text(tool.description)}"
                if self.few is None:
                    yield from _parameters(tool)

    def _scripts(self) -> Iterator[str]:
        language, card = self.language, self.card
        if not card.scripts:
            return
        yield say(language, "Programs that its instructions may run, in the sandbox:")
        for script in card.scripts:
            yield f"- {quoted(script.path)} ({quoted(script.interpreter)})"
        if packages := script_packages(card):
            yield say(language, "Packages that are installed for them: {names}", names=_all(packages))
        if card.script_network:
            yield say(language, "Its programs may use the internet.")

    def _confinement(self) -> str:
        language = self.language
        if not self.sandboxed:
            return say(language, "The sandbox is turned off: its code gets all the rights that I have.")
        if self.card.hosts:
            return say(language, "Its code runs shut off from this machine and reaches only the hosts above.")
        return say(language, "Its code runs shut off from this machine and from the internet.")

    def _text(self, text: str) -> str:
        """Quote a text of its author; what a shortened card leaves out is counted."""
        if self.few is None or len(text) <= SHORT:
            return quoted(text)
        return f"{quoted(text[:SHORT])}… (+{len(text) - SHORT})"

    def _some(self, names: Sequence[str]) -> str:
        shown = _all([name if self.few is None else name[:SHORT] for name in names[: self.few]])
        if more := len(names) - len(names[: self.few]):
            return say(self.language, "{names} and {n} more", names=shown, n=more)
        return shown


def _skill_question(language: str, card: SkillCard, change: Difference | None) -> str:
    values = {"name": card.name, "hash": card.sha256[:12]}
    if change is None:
        return say(language, "Install the skill {name}? ({hash})", **values)
    return say(language, "Update the skill {name}? ({hash})", **values)


def _parameters(tool: CardTool) -> Iterator[str]:
    for parameter in tool.parameters:
        name = parameter.name if parameter.required else f"[{parameter.name}]"
        description = f": {quoted(parameter.description)}" if parameter.description else ""
        yield f"   {name} ({quoted(parameter.type)}){description}"


def _server_place(server: Server) -> str:
    texts = [server.url or f"{server.registry} {server.version}".rstrip()]
    texts += [f"{name}: {value}" for name, value in server.headers]
    texts += [f"{name}={value}" for name, value in server.env]
    return _all(texts)


@dataclass(frozen=True)
class _ServerLines:
    """The lines of a server's card."""

    language: str
    plan: Plan
    sandboxed: bool

    def all(self) -> Iterator[str]:
        language, plan = self.language, self.plan
        title, description = quoted(plan.title or plan.name), quoted(plan.description)
        yield say(language, "MCP server {name}: {description}", name=title, description=description)
        yield say(
            language, "Exact name: {id}, version {version}", id=plan.registry_id, version=quoted(plan.version)
        )
        yield say(language, "Published by: {namespace}", namespace=plan.namespace)
        if plan.repository:
            yield say(language, "Its code is said to be at: {address}", address=quoted(plan.repository))
        yield from self._findings()
        yield from self._origin()
        yield from self._secrets()
        yield from self._rights()
        if plan.audience == "owners":
            yield say(language, "Who may use this server: only owners.")
        else:
            yield say(
                language, "Who may use this server: everyone who writes to me here, and all share its data."
            )
        if plan.replaces:
            yield say(language, "It takes the place of the version that is installed here.")
        if plan.edited:
            yield say(language, "What you changed in its entry in the file of servers is gone then.")

    def _findings(self) -> Iterator[str]:
        language, findings = self.language, self.plan.findings
        if not findings:
            yield say(language, "Nothing conspicuous was found in it.")
            return
        yield say(language, "Worth a look before you say yes:")
        names = kind_names(language)
        yield from (f"- {names[one.kind]}: {quoted(one.file)}: {quoted(one.excerpt)}" for one in findings)

    def _origin(self) -> Iterator[str]:
        language, plan = self.language, self.plan
        if plan.url:
            yield say(
                language, "It runs elsewhere: what you ask it goes to {address}", address=quoted(plan.url)
            )
            yield from (f"- {_pair(name, value)}" for name, value in plan.headers)
            return
        registry = _REGISTRIES.get(plan.kind, plan.kind)
        package = quoted(f"{plan.identifier} {plan.version}")
        yield say(language, "Package: {package} from {registry}", package=package, registry=registry)
        if plan.sha256:
            yield f"sha256: {plan.sha256}"
        yield say(language, "What is started, whole: {command}", command=quoted(plan.command_line))
        if plan.env:
            yield say(language, "Variables it is given:")
            yield from (f"- {_pair(name, value)}" for name, value in plan.env)

    def _secrets(self) -> Iterator[str]:
        language, plan = self.language, self.plan
        if not plan.secrets:
            return
        yield say(language, "Secrets it asks for, which you never write here but give in a shell:")
        for secret in plan.secrets:
            needed = say(language, "needed") if secret.required else say(language, "not always needed")
            described = f": {quoted(secret.description)}" if secret.description else ""
            yield f"- {secret.name} ({needed}){described}"
            yield f"   recado mcp secret {plan.name} {secret.name}"

    def _rights(self) -> Iterator[str]:
        language, grants = self.language, self.plan.grants
        if self.plan.url:
            return
        if not self.sandboxed:
            yield say(language, "The sandbox is turned off: its code gets all the rights that I have.")
            return
        yield say(language, "It runs in a sandbox, shut off from my files, settings and secrets.")
        if grants.network:
            yield say(language, "Network: yes, the internet and the network of this machine.")
        else:
            yield say(language, "Network: none.")
        if grants.programs:
            yield say(language, "It may start other programs in the sandbox.")
        if grants.folders_read:
            yield say(language, "Folders it may read: {names}", names=_paths(grants.folders_read))
        if grants.folders_write:
            yield say(language, "Folders it may read and change: {names}", names=_paths(grants.folders_write))
        else:
            yield say(language, "Folders: only one of its own.")


def _server_question(language: str, plan: Plan) -> str:
    values = {"name": plan.name, "id": plan.registry_id, "version": plan.version, "hash": plan.subject[:12]}
    if plan.replaces:
        return say(language, "Update the server {name}? ({id} {version}, {hash})", **values)
    return say(language, "Install the server {name}? ({id} {version}, {hash})", **values)


def _held_back_tool(language: str, held: HeldBack) -> Iterator[str]:
    name = quoted(held.tool)
    if held.before is None:
        yield "- " + say(language, "new: {tool}", tool=name)
    else:
        yield "- " + say(language, "changed: {tool}", tool=name)
    for one in pins.differences(held.before, held.after):
        yield from _difference(language, one)
    if found := findings(held.after):
        names = kind_names(language)
        yield "   " + say(language, "Worth a look before you say yes:")
        yield from (f"   - {names[one.kind]}: {quoted(one.excerpt)}" for one in found)


def _difference(language: str, one: pins.Difference) -> Iterator[str]:
    label = _labels(language)[one.part]
    yield f"   {label} {quoted(one.name)}:" if one.name else f"   {label}:"
    if one.before is not None:
        yield "   " + say(language, "before: {text}", text=_value(one.before))
        if one.after is None:
            yield "   " + say(language, "now gone")
    if one.after is not None:
        now = _value(one.after)
        yield f"   {now}" if one.before is None else "   " + say(language, "now: {text}", text=now)


def _value(value: JSON) -> str:
    """Show a text unchanged, anything else as JSON, on one line with nothing invisible."""
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _labels(language: str) -> Mapping[pins.Part, str]:
    return {
        "title": say(language, "title"),
        "description": say(language, "description"),
        "annotation": say(language, "what it says of its own danger"),
        "parameter": say(language, "parameter"),
        "parameters": say(language, "all parameters"),
        "result": say(language, "result"),
    }


def _paths(folders: Sequence[object]) -> str:
    return ", ".join(quoted(str(folder)) for folder in folders)


def _pair(name: str, value: str) -> str:
    return quoted(f"{name}={value}")


def _all(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _size(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size / 1024:.1f} KiB"
