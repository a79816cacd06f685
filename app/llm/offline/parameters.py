"""The tools offered now, and what each of their parameters wants according to its schema."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from app.messages import JSON
from app.search.words import spaced, words


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
_SHORT_TEXT = spaced("title name subject")
_IDENTIFIER = spaced("number id identifier")


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
        return _kind(self)

    @property
    def is_prose(self) -> bool:
        """Tell whether it takes text for its own sake, not words that name something which exists."""
        if self.kind is not Kind.TEXT or set(words(self.description)) & _IDENTIFIER:
            return False
        return not set(words(self.name)) & _SHORT_TEXT


@dataclass(frozen=True)
class Offer:
    """A tool that the model may call now."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.required)

    def parameter(self, name: str) -> Parameter | None:
        return next((one for one in self.parameters if one.name == name), None)


def read_offer(tool: Mapping[str, JSON]) -> Offer | None:
    """Return the offer of a function form, None for anything else."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    schema = function.get("parameters")
    schema = schema if isinstance(schema, Mapping) else {}
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = set(required) if isinstance(required, list) else set()
    parameters = tuple(
        Parameter(name, inner if isinstance(inner, Mapping) else {}, name in wanted)
        for name, inner in (properties.items() if isinstance(properties, Mapping) else ())
    )
    return Offer(function["name"], str(function.get("description") or ""), parameters)


def offer_of_document(name: str, described: Mapping[str, str]) -> Offer:
    """Return a tool as the index knows it: its parameters as texts with their descriptions."""
    texts = (Parameter(one, {"type": "string", "description": text}, True) for one, text in described.items())
    return Offer(name, "", tuple(texts))


def type_of(schema: Mapping[str, JSON]) -> str:
    """Return the JSON type that a schema wants; of several the first but null, strings before others."""
    type_ = schema.get("type")
    if isinstance(type_, list):
        return "string" if "string" in type_ else next((str(one) for one in type_ if one != "null"), "string")
    if isinstance(type_, str):
        return type_
    choices = [one for key in ("anyOf", "oneOf") for one in schema.get(key) or () if isinstance(one, Mapping)]
    types = [type_of(one) for one in choices if one.get("type") != "null"]
    return "string" if "string" in types or not types else types[0]


_BY_TYPE = {
    "integer": Kind.NUMBER,
    "number": Kind.NUMBER,
    "boolean": Kind.FLAG,
    "array": Kind.LIST,
    "object": Kind.OTHER,
}
_BY_NAME: tuple[tuple[Kind, frozenset[str]], ...] = (
    (Kind.EXPRESSION, spaced("expression formula calculation arithmetic expresion operation sum")),
    (Kind.TEXT, spaced("text content body note message title name subject")),
    (Kind.WORDS, spaced("query keyword keywords words term terms search")),
    (Kind.QUANTITY, spaced("quantity measurement")),
    (Kind.UNIT, spaced("unit currency")),
    (Kind.NUMBER, spaced("rate")),
    (Kind.URL, spaced("url link uri address")),
    (Kind.EMAIL, spaced("email mail")),
    (Kind.FILE, spaced("path file filename folder directory")),
    (
        Kind.PLACE,
        spaced("place city location country town region timezone zone lugar ciudad origin destination"),
    ),
    (
        Kind.WHEN,
        spaced("date time when datetime day due deadline start end until since fecha hora at moment"),
    ),
)
_BY_DESCRIPTION: tuple[tuple[Kind, frozenset[str]], ...] = (
    (Kind.EXPRESSION, spaced("arithmetic formula")),
    (Kind.URL, spaced("url")),
    (Kind.PLACE, spaced("city town country")),
    (Kind.WHEN, spaced("date iso")),
)


def _kind(parameter: Parameter) -> Kind:
    schema = parameter.schema
    if isinstance(schema.get("enum"), list):
        return Kind.ENUM
    if (kind := _BY_TYPE.get(type_of(schema))) is not None:
        return kind
    if schema.get("format") in {"date", "date-time", "time"}:
        return Kind.WHEN
    named = words(parameter.name)
    for kind, marks in _BY_NAME:
        if any(word in marks for word in named):
            return kind
    described = set(words(re.split(r"[.;(]", parameter.description, maxsplit=1)[0]))
    return next((kind for kind, marks in _BY_DESCRIPTION if described & marks), Kind.TEXT)
