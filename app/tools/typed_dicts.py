"""`typing.TypedDict` as pydantic can read it before Python 3.12, wherever in a type it stands."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

Hints = Mapping[str, Any]


def make_readable(annotation: object, around: Mapping[str, object]) -> None:
    """Gives every such class in `annotation` pydantic's own hook, which shows it a twin that it can read.

    Looks into type arguments, dataclasses, named tuples and typed dictionaries. `around`: names that the
    classes' own annotations may use besides those of their modules.
    """
    _walk(annotation, around, {})


def _walk(annotation: Any, around: Mapping[str, object], seen: dict[int, Any]) -> None:
    """`seen`: by identity, as comparing types takes as long as walking them; kept alive by standing in it."""
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation
    for part in typing.get_args(annotation):
        _walk(part, around, seen)
    kind = typing.get_origin(annotation) or annotation
    if not isinstance(kind, type) or not _has_fields(kind) or (kind is not annotation and id(kind) in seen):
        return
    seen[id(kind)] = kind
    try:
        hints = typing.get_type_hints(kind, localns=dict(around), include_extras=True)
    except Exception:  # an annotation is the author's own expression; pydantic says what it makes of it
        return
    if typing.is_typeddict(kind):
        _hook(kind, hints)
    for hint in hints.values():
        _walk(hint, around, seen)


def _has_fields(kind: type) -> bool:
    import typing_extensions

    return (
        dataclasses.is_dataclass(kind)
        or typing_extensions.is_typeddict(kind)
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def _hook(typed_dict: Any, hints: Hints) -> None:
    twin = _twin(typed_dict, hints)

    def describe(cls: type, source: object, handler: Any) -> Any:
        return handler.generate_schema(twin)

    typed_dict.__get_pydantic_core_schema__ = classmethod(describe)


def _twin(typed_dict: Any, hints: Hints) -> Any:
    """Marks are taken from the evaluated hints: `__required_keys__` misses those written as text."""
    import typing_extensions

    fields = {
        name: hint
        if _is_marked(hint)
        else (typing.Required if name in typed_dict.__required_keys__ else typing.NotRequired)[hint]
        for name, hint in hints.items()
    }
    make: Any = typing_extensions.TypedDict
    twin = make(typed_dict.__name__, fields)
    twin.__doc__ = typed_dict.__doc__
    return twin


def _is_marked(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _is_marked(hint.__origin__)
    return origin in (typing.Required, typing.NotRequired)
