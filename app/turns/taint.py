"""Whose words are in a turn's prompt: nothing that others wrote may grant a permission."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from app.messages import JSON
from app.store.opening import Exchange, InboxMessage
from app.turns.actions import Round

_NAME = r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}"
_ADDRESS = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{1,20}}://|www\.)[^\s<>\"'`]+|{_NAME}(?::\d+)?/[^\s<>\"'`]*|\A\s*{_NAME}(?::\d+)?\s*\Z",
    re.IGNORECASE,
)
"""With a scheme, with a path, or alone: a word with a dot in it may be a file."""
_HOST = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:?#\s]+)", re.IGNORECASE)


def sources(
    members: Iterable[InboxMessage],
    quoted: Collection[str],
    exchanges: Iterable[Exchange],
    rounds: Iterable[Round],
    skills: Iterable[str],
    *,
    in_group: bool,
    is_outside: Callable[[str], bool],
) -> tuple[str, ...]:
    """Where the text of others in the prompt came from, as codes, each once; none where it is all ours.

    `quoted` are the ids of the quoted messages that the prompt shows: what they hold may be anybody's.
    `is_outside(tool)` says whether a tool's results are other people's text; `skills` are those in the
    prompt whose instructions came from elsewhere.
    """
    found = [source for exchange in exchanges for source in exchange.sources]
    if in_group:
        found.append("group")
    for member in members:
        found += _of_message(member, quoted)
    found += [f"skill:{name}" for name in skills]
    found += [
        f"tool:{call.name}"
        for one in rounds
        for call in one.calls
        if call.id in one.results and is_outside(call.name)
    ]
    return tuple(dict.fromkeys(found))


def _of_message(member: InboxMessage, quoted: Collection[str]) -> Iterator[str]:
    if member.payload.get("forwarded"):
        yield "forwarded"
    if member.kind in ("contacts", "document"):
        yield member.kind
    if member.payload.get("quoted") in quoted:
        yield "quoted"


def foreign_addresses(arguments: JSON, said: Iterable[str]) -> list[str]:
    """Hosts that a call's arguments name and that the person never wrote."""
    own = {host for text in said for host in _hosts(text)}
    return [host for text in _texts(arguments) for host in _hosts(text) if host not in own]


def _hosts(text: str) -> Iterator[str]:
    for found in _ADDRESS.finditer(text):
        if host := _HOST.match(found[0]):
            yield host[1].casefold().rstrip(".")


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
