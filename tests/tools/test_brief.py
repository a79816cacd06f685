"""The form in which a tool is offered: all of its arguments, few words."""

from app.tools import Tool
from app.tools.tool import LONGEST_ABOUT_A_PARAMETER, LONGEST_DESCRIPTION, brief


def tool(description: str, schema: dict[str, object] | None = None, **options: object) -> Tool:
    return Tool("find", description, schema or {"type": "object", "properties": {}}, print, **options)  # type: ignore[arg-type]


def test_long_words_end_with_a_sentence() -> None:
    said = brief(tool("Finds all there is. " * 100))["function"]["description"]
    assert said.endswith("is.")
    assert len(said) <= LONGEST_DESCRIPTION
    said = brief(tool("word " * 1000))["function"]["description"]
    assert (said[-1], len(said)) == ("…", LONGEST_DESCRIPTION)


def test_no_argument_is_lost_and_none_means_anything_else() -> None:
    long = "What it is about. " * 50
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [],
        "properties": {
            "description": {"type": "string", "description": long, "default": ""},
            "required": {"type": "array", "items": {"enum": ["a", "b"], "description": long}},
            "any": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}], "description": ""},
            "free": {"type": "object", "additionalProperties": False},
            "flag": {"type": "boolean", "default": False},
        },
        "$defs": {"part": {"type": "object", "properties": {"x": {"type": "number", "minimum": 1}}}},
    }
    parameters = brief(tool("Finds", schema))["function"]["parameters"]
    listed = parameters["properties"]
    about = listed["description"].pop("description")
    assert about == listed["required"]["items"].pop("description")
    assert about.endswith("about.")
    assert len(about) <= LONGEST_ABOUT_A_PARAMETER
    assert parameters == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "required": {"type": "array", "items": {"enum": ["a", "b"]}},
            "any": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}]},
            "free": {"type": "object", "additionalProperties": False},
            "flag": {"type": "boolean", "default": False},
        },
        "$defs": {"part": {"type": "object", "properties": {"x": {"type": "number", "minimum": 1}}}},
    }
