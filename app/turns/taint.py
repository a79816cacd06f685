"""Whose words are in a turn's prompt: nothing that others wrote may grant a permission."""

import re
import socket
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from urllib.parse import unquote

import orjson

from app.http.address import Address, FetchError
from app.messages import JSON
from app.store.turn_state import Exchange, InboxMessage
from app.turns.actions import Round

_PLACE_WITHOUT_WORDS = frozenset({"latitude", "longitude"})
_LABEL = r"\w(?:[\w-]{0,61}\w)?"
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
"""With a scheme, or anything that may be a host: a file's name too, for nobody can tell."""
_IPV6 = re.compile(r"(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_IN_BOTH = re.compile(r"\.\w|:|\[|localhost", re.IGNORECASE)
"""What every match of these two holds, and most sentences do not."""
_PART = r"(?:0x[0-9a-f]{0,40}|\d{1,40})"
_NUMBERS = re.compile(
    rf"(?://|[^\s/@]{{1,64}}@)?({_PART}(?:\.{_PART}){{0,3}})\.?((?::\d+)?(?:[/?\\#].*)?)", re.I | re.S
)
"""Where it is all of a text: what a system takes for an IPv4 address, as 127.1 and 0x7f000001."""
_BREAKS = re.compile(r"[\t\r\n]")
_JOINS_LABELS = "·・׳״"
"""Punctuation that occurs inside names of hosts."""
_AT_ONCE = 256
"""Characters that are normalized together: a run of marks takes the square of its length."""
MOST_ENCODED = 8
MOST_JOINED = 256
MOST_FOUND = 50
LONGEST_FOUND = 2048
_AFTER = ".,;:!?)]}»”’…"
"""What ends a sentence rather than an address."""
_AROUND = ".,;:!?…\"'`<>«»“”‘’*_~"
"""What people put around an address; brackets may be its own."""


def sources(
    members: Iterable[InboxMessage],
    quoted: Collection[str],
    exchanges: Iterable[Exchange],
    rounds: Iterable[Round],
    skills: Iterable[str],
    *,
    in_group: bool,
    is_outside: Callable[[str], bool],
    offered: Callable[[int], Collection[str]],
) -> tuple[str, ...]:
    """Where the text of others in the prompt came from, as codes, each once; none where it is all ours.

    `quoted` are the ids of the quoted messages that the prompt shows: what they hold may be anybody's.
    `is_outside(tool)` says whether a tool's results are other people's text, `offered(round)` which tools
    could run by then: what is answered to the name of another is ours. `skills` are those in the prompt
    whose instructions came from elsewhere.
    """
    found = [source for exchange in exchanges for source in exchange.sources]
    if in_group:
        found.append("group")
    for member in members:
        found += _of_message(member, quoted)
    found += [f"skill:{name}" for name in skills]
    found += [
        f"tool:{call.name}"
        for number, one in enumerate(rounds)
        for call in one.calls
        if call.id in one.results
        and call.name in offered(number)
        and (is_outside(call.name) or _is_marked(one.results[call.id]))
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


def own_addresses(said: Iterable[str], found: Iterable[str] = ()) -> frozenset[str]:
    """The addresses in a person's words, also as all that stands between two spaces, and those that searches
    `found`, each in one spelling: of these nothing that stands inside them."""
    return frozenset((*(address for text in said for address in _written(text)), *map(_spelled, found)))


def foreign_addresses(arguments: JSON, own: Collection[str]) -> list[str]:
    """Addresses that a call's arguments name and that are not the person's `own`, each in one spelling.

    One that cannot be read counts as it is written. A host that the person gave is theirs, not so every
    path of it: also not where host and path are arguments of their own.
    """
    texts = list(_texts(arguments))
    paths = [text.strip() for text in texts if text.strip().startswith(("/", "?"))]
    hosts = [text.strip() for text in texts if paths and any(one.endswith("/") for one in _addresses(text))]
    if len(hosts) * len(paths) > MOST_JOINED:  # no honest call has so many
        return hosts
    joined = [f"{host}{path}" for host in hosts for path in paths]
    return [address for text in (*texts, *joined) for address in _foreign(text, own)]


def listed_addresses(data: JSON) -> list[str]:
    """The addresses that a search lists: each `url` in what it returned, wherever it stands."""
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
    """The address as it is asked, "" for one that never is."""
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
    """The addresses in an argument that are not their own. One that is all of it is asked to its last sign,
    also those that would end it in a sentence, and other forms of letters are other letters there."""
    found = list(_addresses(text))
    if found and len(text.split()) == 1:
        whole = _spelled(text.strip())
        found = [] if whole in own else [*found, whole]
    return [address for address in found if address not in own]


def _addresses(text: str) -> Iterator[str]:
    """What may be an address in a text, also percent-encoded, in one spelling."""
    if text.isidentifier() and text.isascii() and "localhost" not in text.lower():
        return  # a word or an argument's name, as most are
    form = _plain(text)
    for _ in range(MOST_ENCODED):
        yield from _addresses_as_written(form)
        if "%" not in form and form.isascii():
            return
        decoded = _plain(unquote(form))
        if decoded == form:
            return
        form = decoded
    yield form  # nobody knows what it is in the end


def _addresses_as_written(text: str) -> Iterator[str]:
    shape = text if text.isascii() else "".join(map(_shape, text))
    if _IN_BOTH.search(shape):
        for found in _ADDRESS.finditer(shape):
            written = text[found.start() : found.end()]
            yield _spelled(written.rstrip(_AFTER) or written)
        for found in _IPV6.finditer(text):
            if _is_ip(found[0]):
                yield _spelled(f"[{found[0]}]")
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None and _is_ipv4(numbers[1], alone=not numbers[2]):
        yield _spelled(f"{numbers[1]}{numbers[2]}")


@lru_cache(4096)
def _shape(character: str) -> str:
    """A character as the patterns read it: signs and marks of other scripts are letters in names of hosts."""
    is_letter = unicodedata.category(character)[0] in "MS" or character in _JOINS_LABELS
    return "x" if is_letter and not character.isascii() else character


def _is_ipv4(host: str, *, alone: bool) -> bool:
    """Whether a system takes it for an address; a small number or one with two decimals is a number, unless
    that would be a machine nearby."""
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
    """Other forms of letters and dots as the usual ones, and nothing invisible in it; an address that is
    all of a text has no line breaks that a reader of addresses would skip."""
    if not text.isascii():
        pieces = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
        text = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces).replace("\u3002", ".")
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = text.strip()
    return text if " " in text else _BREAKS.sub("", text)


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
