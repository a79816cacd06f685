"""The arguments of a call, checked against the tool's schema before it runs."""

import difflib
from collections.abc import Iterable, Mapping

import orjson

from app.messages import JSON
from app.tools.checks import Compiler, Mismatch, TooManySteps
from app.tools.kinds import LONGEST_SHOWN, came, expected
from app.tools.plain import DEEPEST, loads

_HOLD_NOTHING = frozenset({str, int, float, bool, type(None)})


class InvalidArguments(ValueError):
    """Arguments a tool cannot take; the text names each one, what was expected and what came."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class ArgumentsCheck:
    """Checks the arguments of one tool; `null` for what may be left out counts as left out."""

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        self._schema = schema
        compiler = self._compiler = Compiler(schema)
        properties = schema.get("properties")
        self._properties = properties if isinstance(properties, dict) else {}
        self._checks = {name: compiler.compile(part, lenient=True) for name, part in self._properties.items()}
        required = schema.get("required")
        self._required = tuple(map(str, required)) if isinstance(required, list) else ()
        extra = schema.get("additionalProperties")
        self._open = (
            extra is True or bool(schema.get("patternProperties")) or not isinstance(properties, dict)
        )
        self._extra = compiler.compile(extra, lenient=True) if isinstance(extra, dict) else None
        beside = {key: schema[key] for key in ("anyOf", "oneOf", "allOf", "$ref") if key in schema}
        self._beside = compiler.compile(beside, lenient=False) if beside else None

    def __call__(self, args: JSON) -> dict[str, JSON]:
        """The checked arguments. Raises InvalidArguments."""
        given = parse_arguments(args)
        self._compiler.begin()
        try:
            return self._checked(given)
        except TooManySteps:
            raise InvalidArguments(["the arguments leave too many alternatives to be checked"]) from None
        except RecursionError:
            raise InvalidArguments(["the arguments are nested too deeply"]) from None

    def _checked(self, given: dict[str, JSON]) -> dict[str, JSON]:
        checked: dict[str, JSON] = {}
        problems: list[str] = []
        for name, value in given.items():
            check = self._checks.get(name)
            try:
                if check is not None:
                    checked[name] = check(value)
                elif self._extra is not None:
                    checked[name] = self._extra(value)
                elif self._open:
                    checked[name] = value
                else:
                    problems.append(self._unknown(name))
            except Mismatch as mismatch:
                if value is None and name not in self._required:
                    continue
                mismatch.path.append(name)
                problems.append(str(mismatch))
        for name in self._required:
            if name not in given:
                problems.append(self._missing(name))
        if self._beside is not None and not problems:
            try:
                self._beside(checked)
            except Mismatch as mismatch:
                problems.append(str(mismatch))
        if problems:
            raise InvalidArguments(problems)
        return checked

    def _missing(self, name: str) -> str:
        wanted = expected(self._properties.get(name, {}))
        return f"{name}: required and missing, expected {wanted}"

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(name, self._properties, n=1, cutoff=0.6)
        guess = f", did you mean {close[0]}?" if close else ""
        known = ", ".join(self._properties) or "none"
        return f"{name[:LONGEST_SHOWN]}: unknown argument{guess or '.'} This tool takes: {known}"


def parse_arguments(args: JSON) -> dict[str, JSON]:
    """What a model wrote as arguments: an object, its JSON text, or nothing. Raises InvalidArguments."""
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
        raise InvalidArguments([f"the arguments must be a JSON object, got {came(args)}"])
    if _is_deep(args):
        raise InvalidArguments([f"the arguments are nested too deeply (more than {DEEPEST} levels)"])
    return dict(args)


def _is_deep(value: JSON) -> bool:
    """Whether it is nested deeper than intents and questions are written."""
    level = [value]
    for _ in range(DEEPEST):
        parts = (part.values() if isinstance(part, Mapping) else part for part in level)
        inner = (one for each in parts for one in each if type(one) not in _HOLD_NOTHING)
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
        if not level:
            return False
    return True
