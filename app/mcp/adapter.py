"""A server's tool as one of ours: bounded, with nothing hidden in it, and believed in nothing by default."""

from collections.abc import Awaitable, Callable, Iterator, Mapping

from app.mcp.definitions import ServerDefinition
from app.mcp.pins import PINNED, definition_hash
from app.mcp.schemas import Unusable, lowered, readable, takes_null
from app.messages import JSON
from app.skills.findings import Finding, find
from app.tools.context import ToolContext
from app.tools.plain import dumps
from app.tools.result import ToolResult
from app.tools.tool import Tool

Call = Callable[[str, dict[str, JSON], ToolContext], Awaitable[ToolResult]]
"""Sends a call: the tool as its server names it, the arguments, the context."""

LARGEST_DEFINITION = 64 * 1024
"""Bytes of JSON of one definition, as far as it is pinned."""
DEEPEST_DEFINITION = 100
LONGEST_NAME = 256
LONGEST_DESCRIPTION = 2048
"""Bytes that a model reads of a tool beside its parameters."""
TIMEOUT = 600.0
"""Seconds at most; a call without any sign of progress ends long before."""


def why_unusable(raw: JSON) -> str:
    """Why an entry of `tools/list` cannot be offered, in words for the owner; "" where it can."""
    if not isinstance(raw, Mapping):
        return "its definition is no object"
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if len(name) > LONGEST_NAME:
        return f"its name has more than {LONGEST_NAME} characters"
    if any("\ud800" <= character <= "\udfff" for character in name):
        return "its name is not text that can be sent"
    pinned = {key: raw[key] for key in PINNED if key in raw}
    if _is_too_deep(pinned):
        return f"its definition is nested more than {DEEPEST_DEFINITION} levels deep"
    if len(dumps(pinned)) > LARGEST_DEFINITION:
        return f"its definition is larger than {LARGEST_DEFINITION // 1024} KiB"
    try:
        lowered(raw.get("inputSchema"))
    except Unusable as fault:
        return str(fault)
    return ""


def adapt(server: ServerDefinition, raw: Mapping[str, JSON], call: Call, *, name: str, category: str) -> Tool:
    """The tool as the engine runs it; calls go out under its own name. Raises Unusable."""
    schema = lowered(raw.get("inputSchema"))
    own_name = raw["name"]
    reads_only = server.trusted and _hints(raw).get("readOnlyHint") is True
    repeats = server.trusted and _hints(raw).get("idempotentHint") is True

    async def execute(args: dict[str, JSON], context: ToolContext) -> ToolResult:
        return await call(own_name, without_nulls(args, schema), context)

    return Tool(
        name,
        description(raw),
        schema,
        execute,
        category=category,
        sensitive=not reads_only,
        idempotent=reads_only or repeats,
        timeout=TIMEOUT,
        audience=server.audience,
        outside=True,
        code=f"{definition_hash(raw)} {server.version}".strip(),
    )


def description(raw: Mapping[str, JSON]) -> str:
    """What the model reads of a tool: what its server says, at most 2 KiB, with nothing hidden in it."""
    texts = (raw.get(key) for key in ("description", "title", "name"))
    said = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return _cut(readable(said, LONGEST_DESCRIPTION))


def findings(raw: Mapping[str, JSON]) -> tuple[Finding, ...]:
    """Hidden characters and orders to the model in a definition, none twice."""
    texts = "\n.\n".join(_texts({key: raw.get(key) for key in PINNED}))
    found = find({"tool.md": texts.encode("utf-8", "replace")})
    told = (one for one in found if one.kind in ("hidden-text", "instruction"))
    return tuple({(one.kind, one.excerpt): one for one in told}.values())


def without_nulls(args: Mapping[str, JSON], schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Arguments without the nulls that only say "left out": servers refuse them.

    A null stays where it is required or where the schema names null.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required") or ()
    return {
        name: _inner(value, known.get(name))
        for name, value in args.items()
        if value is not None or name in required or name not in known or takes_null(known[name])
    }


def _inner(value: JSON, schema: JSON) -> JSON:
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping) and "properties" in schema:
        return without_nulls(value, schema)
    if isinstance(value, list) and "items" in schema:
        return [_inner(one, schema["items"]) for one in value]
    return value


def _hints(raw: Mapping[str, JSON]) -> Mapping[str, JSON]:
    annotations = raw.get("annotations")
    return annotations if isinstance(annotations, Mapping) else {}


def _cut(text: str) -> str:
    written = text.encode()
    if len(written) <= LONGEST_DESCRIPTION:
        return text
    return written[: LONGEST_DESCRIPTION - 3].decode(errors="ignore") + "…"


def _is_too_deep(value: JSON) -> bool:
    level = [value]
    for _ in range(DEEPEST_DEFINITION):
        level = [
            inner
            for part in level
            if isinstance(part, Mapping | list)
            for inner in (part.values() if isinstance(part, Mapping) else part)
        ]
        if not level:
            return False
    return True


def _texts(value: JSON) -> Iterator[str]:
    """Every text in it, names of fields too."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting += (*part.values(), *part)
        elif isinstance(part, list):
            waiting += part
