"""Annotations read from source text, never run: a few known modules, and classes of the same file."""

import ast
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any

import pydantic
import typing_extensions

from app.tools.schema import Missing, TypesTooLarge
from app.tools.validation import is_checkable

_BUILTINS: dict[str, object] = {
    kind.__name__: kind
    for kind in (str, int, float, bool, bytes, list, dict, tuple, set, frozenset, object, type(None))
}
_MODULES: dict[str, Any] = {
    "typing": typing_extensions,  # whose TypedDict pydantic can read before Python 3.12
    "typing_extensions": typing_extensions,
    "datetime": datetime,
    "decimal": decimal,
    "uuid": uuid,
    "pathlib": pathlib,
    "enum": enum,
    "dataclasses": dataclasses,
    "collections.abc": collections.abc,
}
_NUMBERS = ("PositiveInt", "NonNegativeInt", "PositiveFloat", "NonNegativeFloat")
_PYDANTIC = frozenset(("BaseModel", "Field", "HttpUrl", "AnyUrl", *_NUMBERS))
# Of others Python would compute the values of the members.
_ENUM_BASES = frozenset((str, int, float, enum.Enum, enum.IntEnum, enum.StrEnum))
_DEEPEST = 40
_MOST_NODES = 2000  # of one annotation with all it refers to
_MOST_IN_FILE = 20_000  # nodes of all annotations of a file
_LONGEST_TEXT = 500  # characters of an annotation that is written as text


class Names:
    """The meaning of a module's names, as far as its text tells.

    A class that is named in many places costs in each what reading it the first time did.
    """

    def __init__(self, module: ast.Module) -> None:
        self.made: dict[str, object] = {}  # the classes of the module that annotations needed so far, by name
        self._imported = dict(_imports(module))
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self._assigned = dict(_assignments(module))
        self._costs: dict[str, int] = {}
        self._making: set[str] = set()
        self._depth = 0
        self._left, self._left_in_file = 0, _MOST_IN_FILE

    def annotation(self, node: Any) -> object:
        """Return the type an annotation means; Missing.UNKNOWN for one that the text does not explain.

        Raises TypesTooLarge.
        """
        self._left = _MOST_NODES
        return node if node is Parameter.empty else self._try(self._type, node, Missing.UNKNOWN)

    def default(self, node: ast.expr | None) -> object:
        """Return the value of a default, or the mark for one that is missing or not a literal.

        Raises TypesTooLarge.
        """
        self._left = _MOST_NODES
        return self._default(node)

    def _default(self, node: ast.expr | None) -> object:
        return Parameter.empty if node is None else self._try(self._value, node, Missing.UNWRITTEN)

    def _try(self, read: Callable[[Any], object], node: ast.expr, mark: Missing) -> object:
        try:
            return read(node)
        except TypesTooLarge:
            raise
        except Exception:  # the text does not explain it, or Python or pydantic refuse what it describes
            return mark

    def _pay(self, nodes: int = 1) -> None:
        self._left -= nodes
        self._left_in_file -= nodes
        if self._left < 0 or self._left_in_file < 0:
            raise TypesTooLarge

    def _type(self, node: ast.expr) -> Any:
        self._pay()
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise LookupError("nested too deeply")
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=None):
                return None
            case ast.Constant(value=str() as text) if len(text) <= _LONGEST_TEXT:
                return self._type(ast.parse(text, mode="eval").body)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return _known(self._dotted(node))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return typing.Union[self._type(left), self._type(right)]  # noqa: UP007 - read from text
            case ast.Subscript(value=value, slice=inner):
                return self._subscript(self._type(value), inner)
        raise LookupError(ast.unparse(node)[:80])

    def _subscript(self, outer: Any, inner: ast.expr) -> Any:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if outer is typing.Literal:
            values = tuple(self._value(part) for part in parts)
            named = len(values) == 1 and isinstance(values[0], tuple)  # `Literal[UNITS]`: each of its values
            return typing.Literal[values[0] if named else values]
        if outer is typing.Annotated:
            extras = filter(None, map(self._metadata, parts[1:]))
            return typing.Annotated[(self._type(parts[0]), *extras)]
        if outer is typing.Optional:
            return typing.Optional[self._type(parts[0])]  # noqa: UP045 - read from text
        inside = [... if ast.unparse(part) == "..." else self._type(part) for part in parts]
        return outer[tuple(inside) if len(inside) > 1 else inside[0]]

    def _metadata(self, node: ast.expr) -> object:
        """Return a description in `Annotated`: a text or a Field; None for anything else."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return self._field(node) if self._is_call(node, "pydantic.Field") else None

    def _field(self, call: Any) -> Any:
        values = [self._value(value) for value in call.args]
        named: dict[str, Any] = {
            word.arg: object if word.arg == "default_factory" else self._value(word.value)
            for word in call.keywords
            if word.arg
        }
        if not is_checkable(str(named.get("pattern", ""))):
            del named["pattern"]
        return pydantic.Field(*values, **named)

    def _named(self, name: str) -> Any:
        if name in self._making:
            return typing.ForwardRef(name)  # a class that holds itself
        if name in self.made:
            self._pay(self._costs[name])
            return self.made[name]
        if name in self._classes:
            self._making.add(name)
            before = self._left_in_file
            try:
                self.made[name] = self._make(self._classes[name])
            finally:
                self._making.discard(name)
            self._costs[name] = before - self._left_in_file
            return self.made[name]
        if name in self._assigned:
            return self._type(self._assigned[name])
        return _known(self._imported[name]) if name in self._imported else _BUILTINS[name]

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        return self._imported.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def _is_call(self, node: ast.expr | None, dotted: str) -> bool:
        return isinstance(node, ast.Call) and self._dotted(node.func) == dotted

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a literal, a constant of the module, a member of an enum, or a `Field(…)`."""
        self._pay(sum(1 for _ in ast.walk(node)))
        match node:
            case ast.Name(id=name) if name in self._assigned:
                return self._value(self._assigned[name])
            case ast.Attribute(value=ast.Name(id=name)) if name in self._classes:
                return getattr(self._named(name), node.attr)
            case ast.Call() if self._is_call(node, "pydantic.Field"):
                return self._field(node)
        return ast.literal_eval(node)

    def _make(self, node: ast.ClassDef) -> Any:
        """Make a class with the same fields or members, without its methods and other statements."""
        bases = tuple(map(self._type, node.bases))
        is_enum = any(isinstance(base, enum.EnumType) for base in bases)
        computes = any(getattr(part, "name", "") == "_generate_next_value_" for part in node.body)
        if is_enum and (computes or not set(bases) <= _ENUM_BASES):
            raise LookupError(f"{node.name} computes its values")
        body: dict[str, Any] = {"__doc__": ast.get_docstring(node), "__module__": __name__}
        body["__annotations__"] = fields = {}
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("__"):
                    fields[name] = self._type(statement.annotation)
                    default = self._field_default(statement.value)
                    if default is not Parameter.empty:
                        unknown = pydantic.Field(default_factory=object)
                        body[name] = unknown if default is Missing.UNWRITTEN else default
                case ast.Assign(targets=[ast.Name(id=name)]) if is_enum and not name.startswith("__"):
                    is_auto = self._is_call(statement.value, "enum.auto")
                    body[name] = enum.auto() if is_auto else ast.literal_eval(statement.value)
        options = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg == "total"}

        def fill(namespace: dict[str, Any]) -> None:
            for name, value in body.items():  # one by one: the namespace of an enumeration notes each
                namespace[name] = value

        made = types.new_class(node.name, bases, options, fill)
        decorators = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        is_dataclass = "dataclasses.dataclass" in map(self._dotted, decorators)
        return dataclasses.dataclass(kw_only=True)(made) if is_dataclass else made

    def _field_default(self, node: ast.expr | None) -> object:
        if not (isinstance(node, ast.Call) and self._is_call(node, "dataclasses.field")):
            return self._default(node)
        words = {word.arg: word.value for word in node.keywords}
        return Missing.UNWRITTEN if "default_factory" in words else self._default(words.get("default"))


def _imports(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for name in node.names:
                package = name.name.partition(".")[0]
                yield name.asname or package, name.name if name.asname else package
        elif isinstance(node, ast.ImportFrom):
            yield from ((name.asname or name.name, f"{node.module}.{name.name}") for name in node.names)


def _assignments(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _known(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    if module in _MODULES and not name.startswith("_"):
        return getattr(_MODULES[module], name)
    if module == "pydantic" and name in _PYDANTIC:
        return getattr(pydantic, name)
    raise LookupError(dotted)
