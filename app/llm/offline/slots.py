"""The parameters of tools by their schemas, and their values in a person's words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from zoneinfo import ZoneInfo

from app.calendar.sentences import holds_time, is_connective, names_day, split_time
from app.calendar.words import Reading, read_when
from app.messages import JSON
from app.people import Person
from app.search.arithmetic import asked_calculation, is_arithmetic, is_calculation
from app.search.words import ALL_STOP_WORDS, WORDS, spaced, stem, words
from app.text import fold

ADDRESS = r"https?://\S+|\b[\w-]+(?:\.[\w-]+)+/\S*|\bwww\.\S+"
_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_FILE = r"(?<!\S)(?:[\w.-]*/)*[\w-]+\.[A-Za-z]\w{0,4}(?!\w)|(?<!\S)/?(?:[\w.-]+/)+[\w.-]*"
_BETWEEN_ITEMS = re.compile(  # but not within quotes, nor at the "and" of "a card for mum and dad"
    r"""("[^"]*"|“[^”]*”|«[^»]*»)|,(?!\d)|(?<!\d),|;|\n|\s(?:y|e|and|n|\+|o|ou|or)\s""", re.IGNORECASE
)
_OR = re.compile(r"\w (o|ou|or) (?!(?:algo|asi|something)\b)\w", re.IGNORECASE)
_THE = "(?:el|l?[ao]s?|the)"
_TELLS_WHICH = re.compile(  # "…, the one for", "milk, the skimmed"; but not "the milk, the bread"
    r"\b(?:para|pra|pro|con|com|sabor) [^,;\n]+ [ye] |"  # "carne pra churrasco e sal": one thing or two
    rf", {_THE} (?:d[aeo]l?s?|one)\b|^(?!{_THE} )(?:(?!, {_THE} ).)*, {_THE} \S+(?: \S+)?$",
    re.IGNORECASE,
)
_FOR = re.compile(r"\b(?:for|para|pra|pro|with|con|com|sabor)\s", re.IGNORECASE)
_COUNTED = re.compile(  # what begins like a thing of its own
    rf"(?:\d|(?:an?|the|some|u[mn]a?s?|unos|el|l[ao]s?|[ao]s?|{'|'.join(WORDS['numerals'])})\s)"
)
_TIME_AFTER_PLACE = re.compile(
    r"(?is)[\s,]+(?:right now|now|today|tonight|hoy|ahora|ahorita|hoje|agora|please|por favor)\b.*$"
)
_ALSO = re.compile(r"^(?:tamb[ií][eé]n|tamb[eé]m|tbm|tbn|tb|also|too)\b[\s,]*", re.IGNORECASE)
_LEADS_IN = re.compile(r"^(?:q(?:ue)?|de|to|that)\s+", re.IGNORECASE)  # from a time to a text
_PLACE_PRONOUNS = frozenset({"there", "over there", "alla", "ahi", "alli", "ali", "aca", "here", "aqui"})
_LONGEST_MOMENT = 300
_LONGEST_QUANTITY = 6  # words: "five and a half feet" has five
_NO_QUANTITY = re.compile(r"%|\d:\d|\b(?:plus|minus|at|mais|menos) |\b(?:a|por) \d")
_CLEAR_NUMBER = r"-?\d{1,18}(?:[.,](?:\d{1,2}|\d{4,18}))?"
_IN = {"en": "in", "es": "en", "pt": "em"}
_READS_WORDS = spaced("words wrote written spoken")
NUMERALS = {word: number for number in range(11) for word in WORDS[f"number_{number}"]}


class UnclearTimeError(ValueError):
    """Not all that a text says of a time was understood."""


class NoTimeError(ValueError):
    """Words in the place of a time are none."""


class Kind(StrEnum):
    """The kind of value that a parameter wants."""

    ENUM = "enum"
    NUMBER = "number"
    FLAG = "flag"
    LIST = "list"
    EXPRESSION = "expression"
    WHEN = "when"
    PLACE = "place"
    FILE = "file"
    URL = "url"
    EMAIL = "email"
    QUANTITY = "quantity"
    UNIT = "unit"
    WORDS = "words"
    TEXT = "text"
    OTHER = "other"


TAKES_THE_REST = frozenset({Kind.TEXT, Kind.WORDS, Kind.OTHER})  # any words fit: they take what others leave
TAKES_ANY_WORDS = TAKES_THE_REST | {Kind.PLACE, Kind.LIST}
_SHORT_TEXT = spaced("title name subject")
_IDENTIFIER = spaced("number id identifier")
_BY_TYPE = {"integer": Kind.NUMBER, "number": Kind.NUMBER, "boolean": Kind.FLAG}
_BY_TYPE |= {"array": Kind.LIST, "object": Kind.OTHER}
_BY_WORDS = [  # a parameter's name tells before its description does
    (by, Kind(name.removeprefix(f"{by}_")), known)
    for by in ("named", "described")
    for name, known in WORDS.items()
    if name.startswith(f"{by}_")
]


@dataclass(frozen=True)
class Parameter:
    """A parameter of an offered tool."""

    name: str
    schema: Mapping[str, JSON]
    required: bool

    @property
    def description(self) -> str:
        return str(self.schema.get("description") or "")

    @cached_property
    def kind(self) -> Kind:
        if isinstance(self.schema.get("enum"), list):
            return Kind.ENUM
        if (kind := _BY_TYPE.get(type_of(self.schema))) is not None:
            return kind
        if self.schema.get("format") in {"date", "date-time", "time"}:
            return Kind.WHEN
        told = {
            "named": set(words(self.name)),
            "described": set(words(re.split(r"[.;(]", self.description, maxsplit=1)[0])),
        }
        return next((kind for by, kind, known in _BY_WORDS if told[by] & known), Kind.TEXT)

    @property
    def is_label(self) -> bool:
        """Tell whether it names something of its own, as "list_name" does."""
        return self.kind is Kind.TEXT and not _SHORT_TEXT.isdisjoint(words(self.name))

    @property
    def is_prose(self) -> bool:
        """Tell whether it takes text for its own sake, not words that name something which exists."""
        names = {*words(self.description)} & _IDENTIFIER or {*words(self.name)} & _SHORT_TEXT
        return self.kind is Kind.TEXT and not names


@dataclass(frozen=True)
class Offer:
    """A tool that the model may call now."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.required)

    def parameter(self, name: str) -> Parameter | None:
        return next((one for one in self.parameters if one.name == name), None)


def read_offer(tool: Mapping[str, JSON]) -> Offer:
    """Return the offer of a tool in the function form."""
    function = tool["function"]
    schema = function.get("parameters") or {}
    required, properties = schema.get("required", ()), schema.get("properties", {})
    parameters = (Parameter(name, one, name in required) for name, one in properties.items())
    return Offer(function["name"], tuple(parameters))


def type_of(schema: Mapping[str, JSON]) -> str:
    """Return the JSON type that a schema wants; of several the first but null, strings before others."""
    type_ = schema.get("type")
    if isinstance(type_, str):
        return type_
    choices = [one for key in ("anyOf", "oneOf") for one in schema.get(key) or () if isinstance(one, Mapping)]
    types = [*(type_ if isinstance(type_, list) else ()), *map(type_of, choices)]
    types = [str(one) for one in types if one != "null"]
    return "string" if "string" in types or not types else types[0]


@dataclass(frozen=True)
class Reader:
    """A person whose words are read; `now` gives this moment for relative dates."""

    person: Person
    now: Callable[[], datetime]

    def when(self, text: str) -> Reading:
        """Read what a text says of when, by the person's clock."""
        zone, now = ZoneInfo(self.person.timezone), self.now().timestamp()
        return read_when(text[:_LONGEST_MOMENT], zone, now, self.person.language, self.person.country)

    def split_time(self, text: str, *, is_due: bool = False) -> tuple[str, str] | None:
        """Return the words of time in a text and what they are about; None where that is not sure."""
        found = split_time(text, self.person.language, is_due=is_due)
        return (found[0], _LEADS_IN.sub("", found[1])) if found and self.reads_whole(found[0]) else None

    def reads_whole(self, text: str) -> bool:
        """Tell whether a text is words of time that are all understood, or asked about."""
        reading = self.when(text)
        return bool(reading.words) and is_connective(reading.rest)

    def names_day(self, text: str) -> bool:
        return names_day(text, self.person.language)

    def holds_time(self, text: str, *, names_day: bool) -> bool:
        return holds_time(text, self.person.language, names_day=names_day)

    def is_moment(self, text: str) -> bool:
        """Tell whether a text is a moment and nothing else."""
        reading = self.when(text)
        return bool(reading.words) and not reading.rest.strip(" ?!.,;:¿¡")


def convert(raw: str, parameter: Parameter, reader: Reader) -> JSON:
    """Return the words of a slot as the value that the parameter wants, None if they cannot be that."""
    text = raw.strip()
    if not text:
        return None
    match parameter.kind:
        case Kind.ENUM:
            said = {*map(stem, words(text))}
            choices = ((one, {*map(stem, words(str(one)))}) for one in parameter.schema["enum"])
            return next((one for one, wanted in choices if wanted and wanted <= said), None)
        case Kind.NUMBER:
            return _number(text, parameter)
        case Kind.FLAG:
            said = set(words(text))
            return False if said & WORDS["denying"] else True if said & WORDS["affirming"] else None
        case Kind.LIST:
            return _list(text, parameter, reader)
        case Kind.EXPRESSION:
            bare = asked_calculation(text)
            if not is_arithmetic(bare):
                return None
            if _READS_WORDS & {*words(parameter.description)}:
                return bare
            return re.sub(r"(?<=\d)\s*[x×·]\s*(?=\d)", "*", bare).replace("÷", "/")
        case Kind.WHEN:
            return _moment(text, parameter, reader)
        case Kind.PLACE:
            is_there = fold(_bare(text)) in _PLACE_PRONOUNS or _bare(text).casefold() == "lá"
            are_two = re.search(r"\b(?:y|e|and) (?:en|em|in)\b", text)
            return None if is_there or are_two else _bare(_TIME_AFTER_PLACE.sub("", text)) or None
        case Kind.FILE:
            bare = _bare(text)  # a name with an ending or a folder may have several words
            if re.search(ADDRESS, bare):
                return None
            return bare if is_file_name(bare) or len(bare.split()) == 1 else _first(_FILE, text)
        case Kind.URL:
            return _first(ADDRESS, text)
        case Kind.EMAIL:
            return _first(_EMAIL, text)
        case Kind.QUANTITY:
            return _quantity(text, reader.person.language)
        case Kind.UNIT:
            bare = _bare(_TIME_AFTER_PLACE.sub("", text))
            is_led = " " in bare and words(bare)[0] in ALL_STOP_WORDS  # "11 in in cm"
            is_short = re.fullmatch(r"\D{1,40}[23]?", bare) and len(bare.split()) <= 4
            return bare if is_short and not is_led else None
        case Kind.WORDS:
            return _bare(text) or None
        case Kind.TEXT:
            return text
    return None


def convert_several(raw: str, parameters: Sequence[Parameter], reader: Reader) -> dict[str, JSON] | None:
    """Return the values of two parameters in one run of words, None if not there. Raises UnclearTimeError."""
    one = min(parameters, key=lambda parameter: parameter.kind in TAKES_THE_REST)
    other = next(parameter for parameter in parameters if parameter is not one)
    if one.kind is Kind.WHEN and other.is_prose:
        if (apart := reader.split_time(raw, is_due=not one.required)) is None:
            raise UnclearTimeError if reader.when(raw).words else NoTimeError
        first, left = apart
    elif one.kind is Kind.WHEN:
        found = reader.when(raw).words
        first, left = " ".join(found), raw
        for piece in found:
            left = " ".join(left.replace(piece, " ", 1).split())
        left = re.sub(r"\s(?:to|for|para|pra|a)$", "", left)  # "reminder 3 to 23:00"
        if not found or not (raw.rstrip(" .!,;").endswith(found[-1]) or raw.startswith(found[0])):
            return None
    else:
        first, _, left = raw.partition(" ")
    values = {one.name: convert(first, one, reader)}
    values[other.name] = convert(_ALSO.sub("", left.strip(" ,.;:")), other, reader)
    return None if None in values.values() else values


def is_file_name(text: str) -> bool:
    """Tell whether a text can hardly be anything else: it ends like a file, or lies in a folder."""
    return re.search(r"\w\.[A-Za-z]\w{0,4}$|^\S*/\S*$", text.strip(" ?!.,;:")) is not None


def _bare(text: str) -> str:
    return text.strip(" \t\n?!.;:,¿¡\"'“”«»")


def _first(pattern: str, text: str) -> str | None:
    return match.group().rstrip(".,;") if (match := re.search(pattern, text)) else None


def _number(text: str, parameter: Parameter) -> JSON:
    if type_of(parameter.schema) == "string":  # a tool that reads numbers as people write them
        return text if re.fullmatch(r"(?:[A-Za-z]{0,3}[$€£] ?)?\d[\d.,]*\D*", text) else None  # one number
    match = re.search(r"-?\d+(?:[.,]\d+)*", text)
    if match is None:
        return next((NUMERALS[word] for word in words(text) if word in NUMERALS), None)
    if type_of(parameter.schema) == "integer":
        return int(match.group()) if re.fullmatch(r"-?\d{1,18}", match.group()) else None
    # "1.000" is one thousand for some, and one for others
    return float(match.group().replace(",", ".")) if re.fullmatch(_CLEAR_NUMBER, match.group()) else None


def _list(text: str, parameter: Parameter, reader: Reader) -> JSON:
    items = parameter.schema.get("items")
    inner = Parameter(parameter.name, items if isinstance(items, Mapping) else {}, True)
    parts = [_ALSO.sub("", part.strip()) for part in _items(text, reader.person.language) if part.strip()]
    is_article = "o" if reader.person.language == "pt" else ""
    is_either = any(one[1].lower() != is_article for one in _OR.finditer(text))
    if is_either or _TELLS_WHICH.search(text):
        return None
    kept = [value for part in parts if (value := convert(part, inner, reader)) is not None]
    return kept if kept and len({*map(str, kept)}) == len(kept) else None  # no "half and half"


def _items(text: str, language: str) -> list[str]:
    found, start = [], 0
    for match in _BETWEEN_ITEMS.finditer(text):
        is_and = match.group()[:1].isspace() and match.group() != "\n"
        left, right = text[start : match.start()], _BETWEEN_ITEMS.split(text[match.end() :])[0] or ""
        is_one = _FOR.search(left) or (not re.search("[,;\n]", text) and _may_be_one(left, right, language))
        is_two = not left.strip() or len(words(left)) == len(words(right)) == 1 or _COUNTED.match(fold(right))
        if is_and and not (is_one or is_two) and re.search(r"[,;\n]", text[match.end() :]):
            return []  # "salt and vinegar crisps, milk", but not "bread and milk, eggs"
        if match[1] is None and not (is_and and is_one):
            found.append(text[start : match.start()])
            start = match.end()
    return [*found, text[start:]]


def _may_be_one(left: str, right: str, language: str) -> bool:
    """Tell whether an "and" may be within one thing: "salt and vinegar chips", "salsa de ajo y cebolla"."""
    had, more = words(left), words(right)
    if not had or not more or _COUNTED.match(fold(right)) or WORDS["of"].intersection(more):
        return False
    of = [at for at, word in enumerate(had) if word in WORDS["of"] and had[at - 1] not in WORDS["no_names"]]
    is_counted = _COUNTED.match(fold(left)) and "of" not in had
    is_code = right.isupper() and len(had) > 1  # "pilha AA e AAA"
    return is_code or bool(of) or (language == "en" and len(more) > 1 and not is_counted)


def _moment(text: str, parameter: Parameter, reader: Reader) -> JSON:
    """Return words for a tool that reads words, ISO 8601 for one that wants it."""
    bare = text.strip(" ?!.;,¿¡")
    wanted = str(parameter.schema.get("format") or "")
    described = re.split(r"[;(]|such as|like", parameter.description.lower(), maxsplit=1)[0]
    if wanted not in {"date", "date-time", "time"} and "iso" not in words(described):
        return bare
    when = reader.when(bare).when or reader.when(f"{_IN[reader.person.language]} {bare}").when
    if when is None or when.rule:
        return None if wanted else bare
    moment = datetime.fromtimestamp(when.due, ZoneInfo(reader.person.timezone))
    return moment.date().isoformat() if wanted == "date" else moment.isoformat(timespec="seconds")


def _quantity(text: str, language: str) -> JSON:
    """Return a number and what it counts; no calculation, bare number or share."""
    bare = _bare(text)
    counts = re.match(r"[-+]?(?:[a-z]{0,3}[$€£] ?)?(?:\d|[½¼¾])", fold(bare)) is not None
    first = next(iter(words(bare)), "")
    is_article = first in ("a", "an") and language != "en"  # "a las 11" is no quantity
    counts = counts or (first in {*NUMERALS, *WORDS["halves"]} and not is_article)
    names = re.search(r"[^\W\d_]|[°$€£'\"]", bare) is not None
    if not counts or not names or len(bare.split()) > _LONGEST_QUANTITY or _NO_QUANTITY.search(fold(bare)):
        return None
    return None if is_calculation(bare) else bare
