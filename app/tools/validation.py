"""Check the arguments of a call, mend what can only mean one thing, and explain what does not fit.

`jsonschema-rs` checks them. A schema may be a stranger's: it comes without references, nothing remote is
fetched, patterns run in linear time, the alternatives of a check are counted, and a malformed one is left to
the tool.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs
import orjson

from app.messages import JSON
from app.text import shortened
from app.tools.plain import DEEPEST, dumps, loads

LONGEST_SHOWN = 80

_LONGEST_PROBLEM = 300
_MOST_STEPS = 50_000  # parts and alternatives that one check may look at
_LONGEST_MATCHED = 4096  # characters of a text that is matched with a pattern
_LONGEST_PATTERN = 200
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=128 * 1024, dfa_size_limit=256 * 1024)


class InvalidArguments(ValueError):
    """Arguments that a tool cannot take; the text names each one, what was expected and what came."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class ArgumentsCheck:
    """Checks the arguments of one tool; `null` for an argument that may be left out counts as left out."""

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        names_all = isinstance(schema.get("properties"), Mapping) and "additionalProperties" not in schema
        self._schema = _usable({**schema, "additionalProperties": False} if names_all else schema)
        self._validators: dict[int, Any] = {}
        self._steps_left = _MOST_STEPS

    def __call__(self, args: JSON) -> dict[str, JSON]:
        """Return the checked arguments. Raises InvalidArguments."""
        self._steps_left = _MOST_STEPS
        checked: dict[str, JSON] = self._mend(parse_arguments(args), self._schema)
        if problems := self._problems(checked):
            raise InvalidArguments(problems)
        return checked

    def _problems(self, value: JSON) -> list[str]:
        """Say what does not fit, one problem for each argument."""
        found: dict[str | int, str] = {}
        validator = self._validator(self._schema)
        try:
            for error in validator.iter_errors(value) if validator is not None else ():
                for path, problem in self._explained(error):
                    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
                    said = f"{where.removeprefix('.')}: {problem}" if path else problem
                    found.setdefault(path[0] if path else "", said)
        except ValueError as error:  # keys that are no text, half a character, absurd nesting
            found[""] = str(error)
        return list(found.values())

    def _explained(self, error: Any) -> Iterator[tuple[list[str | int], str]]:
        """Yield what is wrong, after the way to where it is."""
        path = list(error.instance_path)
        if error.kind.name == "required":
            yield [*path, error.kind.property], "required and missing"
        elif error.kind.name == "additionalProperties":
            listed = "" if path else f". There are: {', '.join(self._schema.get('properties', ())) or 'none'}"
            for name in error.kind.unexpected:
                yield [*path, name[:LONGEST_SHOWN]], f"unknown argument{listed}"
        else:
            yield path, _said(error)

    def _mend(self, value: JSON, schema: JSON) -> JSON:
        """Return the value with what can only mean one thing mended; references are not followed.

        Raises InvalidArguments for one that would take too long to check.
        """
        self._step()
        if not isinstance(schema, Mapping):
            return value
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(value, str) and len(kinds) == 1:
            value = _read_as(kinds[0], value)
        if "integer" in kinds and isinstance(value, float) and value.is_integer():
            value = int(value)
        if kinds == ["array"] and value is not None and not isinstance(value, list | tuple):
            items = schema.get("items", True)
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
            raise InvalidArguments(["the arguments leave too many alternatives to be checked"])

    def _fits(self, value: JSON, schema: JSON) -> bool:
        validator = self._validator(schema)
        try:
            return validator is None or validator.is_valid(value)
        except ValueError:
            return False

    def _validator(self, schema: JSON) -> Any:
        if id(schema) not in self._validators:
            self._validators[id(schema)] = _compiled(schema)
        return self._validators[id(schema)]


def is_checkable(pattern: str) -> bool:
    """Tell whether a pattern can be matched in linear time and little memory; others are left to the tool."""
    return len(pattern) <= _LONGEST_PATTERN and _compiled({"pattern": pattern}) is not None


def parse_arguments(args: JSON) -> dict[str, JSON]:
    """Read what a model wrote as arguments: an object, its JSON text, or nothing. Raises InvalidArguments."""
    for _ in range(2):  # an object may have been encoded twice
        if isinstance(args, str | bytes):
            try:
                args = loads(args) if args.strip() else None
            except orjson.JSONDecodeError as error:
                raise InvalidArguments([f"the arguments are not valid JSON: {error}"]) from None
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise InvalidArguments([f"the arguments must be a JSON object, got {describe_value(args)}"])
    if _is_too_deep(args):
        raise InvalidArguments([f"the arguments are nested too deeply (more than {DEEPEST} levels)"])
    return dict(args)


def describe_value(value: JSON) -> str:
    """Write a value short enough for a message."""
    return shortened(dumps(value).decode(), LONGEST_SHOWN)


KINDS: dict[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int or (isinstance(value, float) and value.is_integer()),
    "number": lambda value: type(value) is int or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}
_READ_FROM_TEXT = KINDS.keys() - {"string", "null"}


def _usable(schema: JSON) -> JSON:
    """Return a schema whose patterns are matched with texts of some length at most, the costly ones never.

    Of `oneOf` any may fit, also several.
    """
    if isinstance(schema, list):
        return [_usable(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: part if key in ("enum", "const") else _usable(part) for key, part in schema.items()}
    if isinstance(pattern := made.get("pattern"), str):
        del made["pattern"]
        if is_checkable(pattern):
            made |= {"if": {"maxLength": _LONGEST_MATCHED}, "then": {"pattern": pattern}}
    if isinstance(made.get("oneOf"), list):
        made.setdefault("anyOf", made.pop("oneOf"))
    return made


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


def _said(error: Any) -> str:
    if error.kind.name == "enum":
        listed = ", ".join(map(describe_value, error.kind.options[:20]))
        return f"expected one of {listed}, got {describe_value(error.instance)}"
    if error.kind.name == "anyOf":
        return " or ".join(dict.fromkeys(_said(branch[0]) for branch in error.kind.context[:8] if branch))
    return shortened(str(error.message), _LONGEST_PROBLEM)


def _read_as(kind: str, text: str) -> JSON:
    """Return the value of a kind that a text is as JSON, the text itself where it is none."""
    if kind not in _READ_FROM_TEXT:
        return text
    try:
        value = loads(text.strip().lower() if kind == "boolean" else text.strip())
    except orjson.JSONDecodeError:
        return text
    return value if KINDS[kind](value) else text


def _is_too_deep(value: JSON) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        parts = (part.values() if isinstance(part, Mapping) else part for part in level)
        level = [one for part in parts for one in part if isinstance(one, Mapping | list | tuple)]
        if not level:
            return False
    return True
