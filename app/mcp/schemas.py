"""A server's schema of arguments in the plain form that every model server takes.

References stand where they are used, `allOf` is merged, `oneOf` is `anyOf`, a list of types too; objects name
their properties and arrays their items. It accepts whatever the original accepts, for the server has the last
word, with two exceptions: arguments that no part of it declares are unknown, and what has properties or items
is an object or an array although it does not say so.
"""

import math
from collections.abc import Mapping
from urllib.parse import unquote

from app.mcp.nodes import (
    MOST_BRANCHES,
    MOST_VALUES,
    Budget,
    Node,
    TooMuch,
    both,
    either,
    says_something,
    union,
    written,
)
from app.messages import JSON
from app.text import visible_lines
from app.tools.plain import dumps, is_small
from app.tools.schema import LARGEST_SCHEMA, LONGEST_DESCRIPTION, Schema, shortened
from app.tools.validation import KINDS, describe_value, is_integer

_ATTEMPTS = ((24, LONGEST_DESCRIPTION), (24, 120), (6, 120), (2, 80), (1, 0))
"""How deep, and with how long descriptions, until one is small enough."""
_MOST_PARTS = 1500
_LONGEST_VALUES = 4096
_LARGEST_DEFAULT = 500
_LONGEST_WORD = 200

_KEPT = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NAMES_ELSEWHERE = ("if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties")
"""Keywords that are not read and may declare properties."""
_UNLIKE = (r"\W", r"\D", r"\S", r"\B", r"\b", r"\<", r"\>", "&&", "--", "~~", "[[", "[^")
"""Parts of patterns that our engine may read otherwise, and stricter, than the server's."""

_Above = tuple[str, ...]
"""The references that a schema stands in."""


class Unusable(ValueError):
    """A schema of which no tool can be made; the text says why."""


def lowered(schema: JSON) -> Schema:
    """The plain form: an object with properties, of at most 16 KiB. Raises Unusable.

    Where it would be larger, descriptions are cut first, then what lies deep is left to the server.
    """
    if not isinstance(schema, Mapping):
        raise Unusable("its inputSchema is no object")
    if "type" in schema and "object" not in _kinds(schema["type"]):
        raise Unusable(f"its inputSchema is to be of type object, got {describe_value(schema['type'])}")
    too_deep = math.inf
    for depth, longest in _ATTEMPTS:
        if depth >= too_deep:
            continue
        try:
            made = _Reader(schema, longest).whole(depth)
        except TooMuch:
            too_deep = depth
            continue
        if is_small(made, LARGEST_SCHEMA) and len(dumps(made)) <= LARGEST_SCHEMA:
            return made
    raise Unusable(f"its parameters are more than {LARGEST_SCHEMA // 1024} KiB")


def takes_null(schema: JSON) -> bool:
    """Whether a schema in the plain form names null."""
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") == "null" or any(map(takes_null, schema.get("anyOf", ())))


def readable(text: str, most: int) -> str:
    """The first `most` characters of a text, with what cannot be seen in it written out."""
    return visible_lines("\n".join(text[:most].replace("\t", "    ").splitlines())).strip()


class _Reader:
    """Reads one schema in one attempt."""

    def __init__(self, root: Mapping[str, JSON], longest_description: int) -> None:
        self._root = root
        self._longest_description = longest_description
        self._budget = Budget(_MOST_PARTS)

    def whole(self, depth: int) -> Schema:
        """The schema of all arguments. Raises Unusable, TooMuch."""
        node = self._node(self._root, depth, ("#",))
        if node is not None and not says_something(node):
            node = {**node, "type": "object"}
        branches = node.get("anyOf", [node]) if node is not None else []
        objects = [branch for branch in branches if branch.get("type") == "object"]
        if not objects:
            raise Unusable("no object fits its inputSchema")
        node = {key: value for key, value in either(objects, self._budget).items() if key != "nullable"}
        is_open = "properties" not in node or node.get("additionalProperties") is True
        made = written(node, self._budget)
        return {**made, "additionalProperties": True} if is_open else made

    def _node(self, raw: JSON, depth: int, above: _Above) -> Node | None:
        """One schema as a node, None where nothing can fit it."""
        self._budget.spend()
        if raw is False:
            return None
        if not isinstance(raw, Mapping):
            return {}
        node = self._own(raw, depth, above)
        if depth == 0:
            return node
        if isinstance(raw.get("$ref"), str):
            node = both(node, self._referred(raw["$ref"], depth - 1, above), self._budget)
        for part in _list(raw.get("allOf")):
            node = both(node, self._node(part, depth - 1, above), self._budget)
        for key in ("anyOf", "oneOf"):
            branches = _list(raw.get(key))
            if branches and len(branches) <= MOST_BRANCHES:
                made = union([self._node(branch, depth - 1, above) for branch in branches])
                node = both(node, made, self._budget)
        return node

    def _referred(self, reference: str, depth: int, above: _Above) -> Node | None:
        """What a local reference points to; of one that holds itself just the kind."""
        depth = 0 if reference in above else depth
        return self._node(self._target(reference), depth, (*above, reference))

    def _target(self, reference: str) -> JSON:
        """True, which takes anything, for what is not here."""
        found: JSON = self._root
        if not reference.startswith("#"):
            return True
        for step in filter(None, unquote(reference[1:]).split("/")):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdecimal() and len(step) < 5 and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, Mapping) and step in found:
                found = found[step]
            else:
                return True
        return found

    def _own(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node | None:
        """What the schema says itself, without references and combinations."""
        notes = self._notes(raw)
        kinds = _kinds(raw.get("type")) or _implied(raw)
        listed = [raw["const"]] if "const" in raw else _list(raw.get("enum")) or None
        if listed is not None:
            listed = [value for value in listed if not kinds or any(KINDS[kind](value) for kind in kinds)]
            if not listed:
                return None
            kinds = {_kind(value) for value in listed}
            if len(listed) > MOST_VALUES or len(dumps(listed)) > _LONGEST_VALUES:
                listed = None
        if "number" in kinds:
            kinds.discard("integer")
        if not kinds or len(kinds) == len(KINDS) - 1:
            return notes
        node = union([self._of_kind(kind, raw, listed, depth, above) for kind in KINDS if kind in kinds])
        if node is not None and raw.get("nullable") is True:  # as OpenAPI says it
            node["nullable"] = True
        return None if node is None else {**node, **notes}

    def _of_kind(
        self, kind: str, raw: Mapping[str, JSON], listed: list[JSON] | None, depth: int, above: _Above
    ) -> Node:
        if listed is not None and kind != "null":
            return {"type": kind, "enum": [value for value in listed if KINDS[kind](value)]}
        node: Node = {"type": kind}
        node |= {key: raw[key] for key in _KEPT.get(kind, ()) if _is_meant(key, raw.get(key))}
        if kind == "object" and depth:
            node |= self._object(raw, depth - 1, above)
        if kind == "array" and depth:
            node |= self._array(raw, depth - 1, above)
        return node

    def _object(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node:
        node: Node = {}
        properties = raw.get("properties")
        if isinstance(properties, Mapping):
            parts = ((name, self._node(part, depth, above)) for name, part in properties.items())
            node["properties"] = {name: part for name, part in parts if part is not None}
        elif properties == []:  # an empty object as PHP writes it
            node["properties"] = {}
        if required := [name for name in _list(raw.get("required")) if isinstance(name, str)]:
            self._budget.spend(len(required))
            node["required"] = list(dict.fromkeys(required))
        extra = self._extra(raw, depth, above)
        return node if extra is None else {**node, "additionalProperties": extra}

    def _extra(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> JSON:
        """What properties of other names may be: a node, True, False, None where nothing is said."""
        given = raw.get("additionalProperties")
        patterns = raw.get("patternProperties")
        if given is None and any(raw.get(key) not in (None, False) for key in _NAMES_ELSEWHERE):
            return True
        if not isinstance(patterns, Mapping) or not patterns:
            if not isinstance(given, Mapping):
                return given if isinstance(given, bool) else None
            extra = self._node(given, depth, above)
        elif given is False or isinstance(given, Mapping):
            extra = union([self._node(one, depth, above) for one in (*patterns.values(), given)])
        else:
            return True
        if extra is None:
            return False
        return extra if says_something(extra) else True

    def _array(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node:
        """Its items; those that are told apart by their place may all be each of them."""
        items = raw.get("items")
        firsts = items if isinstance(items, list) else _list(raw.get("prefixItems"))
        rest = raw.get("additionalItems") if isinstance(items, list) else items
        if not firsts:
            node = self._node(items, depth, above) if isinstance(items, Mapping) else None
            return {"items": node} if node else {}
        is_closed = rest is False and not is_integer(raw.get("maxItems"))
        most: Node = {"maxItems": len(firsts)} if is_closed else {}
        node = union([self._node(part, depth, above) for part in (*firsts, True if rest is None else rest)])
        return {**most, "items": node} if node else most

    def _notes(self, raw: Mapping[str, JSON]) -> Node:
        notes: Node = {}
        said, longest = raw.get("description"), self._longest_description
        if isinstance(said, str) and said and longest:
            notes["description"] = shortened(readable(said, longest + 1), longest)
        if "default" in raw and is_small(raw["default"], _LARGEST_DEFAULT):
            notes["default"] = raw["default"]
        return notes


def _kinds(given: JSON) -> set[str]:
    """The types that a schema names; none where one of them is not known."""
    named = given if isinstance(given, list) else [given]
    return set(named) if all(isinstance(kind, str) and kind in KINDS for kind in named) else set()


def _implied(raw: Mapping[str, JSON]) -> set[str]:
    if isinstance(raw.get("properties"), Mapping):
        return {"object"}
    return {"array"} if isinstance(raw.get("items"), Mapping) else set()


def _kind(value: JSON) -> str:
    return next(kind for kind, fits in KINDS.items() if fits(value))


def _is_meant(key: str, value: JSON) -> bool:
    """Whether a bound, pattern or format is one."""
    if key == "pattern":
        return isinstance(value, str) and len(value) <= _LONGEST_WORD and not any(p in value for p in _UNLIKE)
    if key == "format":
        return isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD
    if key.endswith("imum"):
        return KINDS["number"](value) and abs(value) < 2**63 and math.isfinite(value)
    return is_integer(value) and 0 <= value < 2**31


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
