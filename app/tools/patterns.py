"""Regular expressions of schemas, which may be a stranger's: matched in linear time, weighed before that."""

import re
from collections.abc import Callable

_COUNT = re.compile(r"(?:(?<=[)}?*+])(?P<group>)|)\{(\d*)(?:,(\d*))?\}")
_CLASS = re.compile(r"\\[wWdDpP]")
_SPACED = re.compile(r"\(\?[A-Za-z-]*x")
_HEAVY_CLASS = 50
"""A class of letters or digits of all scripts, in characters that cost as much."""


def weight(pattern: str) -> float:
    """About what compiling it costs, in units of 13 µs at most: characters times how often they are repeated.

    Infinite for patterns in which spaces do not count: their repetitions cannot be told from the text.
    """
    if _SPACED.search(pattern):
        return float("inf")
    nested, alone = 1, 1
    for match in _COUNT.finditer(pattern):
        count = int((match[3] or match[2] or "1")[:6])
        if match["group"] is None:
            alone = max(alone, count)
        else:
            nested *= max(count, 1)
    return (len(pattern) + _HEAVY_CLASS * len(_CLASS.findall(pattern))) * nested * alone


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds it. Raises ValueError for what the engine without backtracking does not take."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        raise ValueError(str(error).splitlines()[-1].strip()) from None
    return validator.isinstance_python
