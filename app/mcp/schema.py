"""A server's schema of arguments in the plain form that every model server takes.

References are replaced by what they point to, `allOf` is merged, `oneOf` and a list of types become `anyOf`;
objects name their properties and arrays their items. The plain form accepts whatever the original accepts,
for the server has the last word, with three exceptions: arguments that no part declares are unknown; a
schema with properties or items is an object or an array although it does not say so; and items that follow
the listed ones of a tuple are of the same kinds as these.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import unquote

from app.messages import JSON, array
from app.text import shortened, visible_lines
from app.tools.plain import dumps, is_small
from app.tools.schema import LARGEST_SCHEMA, LONGEST_DESCRIPTION, Schema, optional
from app.tools.validation import KINDS, describe_value

# How deep, and with how long descriptions, until one attempt is small enough.
_ATTEMPTS = ((24, LONGEST_DESCRIPTION), (24, 120), (6, 120), (2, 80), (1, 0))
_MAX_PARTS = 1500
_MAX_VALUES = 200
_LARGEST_DEFAULT = 500

_TEXT_KEYWORDS = ("pattern", "format")
_NUMBER_KEYWORDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)
# Keywords that are not read and may declare properties.
_OTHER_DECLARATIONS = (
    *("patternProperties", "if", "then", "else", "dependentSchemas", "dependencies"),
    "unevaluatedProperties",
)


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
    for depth, longest in _ATTEMPTS:
        with suppress(_TooManyParts):
            made = _Normalizer(schema, longest).whole(depth)
            if is_small(made, LARGEST_SCHEMA) and len(dumps(made)) <= LARGEST_SCHEMA:
                return made
    raise Unusable(f"its parameters are more than {LARGEST_SCHEMA // 1024} KiB")


def clean_text(text: str, most: int) -> str:
    """Return the first `most` characters of a text, with hidden characters made visible."""
    return visible_lines("\n".join(text[:most].replace("\t", "    ").splitlines())).strip()


class _Normalizer:
    def __init__(self, root: Mapping[str, JSON], longest_description: int) -> None:
        self._root = root
        self._longest_description = longest_description
        self._parts_left = _MAX_PARTS

    def whole(self, depth: int) -> Schema:
        """Return the schema of all arguments; alternatives at its top, which model servers refuse, are one.

        Raises Unusable, _TooManyParts.
        """
        made = self._part(self._root, depth, ("#",))
        branches = [one for one in made.pop("anyOf", [{}]) if one.get("type", "object") == "object"]
        if not branches or made.get("type", "object") != "object":
            raise Unusable("no object fits its inputSchema")
        objects = [_merged(made, branch) for branch in branches]
        names = list(dict.fromkeys(name for one in objects for name in one.get("properties", ())))
        self._spend(len(names) * len(objects))
        properties = {
            name: _union(one["properties"][name] for one in objects if name in one.get("properties", ()))
            for name in names
        }
        is_open = any(one.get("additionalProperties") for one in objects)
        if self._root.get("properties") is None or len(objects) > 1:
            is_open |= any(not one.get("properties") for one in objects)
        required = set[str].intersection(*(set(one.get("required", ())) for one in objects))
        whole: Schema = {**made, "type": "object", "properties": properties}
        if "required" in objects[0]:
            whole["required"] = [name for name in objects[0]["required"] if name in required]
        return {**whole, "additionalProperties": True} if is_open else whole

    def _part(self, raw: JSON, depth: int, above: tuple[str, ...]) -> Schema:
        """Return a schema in the plain form; `above` are the references around it."""
        self._spend(1)
        if not isinstance(raw, Mapping):
            return {}
        made = {**self._typed(raw, depth, above), **self._notes(raw)}
        if depth == 0:
            return made
        if isinstance(raw.get("$ref"), str):
            made = _merged(made, self._referenced(raw["$ref"], depth - 1, above))
        for part in array(raw.get("allOf")):
            made = _merged(made, self._part(part, depth - 1, above))
        for key in ("anyOf", "oneOf"):
            branches = [branch for branch in array(raw.get(key)) if branch is not False]
            if branches:
                made = _merged(made, _union([self._part(branch, depth - 1, above) for branch in branches]))
        return made

    def _referenced(self, reference: str, depth: int, above: tuple[str, ...]) -> Schema:
        """Return what a local reference points to; a recursive one twice, then only its type."""
        found: JSON = self._root if reference.startswith("#") else None
        for step in filter(None, unquote(reference[1:]).split("/")):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, Mapping) else None
        return self._part(found, 0 if above.count(reference) > 1 else depth, (*above, reference))

    def _typed(self, raw: Mapping[str, JSON], depth: int, above: tuple[str, ...]) -> Schema:
        kinds = _types(raw.get("type"))
        if not kinds and isinstance(raw.get("properties"), Mapping):
            kinds = {"object"}
        elif not kinds and isinstance(raw.get("items"), Mapping):
            kinds = {"array"}
        listed = [raw["const"]] if "const" in raw else array(raw.get("enum"))
        if listed:
            listed = [value for value in listed if not kinds or any(KINDS[kind](value) for kind in kinds)]
            kinds = {next(kind for kind, fits in KINDS.items() if fits(value)) for value in listed}
        if not kinds or len(kinds) == len(KINDS) - 1:
            return {}
        values = listed if len(listed) <= _MAX_VALUES else []
        return _union([self._of_type(kind, raw, values, depth, above) for kind in KINDS if kind in kinds])

    def _of_type(
        self, kind: str, raw: Mapping[str, JSON], listed: list[JSON], depth: int, above: tuple[str, ...]
    ) -> Schema:
        if kind == "null":
            return {"type": "null"}
        if listed and kind not in ("object", "array"):
            return {"type": kind, "enum": [value for value in listed if KINDS[kind](value)]}
        made: Schema = {"type": kind}
        made |= {key: raw[key] for key in _TEXT_KEYWORDS if isinstance(raw.get(key), str)}
        made |= {key: raw[key] for key in _NUMBER_KEYWORDS if KINDS["number"](raw.get(key))}
        if kind == "object":
            made |= self._object(raw, depth - 1, above) if depth else {"properties": {}}
        if kind == "array":
            made |= self._array(raw, depth - 1, above) if depth else {"items": {}}
        return made

    def _object(self, raw: Mapping[str, JSON], depth: int, above: tuple[str, ...]) -> Schema:
        """Return what an object holds. Every required property is named: some model servers want that."""
        given, extra = raw.get("properties"), raw.get("additionalProperties")
        named = given if isinstance(given, Mapping) else {}
        required = list(dict.fromkeys(one for one in array(raw.get("required")) if isinstance(one, str)))
        self._spend(len(required))
        properties: Schema = {}
        for name, part in named.items():
            if part is not False:
                made = self._part(part, depth, above)
                is_default_null = isinstance(part, Mapping) and part.get("default", 0) is None
                properties[name] = optional(made) if is_default_null and name not in required else made
        node: Schema = {
            "properties": {**properties, **{one: {} for one in required if one not in properties}}
        }
        if required:
            node["required"] = required
        if any(raw.get(key) not in (None, False) for key in _OTHER_DECLARATIONS):
            node["additionalProperties"] = True
        elif isinstance(extra, Mapping):
            node["additionalProperties"] = self._part(extra, depth, above) or True
        elif isinstance(extra, bool):
            node["additionalProperties"] = extra
        return node

    def _array(self, raw: Mapping[str, JSON], depth: int, above: tuple[str, ...]) -> Schema:
        """Return the items; of items that differ by their place, as in a tuple, each may be any of them."""
        items = raw.get("items")
        listed = array(raw.get("prefixItems")) or array(items) or [items]
        return {"items": _union([self._part(one, depth, above) for one in listed])}

    def _notes(self, raw: Mapping[str, JSON]) -> Schema:
        notes: Schema = {}
        said, longest = raw.get("description"), self._longest_description
        if isinstance(said, str) and said and longest:
            notes["description"] = shortened(clean_text(said, longest + 1), longest)
        if raw.get("default") is not None and is_small(raw["default"], _LARGEST_DEFAULT):
            notes["default"] = raw["default"]
        return notes

    def _spend(self, parts: int) -> None:
        self._parts_left -= parts
        if self._parts_left < 0:
            raise _TooManyParts


def _merged(one: Schema, other: Schema) -> Schema:
    """Return a schema for what fits both; it takes more where they say different things: the first counts."""
    made = {**other, **one}
    if "properties" in one and "properties" in other:
        first, second = one["properties"], other["properties"]
        made["properties"] = first | {name: part for name, part in second.items() if not first.get(name)}
    if "required" in one and "required" in other:
        made["required"] = list(dict.fromkeys((*one["required"], *other["required"])))
    return made


def _union(branches: Iterable[Schema]) -> Schema:
    """Return what fits at least one of them, in as few branches as possible; enums of a type are one list."""
    kept: dict[str, Schema] = {}
    for branch in branches:
        if "type" not in branch and "anyOf" not in branch:
            return {}
        is_list = branch.keys() == {"type", "enum"}
        key = str(branch["type"]) if is_list else json.dumps(branch, sort_keys=True)
        if is_list and key in kept:
            kept[key]["enum"] = [*kept[key]["enum"], *branch["enum"]]
        else:
            kept.setdefault(key, dict(branch))
    found = list(kept.values())
    return found[0] if len(found) == 1 else {"anyOf": found}


def _types(given: JSON) -> set[str]:
    """Return the types that a schema names; none if one of them is unknown."""
    named = given if isinstance(given, list) else [given]
    return set(named) if all(isinstance(kind, str) and kind in KINDS for kind in named) else set()
