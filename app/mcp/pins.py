"""Definitions of tools that an owner approved: a changed one is held back until it is approved again."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from app.i18n import lazy
from app.mcp.definitions import HeldBack, ServerState
from app.messages import JSON
from app.security import write_private

# A tool as `tools/list` gives it.
Definition = Mapping[str, JSON]

# What the model or an owner is told of a tool: a change of any of them is a change of the tool.
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tools that are still what was approved, in their order, and those that differ or are new."""

    approved: tuple[Definition, ...] = ()
    held_back: tuple[HeldBack, ...] = ()


class _Pin(TypedDict):
    definition: dict[str, JSON]


class _PinsFile(TypedDict):
    tools: dict[str, _Pin]


_FILE = TypeAdapter(_PinsFile)


def definition_hash(raw: Definition) -> str:
    """Return the sha256 of what is pinned of a definition."""
    return hashlib.sha256(_canonical(_pinned(raw)).encode()).hexdigest()


def differences(before: Definition | None, after: Definition) -> list[tuple[str, str | None, str | None]]:
    """Return what changed of a definition: the place in it, the value there before and now, None for none."""
    was, now = dict(_values(_pinned(before or {}))), dict(_values(_pinned(after)))
    places = dict.fromkeys((*now, *was))
    return [(place, was.get(place), now.get(place)) for place in places if was.get(place) != now.get(place)]


def hashes(held_back: Sequence[HeldBack]) -> dict[str, str]:
    """Return the sha256 of each definition that is held back, by tool."""
    return {one.tool: definition_hash(one.after) for one in held_back}


def subject_of(state: ServerState) -> str:
    """Return the hash of all that an approval of what a server has held back covers."""
    return hashlib.sha256(_canonical([state.name, hashes(state.held_back)]).encode()).hexdigest()


class Pins:
    """One server's approved definitions, kept whole in a file that only we can read.

    A file that cannot be read approves nothing; `fault` says so. In a trial they are only looked at: what was
    never approved counts as approved. Reads and writes the disk: not for the event loop.
    """

    def __init__(self, data_dir: Path, server: str, *, is_trial: bool = False) -> None:
        self.fault = ""
        self._is_trial = is_trial
        self._path = data_dir / "mcp" / server / "pins.json"

    def compare(self, raws: Sequence[Definition]) -> Comparison:
        """Tell which of these may be offered."""
        pinned = self._read()
        if pinned is None:
            if self._is_trial and not self.fault:
                return Comparison(tuple(raws))
            pinned = {}
        hashes = {name: definition_hash(definition) for name, definition in pinned.items()}
        approved, held_back = [], []
        for raw in raws:
            name = raw["name"]
            if hashes.get(name) == definition_hash(raw):
                approved.append(raw)
            else:
                held_back.append(HeldBack(name, after=raw, before=pinned.get(name)))
        return Comparison(tuple(approved), tuple(held_back))

    def approve_first(self, raws: Sequence[Definition]) -> None:
        """Approve all of these if nothing was ever approved; with a faulty file an owner is asked instead."""
        if self._read() is None and not self.fault and not self._is_trial:
            self._write({raw["name"]: raw for raw in raws})

    def approve(self, raws: Sequence[Definition], shown: Mapping[str, str]) -> None:
        """Approve those that are what was shown (sha256 by tool); earlier ones stay."""
        chosen = {raw["name"]: raw for raw in raws if shown.get(raw["name"]) == definition_hash(raw)}
        if chosen:
            self._write({**(self._read() or {}), **chosen})

    def _read(self) -> dict[str, Definition] | None:
        self.fault = ""
        try:
            tools = _FILE.validate_json(self._path.read_bytes())["tools"]
            return {name: pin["definition"] for name, pin in tools.items()}
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = f"{error.error_count()} faults" if isinstance(error, ValidationError) else str(error)
            self.fault = lazy(
                "{path} cannot be read, so no tool in it is approved: {reason}",
                path=str(self._path),
                reason=why,
            )
            return None

    def _write(self, definitions: Mapping[str, Definition]) -> None:
        tools = {name: {"definition": _pinned(one)} for name, one in sorted(definitions.items())}
        write_private(self._path, json.dumps({"tools": tools}))
        self.fault = ""


def _canonical(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _pinned(raw: Definition) -> dict[str, JSON]:
    return {key: raw[key] for key in PINNED if raw.get(key) is not None}


def _values(value: JSON, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the single values in a definition as texts, each after its place, such as `inputSchema.type`."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _values(part, f"{place}.{name}" if place else name)
    else:
        yield place, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
