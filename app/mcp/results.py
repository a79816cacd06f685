"""A server's answer to a call as a result of ours: text, data, and files for the person."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from app.mcp.definitions import ServerDefinition
from app.messages import JSON
from app.text import visible_lines
from app.tools.plain import dumps, is_small
from app.tools.result import ReturnedFile, ToolResult

# Characters of text: written as JSON, whatever they are, they stay below what a call may return.
MAX_TEXT = 128 * 1024
MAX_FILES = 5
LARGEST_FILE = 16 * 1024 * 1024
_MAX_BLOCKS = 1000
_LONGEST_MESSAGE = 2000
_LONGEST_NAME = 200

_MIME = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}")
_NO_SERVER = ServerDefinition("")
_INVALID_PARAMS, _METHOD_NOT_FOUND = -32602, -32601
_READ_IT = "read what it says; mend the arguments, or say why it could not be done"


def to_result(raw: JSON, server: ServerDefinition = _NO_SERVER) -> ToolResult:
    """Return a CallToolResult, as the server sent it, as our result; never raises for what is in it.

    Text is text, also where it is JSON. `structuredContent` is the data; text that says more than a copy of
    it stands beside: `{"text", "data"}`. With files, or blocks that are no text, `"content"` says what each
    is; the files are attachments. The secrets of `server` are removed. Decodes files: not for the event loop.
    """
    if not isinstance(raw, Mapping):
        return ToolResult.failure("UPSTREAM_ERROR", "the server answered with something that is no result")
    if raw.get("resultType", "complete") != "complete":
        said = "the server asks for more than it was given, which cannot be answered here"
        return ToolResult.failure("UPSTREAM_ERROR", said, "go on without it")
    read = _Content(server)
    content = raw.get("content")
    blocks = content if isinstance(content, list) else []
    for block in blocks[:_MAX_BLOCKS]:
        read.block(block)
    structured = raw.get("structuredContent")
    if is_small(structured, MAX_TEXT):
        structured = _redact(structured, server)
    if raw.get("isError") is True:
        said = read.text.strip() or (server.redact(dumps(structured).decode()) if structured else "")
        reason = _message(said) or "the tool reported an error and gave no reason"
        return ToolResult.failure("TOOL_ERROR", reason, _READ_IT)
    return _succeeded(read, structured)


def error_result(code: int, message: str) -> ToolResult:
    """Return the result of a call that the server answered with an error of JSON-RPC."""
    said = _message(message) or f"the server answered with error {code}"
    if code == _INVALID_PARAMS:
        return ToolResult.failure(
            "BAD_REQUEST", said, "mend the arguments and call it again", invalid_arguments=True
        )
    if code == _METHOD_NOT_FOUND:
        return ToolResult.failure("UNAVAILABLE", said, "the server cannot do this; say so")
    return ToolResult.failure("UPSTREAM_ERROR", said, "the fault is the server's; say so")


@dataclass
class _Content:
    server: ServerDefinition
    texts: list[str] = field(default_factory=list)
    entries: list[dict[str, JSON]] = field(default_factory=list)
    files: list[ReturnedFile] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def block(self, block: JSON) -> None:
        if not isinstance(block, Mapping):
            self.entries.append({"type": "unknown", "problem": "it is no content block"})
            return
        kind = _word(block.get("type"))
        if kind == "text":
            self._text(block.get("text"))
        elif kind in ("image", "audio"):
            self._file(kind, block.get("data"), block.get("mimeType"), "")
        elif kind == "resource":
            self._resource(block.get("resource"))
        elif kind == "resource_link":
            name, uri = _word(block.get("name")), _word(block.get("uri"))
            self._text(f"{name}: {uri}" if name and name != uri else uri)
        else:
            self.entries.append({"type": kind or "unknown", "problem": "this kind of content is not known"})

    def _text(self, text: JSON) -> None:
        if isinstance(text, str):
            self.texts.append(self.server.redact(text))

    def _resource(self, resource: JSON) -> None:
        given = resource if isinstance(resource, Mapping) else {}
        uri = self.server.redact(_word(given.get("uri")))
        if isinstance(given.get("text"), str):
            self._text(f"{uri}\n{given['text']}" if uri else given["text"])
        else:
            self._file("resource", given.get("blob"), given.get("mimeType"), uri)

    def _file(self, kind: str, encoded: JSON, mime: JSON, uri: str) -> None:
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
        self.files.append(ReturnedFile(data, mime, _file_name(uri)))


def _succeeded(read: _Content, structured: JSON) -> ToolResult:
    text, data = read.text, structured
    if structured is not None and not is_small(structured, MAX_TEXT):
        text, data = read.server.redact(dumps(structured).decode()), None
    elif structured is not None:
        text = "\n".join(one for one in read.texts if not _is_copy(one, structured))
    meta: dict[str, JSON] = {}
    if len(text) > MAX_TEXT:
        meta = {"truncated": True, "size": len(text)}
        text = text[:MAX_TEXT]
    said: dict[str, JSON] = {"text": text} if text else {}
    said |= {"data": data} if data is not None else {}
    if read.entries:
        said["content"] = read.entries
    alone = next(iter(said.values()), "") if len(said) < 2 and not read.entries else said
    return ToolResult(ok=True, data=alone, meta=meta, attachments=tuple(read.files))


def _is_copy(text: str, structured: JSON) -> bool:
    """Tell whether a text only repeats a part of the structured content, as servers add for older hosts."""
    inner = _parts(structured)  # such as of {"result": [one text for each]}
    copied = [structured, *inner, *(one for part in inner for one in _parts(part))]
    readings: list[JSON] = [text]
    with suppress(ValueError, RecursionError):
        readings.append(json.loads(text))
    return not text.strip() or any(reading in copied for reading in readings)


def _parts(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _message(text: JSON) -> str:
    said = text.strip() if isinstance(text, str) else ""
    return visible_lines(said[:_LONGEST_MESSAGE])[:_LONGEST_MESSAGE]


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


def _file_name(uri: str) -> str:
    try:
        return unquote(urlsplit(uri).path).rpartition("/")[2][:_LONGEST_NAME]
    except ValueError:
        return ""


def _word(value: JSON) -> str:
    return value[:2000] if isinstance(value, str) else ""
