"""Whose words are in a turn's prompt: nothing that others wrote may grant a permission."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import ip_address
from urllib.parse import unquote

import orjson

from app.messages import JSON
from app.store.opening import Exchange, InboxMessage
from app.transport.address import Address
from app.transport.errors import FetchError
from app.turns.actions import Round

_PLACE_WITHOUT_WORDS = frozenset({"latitude", "longitude"})
_LABEL = r"\w(?:[\w-]{0,61}\w)?"
_ADDRESS = re.compile(
    rf"""
    [a-z][a-z0-9+.-]{{1,20}}://[^\s<>"'`]+
    | (?<!\w)(?:
        (?:{_LABEL}\.){{1,8}} (?:[^\W\d_]{{2,24}}|xn--[a-z0-9-]{{1,59}}) (?![\w-])
        | (?:0x[0-9a-f]+|\d+) (?:\.(?:0x[0-9a-f]+|\d+)){{3}} (?!\.?\w)
        | \[[0-9a-f:.]+\]
        | localhost (?![\w-])
    ) (?::\d+)? (?:[/?\\][^\s<>"'`]*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""With a scheme, or anything that may be a host: a file's name too, for nobody can tell."""
_IPV6 = re.compile(r"(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_NUMBER = re.compile(r"0x[0-9a-f]{7,8}|\d{8,10}", re.IGNORECASE)
_AFTER = ".,;:!?)]}»”’…"
"""What ends a sentence rather than an address."""


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
        if call.id in one.results and (is_outside(call.name) or _is_marked(one.results[call.id]))
    ]
    return tuple(dict.fromkeys(found))


def _of_message(member: InboxMessage, quoted: Collection[str]) -> Iterator[str]:
    details = member.payload.get("details") or {}
    if member.payload.get("forwarded"):
        yield "forwarded"
    if member.kind == "contacts":
        yield "contacts"
    if member.kind == "location" and details.keys() - _PLACE_WITHOUT_WORDS:
        yield "location"
    if member.kind == "referral" or "referral" in details:
        yield "referral"
    if member.kind == "document" or (member.payload.get("attachment") or {}).get("filename"):
        yield "document"
    if member.payload.get("quoted") in quoted:
        yield "quoted"


def _is_marked(result: str) -> bool:
    """Whether a result was made of what the person's own rows took from text of others."""
    if '"outside":true' not in result:
        return False
    meta = orjson.loads(result).get("meta")
    return isinstance(meta, dict) and meta.get("outside") is True


def foreign_addresses(arguments: JSON, said: Iterable[str]) -> list[str]:
    """Addresses that a call's arguments name and that the person never wrote, each in one spelling.

    One that cannot be read counts as it is written. A host that the person gave is theirs, not so every
    path of it: also not where host and path are arguments of their own.
    """
    own = {address for text in said for address in _addresses(text)}
    texts = list(_texts(arguments))
    paths = [text.strip() for text in texts if text.strip().startswith(("/", "?"))]
    joined = [
        f"{text.strip()}{path}"
        for text in texts
        if paths and any(address.endswith("/") for address in _addresses(text))
        for path in paths
    ]
    return [address for text in (*texts, *joined) for address in _addresses(text) if address not in own]


def _addresses(text: str) -> Iterator[str]:
    """What may be an address in a text, also percent-encoded, in one spelling."""
    plain = _plain(text)
    for form in dict.fromkeys((plain, _plain(unquote(plain)), _plain(unquote(unquote(plain))))):
        for found in _ADDRESS.finditer(form):
            yield _spelled(found[0].rstrip(_AFTER) or found[0])
        for found in _IPV6.finditer(form):
            if _is_ip(found[0]):
                yield _spelled(f"[{found[0]}]")
    if _NUMBER.fullmatch(plain) and 2**24 <= int(plain, 0 if plain[:2] in ("0x", "0X") else 10) < 2**32:
        yield _spelled(plain)


def _plain(text: str) -> str:
    """Other forms of letters and dots as the usual ones, and nothing invisible in it; an address that is
    all of a text has no line breaks that a reader of addresses would skip."""
    text = unicodedata.normalize("NFKC", text).replace("\u3002", ".").strip()
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return text if " " in text else re.sub(r"[\t\r\n]", "", text)


def _spelled(text: str) -> str:
    """Host, port and path however they were written; what we would never ask, as it stands."""
    try:
        address = Address.parse(text if "://" in text else f"https://{text}")
    except FetchError:
        return text.casefold()
    standard = {"http": 80, "https": 443}[address.scheme]
    port = "" if address.port == standard else f":{address.port}"
    return f"{address.host}{port}{address.target}"


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
