"""A JSON Schema compiled once into plain functions.

Covers what tools use: types, enum, const, objects, arrays, combinations, local references and bounds.
A lenient check also mends what can only mean one thing: `"5"` for an integer, `"true"` for a boolean, a
list written as JSON text.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from app.messages import JSON
from app.tools.kinds import KINDS, came, expected, is_integer
from app.tools.patterns import matcher, weight

Check = Callable[[JSON], JSON]
"""Returns the value, mended where the check is lenient; raises Mismatch."""

_DEEPEST_SCHEMA = 64
_MOST_STEPS = 20_000
"""Parts and alternatives that one check looks at: milliseconds."""
_LONGEST_PATTERN, _LONGEST_MATCHED = 200, 256
_HEAVIEST_PATTERNS, _MOST_MATCHED = 20_000, 4096
"""The weight of a schema's patterns, and the characters that one check matches: a moment each."""
_INTEGER = re.compile(r"[+-]?\d{1,400}")
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")


class Mismatch(Exception):
    """One value that does not fit; `path` grows while it rises through the objects around it.

    The value `got` is put into words only where they are read: most mismatches are alternatives not taken.
    """

    def __init__(self, problem: str, *got: JSON) -> None:
        super().__init__()
        self._problem = problem
        self._got = got
        self.path: list[str | int] = []

    def __str__(self) -> str:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in reversed(self.path))
        problem = ", got ".join((self._problem, *map(came, self._got)))
        return f"{where.removeprefix('.')}: {problem}" if where else problem


class TooManySteps(Exception):
    """A check that was given up: the schema leaves too many ways to read the value."""


class Compiler:
    """Turns a schema into checks; every check returns the value, mended where it was lenient."""

    def __init__(self, root: Mapping[str, JSON]) -> None:
        self._root = root
        self._references: dict[tuple[str, bool], Check] = {}
        self._steps_left, self._characters_left = _MOST_STEPS, _MOST_MATCHED
        self._weight_left: float = _HEAVIEST_PATTERNS

    def begin(self) -> None:
        """Before each use of what was compiled: its checks may take so many steps until the next."""
        self._steps_left, self._characters_left = _MOST_STEPS, _MOST_MATCHED

    def _step(self, steps: int = 1) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise TooManySteps

    def compile(self, schema: JSON, *, lenient: bool, depth: int = 0) -> Check:
        if schema is False:
            return _never
        if not isinstance(schema, Mapping) or not schema or depth > _DEEPEST_SCHEMA:
            return _anything
        steps = [step for step in self._steps(schema, lenient, depth + 1) if step is not None]
        if not steps:
            return _anything
        if len(steps) == 1:
            return steps[0]

        def check(value: JSON) -> JSON:
            for step in steps:
                value = step(value)
            return value

        return check

    def _steps(self, schema: Mapping[str, JSON], lenient: bool, depth: int) -> Iterable[Check | None]:
        kinds = schema.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        if names and all(isinstance(name, str) and name in KINDS for name in names):
            yield _typed(tuple(names), schema, lenient)
        yield _listed(schema)
        yield _bounded(schema)
        yield self._patterned(schema.get("pattern"))
        if any(key in schema for key in ("properties", "additionalProperties", "required")):
            yield self._object(schema, lenient, depth)
        if "items" in schema or "prefixItems" in schema:
            yield self._array(schema, lenient, depth)
        if isinstance(schema.get("$ref"), str):
            yield self._reference(schema["$ref"], lenient)
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                yield self._any(schema[key], lenient, depth)
        for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
            yield self.compile(part, lenient=lenient, depth=depth)

    def _object(self, schema: Mapping[str, JSON], lenient: bool, depth: int) -> Check:
        given = schema.get("properties")
        parts = given if isinstance(given, Mapping) else {}
        checks = {n: self.compile(part, lenient=lenient, depth=depth) for n, part in parts.items()}
        required = tuple(map(str, schema["required"])) if isinstance(schema.get("required"), list) else ()
        wanted = {name: expected(parts.get(name)) for name in required}
        known_fields = ", ".join(checks) or "none"
        extra = schema.get("additionalProperties", True)
        closed = extra is False and not schema.get("patternProperties")
        other = self.compile(extra, lenient=lenient, depth=depth) if isinstance(extra, Mapping) else None

        def check(value: JSON) -> JSON:
            if not isinstance(value, Mapping):
                return value
            self._step(len(value))
            checked: dict[str, JSON] = {}
            for name, inner in value.items():
                known = checks.get(name, other)
                if known is None:
                    if closed:
                        raise Mismatch(f"unknown field {name!r}, known: {known_fields}")
                    checked[name] = inner
                    continue
                try:
                    checked[name] = known(inner)
                except Mismatch as mismatch:
                    if inner is None and name not in required:
                        continue
                    mismatch.path.append(str(name))
                    raise
            for name in required:
                if name not in value:
                    raise Mismatch(f"field {name!r} is required and missing, expected {wanted[name]}")
            return checked

        return check

    def _array(self, schema: Mapping[str, JSON], lenient: bool, depth: int) -> Check:
        prefix = schema.get("prefixItems")
        firsts = (
            [self.compile(p, lenient=lenient, depth=depth) for p in prefix]
            if isinstance(prefix, list)
            else []
        )
        rest = self.compile(schema.get("items"), lenient=lenient, depth=depth)

        def check(value: JSON) -> JSON:
            if not isinstance(value, list | tuple):
                return value
            self._step(len(value))
            checked = []
            for at, inner in enumerate(value):
                try:
                    checked.append(firsts[at](inner) if at < len(firsts) else rest(inner))
                except Mismatch as mismatch:
                    mismatch.path.append(at)
                    raise
            return checked

        return check

    def _any(self, branches: list[JSON], lenient: bool, depth: int) -> Check:
        """Branches as they are written first, so that `"5"` stays text where text is allowed."""
        strict = [self.compile(branch, lenient=False, depth=depth) for branch in branches]
        mending = [self.compile(branch, lenient=True, depth=depth) for branch in branches] if lenient else []
        wanted = expected({"anyOf": branches})

        def check(value: JSON) -> JSON:
            deepest: Mismatch | None = None
            for branch in (*strict, *mending):
                self._step()
                try:
                    return branch(value)
                except Mismatch as mismatch:
                    if deepest is None or len(mismatch.path) > len(deepest.path):
                        deepest = mismatch
            if deepest is not None and deepest.path:
                raise deepest
            raise Mismatch(f"expected {wanted}", value)

        return check

    def _patterned(self, pattern: JSON) -> Check | None:
        """What cannot be matched in little time is left to the tool, for a schema may be a stranger's."""
        if not isinstance(pattern, str):
            return None
        try:
            matches = self._matcher(pattern)
        except ValueError as error:
            import structlog  # late: a quarter of a second of each process that reads a skill from elsewhere

            log = structlog.get_logger(__name__)
            log.warning("a pattern is not checked", pattern=pattern[:_LONGEST_PATTERN], error=str(error))
            return None

        def check(value: JSON) -> JSON:
            if not isinstance(value, str) or len(value) > min(_LONGEST_MATCHED, self._characters_left):
                return value
            self._characters_left -= len(value)
            if not matches(value):
                raise Mismatch(f"expected text that matches {pattern}", value)
            return value

        return check

    def _matcher(self, pattern: str) -> Callable[[str], bool]:
        heavy = weight(pattern) if len(pattern) <= _LONGEST_PATTERN else math.inf
        if heavy > self._weight_left:
            raise ValueError("it is too long, or it and those before it repeat too much")
        self._weight_left -= heavy
        return matcher(pattern)

    def _reference(self, reference: str, lenient: bool) -> Check:
        """A local reference, looked up when it is first used: schemas may hold themselves."""
        key = (reference, lenient)

        def check(value: JSON) -> JSON:
            self._step()
            known = self._references.get(key)
            if known is None:
                known = self._references[key] = self.compile(self._find(reference), lenient=lenient)
            return known(value)

        return check

    def _find(self, reference: str) -> JSON:
        found: JSON = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or step not in found:
                return {}
            found = found[step]
        return {} if found is self._root or _refers_only(found, reference) else found


def _refers_only(schema: JSON, reference: str) -> bool:
    return isinstance(schema, Mapping) and schema.get("$ref") == reference


def _anything(value: JSON) -> JSON:
    return value


def _never(value: JSON) -> JSON:
    raise Mismatch("no value is allowed here", value)


def _typed(kinds: tuple[str, ...], schema: Mapping[str, JSON], lenient: bool) -> Check:
    wanted = expected(schema)
    mend = _MENDERS.get(kinds[0]) if lenient and len(kinds) == 1 else None
    if kinds == ("string",):

        def check_string(value: JSON) -> JSON:
            if isinstance(value, str):
                return value
            raise Mismatch(f"expected {wanted}", value)

        return check_string
    tests = tuple(KINDS[kind] for kind in kinds)
    whole = kinds == ("integer",)

    def check(value: JSON) -> JSON:
        for test in tests:
            if test(value):
                return int(value) if whole else value
        if mend is not None and isinstance(value, str):
            mended = mend(value.strip())
            if mended is not None:
                return mended
        raise Mismatch(f"expected {wanted}", value)

    return check


def _listed(schema: Mapping[str, JSON]) -> Check | None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return None
    wanted = expected(schema)
    scalars = frozenset((type(one) is bool, one) for one in values if not isinstance(one, list | dict))
    others = [one for one in values if isinstance(one, list | dict)]

    def check(value: JSON) -> JSON:
        if value in others if isinstance(value, list | dict) else (type(value) is bool, value) in scalars:
            return value
        raise Mismatch(f"expected {wanted}", value)

    return check


def _bounded(schema: Mapping[str, JSON]) -> Check | None:
    numeric = [
        (word, test, schema[key]) for key, word, test in _NUMBER_BOUNDS if KINDS["number"](schema.get(key))
    ]
    sized = [
        (kind, word, at_least, schema[key])
        for key, kind, word, at_least in _SIZE_BOUNDS
        if is_integer(schema.get(key))
    ]
    if not numeric and not sized:
        return None

    def check(value: JSON) -> JSON:
        for kind, word, at_least, bound in sized:
            if isinstance(value, kind) and (len(value) < bound if at_least else len(value) > bound):
                raise Mismatch(
                    f"expected {'at least' if at_least else 'at most'} {bound} {word}, got {len(value)}"
                )
        if isinstance(value, int | float) and not isinstance(value, bool):
            for word, fits, bound in numeric:
                if not fits(value, bound):
                    raise Mismatch(f"expected a number {word} {bound}, got {value}")
        return value

    return check


_NUMBER_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "of at least", lambda value, bound: value >= bound),
    ("maximum", "of at most", lambda value, bound: value <= bound),
    ("exclusiveMinimum", "above", lambda value, bound: value > bound),
    ("exclusiveMaximum", "below", lambda value, bound: value < bound),
)
_SIZE_BOUNDS: tuple[tuple[str, Any, str, bool], ...] = (
    ("minLength", str, "characters", True),
    ("maxLength", str, "characters", False),
    ("minItems", (list, tuple), "items", True),
    ("maxItems", (list, tuple), "items", False),
    ("minProperties", Mapping, "fields", True),
    ("maxProperties", Mapping, "fields", False),
)


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _array(text: str) -> list[JSON] | None:
    value = _decoded(text)
    return value if isinstance(value, list) else None


def _object(text: str) -> dict[str, JSON] | None:
    value = _decoded(text)
    return value if isinstance(value, dict) else None


def _decoded(text: str) -> JSON:
    if not text.startswith(("[", "{")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


_MENDERS: dict[str, Callable[[str], JSON]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}
