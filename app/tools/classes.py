"""Parts of the classes that annotations name, made from literals alone."""

import ast
import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from app.tools.schema import Missing


class Unresolvable(Exception):
    """An annotation that the source alone does not explain."""


def enumeration(node: ast.ClassDef, bases: list[Any], is_auto: Callable[[ast.expr], bool]) -> Any:
    if any(isinstance(part, ast.FunctionDef) and part.name == "_generate_next_value_" for part in node.body):
        raise Unresolvable(f"{node.name} computes its values")
    members = {
        statement.targets[0].id: enum.auto()
        if is_auto(statement.value)
        else ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    mixed = [base for base in bases if not issubclass(base, enum.Enum)]
    if any(base not in (str, int, float) for base in mixed) or not all(
        _is_plain_member(value, mixed) for value in members.values()
    ):
        raise Unresolvable(f"{node.name} makes its values of others")
    kind: Any = next(base for base in bases if issubclass(base, enum.Enum))
    return kind(node.name, members, type=mixed[0]) if mixed else kind(node.name, members)


def _is_plain_member(value: object, mixed: list[Any]) -> bool:
    """One that is taken as it stands: `bytes` of a number, or a flag of a million bits, would not be."""
    if isinstance(value, enum.auto):
        return True
    if isinstance(value, int) and value.bit_length() > 64:
        return False
    return all(isinstance(value, base) for base in mixed)


def model_default(default: object) -> Any:
    from pydantic import Field

    if default is Missing.REQUIRED:
        return ...
    return Field(default_factory=object) if default is Missing.UNWRITTEN else default


def dataclass_default(default: object) -> Any:
    if default is Missing.UNWRITTEN or isinstance(default, list | dict | set):
        return dataclasses.field(default_factory=object)
    return default


def is_model(base: object) -> bool:
    return isinstance(base, type) and any(part.__module__ == "pydantic.main" for part in base.__mro__)
