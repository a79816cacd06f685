"""The card of a skill from elsewhere: what an owner is asked to approve, read from its bytes alone."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from app.installs.quarantine import Quarantined, QuarantineError
from app.messages import JSON
from app.skills.findings import Finding, Kind, find, hosts, text_of, variables
from app.skills.manifest import audience_of
from app.skills.servers import RefusedServer, Server, read_servers
from app.text import escape_text
from app.tools.source import FoundTool, find_tools
from app.tools.tool import Audience

_T = TypeVar("_T")

MOST = 100
"""Hosts, tools, variables: nobody reads a longer list, and a yes would be given to what was not seen."""
MOST_OF_A_KIND = 30
"""Findings that are listed; the others are counted."""

_TOOLS = "scripts/tools.py"
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING")


@dataclass(frozen=True, slots=True)
class CardFile:
    """A file with its size in bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CardParameter:
    """A parameter of a tool; `type` is the schema's, in a word."""

    name: str
    type: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class CardTool:
    """A tool as the model would read it; `sha256` is of its name, description and schema."""

    name: str
    description: str
    parameters: tuple[CardParameter, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """How many more findings of a kind there are, and in which files."""

    kind: Kind
    count: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """What the bytes say of themselves, and what was found in them.

    `source` is the address that the person wrote, `sent_on` the one on another host that it led to. Every
    text from outside is as it was written: whoever shows it makes it safe (`quoted`). `settings` are what it
    asks for and would be given; `mentions` are names of variables that its text and code read and would find
    empty.
    """

    name: str
    title: str
    description: str
    licence: str
    source: str
    sha256: str
    files: tuple[CardFile, ...]
    tools: tuple[CardTool, ...]
    tools_fault: str
    hosts: tuple[str, ...]
    settings: tuple[str, ...]
    mentions: tuple[str, ...]
    servers: tuple[Server, ...]
    refused: tuple[RefusedServer, ...]
    audience: Audience
    findings: tuple[Finding, ...]
    unlisted: tuple[Unlisted, ...] = ()
    sent_on: str = ""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update changes, by name."""

    files_added: tuple[str, ...] = ()
    files_removed: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    tools_added: tuple[str, ...] = ()
    tools_removed: tuple[str, ...] = ()
    tools_changed: tuple[str, ...] = ()
    hosts_added: tuple[str, ...] = ()
    settings_added: tuple[str, ...] = ()
    source_before: str = ""
    """Where it came from before, when that was elsewhere."""
    host_before: str = ""
    """Where its bytes came from before, when a site sent us on to another host or does so now."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


def card(tree: Quarantined) -> Card:
    """Reads every byte of the tree and runs none: not for the server's process (see `examining`).

    Raises QuarantineError for one with more hosts, tools or variables than a person would read.
    """
    manifest = tree.manifest
    tools, tools_fault = _tools(tree)
    servers, refused = read_servers(tree.files["mcp.json"]) if "mcp.json" in tree.files else ((), ())
    asked = (*manifest.words("settings"), *manifest.requirements.env)
    settings = _once((*asked, *(name for server in servers for name in server.secrets)))
    mentions = tuple(name for name in variables(tree.files) if name not in settings)
    named = hosts(tree.files)
    _require_readable(hosts=len(named), tools=len(tools), variables=len(settings) + len(mentions))
    findings = find(tree.files)
    listed = _listed(findings)
    return Card(
        name=tree.name,
        title=manifest.name,
        description=manifest.description,
        licence=manifest.license or _licence(tree),
        source=tree.source,
        sha256=tree.sha256,
        files=tuple(_file(path, tree.files[path]) for path in sorted(tree.files)),
        tools=tools,
        tools_fault=tools_fault,
        hosts=named,
        settings=settings,
        mentions=mentions,
        servers=servers,
        refused=refused,
        audience="owners" if settings else audience_of(manifest),
        findings=listed,
        unlisted=_unlisted(findings, frozenset(listed)),
        sent_on=tree.sent_on,
    )


def difference(old: Card, new: Card) -> Difference:
    """What changes for somebody who approved the old card."""
    old_files, new_files = ({file.path: file.sha256 for file in card.files} for card in (old, new))
    old_tools, new_tools = ({tool.name: tool.sha256 for tool in card.tools} for card in (old, new))
    return Difference(
        files_added=_without(new_files, old_files),
        files_removed=_without(old_files, new_files),
        files_changed=_changed(old_files, new_files),
        tools_added=_without(new_tools, old_tools),
        tools_removed=_without(old_tools, new_tools),
        tools_changed=_changed(old_tools, new_tools),
        hosts_added=_without(new.hosts, old.hosts),
        settings_added=_without(new.settings, old.settings),
        source_before=old.source if old.source != new.source else "",
        host_before=_host(old) if (old.sent_on or new.sent_on) and _host(old) != _host(new) else "",
    )


def quoted(text: str) -> str:
    """A text from outside on one line between quotation marks, with nothing in it invisible."""
    return f"“{escape_text(' '.join(text.split()))}”"


def _require_readable(**counts: int) -> None:
    for what, count in counts.items():
        if count > MOST:
            raise QuarantineError(
                f"it names {count} {what}; at most {MOST} are taken, more nobody would read"
            )


def _listed(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Some of each kind, in their order: the first of every file before the second of any, so that a file
    full of them hides no other's."""
    seen: Counter[tuple[Kind, str]] = Counter()
    ranked: dict[Kind, list[tuple[int, int]]] = {}
    for number, one in enumerate(findings):
        seen[one.kind, one.file] += 1
        ranked.setdefault(one.kind, []).append((seen[one.kind, one.file], number))
    chosen = {number for ranks in ranked.values() for _, number in sorted(ranks)[:MOST_OF_A_KIND]}
    return tuple(one for number, one in enumerate(findings) if number in chosen)


def _unlisted(findings: tuple[Finding, ...], listed: frozenset[Finding]) -> tuple[Unlisted, ...]:
    others = [one for one in findings if one not in listed]
    files = {kind: [one.file for one in others if one.kind == kind] for kind in _once(o.kind for o in others)}
    return tuple(Unlisted(kind, len(names), _once(names)) for kind, names in files.items())


def _host(card: Card) -> str:
    return urlsplit(card.sent_on or card.source).netloc


def _tools(tree: Quarantined) -> tuple[tuple[CardTool, ...], str]:
    """The tools as the static catalogue reads them, and why there are none where the file is no Python."""
    source = tree.files.get(_TOOLS)
    if source is None:
        return (), ""
    try:
        found, _ = find_tools(source)
    except SyntaxError as error:
        where = f" line {error.lineno}" if error.lineno else ""
        return (), f"{_TOOLS}{where}: {error.msg}"
    return tuple(map(_tool, found)), ""


def _tool(tool: FoundTool) -> CardTool:
    definition = tool.definition()
    properties = tool.schema.get("properties", {})
    required = tool.schema.get("required", [])
    return CardTool(
        name=tool.name,
        description=str(definition["description"]),
        parameters=tuple(
            CardParameter(name, _type(schema), str(schema.get("description", "")), name in required)
            for name, schema in properties.items()
        ),
        sha256=hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest(),
    )


def _type(schema: dict[str, JSON]) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _file(path: str, content: bytes) -> CardFile:
    return CardFile(path, len(content), hashlib.sha256(content).hexdigest())


def _licence(tree: Quarantined) -> str:
    """The first line of a licence's own file; "" where there is none."""
    content = next((tree.files[name] for name in _LICENCES if name in tree.files), b"")
    lines = (line.strip() for line in (text_of(content) or "").splitlines())
    return next((line[:200] for line in lines if line), "")


def _changed(old: dict[str, str], new: dict[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name]))


def _without(names: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names) - set(others)))


def _once(names: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(names))
