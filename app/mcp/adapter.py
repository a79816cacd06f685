"""A server's tool as one of ours: bounded, nothing hidden in it, and by default trusted in nothing."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from app.mcp.definitions import ServerDefinition
from app.mcp.pins import PINNED, definition_hash
from app.mcp.schema import Unusable, clean_text, normalize_schema
from app.messages import JSON
from app.skills.findings import Finding, find
from app.text import visible
from app.tools.context import ToolContext
from app.tools.plain import is_small
from app.tools.result import ToolResult
from app.tools.tool import LONGEST_NAME, Tool, fitting_name, name_mark

# Sends a call: the tool's name at its server, the arguments, the context.
Call = Callable[[str, dict[str, JSON], ToolContext], Awaitable[ToolResult]]
# A server and its tool, both as they name themselves.
ServerTool = tuple[str, str]

LARGEST_DEFINITION = 64 * 1024  # characters and parts of one definition, of what is pinned
MAX_NAME = 256
LONGEST_DESCRIPTION = 2048  # bytes that a model reads of a tool beside its parameters
TIMEOUT_SECONDS = 600.0  # at most; a call without any sign of progress ends long before

_LONGEST_ABOUT = 300
_MAX_NAMED = 15
_LONGEST_NAMED = 40


def why_unusable(raw: JSON) -> str:
    """Return why an entry of `tools/list` cannot be offered, for the owner; "" if it can."""
    if not isinstance(raw, Mapping):
        return "its definition is no object"
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if len(name) > MAX_NAME:
        return f"its name has more than {MAX_NAME} characters"
    if any("\ud800" <= character <= "\udfff" for character in name):
        return "its name is not text that can be sent"
    execution = raw.get("execution")
    if isinstance(execution, Mapping) and execution.get("taskSupport") == "required":
        return "it only runs as a task of the protocol, which Recado does not have"
    pinned = {key: raw[key] for key in PINNED if key in raw}
    if not is_small(pinned, LARGEST_DEFINITION):
        return f"its definition is larger than {LARGEST_DEFINITION // 1024} KiB or nested too deeply"
    try:
        normalize_schema(raw.get("inputSchema"))
    except Unusable as fault:
        return str(fault)
    return ""


def adapt(server: ServerDefinition, raw: Mapping[str, JSON], call: Call, name: str) -> Tool:
    """Return the tool as the engine runs it under `name`. Raises Unusable."""
    schema = normalize_schema(raw.get("inputSchema"))
    annotations = raw.get("annotations")
    hints = annotations if server.trusted and isinstance(annotations, Mapping) else {}
    reads_only = hints.get("readOnlyHint") is True

    return Tool(
        name,
        description(raw),
        schema,
        partial(call, raw["name"]),
        category=server.name,
        sensitive=not reads_only,
        read_only=reads_only,
        destructive=isinstance(annotations, Mapping) and annotations.get("destructiveHint") is True,
        idempotent=reads_only or hints.get("idempotentHint") is True,
        timeout=TIMEOUT_SECONDS,
        audience=server.audience,
        outside=True,
        code=f"{definition_hash(raw)} {server.version}".strip(),
    )


def description(raw: Mapping[str, JSON]) -> str:
    """Return what the model reads of a tool: its server's text, at most 2 KiB, nothing hidden in it."""
    texts = (raw.get(key) for key in ("description", "title", "name"))
    said = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    text = clean_text(said, LONGEST_DESCRIPTION)
    encoded = text.encode()
    if len(encoded) <= LONGEST_DESCRIPTION:
        return text
    return encoded[: LONGEST_DESCRIPTION - 3].decode(errors="ignore") + "…"


def describe_server(server: ServerDefinition, tools: Sequence[Mapping[str, JSON]]) -> str:
    """Return a line on a server and its tools: outside text, so short and with nothing hidden."""
    said = visible(server.description[:_LONGEST_ABOUT]).strip() or f"the server {server.name}"
    names = [visible(raw["name"][:_LONGEST_NAMED]) for raw in tools[:_MAX_NAMED]]
    return f"{said}: {', '.join(names)}{', …' if len(tools) > _MAX_NAMED else ''}"


def findings(raw: Mapping[str, JSON]) -> tuple[Finding, ...]:
    """Return hidden characters and orders to the model in a definition, each once."""
    texts = "\n.\n".join(_texts({key: raw.get(key) for key in PINNED}))
    found = find({"tool.md": texts.encode("utf-8", "replace")})
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


def _texts(value: JSON) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting += (*part.values(), *part)
        elif isinstance(part, list):
            waiting += part
