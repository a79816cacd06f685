"""A server's schema of arguments in the plain form that every model server takes.

References are replaced by what they point to, `allOf` is merged, `oneOf` and a list of types become `anyOf`;
objects name their properties and arrays their items. The plain form accepts whatever the original accepts,
for the server has the last word, with two exceptions: arguments that no part declares are unknown, and a
schema with properties or items is an object or an array although it does not say so.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
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

_KEPT = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NOTES = ("description", "default")
# Keywords that are not read and may declare properties.
_OTHER_DECLARATIONS = ("if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties")
# Parts of patterns that our engine may read in another, stricter way than the server's.
_UNPORTABLE = (r"\W", r"\D", r"\S", r"\B", r"\b", r"\<", r"\>", "&&", "--", "~~", "[[", "[^")

# A schema on its way into the plain form: `nullable` says whether null fits too, `default` may be null, and
# objects and arrays need not have properties and items. Without any keyword but notes it takes anything.
Node = dict[str, JSON]
_ANYTHING: Node = {}
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
    if "type" in schema and "object" not in _types(schema["type"]):
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
        node = self._node(self._root, depth, ("#",))
        if node is not None and not _restricts(node):
            node = {**node, "type": "object"}
        branches = node.get("anyOf", [node]) if node is not None else []
        objects = [branch for branch in branches if branch.get("type") == "object"]
        if not objects:
            raise Unusable("no object fits its inputSchema")
        node = {key: value for key, value in self._merge_any_of(objects).items() if key != "nullable"}
        is_open = "properties" not in node or node.get("additionalProperties") is True
        made = self._to_schema(node)
        return {**made, "additionalProperties": True} if is_open else made

    def _node(self, raw: JSON, depth: int, above: _Above) -> Node | None:
        """Return a schema as a node, None if no value can fit it."""
        self._spend()
        if raw is False:
            return None
        if not isinstance(raw, Mapping):
            return {}
        node = self._without_parts(raw, depth, above)
        if depth == 0:
            return node
        if isinstance(raw.get("$ref"), str):
            node = self._merge_all_of(node, self._referenced(raw["$ref"], depth - 1, above))
        for part in _list(raw.get("allOf")):
            node = self._merge_all_of(node, self._node(part, depth - 1, above))
        for key in ("anyOf", "oneOf"):
            branches = _list(raw.get(key))
            if branches and len(branches) <= _MAX_BRANCHES:
                made = _union([self._node(branch, depth - 1, above) for branch in branches])
                node = self._merge_all_of(node, made)
        return node

    def _referenced(self, reference: str, depth: int, above: _Above) -> Node | None:
        """Return what a local reference points to; a recursive one twice, then only its type."""
        depth = 0 if above.count(reference) > 1 else depth
        return self._node(self._target(reference), depth, (*above, reference))

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

    def _without_parts(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node | None:
        """Return the schema without references and combinations."""
        notes = self._notes(raw)
        kinds = _types(raw.get("type")) or _implied_types(raw)
        listed = [raw["const"]] if "const" in raw else _list(raw.get("enum")) or None
        if listed is not None:
            listed = [value for value in listed if not kinds or any(KINDS[kind](value) for kind in kinds)]
            if not listed:
                return None
            kinds = {_type_of(value) for value in listed}
            if len(listed) > _MAX_VALUES or len(dumps(listed)) > _LONGEST_VALUES:
                listed = None
        if "number" in kinds:
            kinds.discard("integer")
        if not kinds or len(kinds) == len(KINDS) - 1:
            return notes
        node = _union([self._of_type(kind, raw, listed, depth, above) for kind in KINDS if kind in kinds])
        if node is not None and raw.get("nullable") is True:  # as OpenAPI says it
            node["nullable"] = True
        return None if node is None else {**node, **notes}

    def _of_type(
        self, kind: str, raw: Mapping[str, JSON], listed: list[JSON] | None, depth: int, above: _Above
    ) -> Node:
        if listed is not None and kind != "null":
            return {"type": kind, "enum": [value for value in listed if KINDS[kind](value)]}
        node: Node = {"type": kind}
        node |= {key: raw[key] for key in _KEPT.get(kind, ()) if _is_valid_keyword(key, raw.get(key))}
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
            self._spend(len(required))
            node["required"] = list(dict.fromkeys(required))
        extra = self._extra(raw, depth, above)
        return node if extra is None else {**node, "additionalProperties": extra}

    def _extra(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> JSON:
        """Return what properties of other names may be: a node, True, False, None if it is not said."""
        given = raw.get("additionalProperties")
        patterns = raw.get("patternProperties")
        if given is None and any(raw.get(key) not in (None, False) for key in _OTHER_DECLARATIONS):
            return True
        if not isinstance(patterns, Mapping) or not patterns:
            if not isinstance(given, Mapping):
                return given if isinstance(given, bool) else None
            extra = self._node(given, depth, above)
        elif given is False or isinstance(given, Mapping):
            extra = _union([self._node(one, depth, above) for one in (*patterns.values(), given)])
        else:
            return True
        if extra is None:
            return False
        return extra if _restricts(extra) else True

    def _array(self, raw: Mapping[str, JSON], depth: int, above: _Above) -> Node:
        """Return the items; of items that differ by their place each may be any of them."""
        items = raw.get("items")
        firsts = items if isinstance(items, list) else _list(raw.get("prefixItems"))
        rest = raw.get("additionalItems") if isinstance(items, list) else items
        if not firsts:
            node = self._node(items, depth, above) if isinstance(items, Mapping) else None
            return {"items": node} if node else {}
        is_closed = rest is False and not is_integer(raw.get("maxItems"))
        most: Node = {"maxItems": len(firsts)} if is_closed else {}
        node = _union([self._node(part, depth, above) for part in (*firsts, True if rest is None else rest)])
        return {**most, "items": node} if node else most

    def _notes(self, raw: Mapping[str, JSON]) -> Node:
        notes: Node = {}
        said, longest = raw.get("description"), self._longest_description
        if isinstance(said, str) and said and longest:
            notes["description"] = shortened(clean_text(said, longest + 1), longest)
        if "default" in raw and is_small(raw["default"], _LARGEST_DEFAULT):
            notes["default"] = raw["default"]
        return notes

    def _merge_all_of(self, one: Node | None, other: Node | None) -> Node | None:
        """Return what fits both, or more if that cannot be expressed; None if nothing does.

        The notes of the first win. Raises _TooManyParts.
        """
        self._spend()
        if one is None or other is None:
            return None
        notes = {key: node[key] for node in (other, one) for key in _NOTES if key in node}
        if not _restricts(one) or not _restricts(other):
            return {**(other if _restricts(other) else one), **notes}
        if "anyOf" in one and "anyOf" in other:
            return {**one, **notes}
        if "anyOf" in one or "anyOf" in other:
            several, single = (one, other) if "anyOf" in one else (other, one)
            made = _union([self._merge_all_of(single, branch) for branch in several["anyOf"]])
        else:
            made = self._merge_same_type(one, other)
        if _fits_null(one) and _fits_null(other):
            made = _union([made, {"type": "null"}])
        return None if made is None else {**made, **notes}

    def _merge_same_type(self, one: Node, other: Node) -> Node | None:
        kinds = {one["type"], other["type"]}
        if len(kinds) > 1 and kinds != {"integer", "number"}:
            return None
        made: Node = {**other, **one, "type": "integer" if "integer" in kinds else one["type"]}
        made.pop("nullable", None)
        if "enum" in one and "enum" in other:
            made["enum"] = [value for value in one["enum"] if value in other["enum"]]
            if not made["enum"]:
                return None
        if made["type"] == "object":
            made |= self._merge_objects(one, other)
        return made

    def _merge_objects(self, one: Node, other: Node) -> Node:
        made: Node = {}
        if "properties" in one or "properties" in other:
            first, second = one.get("properties", {}), other.get("properties", {})
            self._spend(len(first) + len(second))
            shared = {name: self._merge_all_of(first[name], second[name]) for name in first if name in second}
            every = {**first, **second, **shared}
            made["properties"] = {name: part for name, part in every.items() if part is not None}
        if "required" in one or "required" in other:
            made["required"] = list(dict.fromkeys((*one.get("required", ()), *other.get("required", ()))))
            self._spend(len(made["required"]))
        extras = [node["additionalProperties"] for node in (one, other) if "additionalProperties" in node]
        if extras:
            made["additionalProperties"] = False if False in extras else extras[0]
        return made

    def _merge_any_of(self, objects: list[Node]) -> Node:
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

    def _to_schema(self, node: Node, *, may_be_left_out: bool = False) -> Schema:
        """Return the node in the plain form. A null that is only the default of an optional one is left out.

        Raises _TooManyParts.
        """
        self._spend()
        notes = {key: node[key] for key in _NOTES if node.get(key) is not None}
        is_default = may_be_left_out and node.get("default", True) is None
        nulls = [{"type": "null"}] if node.get("nullable") and not is_default else []
        if "anyOf" in node:
            return {"anyOf": [*(self._to_schema(branch) for branch in node["anyOf"]), *nulls], **notes}
        made = {key: value for key, value in node.items() if key not in (*_NOTES, "nullable")}
        kind = made.get("type")
        if kind in ("integer", "number"):
            _write_bounds(made)
        elif kind == "array":
            made["items"] = self._to_schema(made.get("items", {}))
        elif kind == "object":
            self._write_object(made)
        return {"anyOf": [made, *nulls], **notes} if nulls else {**made, **notes}

    def _write_object(self, node: Node) -> None:
        """Name every required property: some model servers refuse an object otherwise."""
        required = dict.fromkeys(node.get("required", ()), _ANYTHING)
        self._spend(len(required))
        named = node.get("properties", {})
        node["properties"] = {
            name: self._to_schema(part, may_be_left_out=name not in required)
            for name, part in {**named, **required, **named}.items()
        }
        extra = node.get("additionalProperties")
        if extra is True:
            del node["additionalProperties"]
        elif isinstance(extra, dict):
            node["additionalProperties"] = self._to_schema(extra)

    def _spend(self, parts: int = 1) -> None:
        """Count parts that are read. Raises _TooManyParts beyond the limit."""
        self._parts_left -= parts
        if self._parts_left < 0:
            raise _TooManyParts


def _types(given: JSON) -> set[str]:
    """Return the types that a schema names; none if one of them is unknown."""
    named = given if isinstance(given, list) else [given]
    return set(named) if all(isinstance(kind, str) and kind in KINDS for kind in named) else set()


def _implied_types(raw: Mapping[str, JSON]) -> set[str]:
    if isinstance(raw.get("properties"), Mapping):
        return {"object"}
    return {"array"} if isinstance(raw.get("items"), Mapping) else set()


def _type_of(value: JSON) -> str:
    return next(kind for kind, fits in KINDS.items() if fits(value))


def _is_valid_keyword(key: str, value: JSON) -> bool:
    """Tell whether a bound, pattern or format can be used."""
    if key == "pattern":
        return (
            isinstance(value, str)
            and len(value) <= _LONGEST_WORD
            and not any(p in value for p in _UNPORTABLE)
        )
    if key == "format":
        return isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD
    if key.endswith("imum"):
        return KINDS["number"](value) and abs(value) < 2**63 and math.isfinite(value)
    return is_integer(value) and 0 <= value < 2**31


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _restricts(node: Node) -> bool:
    """Tell whether there are values that do not fit."""
    return "type" in node or "anyOf" in node


def _union(branches: Iterable[Node | None]) -> Node | None:
    """Return what fits at least one of them, in as few branches as possible; None if nothing does."""
    kept: list[Node] = []
    fits_null = False
    for branch in _flatten(branches):
        if not _restricts(branch):
            return {}
        fits_null |= _fits_null(branch)
        bare = {key: value for key, value in branch.items() if key != "nullable"}
        if bare.get("type") != "null" and bare not in kept:
            _add_branch(kept, bare)
    if not kept:
        return {"type": "null"} if fits_null else None
    node = kept[0] if len(kept) == 1 else {"anyOf": kept}
    return {**node, "nullable": True} if fits_null else node


def _write_bounds(node: Node) -> None:
    """Write bounds as every model server knows them: exact for integers, a little wider for numbers."""
    is_whole = node["type"] == "integer"
    if (low := node.pop("exclusiveMinimum", None)) is not None:
        low = math.floor(low) + 1 if is_whole else low
        node["minimum"] = max(low, node.get("minimum", low))
    if (high := node.pop("exclusiveMaximum", None)) is not None:
        high = math.ceil(high) - 1 if is_whole else high
        node["maximum"] = min(high, node.get("maximum", high))


def _flatten(branches: Iterable[Node | None]) -> Iterator[Node]:
    for branch in branches:
        if branch is not None and "anyOf" in branch:
            yield from ({**one, "nullable": _fits_null(branch)} for one in branch["anyOf"])
        elif branch is not None:
            yield branch


def _add_branch(kept: list[Node], branch: Node) -> None:
    """Add a branch; enums of one type become one list."""
    alike = (one for one in kept if one.keys() == branch.keys() == {"type", "enum"})
    same = next((one for one in alike if one["type"] == branch["type"]), None)
    if same is None:
        kept.append(branch)
        return
    same["enum"] = [*same["enum"], *(value for value in branch["enum"] if value not in same["enum"])]
    if len(same["enum"]) > _MAX_VALUES:
        del same["enum"]


def _fits_null(node: Node) -> bool:
    return node.get("nullable") is True or node.get("type") == "null"
