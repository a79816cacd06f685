"""A server's schema of arguments in the plain form that every model server takes.

References are replaced by what they point to, `allOf` is merged, `oneOf` and a list of types become `anyOf`;
objects name their properties and arrays their items. The plain form accepts whatever the original accepts,
for the server has the last word, with two exceptions: arguments that no part declares are unknown, and a
schema with properties or items is an object or an array although it does not say so.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from urllib.parse import unquote

from app.messages import JSON
from app.text import visible_lines
from app.tools.plain import dumps, is_small
from app.tools.schema import LARGEST_SCHEMA, LONGEST_DESCRIPTION, Schema, shortened
from app.tools.validation import KINDS, describe_value, is_integer

# How deep, and with how long descriptions, until one attempt is small enough.
_ATTEMPTS = ((24, LONGEST_DESCRIPTION), (24, 120), (6, 120), (2, 80), (1, 0))
_MAX_PARTS = 1500
_MAX_BRANCHES = 100
_MAX_VALUES = 200
_LONGEST_VALUES = 4096
_LARGEST_DEFAULT = 500
_LONGEST_WORD = 200

_NUMBER_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_KEPT = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": _NUMBER_BOUNDS,
    "number": _NUMBER_BOUNDS,
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NOTES = ("description", "default")
# Keywords that are not read and may declare properties.
_OTHER_DECLARATIONS = ("if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties")
# Parts of patterns that our engine may read in another, stricter way than the server's.
_UNPORTABLE = (r"\W", r"\D", r"\S", r"\B", r"\b", r"\<", r"\>", "&&", "--", "~~", "[[", "[^")

# A schema on its way into the plain form: it takes anything, or has a `type`, or is an `anyOf` of such with
# a type; each with notes. `default` may be null, and objects need not have properties.
Node = dict[str, JSON]
# The references around a schema.
_Above = tuple[str, ...]


class Unusable(ValueError):
    """A schema of which no tool can be made; the text says why."""


class _TooManyParts(Exception):
    """A schema with more parts than may be read."""


def normalize_schema(schema: JSON) -> Schema:
    """Return the plain form: an object with properties, of at most 16 KiB. Raises Unusable.

    Where it would be larger, descriptions are cut first, then what lies deep is left to the server.
    """
    if not isinstance(schema, Mapping):
        raise Unusable("its inputSchema is no object")
    if "type" in schema and "object" not in _types(schema):
        raise Unusable(f"its inputSchema is to be of type object, got {describe_value(schema['type'])}")
    too_deep = math.inf
    for depth, longest in _ATTEMPTS:
        if depth >= too_deep:
            continue
        try:
            made = _Normalizer(schema, longest).whole(depth)
        except _TooManyParts:
            too_deep = depth
            continue
        if is_small(made, LARGEST_SCHEMA) and len(dumps(made)) <= LARGEST_SCHEMA:
            return made
    raise Unusable(f"its parameters are more than {LARGEST_SCHEMA // 1024} KiB")


def accepts_null(schema: JSON) -> bool:
    """Tell whether a schema in the plain form names null."""
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") == "null" or any(map(accepts_null, schema.get("anyOf", ())))


def clean_text(text: str, most: int) -> str:
    """Return the first `most` characters of a text, with hidden characters made visible."""
    return visible_lines("\n".join(text[:most].replace("\t", "    ").splitlines())).strip()


class _Normalizer:
    """Normalizes one schema in one attempt."""

    def __init__(self, root: Mapping[str, JSON], longest_description: int) -> None:
        self._root = root
        self._longest_description = longest_description
        self._parts_left = _MAX_PARTS

    def whole(self, depth: int) -> Schema:
        """Return the schema of all arguments. Raises Unusable, _TooManyParts."""
        node = self._read(self._root, depth, ("#",))
        if node is not None and not _restricts(node):
            node = {**node, "type": "object"}
        objects = [branch for branch in _branches(node) if branch["type"] == "object"]
        if not objects:
            raise Unusable("no object fits its inputSchema")
        node = self._join_objects(objects)
        is_open = "properties" not in node or node.get("additionalProperties") is True
        made = self._finish(node)
        return {**made, "additionalProperties": True} if is_open else made

    def _read(self, raw: JSON, depth: int, above: _Above) -> Node | None:
        """Return a schema as a node, None if no value can fit it."""
        self._spend()
        if raw is False:
            return None
        if not isinstance(raw, Mapping):
            return {}
        node = self._read_types(raw, depth, above)
        if depth == 0:
            return node
        if isinstance(raw.get("$ref"), str):
            node = self._merge(node, self._referenced(raw["$ref"], depth - 1, above))
        for part in _list(raw.get("allOf")):
            node = self._merge(node, self._read(part, depth - 1, above))
        for key in ("anyOf", "oneOf"):
            branches = _list(raw.get(key))
            if branches and len(branches) <= _MAX_BRANCHES:
                node = self._merge(node, _union([self._read(part, depth - 1, above) for part in branches]))
        return node

    def _referenced(self, reference: str, depth: int, above: _Above) -> Node | None:
        """Return what a local reference points to; a recursive one twice, then only its type."""
        depth = 0 if above.count(reference) > 1 else depth
        return self._read(self._target(reference), depth, (*above, reference))

    def _target(self, reference: str) -> JSON:
        """Return the schema at a reference; True, which takes anything, if it is not here."""
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

    def _read_types(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node | None:
        """Return the schema without references and combinations."""
        kinds = _types(raw)
        values = [raw["const"]] if "const" in raw else _list(raw.get("enum")) or None
        if values is not None:
            values = [value for value in values if not kinds or any(KINDS[kind](value) for kind in kinds)]
            if not values:
                return None
            kinds = {next(kind for kind, fits in KINDS.items() if fits(value)) for value in values}
            if len(values) > _MAX_VALUES or len(dumps(values)) > _LONGEST_VALUES:
                values = None
        if "number" in kinds:
            kinds.discard("integer")
        if not kinds or len(kinds) == len(KINDS) - 1:
            return self._notes(raw)
        if raw.get("nullable") is True:  # as OpenAPI says it
            kinds.add("null")
        node = _union([self._of_type(kind, raw, values, depth, above) for kind in KINDS if kind in kinds])
        return {**(node or {}), **self._notes(raw)}

    def _of_type(
        self, kind: str, raw: Mapping[str, JSON], values: list[JSON] | None, depth: int, above: _Above
    ) -> Node:
        if values is not None and kind != "null":
            return {"type": kind, "enum": [value for value in values if KINDS[kind](value)]}
        node: Node = {"type": kind}
        node |= {key: raw[key] for key in _KEPT.get(kind, ()) if _is_valid_keyword(key, raw.get(key))}
        if kind in ("integer", "number"):
            _make_inclusive(node)
        elif kind == "object" and depth:
            node |= self._object(raw, depth - 1, above)
        elif kind == "array" and depth:
            node |= self._array(raw, depth - 1, above)
        return node

    def _object(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node:
        node: Node = {}
        properties = raw.get("properties")
        if isinstance(properties, Mapping):
            parts = ((name, self._read(part, depth, above)) for name, part in properties.items())
            node["properties"] = {name: part for name, part in parts if part is not None}
        elif properties == []:  # an empty object as PHP writes it
            node["properties"] = {}
        if required := [name for name in _list(raw.get("required")) if isinstance(name, str)]:
            self._spend(len(required))
            node["required"] = list(dict.fromkeys(required))
        extra = self._extra(raw, depth, above)
        return node if extra is None else {**node, "additionalProperties": extra}

    def _extra(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> JSON:
        """Return what properties of other names may be: a node, True, False, None if it is not said."""
        given, patterns = raw.get("additionalProperties"), raw.get("patternProperties")
        by_pattern = list(patterns.values()) if isinstance(patterns, Mapping) else []
        if given is None and not by_pattern:
            return True if any(raw.get(key) not in (None, False) for key in _OTHER_DECLARATIONS) else None
        extra = _union([self._read(part, depth, above) for part in (*by_pattern, given)])
        if extra is None:
            return False
        return extra if _restricts(extra) else True

    def _array(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node:
        """Return the items; of items that differ by their place each may be any of them."""
        items = raw.get("items")
        firsts = items if isinstance(items, list) else _list(raw.get("prefixItems"))
        rest = raw.get("additionalItems") if isinstance(items, list) else items
        node: Node = {"items": _union([self._read(part, depth, above) for part in (*firsts, rest)]) or {}}
        is_closed = firsts and rest is False and not is_integer(raw.get("maxItems"))
        return {**node, "maxItems": len(firsts)} if is_closed else node

    def _notes(self, raw: Mapping[str, JSON]) -> Node:
        notes: Node = {}
        said, longest = raw.get("description"), self._longest_description
        if isinstance(said, str) and said and longest:
            notes["description"] = shortened(clean_text(said, longest + 1), longest)
        if "default" in raw and is_small(raw["default"], _LARGEST_DEFAULT):
            notes["default"] = raw["default"]
        return notes

    def _merge(self, one: Node | None, other: Node | None) -> Node | None:
        """Return what fits both, or more if that cannot be expressed; None if nothing does.

        The notes of the first win. Raises _TooManyParts.
        """
        self._spend()
        if one is None or other is None:
            return None
        made: Node | None = one
        if not _restricts(one):
            made = other
        elif _restricts(other):
            pairs = list(product(_branches(one), _branches(other)))
            if len(pairs) <= _MAX_BRANCHES:
                made = _union([self._merge_types(*pair) for pair in pairs])
        notes = {key: node[key] for node in (other, one) for key in _NOTES if key in node}
        return None if made is None else {**made, **notes}

    def _merge_types(self, one: Node, other: Node) -> Node | None:
        self._spend()
        kinds = {one["type"], other["type"]}
        if len(kinds) > 1 and kinds != {"integer", "number"}:
            return None
        made: Node = {**other, **one, "type": "integer" if "integer" in kinds else one["type"]}
        if "enum" in made:
            others: list[JSON] = other["enum"] if "enum" in other else made["enum"]
            fits = KINDS[made["type"]]
            made["enum"] = [value for value in made["enum"] if value in others and fits(value)]
            if not made["enum"]:
                return None
        for key in one.keys() & other.keys():
            if key.startswith(("min", "max")):
                made[key] = (max if key.startswith("min") else min)(one[key], other[key])
        if made["type"] == "array":
            made["items"] = self._merge(one.get("items", {}), other.get("items", {})) or {}
        if "properties" in one and "properties" in other:
            first, second = one["properties"], other["properties"]
            self._spend(len(first) + len(second))
            shared = {name: self._merge(first[name], second[name]) for name in first if name in second}
            every = {**first, **second, **shared}
            made["properties"] = {name: part for name, part in every.items() if part is not None}
        if "required" in made:
            made["required"] = list(dict.fromkeys((*one.get("required", ()), *other.get("required", ()))))
            self._spend(len(made["required"]))
        extras = [node["additionalProperties"] for node in (one, other) if "additionalProperties" in node]
        if extras:
            made["additionalProperties"] = min(extras, key=lambda extra: (extra is not False, extra is True))
        return made

    def _join_objects(self, objects: list[Node]) -> Node:
        """Return one object that takes what any of these takes: model servers refuse a top-level `anyOf`."""
        if len(objects) == 1:
            return objects[0]
        names = list(dict.fromkeys(name for node in objects for name in node.get("properties", ())))
        self._spend(len(names) * len(objects))
        properties = {
            name: _union([node["properties"][name] for node in objects if name in node.get("properties", ())])
            for name in names
        }
        required = set.intersection(*(set(node.get("required", ())) for node in objects))
        is_open = any(node.get("additionalProperties") or "properties" not in node for node in objects)
        made: Node = {"type": "object", "properties": properties, "required": sorted(required)}
        return {**made, "additionalProperties": True} if is_open else made

    def _finish(self, node: Node, *, may_be_left_out: bool = False) -> Schema:
        """Return the node in the plain form. A null that is only the default of an optional one is left out.

        Raises _TooManyParts.
        """
        self._spend()
        made = {key: value for key, value in node.items() if key != "default" or value is not None}
        if "anyOf" in node:
            branches = made.pop("anyOf")
            if may_be_left_out and node.get("default", True) is None:
                branches = [branch for branch in branches if branch["type"] != "null"]
            branches = [self._finish(branch) for branch in branches]
            return {**(branches[0] if len(branches) == 1 else {"anyOf": branches}), **made}
        if made.get("type") == "array":
            made["items"] = self._finish(made.get("items", {}))
        elif made.get("type") == "object":
            self._finish_object(made)
        return made

    def _finish_object(self, node: Node) -> None:
        """Name every required property: some model servers refuse an object otherwise."""
        required = node.get("required", ())
        self._spend(len(required))
        properties = dict(node.get("properties", {}))
        for name in required:
            properties.setdefault(name, {})
        node["properties"] = {
            name: self._finish(part, may_be_left_out=name not in required)
            for name, part in properties.items()
        }
        extra = node.get("additionalProperties")
        if extra is True:
            del node["additionalProperties"]
        elif isinstance(extra, dict):
            node["additionalProperties"] = self._finish(extra)

    def _spend(self, parts: int = 1) -> None:
        """Count parts that are read. Raises _TooManyParts beyond the limit."""
        self._parts_left -= parts
        if self._parts_left < 0:
            raise _TooManyParts


def _types(raw: Mapping[str, JSON]) -> set[str]:
    """Return the types that a schema names, or is of by its parts; none if one of them is unknown."""
    given = raw.get("type")
    named = given if isinstance(given, list) else [given]
    if named and all(isinstance(kind, str) and kind in KINDS for kind in named):
        return set(named)
    if isinstance(raw.get("properties"), Mapping):
        return {"object"}
    return {"array"} if isinstance(raw.get("items"), Mapping) else set()


def _is_valid_keyword(key: str, value: JSON) -> bool:
    """Tell whether a bound, pattern or format can be used."""
    if key in ("pattern", "format"):
        is_word = isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD
        return is_word and not (key == "pattern" and any(part in value for part in _UNPORTABLE))
    if key in _NUMBER_BOUNDS:
        return KINDS["number"](value) and abs(value) < 2**63 and math.isfinite(value)
    return is_integer(value) and 0 <= value < 2**31


def _make_inclusive(node: Node) -> None:
    """Write bounds as every model server knows them: exact for integers, a little wider for numbers."""
    is_whole = node["type"] == "integer"
    if (low := node.pop("exclusiveMinimum", None)) is not None:
        low = math.floor(low) + 1 if is_whole else low
        node["minimum"] = max(low, node.get("minimum", low))
    if (high := node.pop("exclusiveMaximum", None)) is not None:
        high = math.ceil(high) - 1 if is_whole else high
        node["maximum"] = min(high, node.get("maximum", high))


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _restricts(node: Node) -> bool:
    """Tell whether there are values that do not fit."""
    return "type" in node or "anyOf" in node


def _branches(node: Node | None) -> list[Node]:
    if node is None:
        return []
    branches: list[Node] = node.get("anyOf", [node])
    return branches


def _union(nodes: Iterable[Node | None]) -> Node | None:
    """Return what fits at least one of them, null last and enums of one type as one; None if nothing does."""
    given = [node for node in nodes if node is not None]
    if len(given) < 2:
        return given[0] if given else None
    kept: list[Node] = []
    for branch in (branch for node in given for branch in _branches(node)):
        if not _restricts(branch):
            return {}
        _add_branch(kept, branch)
    kept.sort(key=lambda branch: branch["type"] == "null")
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _add_branch(kept: list[Node], branch: Node) -> None:
    for at, one in enumerate(kept):
        if one.keys() == branch.keys() == {"type", "enum"} and one["type"] == branch["type"]:
            values = [*one["enum"], *(value for value in branch["enum"] if value not in one["enum"])]
            kept[at] = {**one, "enum": values} if len(values) <= _MAX_VALUES else {"type": one["type"]}
            return
    if branch not in kept:
        kept.append(branch)
