"""A form made from the schema of a tool, and the arguments that its fields give."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from app.messages import JSON
from app.tools.plain import loads

PREFIX = "argument-"  # of the names of the fields


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the form; `kind` is text, long, number, choice or json."""

    name: str
    kind: str
    description: str
    required: bool
    choices: tuple[str, ...] = ()
    default: str = ""


def fields_of(schema: Mapping[str, JSON]) -> list[Field]:
    """Return a field for each argument, those that are required first."""
    required = schema.get("required") or ()
    fields = [
        _field(name, one if isinstance(one, dict) else {}, name in required)
        for name, one in (schema.get("properties") or {}).items()
    ]
    return sorted(fields, key=lambda field: not field.required)


def arguments_of(schema: Mapping[str, JSON], form: Mapping[str, str]) -> dict[str, JSON]:
    """Return what a sent form says; what cannot be read stays a text, which the tool's check then names."""
    given = {}
    for field in fields_of(schema):
        text = form.get(PREFIX + field.name, "").strip()
        if text:
            given[field.name] = text if field.kind in ("text", "long") else _read(field, text)
    return given


def _field(name: str, one: Mapping[str, JSON], required: bool) -> Field:
    kinds = {"integer": "number", "number": "number", "boolean": "choice", "string": "text"}
    branches = [branch for branch in one.get("anyOf", ()) if isinstance(branch, dict)]
    types = [one.get("type"), *(branch.get("type") for branch in branches)]
    kind = next((kinds[str(each)] for each in types if str(each) in kinds), "json")
    choices: tuple[str, ...] = ("true", "false") if kind == "choice" else ()
    if listed := one.get("enum"):
        kind, choices = (
            "choice",
            tuple(each if isinstance(each, str) else json.dumps(each) for each in listed),
        )
    if kind == "text" and (one.get("maxLength") or 0) > 200:
        kind = "long"
    default = one.get("default")
    shown = "" if default is None else _shown(default)
    return Field(name, kind, str(one.get("description") or ""), required, choices, shown)


def _shown(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(field: Field, text: str) -> JSON:
    if field.kind == "choice" and text not in ("true", "false"):
        return text
    try:
        return loads(text)
    except ValueError:
        return text
