"""Schemas on their way into the plain form: joined, made alternatives of one another, written out."""

import math
from collections.abc import Iterable, Iterator
from itertools import product

from app.messages import JSON
from app.tools.schema import Schema
from app.tools.validation import KINDS

Node = dict[str, JSON]
"""A schema in the plain form, but `nullable` says whether null fits too, `default` may be null, and objects
and arrays need not have properties and items. Without any keyword but notes it takes anything."""

NOTES = ("description", "default")
MOST_BRANCHES = 100
MOST_VALUES = 200

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ANYTHING: Node = {}


class TooMuch(Exception):
    """More parts than may be looked at."""


class Budget:
    """How many parts may still be looked at."""

    def __init__(self, parts: int) -> None:
        self._left = parts

    def spend(self, parts: int = 1) -> None:
        """Raises TooMuch where fewer are left."""
        self._left -= parts
        if self._left < 0:
            raise TooMuch


def says_something(node: Node) -> bool:
    """Whether there are values that do not fit."""
    return "type" in node or "anyOf" in node


def union(branches: Iterable[Node | None]) -> Node | None:
    """What fits one of them at least, in as few branches as that takes; None where nothing does."""
    kept: list[Node] = []
    fits_null = False
    for branch in _flat(branches):
        if not says_something(branch):
            return {}
        fits_null |= _fits_null(branch)
        bare = {key: value for key, value in branch.items() if key != "nullable"}
        if bare.get("type") != "null" and bare not in kept:
            _add(kept, bare)
    if not kept:
        return {"type": "null"} if fits_null else None
    node = kept[0] if len(kept) == 1 else {"anyOf": kept}
    return {**node, "nullable": True} if fits_null else node


def both(one: Node | None, other: Node | None, budget: Budget) -> Node | None:
    """What fits both, or more than that where it cannot be written; None where nothing does.

    Of notes that both have the first one's stay. Raises TooMuch.
    """
    budget.spend()
    if one is None or other is None:
        return None
    notes = {key: node[key] for node in (other, one) for key in NOTES if key in node}
    if not says_something(one) or not says_something(other):
        return {**(other if says_something(other) else one), **notes}
    if "anyOf" in one or "anyOf" in other:
        pairs = list(product(one.get("anyOf", [one]), other.get("anyOf", [other])))
        if len(pairs) > MOST_BRANCHES:
            return {**one, **notes}
        made = union([both(*pair, budget) for pair in pairs])
    else:
        made = _both_of_a_kind(one, other, budget)
    if _fits_null(one) and _fits_null(other):
        made = {"type": "null"} if made is None or made.get("type") == "null" else {**made, "nullable": True}
    return None if made is None else {**made, **notes}


def either(objects: list[Node], budget: Budget) -> Node:
    """One object that takes what any of these takes: model servers refuse alternatives at the top."""
    if len(objects) == 1:
        return objects[0]
    names = list(dict.fromkeys(name for node in objects for name in node.get("properties", ())))
    budget.spend(len(names) * len(objects))
    properties = {
        name: union([node["properties"][name] for node in objects if name in node.get("properties", ())])
        for name in names
    }
    required = set.intersection(*(set(node.get("required", ())) for node in objects))
    is_open = any(node.get("additionalProperties") or "properties" not in node for node in objects)
    made: Node = {"type": "object", "properties": properties, "required": sorted(required)}
    return {**made, "additionalProperties": True} if is_open else made


def written(node: Node, budget: Budget, *, may_be_left_out: bool = False) -> Schema:
    """The node in the plain form. A null that is just the default of what may be left out is not told of.

    Raises TooMuch.
    """
    budget.spend()
    notes = {key: node[key] for key in NOTES if node.get(key) is not None}
    is_default = may_be_left_out and node.get("default", True) is None
    nulls = [{"type": "null"}] if node.get("nullable") and not is_default else []
    if "anyOf" in node:
        return {"anyOf": [*(written(branch, budget) for branch in node["anyOf"]), *nulls], **notes}
    made = {key: value for key, value in node.items() if key not in (*NOTES, "nullable")}
    kind = made.get("type")
    if kind in ("integer", "number"):
        _without_exclusive(made)
    elif kind == "array":
        made["items"] = written(made.get("items", {}), budget)
    elif kind == "object":
        _write_object(made, budget)
    return {"anyOf": [made, *nulls], **notes} if nulls else {**made, **notes}


def _write_object(node: Node, budget: Budget) -> None:
    """With every required property among its properties: some model servers refuse it otherwise."""
    required = dict.fromkeys(node.get("required", ()), _ANYTHING)
    budget.spend(len(required))
    named = node.get("properties", {})
    node["properties"] = {
        name: written(part, budget, may_be_left_out=name not in required)
        for name, part in {**named, **required, **named}.items()
    }
    extra = node.get("additionalProperties")
    if extra is True:
        del node["additionalProperties"]
    elif isinstance(extra, dict):
        node["additionalProperties"] = written(extra, budget)


def _without_exclusive(node: Node) -> None:
    """Bounds as every model server knows them: exact for integers, a little wider for other numbers."""
    is_whole = node["type"] == "integer"
    if (low := node.pop("exclusiveMinimum", None)) is not None:
        low = math.floor(low) + 1 if is_whole else low
        node["minimum"] = max(low, node.get("minimum", low))
    if (high := node.pop("exclusiveMaximum", None)) is not None:
        high = math.ceil(high) - 1 if is_whole else high
        node["maximum"] = min(high, node.get("maximum", high))


def _both_of_a_kind(one: Node, other: Node, budget: Budget) -> Node | None:
    kinds = {one["type"], other["type"]}
    if len(kinds) > 1 and kinds != {"integer", "number"}:
        return None
    made: Node = {**other, **one, "type": "integer" if "integer" in kinds else one["type"]}
    made.pop("nullable", None)
    if "enum" in made:
        listed: list[JSON] = other["enum"] if "enum" in other else made["enum"]
        fits = KINDS[made["type"]]
        made["enum"] = [value for value in made["enum"] if value in listed and fits(value)]
        if not made["enum"]:
            return None
    for keys, narrower in ((_LOWER_BOUNDS, max), (_UPPER_BOUNDS, min)):
        for key in keys:
            if key in one and key in other:
                made[key] = narrower(one[key], other[key])
    if "items" in one and "items" in other:
        made["items"] = both(one["items"], other["items"], budget) or {}
    if made["type"] == "object":
        made |= _both_objects(one, other, budget)
    return made


def _both_objects(one: Node, other: Node, budget: Budget) -> Node:
    made: Node = {}
    if "properties" in one or "properties" in other:
        first, second = one.get("properties", {}), other.get("properties", {})
        budget.spend(len(first) + len(second))
        shared = {name: both(first[name], second[name], budget) for name in first if name in second}
        every = {**first, **second, **shared}
        made["properties"] = {name: part for name, part in every.items() if part is not None}
    if "required" in one or "required" in other:
        made["required"] = list(dict.fromkeys((*one.get("required", ()), *other.get("required", ()))))
        budget.spend(len(made["required"]))
    extras = [node["additionalProperties"] for node in (one, other) if "additionalProperties" in node]
    if extras:
        made["additionalProperties"] = _both_extras(extras, budget)
    return made


def _both_extras(extras: list[JSON], budget: Budget) -> JSON:
    if False in extras:
        return False
    nodes: list[Node] = [extra for extra in extras if extra is not True]
    if len(nodes) < 2:
        return nodes[0] if nodes else True
    return both(nodes[0], nodes[1], budget) or False


def _flat(branches: Iterable[Node | None]) -> Iterator[Node]:
    for branch in branches:
        if branch is not None and "anyOf" in branch:
            yield from ({**one, "nullable": _fits_null(branch)} for one in branch["anyOf"])
        elif branch is not None:
            yield branch


def _add(kept: list[Node], branch: Node) -> None:
    """One branch more; values of one kind are one list."""
    alike = (one for one in kept if one.keys() == branch.keys() == {"type", "enum"})
    same = next((one for one in alike if one["type"] == branch["type"]), None)
    if same is None:
        kept.append(branch)
        return
    same["enum"] = [*same["enum"], *(value for value in branch["enum"] if value not in same["enum"])]
    if len(same["enum"]) > MOST_VALUES:
        del same["enum"]


def _fits_null(node: Node) -> bool:
    return node.get("nullable") is True or node.get("type") == "null"
