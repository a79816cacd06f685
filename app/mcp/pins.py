"""Definitions of tools that an owner approved: a changed one is held back until it is approved again."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from app.mcp.definitions import HeldBack, ServerState
from app.messages import JSON
from app.security import write_private

# A tool as `tools/list` gives it.
Definition = Mapping[str, JSON]

# What the model or an owner is told of a tool: a change of any of them is a change of the tool.
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")

_VERSION = 1

Part = Literal["title", "description", "parameter", "parameters", "annotation", "result"]  # as they are shown


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tools that are still what was approved, in their order, and those that differ or are new."""

    approved: tuple[Definition, ...] = ()
    held_back: tuple[HeldBack, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One part that changed; `name` is of the parameter or annotation. None stands for one that is not there.

    `parameters` stands for what the schema says beside its parameters.
    """

    part: Part
    name: str = ""
    before: JSON = None
    after: JSON = None


def definition_hash(raw: Definition) -> str:
    """Return the sha256 of what is pinned of a definition. Raises ValueError if that is nested too deeply."""
    try:
        text = _canonical(_pinned(raw))
    except RecursionError:
        raise ValueError("the definition is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Definition | None, after: Definition) -> tuple[Difference, ...]:
    """Return what an owner has to know of a change; everything for a new tool."""
    was, now = _parts(before or {}), _parts(after)
    return tuple(
        Difference(part, name, was.get((part, name)), now.get((part, name)))
        for part, name in sorted({**was, **now}, key=lambda one: get_args(Part).index(one[0]))
        # 1, 1.0 and True are equal to Python
        if _canonical(was.get((part, name))) != _canonical(now.get((part, name)))
    )


def hashes(held_back: Sequence[HeldBack]) -> dict[str, str]:
    """Return the sha256 of each definition that is held back, by tool."""
    return {one.tool: definition_hash(one.after) for one in held_back}


def subject_of(state: ServerState) -> str:
    """Return the hash of all that an approval of what a server has held back covers."""
    return hashlib.sha256(_canonical([state.name, hashes(state.held_back)]).encode()).hexdigest()


class Pins:
    """One server's approved definitions, kept whole in a file that only we can read.

    A file that cannot be read, or whose hashes do not fit, approves nothing; `fault` says so. Reads and
    writes the disk: not for the event loop.
    """

    def __init__(self, data_dir: Path, server: str) -> None:
        self.fault = ""
        self._path = data_dir / "mcp" / server / "pins.json"

    def exists(self) -> bool:
        """Tell whether anything was ever approved."""
        return self._path.exists()

    def compare(self, raws: Sequence[Definition]) -> Comparison:
        """Tell which of these may be offered. Raises ValueError for one that is nested too deeply."""
        pinned = self._read() or {}
        hashes = {name: definition_hash(definition) for name, definition in pinned.items()}
        approved, held_back = [], []
        for raw in raws:
            name = raw["name"]
            if hashes.get(name) == definition_hash(raw):
                approved.append(raw)
            else:
                held_back.append(HeldBack(name, after=raw, before=pinned.get(name)))
        return Comparison(tuple(approved), tuple(held_back))

    def approve_first(self, raws: Sequence[Definition]) -> bool:
        """Approve all of these if nothing was ever approved; tell whether it did.

        With a faulty file an owner is asked instead.
        """
        if self._read() is not None or self.fault:
            return False
        self._write({raw["name"]: raw for raw in raws})
        return True

    def approve(self, raws: Sequence[Definition], shown: Mapping[str, str]) -> Collection[str]:
        """Approve those that are what was shown (sha256 by tool); return their names. Earlier ones stay."""
        chosen = {raw["name"]: raw for raw in raws if shown.get(raw["name"]) == definition_hash(raw)}
        if chosen:
            self._write({**(self._read() or {}), **chosen})
        return frozenset(chosen)

    def _read(self) -> dict[str, Definition] | None:
        """Return approved definitions by name; None if there is no file or it is faulty."""
        self.fault = ""
        try:
            return _checked(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self.fault = f"{self._path} cannot be trusted, so no tool in it is approved: {error}"
            return None

    def _write(self, definitions: Mapping[str, Definition]) -> None:
        tools = {
            name: {"sha256": definition_hash(definition), "definition": _pinned(definition)}
            for name, definition in sorted(definitions.items())
        }
        write_private(self._path, json.dumps({"version": _VERSION, "tools": tools}))
        self.fault = ""


def _checked(written: JSON) -> dict[str, Definition]:
    """Return the definitions of a file. Raises ValueError unless each has its own hash."""
    tools = written.get("tools") if isinstance(written, dict) and written.get("version") == _VERSION else None
    if not isinstance(tools, dict):
        raise ValueError(f"it does not hold tools in version {_VERSION} of the form")
    definitions: dict[str, Definition] = {}
    for name, pin in tools.items():
        definition = pin.get("definition") if isinstance(pin, dict) else None
        if not isinstance(definition, dict) or definition.get("name") != name:
            raise ValueError(f"it holds no definition of {name!r}")
        if definition_hash(definition) != pin.get("sha256"):
            raise ValueError(f"the definition of {name!r} is not the one that was approved")
        definitions[name] = definition
    return definitions


def _canonical(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _pinned(raw: Definition) -> dict[str, JSON]:
    return {key: raw[key] for key in PINNED if raw.get(key) is not None}


def _parts(definition: Definition) -> dict[tuple[Part, str], JSON]:
    """Return what is shown of a definition."""
    schema = _mapping(definition.get("inputSchema"))
    parts: dict[tuple[Part, str], JSON] = {
        ("title", ""): definition.get("title"),
        ("description", ""): definition.get("description"),
    }
    parts |= {("parameter", name): one for name, one in _mapping(schema.get("properties")).items()}
    parts["parameters", ""] = {key: one for key, one in schema.items() if key != "properties"} or None
    parts |= {("annotation", name): one for name, one in _mapping(definition.get("annotations")).items()}
    return {**parts, ("result", ""): definition.get("outputSchema")}


def _mapping(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}
