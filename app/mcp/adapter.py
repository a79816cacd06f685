"""A server's tools and results as ours: bounded, nothing hidden in them, by default trusted in nothing."""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from urllib.parse import unquote, urlsplit

from app.mcp.approved import definition_hash, pinned, values
from app.mcp.definitions import ServerDefinition
from app.mcp.schema import Unusable, clean_text, normalize_schema
from app.messages import JSON, array, mapping
from app.skills.findings import Finding, find
from app.text import shortened, visible, visible_lines
from app.tools.plain import dumps, is_small, sendable
from app.tools.result import ReturnedFile, ToolResult
from app.tools.tool import LONGEST_NAME, Tool, ToolContext, fitting_name, name_mark

# Sends a call: the tool's name at its server, the arguments, the context.
Call = Callable[[str, dict[str, JSON], ToolContext], Awaitable[ToolResult]]
# A server and its tool, both as they name themselves.
ServerTool = tuple[str, str]

LARGEST_DEFINITION = 64 * 1024  # characters and parts of one definition, of what is pinned
MAX_NAME = 256
LONGEST_DESCRIPTION = 2000  # characters that a model reads of a tool beside its parameters
TIMEOUT_SECONDS = 600.0  # at most; a call without any sign of progress ends long before
_LONGEST_ABOUT = 300
_MAX_NAMED = 15
_LONGEST_NAMED = 40

# Characters of a result's text: written as JSON, whatever they are, they stay below what a call may return.
MAX_TEXT = 128 * 1024
MAX_FILES = 5
LARGEST_FILE = 16 * 1024 * 1024
_MAX_BLOCKS = 1000
_LONGEST_MESSAGE = 2000
_LONGEST_FILE_NAME = 200
_MIME = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}")
_NO_SERVER = ServerDefinition("")
_INVALID_PARAMS = -32602


def why_unusable(raw: JSON) -> str:
    """Return why an entry of `tools/list` cannot be offered, for the owner; "" if it can."""
    raw = mapping(raw)
    name = raw.get("name")
    if not (isinstance(name, str) and name.strip() and len(name) <= MAX_NAME and name == sendable(name)):
        return f"it has no name of at most {MAX_NAME} characters that can be sent"
    if mapping(raw.get("execution")).get("taskSupport") == "required":
        return "it only runs as a task of the protocol, which Recado does not have"
    if not is_small(pinned(raw), LARGEST_DEFINITION):
        return f"its definition is larger than {LARGEST_DEFINITION // 1024} KiB or nested too deeply"
    try:
        normalize_schema(raw.get("inputSchema"))
    except Unusable as fault:
        return str(fault)
    return ""


def adapt(server: ServerDefinition, raw: Mapping[str, JSON], call: Call, name: str) -> Tool:
    """Return the tool as the engine runs it under `name`. Raises Unusable."""
    annotations = mapping(raw.get("annotations"))
    hints = annotations if server.trusted else {}
    reads_only = hints.get("readOnlyHint") is True
    return Tool(
        name,
        description(raw),
        normalize_schema(raw.get("inputSchema")),
        partial(call, raw["name"]),
        category=server.name,
        sensitive=not reads_only,
        read_only=reads_only,
        destructive=annotations.get("destructiveHint") is True,
        idempotent=reads_only or hints.get("idempotentHint") is True,
        timeout=TIMEOUT_SECONDS,
        audience=server.audience,
        outside=True,
        code=f"{definition_hash(raw)} {server.version}".strip(),
    )


def description(raw: Mapping[str, JSON]) -> str:
    """Return what the model reads of a tool: its server's text, cut, with nothing hidden in it."""
    texts = (raw.get(key) for key in ("description", "title", "name"))
    said = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return shortened(clean_text(said, LONGEST_DESCRIPTION + 1), LONGEST_DESCRIPTION)


def describe_server(server: ServerDefinition, tools: Sequence[Mapping[str, JSON]]) -> str:
    """Return a line on a server and its tools: outside text, so short and with nothing hidden."""
    said = visible(server.description[:_LONGEST_ABOUT]).strip() or f"the server {server.name}"
    names = [visible(raw["name"][:_LONGEST_NAMED]) for raw in tools[:_MAX_NAMED]]
    return f"{said}: {', '.join(names)}{', …' if len(tools) > _MAX_NAMED else ''}"


def findings(raw: Mapping[str, JSON]) -> tuple[Finding, ...]:
    """Return hidden characters and orders to the model in a definition, each once."""
    texts = chain.from_iterable(values(pinned(raw)))  # the names of properties, too
    found = find({"tool.md": "\n.\n".join(texts).encode("utf-8", "replace")})
    told = (one for one in found if one.kind in ("hidden-text", "instruction"))
    return tuple({(one.kind, one.excerpt): one for one in told}.values())


def offered_name(server: str, tool: str, *, is_marked: bool = False) -> str:
    """Return `mcp_<server>_<tool>` in at most 64 fit characters; a shortened one has a hash in the middle."""
    mark = name_mark(f"{server}\0{tool}")
    if is_marked and len(marked := f"mcp_{server}_{mark}_{tool}") <= LONGEST_NAME:
        return fitting_name(marked)
    return fitting_name(f"mcp_{server}_{tool}", mark, is_marked=is_marked)


def unique_names(pairs: Iterable[ServerTool]) -> dict[ServerTool, str]:
    """Return a name for each, none twice; which ones does not depend on their order.

    Those that would have the same name have a hash in the middle.
    """
    pairs = set(pairs)
    counts = Counter(offered_name(*pair) for pair in pairs)
    return {pair: offered_name(*pair, is_marked=counts[offered_name(*pair)] > 1) for pair in pairs}


def to_result(raw: JSON, server: ServerDefinition = _NO_SERVER) -> ToolResult:
    """Return a CallToolResult, as the server sent it, as our result; never raises for what is in it.

    Text is text, also where it is JSON. `structuredContent` is the data; text that says more than a copy of
    it stands beside: `{"text", "data"}`. With files, or blocks that are no text, `"content"` says what each
    is; the files are attachments. The secrets of `server` are removed. Decodes files: not for the event loop.
    """
    raw = mapping(raw)
    if raw.get("resultType", "complete") != "complete":
        said = "the server asks for more than it was given, which cannot be answered here"
        return ToolResult.failure("UPSTREAM_ERROR", said, "go on without it")
    content = _Content(server)
    for block in array(raw.get("content"))[:_MAX_BLOCKS]:
        content.add(mapping(block))
    text, structured = "\n".join(content.texts), raw.get("structuredContent")
    is_data = is_small(structured, MAX_TEXT)
    if is_data:
        structured = _redact(structured, server)
    if raw.get("isError") is True:
        said = text.strip() or (server.redact(dumps(structured).decode()) if structured else "")
        reason = _message(said) or "the tool reported an error and gave no reason"
        hint = "read what it says; mend the arguments, or say why it could not be done"
        return ToolResult.failure("TOOL_ERROR", reason, hint)
    if not is_data:
        text, structured = server.redact(dumps(structured).decode()), None
    elif structured is not None:
        text = "\n".join(one for one in content.texts if not _is_copy(one, structured))
    meta: dict[str, JSON] = {"truncated": True, "size": len(text)} if len(text) > MAX_TEXT else {}
    data: dict[str, JSON] = {"text": text[:MAX_TEXT]} if text else {}
    if structured is not None:
        data["data"] = structured
    alone = next(iter(data.values()), "") if len(data) < 2 else data
    if content.entries:
        alone = {**data, "content": content.entries}
    return ToolResult(True, alone, meta=meta, attachments=tuple(content.files))


def error_result(code: int, message: str) -> ToolResult:
    """Return the result of a call that the server answered with an error of JSON-RPC."""
    said = _message(message) or f"the server answered with error {code}"
    if code == _INVALID_PARAMS:
        hint = "mend the arguments and call it again"
        return ToolResult.failure("BAD_REQUEST", said, hint, invalid_arguments=True)
    hint = "the fault is the server's, or it cannot do this; say so"
    return ToolResult.failure("UPSTREAM_ERROR", said, hint)


@dataclass
class _Content:
    """The blocks of a result: texts, files, and an entry for each block that is no text."""

    server: ServerDefinition
    texts: list[str] = field(default_factory=list)
    entries: list[dict[str, JSON]] = field(default_factory=list)
    files: list[ReturnedFile] = field(default_factory=list)

    def add(self, block: dict[str, JSON]) -> None:
        kind = _word(block.get("type"))
        if kind == "text":
            self._add_text(block.get("text"))
        elif kind in ("image", "audio"):
            self._add_file(kind, block.get("data"), block.get("mimeType"), "")
        elif kind == "resource":
            resource = mapping(block.get("resource"))
            uri, text = self.server.redact(_word(resource.get("uri"))), resource.get("text")
            if isinstance(text, str):
                self._add_text(f"{uri}\n{text}" if uri else text)
            else:
                self._add_file(kind, resource.get("blob"), resource.get("mimeType"), uri)
        elif kind == "resource_link":
            name, uri = _word(block.get("name")), _word(block.get("uri"))
            self._add_text(f"{name}: {uri}" if name and name != uri else uri)
        else:
            self.entries.append({"type": kind or "unknown", "problem": "this kind of content is not known"})

    def _add_text(self, text: JSON) -> None:
        if isinstance(text, str):
            self.texts.append(self.server.redact(text))

    def _add_file(self, kind: str, encoded: JSON, mime: JSON, uri: str) -> None:
        mime = mime if isinstance(mime, str) and _MIME.fullmatch(mime) else ""
        entry: dict[str, JSON] = {"type": kind}
        entry |= {key: value for key, value in (("mime", mime), ("uri", uri)) if value}
        self.entries.append(entry)
        if len(self.files) == MAX_FILES:
            entry["problem"] = f"more than {MAX_FILES} files; this one is left out"
            return
        try:
            data = _decoded(encoded)
        except ValueError as error:
            entry["problem"] = str(error)
            return
        entry |= {"bytes": len(data), "attachment": len(self.files)}
        name = ""
        with suppress(ValueError):  # an address that cannot be split
            name = unquote(urlsplit(uri).path).rpartition("/")[2][:_LONGEST_FILE_NAME]
        self.files.append(ReturnedFile(data, mime, name))


def _is_copy(text: str, structured: JSON) -> bool:
    """Tell whether a text only repeats a part of the structured content, as servers add for older hosts."""
    inner = _parts(structured)  # such as of {"result": [one text for each]}
    copied = [structured, *inner, *(one for part in inner for one in _parts(part))]
    readings: list[JSON] = [text]
    with suppress(ValueError, RecursionError):
        readings.append(json.loads(text))
    return not text.strip() or any(reading in copied for reading in readings)


def _parts(value: JSON) -> list[JSON]:
    return list(value.values()) if isinstance(value, dict) else array(value)


def _message(text: str) -> str:
    return visible_lines(text.strip()[:_LONGEST_MESSAGE])[:_LONGEST_MESSAGE]


def _redact(value: JSON, server: ServerDefinition) -> JSON:
    if isinstance(value, dict):
        return {server.redact(name): _redact(part, server) for name, part in value.items()}
    if isinstance(value, list):
        return [_redact(part, server) for part in value]
    return server.redact(value) if isinstance(value, str) else value


def _decoded(encoded: JSON) -> bytes:
    if not isinstance(encoded, str) or not encoded:
        raise ValueError("it holds no data")
    if len(encoded) > LARGEST_FILE * 4 // 3 + 4:
        raise ValueError(f"it is larger than {LARGEST_FILE // 1024**2} MiB")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("its data is not base64") from None


def _word(value: JSON) -> str:
    return value[:2000] if isinstance(value, str) else ""
