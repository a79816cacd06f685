"""Annotations read from source text, never run: a few known modules, and classes of the same file."""

import ast
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import pathlib
import typing
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import typing_extensions

from app.tools.schema import Missing, TypesTooLarge
from app.tools.validation import is_checkable

_BUILTINS: dict[str, object] = {
    kind.__name__: kind
    for kind in (str, int, float, bool, bytes, list, dict, tuple, set, frozenset, object, type(None))
}
_MODULES: dict[str, Any] = {
    "typing": typing,
    "typing_extensions": typing_extensions,
    "datetime": datetime,
    "decimal": decimal,
    "uuid": uuid,
    "pathlib": pathlib,
    "enum": enum,
    "dataclasses": dataclasses,
    "collections.abc": collections.abc,
}
_PYDANTIC = frozenset(
    {
        "BaseModel",
        "Field",
        "HttpUrl",
        "AnyUrl",
        "PositiveInt",
        "NonNegativeInt",
        "PositiveFloat",
        "NonNegativeFloat",
    }
)
_DEEPEST = 40
_MOST_NODES, _MOST_IN_FILE = 2000, 20_000
"""Nodes of one annotation with all it refers to, and of all annotations of a file."""
_TEXT_OF_NODE = 100
"""Characters of an annotation written as text that cost as much as one node."""
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement of a module, nested ones after their parent."""
    waiting: deque[ast.AST] = deque(module.body)
    while waiting:
        node = waiting.popleft()
        yield node
        for name in BLOCKS:
            waiting += getattr(node, name, ())


@dataclasses.dataclass(slots=True)
class _Cost:
    """The cost of reading a type: its own nodes, and the classes that it holds."""

    nodes: int = 0
    classes: set[str] = dataclasses.field(default_factory=set)


class Names:
    """The meaning of a module's names, as far as its text tells.

    A type that is named in many places costs in each; only a class counts once.
    """

    def __init__(self, module: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._assigned: dict[str, ast.expr] = {}
        self.made: dict[str, object] = {}
        """The classes of the module that annotations needed so far, by name."""
        self._making: set[str] = set()
        self._failed: dict[str, str] = {}
        self._depth = 0
        self._spent = self._most = 0
        self._cost = _Cost()
        self._class_costs: dict[str, _Cost] = {}
        for node in statements(module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._note_import(node)
        for statement in module.body:
            self._note(statement)

    def annotation(self, node: ast.expr | None) -> object:
        """Return the type an annotation means; Missing.ANNOTATION for none.

        Raises Unresolvable, TypesTooLarge.
        """
        if node is None:
            return Missing.ANNOTATION
        self._begin()
        try:
            kind = self._type(node)
            self._pay(self._nodes_of(self._cost.classes))
            return kind
        except (Unresolvable, TypesTooLarge):
            raise
        except Exception as error:  # what the text describes may be refused by Python or pydantic in any way
            raise Unresolvable(f"{type(error).__name__}: {error}") from error

    def default(self, node: ast.expr | None) -> object:
        """Return the value of a default, or the mark for one that is missing or not a literal.

        Raises TypesTooLarge for constants that are used again and again.
        """
        if node is None:
            return Missing.REQUIRED
        self._begin()
        return self._default(node)

    def _default(self, node: ast.expr) -> object:
        try:
            return self._value(node)
        except TypesTooLarge:
            raise
        except Exception:  # what is no literal is told, not read
            return Missing.UNWRITTEN

    def _note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                self._imported[name.asname or name.name.split(".")[0]] = (
                    name.name if name.asname else name.name.split(".")[0]
                )
            return
        for name in node.names:
            star = name.name == "*" and node.module in _MODULES
            listed = getattr(_MODULES.get(str(node.module)), "__all__", ()) if star else ()
            for one in listed or [name.asname or name.name]:
                self._imported[one] = f"{node.module or ''}.{one if star else name.name}"

    def _note(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ClassDef):
            self._classes[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._assigned[statement.targets[0].id] = statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value
        ):
            self._assigned[statement.target.id] = statement.value
        elif type(statement).__name__ == "TypeAlias":  # `type X = …`, of Python 3.12
            alias: Any = statement
            self._assigned[alias.name.id] = alias.value

    def _begin(self) -> None:
        self._cost = _Cost()
        self._most = min(self._spent + _MOST_NODES, _MOST_IN_FILE)
        self._pay(1)

    def _pay(self, nodes: int) -> None:
        if nodes > self._most - self._spent:
            self._spent = self._most
            raise TypesTooLarge
        self._spent += nodes
        self._cost.nodes += nodes

    def _nodes_of(self, classes: set[str]) -> int:
        """Count the nodes of these classes and all that they hold, each class once."""
        waiting, seen, nodes = [*classes], set[str](), 0
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self._class_costs:
                seen.add(name)
                nodes += self._class_costs[name].nodes
                waiting += self._class_costs[name].classes
        return nodes

    def _type(self, node: ast.expr) -> Any:
        self._pay(1)
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise Unresolvable("nested too deeply")
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=None):
                return None
            case ast.Constant(value=str() as text):
                self._pay(len(text) // _TEXT_OF_NODE)
                return self._type(ast.parse(text, mode="eval").body)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return self._known(self._dotted(node))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return typing.Union[self._type(left), self._type(right)]  # noqa: UP007 - read from text
            case ast.Subscript(value=value, slice=inner):
                return self._subscript(self._type(value), inner)
            case ast.Call(func=function, args=[_, wrapped]) if self._is(function, "typing.NewType"):
                return self._type(wrapped)
        raise Unresolvable(ast.unparse(node)[:80])

    def _subscript(self, outer: Any, inner: ast.expr) -> Any:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if outer in (typing.Literal, typing_extensions.Literal):
            values = tuple(self._value(part) for part in parts)
            named = len(values) == 1 and isinstance(values[0], tuple)  # `Literal[UNITS]`: each of its values
            return typing.Literal[values[0] if named else values]
        if outer in (typing.Annotated, typing_extensions.Annotated):
            extras = [self._metadata(part) for part in parts[1:]]
            return typing.Annotated[(self._type(parts[0]), *(e for e in extras if e is not None))]
        if outer is typing.Optional:
            return typing.Optional[self._type(parts[0])]  # noqa: UP045 - read from text
        types = tuple(... if _is_ellipsis(part) else self._type(part) for part in parts)
        return outer[types if len(types) > 1 else types[0]]

    def _metadata(self, node: ast.expr) -> object:
        """Return the description in `Annotated`: a text or a Field counts."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Call) and self._is(node.func, "pydantic.Field"):
            return self._field(node)
        return None

    def _field(self, call: ast.Call) -> Any:
        from pydantic import Field

        values = [self._value(argument) for argument in call.args[:1]]
        named: dict[str, Any] = {
            word.arg: self._value(word.value)
            for word in call.keywords
            if word.arg and word.arg != "default_factory"
        }
        if any(word.arg == "default_factory" for word in call.keywords):
            named["default_factory"] = object
        if not is_checkable(str(named.get("pattern", ""))):
            del named["pattern"]
        make: Callable[..., Any] = Field
        return make(*values, **named)

    def _named(self, name: str) -> Any:
        if name in self._failed:
            raise Unresolvable(self._failed[name])
        try:
            if name in self._classes:
                return self._class(name)
            if name in self._assigned:
                return self._type(self._assigned[name])
        except TypesTooLarge:
            raise
        except Exception as error:  # whatever Python or pydantic makes of it, it is tried once
            self._failed[name] = f"{type(error).__name__}: {error}"
            raise
        if name in self._imported:
            return self._known(self._imported[name])
        if name in _BUILTINS:
            return _BUILTINS[name]
        raise Unresolvable(name)

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        raise Unresolvable(ast.unparse(node)[:80])

    def _known(self, dotted: str) -> Any:
        module, _, name = dotted.rpartition(".")
        if module in _MODULES and not name.startswith("_"):
            return getattr(_MODULES[module], name)
        if module == "pydantic" and name in _PYDANTIC:
            import pydantic

            return getattr(pydantic, name)
        raise Unresolvable(dotted)

    def _is(self, node: ast.expr, dotted: str) -> bool:
        try:
            return self._dotted(node) == dotted
        except Unresolvable:
            return False

    def _is_auto(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and not node.args and self._is(node.func, "enum.auto")

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a literal, a constant of the module, a member of an enum, or a `Field(…)`."""
        self._pay(1)
        if isinstance(node, ast.Name) and node.id in self._assigned:
            constant = self._assigned[node.id]
            self._pay(sum(1 for _ in islice(ast.walk(constant), _MOST_NODES)))
            return ast.literal_eval(constant)
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self._classes
        ):
            return getattr(self._named(node.value.id), node.attr)
        if isinstance(node, ast.Call) and self._is(node.func, "pydantic.Field"):
            return self._field(node)
        return ast.literal_eval(node)

    def _class(self, name: str) -> Any:
        self._cost.classes.add(name)
        if name in self._making:
            return typing.ForwardRef(name)  # a class that holds itself
        if name not in self.made:
            self._making.add(name)
            around, self._cost = self._cost, _Cost()
            try:
                self.made[name] = self._make(self._classes[name])
                self._class_costs[name] = self._cost
            finally:
                self._making.discard(name)
                self._cost = around
        return self.made[name]

    def _make(self, node: ast.ClassDef) -> Any:
        """Make a class with the same fields, without its methods, decorators and other statements."""
        self._pay(len(node.body))
        bases = [self._type(base) for base in node.bases]
        docstring = ast.get_docstring(node)
        if any(isinstance(base, type) and issubclass(base, enum.Enum) for base in bases):
            made: Any = enumeration(node, bases, self._is_auto)
        elif any(typing_extensions.is_typeddict(base) or base in _TYPED_DICTS for base in bases):
            made = self._typed_dict(node, bases)
        elif any(is_model(base) for base in bases):
            from pydantic import create_model

            fields = {n: (kind, model_default(default)) for n, kind, default in self._fields(node)}
            make_model: Callable[..., Any] = create_model
            return make_model(node.name, __base__=tuple(bases), __doc__=docstring, **fields)
        elif any(self._is(_called(d), "dataclasses.dataclass") for d in node.decorator_list):
            made = dataclasses.make_dataclass(
                node.name,
                [
                    (n, kind) if default is Missing.REQUIRED else (n, kind, dataclass_default(default))
                    for n, kind, default in self._fields(node)
                ],
                bases=tuple(bases),
                kw_only=True,
            )
        else:
            raise Unresolvable(f"{node.name} is no dataclass, model, TypedDict or Enum")
        if docstring:
            made.__doc__ = docstring
        return made

    def _fields(self, node: ast.ClassDef) -> list[tuple[str, Any, object]]:
        return [
            (statement.target.id, self._type(statement.annotation), self._field_default(statement.value))
            for statement in node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def _field_default(self, node: ast.expr | None) -> object:
        if isinstance(node, ast.Call) and self._is(node.func, "dataclasses.field"):
            words = {word.arg: word.value for word in node.keywords}
            if "default" in words:
                return self._default(words["default"])
            return Missing.UNWRITTEN if "default_factory" in words else Missing.REQUIRED
        return Missing.REQUIRED if node is None else self._default(node)

    def _typed_dict(self, node: ast.ClassDef, bases: list[Any]) -> Any:
        total = not any(w.arg == "total" and ast.literal_eval(w.value) is False for w in node.keywords)
        fields: dict[str, Any] = {}
        for base in bases:
            if typing_extensions.is_typeddict(base):
                fields |= typing_extensions.get_type_hints(base, include_extras=True)
        for name, kind, _ in self._fields(node):
            marked = typing.get_origin(kind) in (typing_extensions.Required, typing_extensions.NotRequired)
            fields[name] = (
                kind
                if marked
                else (typing_extensions.Required[kind] if total else typing_extensions.NotRequired[kind])
            )
        make: Any = typing_extensions.TypedDict
        return make(node.name, fields)


_TYPED_DICTS = (typing.TypedDict, typing_extensions.TypedDict)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


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
    """Return True for a value that Python takes as it stands.

    `bytes` of a number, or a flag of a million bits, would be computed.
    """
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
