"""Check the arguments of a call, mend what can only mean one thing, and explain what does not fit.

`jsonschema-rs` checks them. A schema may be a stranger's, so it is first reduced to the keywords that tools
use: nothing remote is fetched, patterns run in linear time, and the alternatives of a check are counted.
"""

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs
import orjson

from app.messages import JSON
from app.tools.plain import DEEPEST, loads

LONGEST_SHOWN = 80

_DEEPEST_SCHEMA = 64
_MOST_STEPS = 50_000  # parts and alternatives that one check may look at
_LONGEST_MATCHED = 4096  # characters of a text that is matched with a pattern
_LONGEST_PATTERN = 200
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=128 * 1024, dfa_size_limit=256 * 1024)
_INTEGER = re.compile(r"[+-]?\d{1,400}")
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")


class InvalidArguments(ValueError):
    """Arguments that a tool cannot take; the text names each one, what was expected and what came."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class ArgumentsCheck:
    """Checks the arguments of one tool; `null` for an argument that may be left out counts as left out."""

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        names_all = isinstance(schema.get("properties"), Mapping) and "additionalProperties" not in schema
        self._checker = _Checker({**schema, "additionalProperties": False} if names_all else schema)

    def __call__(self, args: JSON) -> dict[str, JSON]:
        """Return the checked arguments. Raises InvalidArguments."""
        try:
            checked: dict[str, JSON] = self._checker.mend(parse_arguments(args))
            problems = self._checker.problems(checked)
        except TooManySteps:
            raise InvalidArguments(["the arguments leave too many alternatives to be checked"]) from None
        except RecursionError:
            raise InvalidArguments(["the arguments are nested too deeply"]) from None
        if problems:
            raise InvalidArguments(problems)
        return checked


def is_checkable(pattern: str) -> bool:
    """Tell whether a pattern can be matched in linear time and little memory; others are left to the tool."""
    return len(pattern) <= _LONGEST_PATTERN and _compiled({"pattern": pattern}) is not None


def parse_arguments(args: JSON) -> dict[str, JSON]:
    """Read what a model wrote as arguments: an object, its JSON text, or nothing. Raises InvalidArguments."""
    if isinstance(args, str | bytes):
        text = args.strip()
        if not text:
            return {}
        try:
            args = loads(text)
        except orjson.JSONDecodeError as error:
            raise InvalidArguments([f"the arguments are not valid JSON: {error}"]) from None
        if isinstance(args, str):  # an object that was encoded twice
            try:
                args = loads(args)
            except orjson.JSONDecodeError:
                raise InvalidArguments(["the arguments must be a JSON object, got text"]) from None
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise InvalidArguments([f"the arguments must be a JSON object, got {describe_value(args)}"])
    if _is_too_deep(args):
        raise InvalidArguments([f"the arguments are nested too deeply (more than {DEEPEST} levels)"])
    return dict(args)


def describe_schema(schema: JSON) -> str:
    """Put a schema into a few words."""
    if not isinstance(schema, Mapping):
        return "any value"
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(_shown(value) for value in schema["enum"][:20])
    if "const" in schema:
        return _shown(schema["const"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " or ".join(dict.fromkeys(describe_schema(part) for part in schema[key][:8]))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " or ".join(_KIND_NAMES.get(str(kind), str(kind)) for kind in kinds)
    return _KIND_NAMES.get(str(kinds), "a value that fits the schema")


def describe_value(value: JSON) -> str:
    """Put a value and its kind into words that are short enough for a message."""
    return f"{_shown(value)} ({_kind(value)})"


def is_integer(value: JSON) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


KINDS: dict[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "number": lambda value: type(value) is int or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}
_KIND_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


class TooManySteps(Exception):
    """A check was given up: the schema leaves too many ways to read the value."""


class _Checker:
    """A schema, reduced to what can be checked, with what checks and mends values by it."""

    def __init__(self, root: Mapping[str, JSON]) -> None:
        reduced = _Reduced(root)
        self._schema = reduced.schema
        self._definitions = reduced.definitions
        self._validators: dict[int, tuple[JSON, Any]] = {}
        self._steps_left = _MOST_STEPS

    def mend(self, value: JSON) -> JSON:
        """Return the value with what can only mean one thing mended.

        Raises TooManySteps or RecursionError for one that would take too long to check.
        """
        self._steps_left = _MOST_STEPS
        return self._mend(value, self._schema)

    def problems(self, value: JSON) -> list[str]:
        """Say what does not fit, one problem for each property."""
        found: dict[str | int, str] = {}
        validator = self._validator(self._schema)
        try:
            for error in validator.iter_errors(value) if validator is not None else ():
                for path, problem in self._explained(_deepest(error)):
                    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
                    said = f"{where.removeprefix('.')}: {problem}" if path else problem
                    found.setdefault(path[0] if path else "", said)
        except ValueError as error:  # keys that are no text, half a character, absurd nesting
            found[""] = str(error)
        return list(found.values())

    def _mend(self, value: JSON, schema: JSON) -> JSON:
        self._step()
        if not isinstance(schema, Mapping):
            return value
        kinds = schema.get("type", ())
        if isinstance(value, str):
            mended = _MENDERS[kinds[0]](value.strip()) if len(kinds) == 1 and kinds[0] in _MENDERS else None
            value = value if mended is None else mended
        if "integer" in kinds and isinstance(value, float) and value.is_integer():
            value = int(value)
        if "$ref" in schema:
            value = self._mend(value, self._definition(schema))
        for part in schema.get("allOf", ()):
            value = self._mend(value, part)
        if kinds == ["array"] and value is not None and not isinstance(value, list | tuple):
            items = schema.get("items", {})
            value = [value] if self._fits(self._mend(value, items), items) else value
        if "anyOf" in schema:
            value = self._alternative(value, schema["anyOf"])
        if isinstance(value, Mapping) and schema.keys() & {"properties", "additionalProperties"}:
            return self._mend_object(value, schema)
        if isinstance(value, list | tuple) and schema.keys() & {"items", "prefixItems"}:
            firsts, rest = schema.get("prefixItems", ()), schema.get("items")
            return [self._mend(v, firsts[at] if at < len(firsts) else rest) for at, v in enumerate(value)]
        self._step(len(value) if isinstance(value, Mapping | list | tuple) else 0)
        return value

    def _mend_object(self, value: Mapping[str, JSON], schema: Mapping[str, JSON]) -> dict[str, JSON]:
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
        mended: dict[str, JSON] = {}
        for name, inner in value.items():
            part = properties.get(name, extra)
            may_be_left_out = name in properties and name not in schema.get("required", ())
            if inner is None and may_be_left_out and not self._fits(None, part):
                continue
            mended[name] = self._mend(inner, part)
        return mended

    def _alternative(self, value: JSON, branches: list[JSON]) -> JSON:
        """Keep a value that fits a branch (text may stay text), else mend it for the first that then fits."""
        mended = [self._mend(value, branch) for branch in branches]
        if any(self._fits(value, branch) for branch in branches):
            return value
        pairs = zip(mended, branches, strict=True)
        return next((candidate for candidate, branch in pairs if self._fits(candidate, branch)), value)

    def _step(self, steps: int = 1) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise TooManySteps

    def _fits(self, value: JSON, schema: JSON) -> bool:
        validator = self._validator(schema)
        try:
            return validator is None or validator.is_valid(value)
        except ValueError:
            return False

    def _validator(self, schema: JSON) -> Any:
        """Return what checks a part of the schema."""
        if id(schema) not in self._validators:
            whole = {**schema, "$defs": self._definitions} if isinstance(schema, Mapping) else schema
            self._validators[id(schema)] = schema, _compiled(whole)  # a kept schema keeps its id
        return self._validators[id(schema)][1]

    def _definition(self, schema: Mapping[str, JSON]) -> JSON:
        return self._definitions[schema["$ref"].rpartition("/")[2]]

    def _explained(self, error: Any) -> Iterator[tuple[list[str | int], str]]:
        """Yield what is wrong, after the way to where it is."""
        path, kind = list(error.instance_path), error.kind.name
        if kind == "required":
            wanted = describe_schema(self._properties_at(error).get(error.kind.property))
            yield [*path, error.kind.property], f"required and missing, expected {wanted}"
        elif kind == "additionalProperties":
            known = self._properties_at(error)
            for name in error.kind.unexpected:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                guess = f", did you mean {close[0]}?" if close else "."
                listed = ", ".join(known) or "none"
                yield [*path, name[:LONGEST_SHOWN]], f"unknown argument{guess} There are: {listed}"
        elif kind == "falseSchema":
            yield path, f"no value is allowed here, got {describe_value(error.instance)}"
        elif kind in _SIZES:
            yield path, f"expected {_expected(error)}, got {len(error.instance)}"
        else:
            got = error.instance if kind in _BOUNDS else describe_value(error.instance)
            yield path, f"expected {_expected(error)}, got {got}"

    def _properties_at(self, error: Any) -> Mapping[str, JSON]:
        """Return the properties of the schema that an error is of."""
        found: JSON = {**self._schema, "$defs": self._definitions}
        for step in error.schema_path[:-1]:
            found = self._definition(found) if step == "$ref" else found[step]
        return found.get("properties", {}) if isinstance(found, dict) else {}


class _Reduced:
    """A schema with well-formed keywords of a few kinds alone; what its references name are definitions."""

    def __init__(self, root: Mapping[str, JSON]) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self.definitions: dict[str, JSON] = {}
        self.schema: dict[str, JSON] = {}
        self.schema |= self._of(root, 0)

    def _of(self, given: JSON, depth: int) -> Any:
        if given is False:
            return False
        if not isinstance(given, Mapping) or depth > _DEEPEST_SCHEMA:
            return {}
        kinds = given.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        made: dict[str, JSON] = {}
        if names and all(isinstance(name, str) and name in KINDS for name in names):
            made["type"] = list(dict.fromkeys(names))
        if "const" in given:
            made["enum"] = [given["const"]]
        elif isinstance(given.get("enum"), list) and given["enum"]:
            made["enum"] = given["enum"]
        made |= {key: given[key] for key in _BOUNDS if KINDS["number"](given.get(key))}
        made |= {key: int(given[key]) for key in _SIZES if is_integer(given.get(key)) and given[key] >= 0}
        if isinstance(given.get("pattern"), str) and is_checkable(given["pattern"]):
            made |= {"if": {"maxLength": _LONGEST_MATCHED}, "then": {"pattern": given["pattern"]}}
        if isinstance(given.get("$ref"), str):
            made |= self._reference(given["$ref"])
        return made | self._parts(given, depth + 1)

    def _parts(self, given: Mapping[str, JSON], depth: int) -> dict[str, JSON]:
        """Return the keywords that hold other schemas; `oneOf` may be any of them."""
        made: dict[str, JSON] = {}
        properties, extra = given.get("properties"), given.get("additionalProperties")
        if isinstance(properties, Mapping):
            made["properties"] = {str(name): self._of(part, depth) for name, part in properties.items()}
        if isinstance(given.get("required"), list):
            made["required"] = list(dict.fromkeys(map(str, given["required"])))
        if isinstance(extra, Mapping) or (extra is False and not given.get("patternProperties")):
            made["additionalProperties"] = self._of(extra, depth)
        if isinstance(given.get("items"), Mapping) or given.get("items") is False:
            made["items"] = self._of(given["items"], depth)
        if isinstance(given.get("prefixItems"), list) and given["prefixItems"]:
            made["prefixItems"] = [self._of(part, depth) for part in given["prefixItems"]]
        alternatives = [
            [self._of(part, depth) for part in given[key]]
            for key in ("anyOf", "oneOf")
            if isinstance(given.get(key), list) and given[key]
        ]
        all_of = [self._of(part, depth) for part in _listed(given.get("allOf"))]
        all_of += [{"anyOf": branches} for branches in alternatives[1:]]
        made |= {"anyOf": alternatives[0]} if alternatives else {}
        return {**made, "allOf": all_of} if all_of else made

    def _reference(self, reference: str) -> dict[str, JSON]:
        found: JSON = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or step not in found:
                return {}
            found = found[step]
        if reference not in self._names:
            name = self._names[reference] = str(len(self._names))
            self.definitions[name] = {}
            self.definitions[name] = self._of(found, 0)
        return {"$ref": f"#/$defs/{self._names[reference]}"}


def _compiled(schema: JSON) -> Any:
    """Return a validator, None for a schema that cannot be used; it never fetches anything."""
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=_PATTERNS, validate_formats=False, retriever=_fetch_nothing
        )
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError):
        return None


def _fetch_nothing(uri: str) -> JSON:
    raise LookupError(f"{uri} is not fetched")


def _deepest(error: Any) -> Any:
    """Return the fault that lies deepest among those of alternatives: it is the likeliest to be meant."""
    if error.kind.name != "anyOf":
        return error
    inner = max(
        (one for branch in error.kind.context for one in branch),
        key=lambda one: len(one.instance_path),
        default=error,
    )
    return _deepest(inner) if len(inner.instance_path) > len(error.instance_path) else error


def _expected(error: Any) -> str:
    kind = error.kind
    if kind.name == "anyOf":
        return " or ".join(dict.fromkeys(_expected(branch[0]) for branch in kind.context[:8] if branch))
    if kind.name in _SIZES:
        word, noun = _SIZES[kind.name]
        return f"{word} {kind.limit} {noun}"
    if kind.name in _BOUNDS:
        return f"a number {_BOUNDS[kind.name]} {kind.limit}"
    if kind.name == "pattern":
        return f"text that matches {kind.pattern}"
    if kind.name == "type":
        return describe_schema({"type": kind.types})
    return describe_schema({"enum": kind.options}) if kind.name == "enum" else "a value that fits the schema"


_BOUNDS = {
    "minimum": "of at least",
    "maximum": "of at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}
_SIZES = {
    "minLength": ("at least", "characters"),
    "maxLength": ("at most", "characters"),
    "minItems": ("at least", "items"),
    "maxItems": ("at most", "items"),
    "minProperties": ("at least", "fields"),
    "maxProperties": ("at most", "fields"),
}


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _decoded(text: str, kind: type) -> JSON:
    if not text.startswith(("[", "{")):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, kind) else None


_MENDERS: dict[str, Callable[[str], JSON]] = {
    "integer": lambda text: int(text) if _INTEGER.fullmatch(text) else None,
    "number": _number,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower()),
    "array": lambda text: _decoded(text, list),
    "object": lambda text: _decoded(text, dict),
}


def _shown(value: JSON) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _kind(value: JSON) -> str:
    for kind, test in KINDS.items():
        if kind != "number" and test(value):
            return kind
    return "number" if isinstance(value, float) else type(value).__name__


def _is_too_deep(value: JSON) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        parts = (part.values() if isinstance(part, Mapping) else part for part in level)
        level = [one for part in parts for one in part if isinstance(one, Mapping | list | tuple)]
        if not level:
            return False
    return True


def _listed(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
