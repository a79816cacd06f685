"""A tool as a model is offered it: all that its arguments are, in few words."""

from collections.abc import Mapping

from app.messages import JSON
from app.tools.schema import Schema, described, shortened
from app.tools.tool import Tool

LONGEST_DESCRIPTION = 320
"""Characters that every prompt holds of what a tool says of itself."""
LONGEST_WITH_EXAMPLES = 100
"""Examples stay where a description is that short: there they tell most."""
LONGEST_ABOUT_A_PARAMETER = 160

# Where a schema holds another, a list of them, or some by name.
_ONE = frozenset(("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else"))
_LISTED = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))
_SAYS_NOTHING: tuple[tuple[str, JSON], ...] = (("required", []), ("default", ""), ("default", None))


def brief(tool: Tool) -> Schema:
    """The function form, its texts cut where a sentence ends, without what says nothing."""
    function = {
        "name": tool.name,
        "description": _description(tool),
        "parameters": _without_much(tool.input_schema),
    }
    return {"type": "function", "function": function}


def _description(tool: Tool) -> str:
    said = _cut(tool.description, LONGEST_DESCRIPTION)
    for count in range(len(tool.examples), 0, -1):
        whole = described(said, tool.examples[:count])
        if len(whole) <= LONGEST_WITH_EXAMPLES:
            return whole
    return said


def _without_much(schema: JSON) -> JSON:
    if not isinstance(schema, Mapping):
        return schema
    closed = "properties" in schema and schema.get("additionalProperties") is False
    return {
        key: _inner(key, value)
        for key, value in schema.items()
        if (key, value) not in _SAYS_NOTHING
        and not (key == "description" and not value)
        and not (key == "additionalProperties" and closed)
    }


def _inner(key: str, value: JSON) -> JSON:
    if key == "description" and isinstance(value, str):
        return _cut(value, LONGEST_ABOUT_A_PARAMETER)
    if key in _ONE:
        return _without_much(value)
    if key in _LISTED and isinstance(value, list):
        return [_without_much(one) for one in value]
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _without_much(one) for name, one in value.items()}
    return value


def _cut(text: str, longest: int) -> str:
    """As many whole sentences as there is room for; its beginning where that is less than half of it."""
    if len(text) <= longest:
        return text
    ends = [text.rfind(end, 0, longest) for end in (". ", ".\n", "\n")]
    end = max(ends)
    return text[: end + 1].rstrip() if end >= longest // 2 else shortened(text, longest)
