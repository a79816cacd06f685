"""Find text of others in a turn's prompt, which grants no permission, and the addresses it leads to."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import unquote

from app.http.address import PORTS, Address, FetchError
from app.messages import JSON, mapping
from app.store.turn_state import TurnState

_PLACE_WITHOUT_WORDS = frozenset({"latitude", "longitude"})
_BREAKS = re.compile(r"[\t\r\n]")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`]+", re.IGNORECASE)
_LIKE_ADDRESS = re.compile(  # a file name too looks like a host; 12.50 is an amount, but 10.50 is a machine
    r"\S[.\u3002](?!\d{1,2}$)\S|^(?:10|127|0\w+)[.\u3002]|[@\\\[]|//|::|%[0-9a-f]{2}|localhost"
    r"|\b(?:0x[0-9a-f]{2,}|\d{8,})\b",
    re.IGNORECASE,
)
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
MOST_FOUND = 50
LONGEST_FOUND = 2048
_AFTER = ".,;:!?)]}»”’…"  # ends a sentence rather than an address
# People put these around an address; brackets may be its own.
_AROUND, _BRACKETS = ".,;:!?…\"'`<>«»“”‘’*_~", "()[]{}"


def message_sources(turn: TurnState) -> Iterator[str]:
    """Yield codes that name where text of others in the turn's own messages came from."""
    if turn.conversation.group:
        yield "group"
    for member in turn.members:
        kind, payload = member.kind, member.payload
        details, attachment = payload.get("details") or {}, payload.get("attachment") or {}
        if payload.get("forwarded"):
            yield "forwarded"
        if kind == "scheduled":
            yield from details.get("taint", ())
        if kind == "contacts":
            yield "contacts"
        if kind == "location" and details.keys() - _PLACE_WITHOUT_WORDS:
            yield "location"
        if kind == "referral" or "referral" in details:
            yield "referral"
        if kind == "document" or attachment.get("filename"):
            yield "document"
        elif attachment.get("pictures"):
            yield "picture"
        elif attachment and not attachment.get("voice") and kind == "audio":
            yield "audio"
        quoted = turn.quoted.get(str(payload.get("quoted")))
        if quoted is not None and quoted.outside:
            yield "quoted"


def own_addresses(said: Iterable[str], found: Iterable[str] = ()) -> frozenset[str]:
    """Return the addresses in a person's words and those that searches `found`, each in one spelling.

    Any of their words may be one, also without what stands around it; nothing inside of found addresses is.
    """
    words = {word for text in said for word in (*text.split(), *_URL.findall(text))}
    words = {word for word in words if _LIKE_ADDRESS.search(_plain(word))}
    bare = [word.strip(around) for word in words for around in (_AROUND, _AROUND + _BRACKETS)]
    return frozenset(map(_spelled, (*words, *bare, *found)))


def leads_elsewhere(
    arguments: Mapping[str, JSON], own: Collection[str], schema: Mapping[str, JSON] | None = None
) -> bool:
    """Return whether a call's arguments hold an address that is not one of the person's `own`.

    In a text that `schema` does not call a URL, a host or a recipient only what has a scheme is an address:
    "lista.txt" is a file. Elsewhere every word that may be one counts, to its last sign. A host that the
    person gave does not cover its paths, also when host and path are separate arguments.
    """
    names = _plain_texts(arguments, schema or {})
    plain = [text for name in names for text in _texts(arguments[name])]
    others = list(_texts({name: value for name, value in arguments.items() if name not in names}))
    said = [word for text in others for word in _words(text)]
    words = [word for word in said if _LIKE_ADDRESS.search(_plain(word).rstrip(_AFTER))]
    links = [word for text in plain for word in _words(unquote(text)) if "://" in _plain(word)]
    if any(_spelled(word) not in own for word in (*words, *links)):
        return True
    hosts = [word for word in words if _spelled(word).endswith("/")]
    paths = [text.strip() for text in (*plain, *others) if text.strip().startswith(("/", "?"))]
    return any(len(hosts) > 1 or _spelled(hosts[0] + path) not in own for path in paths if hosts)


def _plain_texts(arguments: Mapping[str, JSON], schema: Mapping[str, JSON]) -> frozenset[str]:
    """Return the names of the arguments that are texts or lists of texts, and lead nowhere by themselves."""
    known = mapping(schema.get("properties"))
    return frozenset(
        name
        for name, value in arguments.items()
        if isinstance(known.get(name), Mapping)
        and all(isinstance(one, str) for one in (value if isinstance(value, list) else [value]))
        and not known[name].get("format")
        and not _NAMED_ADDRESS.search(re.sub(r"[_-]|(?<=[a-z])(?=[A-Z])", " ", name))
        and not _CALLED_ADDRESS.search(str(known[name].get("description") or ""))
    )


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
            if isinstance(url, str) and len(url) <= LONGEST_FOUND:
                with suppress(FetchError):  # as it would be requested, if it ever is
                    found[Address.parse(url).url] = None
    return list(found)


def _words(text: str) -> set[str]:
    """Return a text's words, also as they are without line breaks, which a reader of addresses skips."""
    return {*text.split(), *_BREAKS.sub("", text).split()}


def _plain(word: str) -> str:
    """Return a word in plain letters, without what is invisible."""
    if not word.isascii():
        pieces = (word[at : at + 256] for at in range(0, len(word), 256))  # a run of marks is quadratic
        word = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
        word = "".join(c for c in word if unicodedata.category(c) != "Cf")
    return word


def _spelled(text: str) -> str:
    """Spell host, port and path in one way; leave what we would never request as it is."""
    try:
        address = Address.parse(text if "://" in text else f"https://{text}")
    except FetchError:
        return text.casefold()
    port = "" if address.port == PORTS[address.scheme] else f":{address.port}"
    return f"{address.host}{port}{address.target}"


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
