"""What tools the model may call now, and what each of their parameters wants, by its schema."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.messages import JSON
from app.search.words import spaced, words


class Kind(StrEnum):
    """What a parameter wants."""

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


TAKES_THE_REST = frozenset({Kind.TEXT, Kind.WORDS, Kind.OTHER})
"""Kinds that any words can be: they take what the others leave."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an offered tool."""

    name: str
    schema: Mapping[str, JSON]
    required: bool

    @property
    def description(self) -> str:
        return str(self.schema.get("description") or "")

    @property
    def kind(self) -> Kind:
        return _kind(self)

    @property
    def is_prose(self) -> bool:
        """Whether it takes text for its own sake, not words that name something which exists."""
        if self.kind is not Kind.TEXT or set(words(self.description)) & _NAMES_SOMETHING:
            return False
        return not set(words(self.name)) & _SHORT_TEXT


_SHORT_TEXT = spaced("title name subject")
_NAMES_SOMETHING = spaced("number id identifier")


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool the model may call now."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.required)

    def parameter(self, name: str) -> Parameter | None:
        return next((one for one in self.parameters if one.name == name), None)


def offer_of(name: str, described: Mapping[str, str]) -> Offer:
    """A tool as the index has it: of its parameters, all texts, their descriptions."""
    texts = (Parameter(one, {"type": "string", "description": text}, True) for one, text in described.items())
    return Offer(name, "", tuple(texts))


def read_offer(tool: Mapping[str, JSON]) -> Offer | None:
    """An offer from its function form; None for anything else."""
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


_BY_NAME: tuple[tuple[Kind, frozenset[str]], ...] = (
    (Kind.EXPRESSION, spaced("expression formula calculation arithmetic expresion operation sum")),
    (
        Kind.TEXT,
        spaced("text content body note message title name subject"),
    ),
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
    type_ = type_of(schema)
    if isinstance(schema.get("enum"), list):
        return Kind.ENUM
    if type_ in {"integer", "number"}:
        return Kind.NUMBER
    if type_ == "boolean":
        return Kind.FLAG
    if type_ == "array":
        return Kind.LIST
    if type_ == "object":
        return Kind.OTHER
    if schema.get("format") in {"date", "date-time", "time"}:
        return Kind.WHEN
    named = words(parameter.name)
    for kind, marks in _BY_NAME:
        if any(word in marks for word in named):
            return kind
    described = set(words(re.split(r"[.;(]", parameter.description, maxsplit=1)[0]))
    return next((kind for kind, marks in _BY_DESCRIPTION if described & marks), Kind.TEXT)


def type_of(schema: Mapping[str, JSON]) -> str:
    """The JSON type that a schema wants; of several the first that is no null, text before others."""
    type_ = schema.get("type")
    if isinstance(type_, list):
        return "string" if "string" in type_ else next((str(one) for one in type_ if one != "null"), "string")
    if isinstance(type_, str):
        return type_
    choices = [one for key in ("anyOf", "oneOf") for one in schema.get(key) or () if isinstance(one, Mapping)]
    types = [type_of(one) for one in choices if one.get("type") != "null"]
    return "string" if "string" in types or not types else types[0]
