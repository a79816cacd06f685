"""Import the names of a package when they are first used."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a package, and its `__all__`: `names` are those that each module of it holds."""
    homes = {name: module for module, held in names.items() for name in held}
    here = vars(sys.modules[package])
    here["__all__"] = sorted(homes)

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        here[name] = value
        return value

    return get
