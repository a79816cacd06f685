"""Find text of others in a turn's prompt, which grants no permission, and the addresses it leads to."""

import re
import socket
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from urllib.parse import unquote

from app.http.address import Address, FetchError
from app.messages import JSON
from app.routing.tool_catalog import ToolCatalog
from app.store.turn_state import InboxMessage, TurnState
from app.turns.actions import CallResult, Round

_PLACE_WITHOUT_WORDS = frozenset({"latitude", "longitude"})
_LABEL = r"\w(?:[\w-]{0,61}\w)?"
# With a scheme, or anything that may be a host: a file name too, which looks the same.
_ADDRESS = re.compile(
    rf"""
    [a-z][a-z0-9+.-]{{1,20}}://[^\s<>"'`]+
    | (?: (?<!\w)(?:
        (?:{_LABEL}\.){{1,8}} (?:[^\W\d_]{{2,24}}|xn--[a-z0-9-]{{1,59}}) (?![\w-])
        | (?:0x[0-9a-f]+|\d+) (?:\.(?:0x[0-9a-f]+|\d+)){{3}} (?!\.?\w)
        | localhost (?![\w-])
      ) | \[[0-9a-f:.]+(?:%[\w.-]{{1,20}})?\]
    ) (?::\d+)? (?:[/?\\][^\s<>"'`]*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IPV6 = re.compile(r"(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_PART = r"(?:0x[0-9a-f]{0,40}|\d{1,40})"
# A whole text that a system takes for an IPv4 address, such as 127.1 and 0x7f000001.
_NUMBERS = re.compile(
    rf"(?://|[^\s/@]{{1,64}}@)?({_PART}(?:\.{_PART}){{0,3}})\.?((?::\d+)?(?:[/?\\#].*)?)", re.I | re.S
)
_BREAKS = re.compile(r"[\t\r\n]")
_JOINS_LABELS = "·・׳״"  # punctuation inside names of hosts
# what the name or the description of an argument calls it where it names an address
_ADDRESS_WORDS = (
    r"ur[li]s?|href|hosts?|host ?names?|domains?|endpoints?|(?:web ?)?sites?|webhooks?|web ?pages?"
)
_CALLED_ADDRESS = re.compile(rf"\b(?:{_ADDRESS_WORDS})\b", re.IGNORECASE)
_NAMED_ADDRESS = re.compile(
    rf"\b(?:{_ADDRESS_WORDS}|links?|servers?|origin|proxy|ip|address(?:es)?|e ?mails?|to|cc|bcc|recipients?"
    r"|command|cmd|code|script|args)\b",
    re.IGNORECASE,
)
_AT_ONCE = 256  # characters normalized together: a run of marks takes the square of its length
MOST_ENCODED = 8
MOST_JOINED = 256
MOST_FOUND = 50
LONGEST_FOUND = 2048
_AFTER = ".,;:!?)]}»”’…"  # ends a sentence rather than an address
# People put these around an address; brackets may be its own.
_AROUND = ".,;:!?…\"'`<>«»“”‘’*_~"


def message_sources(turn: TurnState) -> list[str]:
    """Return codes that name where text of others in the turn's own messages came from."""
    found = ["group"] if turn.conversation.group else []
    for member in turn.members:
        found += _of_message(member, turn.quoted)
    return found


def result_sources(
    rounds: Sequence[Round], offered: Sequence[Collection[str]], tools: ToolCatalog
) -> list[str]:
    """Return codes that name the results of these rounds that hold text of others.

    `offered[n]` are the tools that could run up to round n: the answer to the name of another is ours.
    """
    return [
        f"tool:{call.name}"
        for number, one in enumerate(rounds)
        for call, result in one.finished
        if call.name in offered[number] and (result.outside or _brings_others(call.name, result, tools))
    ]


def _brings_others(tool: str, result: CallResult, tools: ToolCatalog) -> bool:
    """Tell whether a result holds text of others; a failed call of our own tools says only our sentences."""
    return tools.is_outside(tool) and (result.ok or not tools.is_bundled(tool))


def _of_message(member: InboxMessage, quoted: Collection[str]) -> Iterator[str]:
    details = member.payload.get("details") or {}
    if member.payload.get("forwarded"):
        yield "forwarded"
    if member.kind == "scheduled":
        yield from details.get("taint", ())
    if member.kind == "contacts":
        yield "contacts"
    if member.kind == "location" and details.keys() - _PLACE_WITHOUT_WORDS:
        yield "location"
    if member.kind == "referral" or "referral" in details:
        yield "referral"
    attachment = member.payload.get("attachment") or {}
    if member.kind == "document" or attachment.get("filename"):
        yield "document"
    elif attachment.get("pictures"):
        yield "picture"
    elif attachment and not attachment.get("voice") and member.kind == "audio":
        yield "audio"
    if member.payload.get("quoted") in quoted:
        yield "quoted"


def own_addresses(said: Iterable[str], found: Iterable[str] = ()) -> frozenset[str]:
    """Return the addresses in a person's words and those that searches `found`, each in one spelling.

    Words are read as addresses also whole, from space to space; nothing inside of found addresses counts.
    """
    return frozenset((*(address for text in said for address in _written(text)), *map(_spelled, found)))


def foreign_addresses(
    arguments: JSON, own: Collection[str], schema: Mapping[str, JSON] | None = None
) -> list[str]:
    """Return the addresses in a call's arguments that are not the person's `own`, each in one spelling.

    An unreadable one counts as it is written. A host that the person gave does not cover its paths, also
    when host and path are separate arguments. In a text that `schema` does not call a URL, a host or a
    recipient only what has a scheme is an address: "lista.txt" is a file.
    """
    plain = _plain_texts(arguments, schema) if schema is not None else frozenset()
    named = {key: value for key, value in arguments.items() if key not in plain} if plain else arguments
    found = [
        address
        for name in plain
        for text in _texts(arguments[name])
        if "://" in _plain(unquote(text))
        for address in _foreign(text, own)
    ]
    return [*found, *_foreign_anywhere(named, own)]


def _plain_texts(arguments: JSON, schema: Mapping[str, JSON]) -> frozenset[str]:
    """Return the names of the arguments that are texts or lists of texts, and lead nowhere by themselves."""
    known = schema.get("properties")
    known = known if isinstance(known, Mapping) else {}
    return frozenset(
        name
        for name, value in arguments.items()
        if isinstance(known.get(name), Mapping)
        and all(isinstance(one, str) for one in (value if isinstance(value, list) else [value]))
        and not known[name].get("format")
        and not _NAMED_ADDRESS.search(re.sub(r"[_-]|(?<=[a-z])(?=[A-Z])", " ", name))
        and not _CALLED_ADDRESS.search(str(known[name].get("description") or ""))
    )


def _foreign_anywhere(arguments: JSON, own: Collection[str]) -> list[str]:
    texts = list(_texts(arguments))
    paths = [text.strip() for text in texts if text.strip().startswith(("/", "?"))]
    hosts = [text.strip() for text in texts if paths and any(one.endswith("/") for one in _addresses(text))]
    if len(hosts) * len(paths) > MOST_JOINED:  # no honest call has so many
        return hosts
    joined = [f"{host}{path}" for host in hosts for path in paths]
    return [address for text in (*texts, *joined) for address in _foreign(text, own)]


def listed_addresses(data: JSON) -> list[str]:
    """Return the addresses that a search lists: each `url` in its data, at any depth."""
    found: dict[str, None] = {}
    left = [data]
    while left and len(found) < MOST_FOUND:
        value = left.pop()
        if isinstance(value, list):
            left += reversed(value)
        elif isinstance(value, dict):
            left += reversed(value.values())
            url = value.get("url")
            if isinstance(url, str) and len(url) <= LONGEST_FOUND and (address := _fetched(url)):
                found[address] = None
    return list(found)


def _fetched(url: str) -> str:
    """Return the address as it would be requested, "" for one that never is."""
    try:
        return Address.parse(url).url
    except FetchError:
        return ""


def _written(text: str) -> Iterator[str]:
    yield from _addresses(text)
    for word in text.split():
        if not word.isalnum() and any(_addresses(word)):
            yield from (_spelled(word), _spelled(word.strip(_AROUND)))


def _foreign(text: str, own: Collection[str]) -> list[str]:
    """Return the foreign addresses in an argument.

    One that is the whole argument counts to its last sign, and other forms of letters as other letters.
    """
    found = list(_addresses(text))
    if found and len(text.split()) == 1:
        whole = _spelled(text.strip())
        found = [] if whole in own else [*found, whole]
    return [address for address in found if address not in own]


def _addresses(text: str) -> Iterator[str]:
    """Yield what may be an address in a text, also percent-encoded, in one spelling."""
    form = _plain(text)
    for _ in range(MOST_ENCODED):
        yield from _addresses_as_written(form)
        if "%" not in form and form.isascii():
            return
        decoded = _plain(unquote(form))
        if decoded == form:
            return
        form = decoded
    yield form  # encoded too often to be read


def _addresses_as_written(text: str) -> Iterator[str]:
    shape = text if text.isascii() else "".join(map(_shape, text))
    for found in _ADDRESS.finditer(shape):
        written = text[found.start() : found.end()]
        yield _spelled(written.rstrip(_AFTER) or written)
    for found in _IPV6.finditer(text):
        if _is_ip(found[0]):
            yield _spelled(f"[{found[0]}]")
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None and _is_ipv4(numbers[1], alone=not numbers[2]):
        yield _spelled(f"{numbers[1]}{numbers[2]}")


def _shape(character: str) -> str:
    """Map a character to what the patterns read: marks of other scripts are letters in names of hosts."""
    is_letter = unicodedata.category(character)[0] in "MS" or character in _JOINS_LABELS
    return "x" if is_letter and not character.isascii() else character


def _is_ipv4(host: str, *, alone: bool) -> bool:
    """Tell whether a system takes it for an address.

    A small number or one with two decimals is a number, unless that would be a machine nearby.
    """
    try:
        ip = IPv4Address(socket.inet_aton(host))
    except OSError:
        return False
    whole, _, rest = host.partition(".")
    if not rest:
        return int(ip) >= 2**24
    is_amount = alone and whole.isdecimal() and rest.isdecimal() and len(rest) <= 2
    return not is_amount or (ip.is_private and int(ip) >= 2**24)


def _plain(text: str) -> str:
    """Normalize letters and dots, and drop what is invisible.

    A text without spaces also loses its line breaks, which a reader of addresses would skip.
    """
    if not text.isascii():
        pieces = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
        text = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces).replace("\u3002", ".")
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = text.strip()
    return text if " " in text else _BREAKS.sub("", text)


def _spelled(text: str) -> str:
    """Spell host, port and path in one way; leave what we would never request as it is."""
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
