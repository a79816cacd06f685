"""Filling a tool's parameters from a person's words, by what the schema says of them."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.llm.offline.arithmetic import asked_calculation, is_arithmetic, is_calculation, with_signs
from app.llm.offline.moments import find_moment, read_moment
from app.llm.offline.offers import TAKES_THE_REST, Kind, Parameter, type_of
from app.llm.offline.zones import zone_of
from app.messages import JSON
from app.people import Person
from app.search.words import ALL_STOP_WORDS, fold, spaced, spans, stem, words


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose words are read: `now` gives this moment for relative dates."""

    person: Person
    now: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Found:
    """A value, the pieces of text it was made of where they are known, and their folded words."""

    value: JSON
    pieces: tuple[str, ...]
    words: frozenset[str]


def convert(raw: str, parameter: Parameter, reader: Reader) -> JSON:
    """The words a slot took as the value the parameter wants; None where they cannot be that."""
    text = raw.strip()
    if not text:
        return None
    return _CONVERTERS[parameter.kind](text, parameter, reader)


def _as_enum(text: str, parameter: Parameter, reader: Reader) -> JSON:
    said = [stem(word) for word in words(text)]
    for choice in parameter.schema["enum"]:
        wanted = [stem(word) for word in words(str(choice))]
        if wanted and all(word in said for word in wanted):
            return choice
    return None


def _as_number(text: str, parameter: Parameter, reader: Reader) -> JSON:
    if type_of(parameter.schema) == "string":  # a tool that reads numbers as people write them
        return text if re.match(r"(?:[A-Za-z]{0,3}[$€£] ?)?\d", text) else None
    match = re.search(r"-?\d+(?:[.,]\d+)*", text)
    if match is None:
        folded = words(text)
        return next((_NUMERALS[word] for word in folded if word in _NUMERALS), None)
    is_integer = type_of(parameter.schema) == "integer"
    number = _with_point(
        match.group(), groups_by=".," if is_integer else _GROUPS.get(reader.person.language, "")
    )
    if number is None:
        return None
    if is_integer:
        whole = number.split(".")[0]
        return int(whole) if len(whole) < _LONG else whole  # which the check of arguments reads exactly
    value = float(number)
    return value if math.isfinite(value) else None


def _with_point(number: str, *, groups_by: str) -> str | None:
    """A number with no mark but a point before its decimals; None for what is none, as an address or a date.

    `groups_by`: marks that stand before a group of three digits where there is no other in the number.
    """
    marks = re.sub(r"[^.,]", "", number)
    if not marks:
        return number
    last = marks[-1]
    whole, _, decimals = number.rpartition(last)
    if marks.count(last) > 1:
        is_grouped = len({*marks}) == 1 and re.fullmatch(r"-?\d{1,3}(?:[.,]\d{3})+", number)
        return re.sub(r"[.,]", "", number) if is_grouped else None
    if len(marks) == 1 and len(decimals) == 3 and last in groups_by:
        return whole + decimals
    return f"{re.sub('[.,]', '', whole)}.{decimals}"


def _as_flag(text: str, parameter: Parameter, reader: Reader) -> JSON:
    said = set(words(text))
    if said & _NO:
        return False
    return True if said & _YES else None


def _as_list(text: str, parameter: Parameter, reader: Reader) -> JSON:
    parts = [part.strip() for part in _BETWEEN.split(text)]
    items = parameter.schema.get("items")
    inner = Parameter(parameter.name, items if isinstance(items, Mapping) else {}, True)
    values = [convert(part, inner, reader) for part in parts if part]
    return [value for value in values if value is not None] or None


_BETWEEN = re.compile(r",(?!\d)|(?<!\d),|;|\n|\s(?:y|e|and|&|\+|o|ou|or)\s", re.IGNORECASE)


def _as_expression(text: str, parameter: Parameter, reader: Reader) -> JSON:
    bare = asked_calculation(text)
    if not is_arithmetic(bare):
        return None
    # A tool that says it reads words knows more of them than we do.
    return bare if _READS_WORDS & set(words(parameter.description)) else with_signs(bare)


_READS_WORDS = spaced("words wrote written spoken")
_LONGEST_QUANTITY = 6
"""Words: "five and a half feet" has five; a sentence that begins with "a" is none."""


def _as_when(text: str, parameter: Parameter, reader: Reader) -> JSON:
    bare = text.strip(" ?!.;,¿¡")
    wanted = str(parameter.schema.get("format") or "")
    described = re.split(r"[;(]|such as|like", parameter.description.lower(), maxsplit=1)[0]
    if wanted not in {"date", "date-time", "time"} and "iso" not in words(described):
        return bare
    moment = read_moment(bare, reader.person, reader.now())
    if moment is None:
        return None if wanted else bare
    if wanted == "date":
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds")


def _as_bare(text: str, parameter: Parameter, reader: Reader) -> JSON:
    return text.strip(" \t\n?!.;:,¿¡\"'“”«»") or None


_TIME_AFTER_PLACE = re.compile(
    r"[\s,]+(?:right now|now|today|tonight|tomorrow|hoy|ahora|ahorita|mañana|hoje|agora|amanhã|please"
    r"|por favor)\b.*$",
    re.IGNORECASE | re.DOTALL,
)


_ZONE = spaced("timezone zone")


def _as_place(text: str, parameter: Parameter, reader: Reader) -> JSON:
    place = _as_bare(_TIME_AFTER_PLACE.sub("", text), parameter, reader)
    if place and not _ZONE.isdisjoint(words(parameter.name)):
        return zone_of(place) or place
    return place


def _as_text(text: str, parameter: Parameter, reader: Reader) -> JSON:
    return text


def _as_nothing(text: str, parameter: Parameter, reader: Reader) -> JSON:
    return None


def _matching(pattern: str) -> Callable[[str, Parameter, Reader], JSON]:
    def converter(text: str, parameter: Parameter, reader: Reader) -> JSON:
        match = re.search(pattern, text)
        return match.group().rstrip(".,;") if match else None

    return converter


def _as_quantity(text: str, parameter: Parameter, reader: Reader) -> JSON:
    """A number and what it counts: no calculation, no number alone, no share."""
    bare = str(_as_bare(text, parameter, reader) or "")
    counts = re.match(r"[-+]?(?:[a-z]{0,3}[$€£] ?)?(?:\d|[½¼¾])", fold(bare)) is not None
    first = next(iter(words(bare)), "")
    is_article = first in ("a", "an") and reader.person.language != "en"  # "a las 11" is no quantity
    counts = counts or (first in {*_NUMERALS, *_HALVES} and not is_article)
    names = re.search(r"[^\W\d_]|[°$€£'\"]", bare) is not None
    if not counts or not names or len(bare.split()) > _LONGEST_QUANTITY or re.search(r"%|\d:\d", bare):
        return None
    return None if is_calculation(bare) else bare


def _as_unit(text: str, parameter: Parameter, reader: Reader) -> JSON:
    bare = str(_as_bare(_TIME_AFTER_PLACE.sub("", text), parameter, reader) or "")
    return bare if re.fullmatch(r"\D{1,40}[23]?", bare) and len(bare.split()) <= 4 else None


def _as_file(text: str, parameter: Parameter, reader: Reader) -> JSON:
    """A name with an ending or a folder, as many words as it has; else a single word."""
    bare = str(_as_bare(text, parameter, reader) or "")
    if re.search(ADDRESS, bare):
        return None
    if is_file_name(bare) or len(bare.split()) == 1:
        return bare
    match = re.search(_FILE, text)
    return match.group() if match else None


def is_file_name(text: str) -> bool:
    """Whether it can hardly be anything else: it ends like a file, or lies in a folder."""
    return re.search(r"\w\.[A-Za-z]\w{0,4}$|^\S*/\S*$", text.strip(" ?!.,;")) is not None


_LONG = 18
"""Digits that surely fit into 64 bits."""
_GROUPS = {"en": ","}
ADDRESS = r"https?://\S+|\b[\w-]+(?:\.[\w-]+)+/\S*|\bwww\.\S+"
_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_FILE = r"(?<!\S)(?:[\w.-]*/)*[\w-]+\.[A-Za-z]\w{0,4}(?!\w)|(?<!\S)/?(?:[\w.-]+/)+[\w.-]*"
_CONVERTERS: Mapping[Kind, Callable[[str, Parameter, Reader], JSON]] = {
    Kind.ENUM: _as_enum,
    Kind.NUMBER: _as_number,
    Kind.FLAG: _as_flag,
    Kind.LIST: _as_list,
    Kind.EXPRESSION: _as_expression,
    Kind.WHEN: _as_when,
    Kind.PLACE: _as_place,
    Kind.FILE: _as_file,
    Kind.URL: _matching(ADDRESS),
    Kind.EMAIL: _matching(_EMAIL),
    Kind.QUANTITY: _as_quantity,
    Kind.UNIT: _as_unit,
    Kind.WORDS: _as_bare,
    Kind.TEXT: _as_text,
    Kind.OTHER: _as_nothing,
}
_HALVES = spaced("a an un half media medio meia meio")
_YES = spaced("yes si sim true on activado ativado enabled")
_NO = spaced("no nao false off desactivado desativado disabled without sin sem")
_NUMERALS: Mapping[str, int] = {
    word: number
    for number, listed in enumerate(
        (
            "zero cero", "one uno una um uma", "two dos dois duas", "three tres", "four cuatro quatro",
            "five cinco", "six seis", "seven siete sete", "eight ocho oito", "nine nueve nove",
            "ten diez dez",
        )
    )
    for word in listed.split()
}  # fmt: skip


def find(text: str, parameter: Parameter, reader: Reader) -> Found | None:
    """A value for the parameter somewhere in `text`; None where nothing in it is surely meant for it."""
    finder = _FINDERS.get(parameter.kind)
    found = finder(text, reader) if finder else None
    pieces = (found,) if isinstance(found, str) else found or ()
    if parameter.kind is Kind.ENUM:
        value = _as_enum(text, parameter, reader)
        return None if value is None else Found(value, (), _matching_words(text, str(value)))
    raw = " ".join(pieces)
    if not raw:
        return None
    value = convert(raw, parameter, reader)
    return None if value is None else Found(value, pieces, frozenset(words(raw)))


def _matching_words(text: str, choice: str) -> frozenset[str]:
    wanted = {stem(word) for word in words(choice)}
    return frozenset(word for word in words(text) if stem(word) in wanted)


def _first_match(pattern: str) -> Callable[[str, Reader], str | None]:
    def finder(text: str, reader: Reader) -> str | None:
        match = re.search(pattern, text)
        return match.group() if match else None

    return finder


_ARITHMETIC_STARTS = ("raiz", "sqrt", "square root", "la raiz", "half", "la mitad", "mitad", "metade")


def _find_expression(text: str, reader: Reader) -> str | None:
    """The longest run of words that is a calculation."""
    tokens = [match.span() for match in re.finditer(r"\S+", text)][:60]
    for length in range(len(tokens), 0, -1):
        for start in range(len(tokens) - length + 1):
            run = text[tokens[start][0] : tokens[start + length - 1][1]]
            starts = run[0] in "0123456789(-√½" or fold(run).startswith(_ARITHMETIC_STARTS)
            if starts and is_calculation(run.rstrip("?!., ")):
                return run
    return None


def _find_place(text: str, reader: Reader) -> str | None:
    """What stands after in/en/em/at …, up to the next mark; else a capitalised name."""
    match = re.search(r"\b(?:in|en|em|at|for|no|na|para|near|cerca de|perto de)\s+([^?!.,;\n]+)", text)
    if match is None:
        named = re.search(r"(?<=[^\W\d_] )[A-ZÁÉÍÓÚÂÊÔÃÕÑ][\w'-]+(?:\s+[A-ZÁÉÍÓÚ][\w'-]+)*", text)
        return named.group() if named else None
    return match.group(1).strip() or None


def _find_text(text: str, reader: Reader) -> str | None:
    """What is quoted, or what follows a colon."""
    quoted = re.search(r"[\"“«]([^\"”»]+)[\"”»]", text)
    if quoted:
        return quoted.group(1).strip()
    _, colon, after = text.partition(":")
    return after.strip() if colon and not re.match(r"//|\d", after) else None


def _find_when(text: str, reader: Reader) -> tuple[str, ...]:
    return find_moment(text, reader.person, reader.now())


_FINDERS: Mapping[Kind, Callable[[str, Reader], str | tuple[str, ...] | None]] = {
    Kind.NUMBER: _first_match(r"-?\d+(?:[.,]\d+)*"),
    Kind.EXPRESSION: _find_expression,
    Kind.WHEN: _find_when,
    Kind.PLACE: _find_place,
    Kind.FILE: _first_match(_FILE),
    Kind.URL: _first_match(ADDRESS),
    Kind.EMAIL: _first_match(_EMAIL),
    Kind.WORDS: _find_text,
    Kind.TEXT: _find_text,
    Kind.LIST: _find_text,
}


def after_lead(text: str, lead: int) -> str:
    """What is left of `text` once its first `lead` words and the small words after them are gone."""
    found = spans(text)
    while lead < len(found) and found[lead].text in ALL_STOP_WORDS:
        lead += 1
    return text[found[lead].start :].strip() if lead < len(found) else ""


_ALSO = re.compile(r"^(?:tamb[ií][eé]n|tamb[eé]m|tbm|tbn|tb|also|too)\b[\s,]*", re.IGNORECASE)
"""What is left in front of a text once its moment is taken out: "remind me also tomorrow to …"."""


def convert_several(raw: str, parameters: list[Parameter], reader: Reader) -> dict[str, JSON] | None:
    """One run of words that fills several parameters side by side; None where one of them finds nothing.

    What is easiest to tell (a number, a moment) is taken out first; a text takes what is left, and two texts
    are told apart by a colon between them.
    """
    values: dict[str, JSON] = {}
    left = raw
    texts = sum(parameter.kind in TAKES_THE_REST for parameter in parameters)
    for parameter in sorted(parameters, key=lambda one: one.kind in TAKES_THE_REST):
        if parameter.kind in TAKES_THE_REST:
            texts -= 1
            text, colon, left = left.partition(":") if texts else (left, "", "")
            if texts and not colon:
                return None
            values[parameter.name] = convert(_ALSO.sub("", text.strip(" ,.;:")), parameter, reader)
            continue
        found = find(left, parameter, reader)
        if found is None:
            return None
        values[parameter.name] = found.value
        for piece in found.pieces:
            left = " ".join(left.replace(piece, " ", 1).split())
    return values if all(value is not None for value in values.values()) else None
