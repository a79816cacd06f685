"""The file with the `mcpServers` mapping: read as it came, changed in one step."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.errors import RecadoError
from app.mcp.definitions import NAME_RULE, is_server_name
from app.mcp.locks import locked
from app.messages import JSON
from app.security import write_private
from app.skills.folder import read_regular
from app.tools.plain import sendable

LARGEST = 1024 * 1024

_KEYS = ("mcpServers", "servers")
_MOST_NOTES = 20


class MappingError(RecadoError):
    """A file that cannot be used as it is; the text names it, the place in it and what to do."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The entries by name, as they are written, and what is odd in the file without hindering."""

    entries: Mapping[str, JSON]
    notes: tuple[str, ...] = ()


def read_file(path: Path) -> Servers:
    """No servers where there is no file. Raises MappingError."""
    whole, notes = _read(path)
    key = _key(path, whole)
    if key != _KEYS[-1] and isinstance(whole.get(_KEYS[-1]), dict):
        notes.append(f'{path}: "{_KEYS[-1]}" is not read beside "{key}"; put its servers there')
    return Servers(whole.get(key, {}), tuple(notes))


def add_server(path: Path, name: str, entry: Mapping[str, JSON], *, replace: bool = True) -> None:
    """Writes an entry, in place of the one of that name. Raises MappingError."""
    if not is_server_name(name):
        raise MappingError(f"{name[:60]!r} is no server's name: {NAME_RULE}")

    def add(servers: dict[str, JSON]) -> None:
        if not replace and name in servers:
            raise MappingError(f"{path} has a server {name} already; remove it first, or choose another name")
        servers[name] = dict(entry)

    _change(path, add)


def remove_server(path: Path, name: str) -> bool:
    """Takes an entry out; False where there was none. Raises MappingError."""
    if name not in read_file(path).entries:
        return False
    _change(path, lambda servers: servers.pop(name, None))
    return True


def set_enabled(path: Path, name: str, enabled: bool) -> None:
    """Turns a server on or off without touching the rest of its entry. Raises MappingError."""

    def turn(servers: dict[str, JSON]) -> None:
        entry = servers.get(name)
        if not isinstance(entry, dict):
            raise MappingError(f"{path} has no server {name}")
        entry.pop("disabled", None)
        entry["enabled"] = enabled

    _change(path, turn)


def _change(path: Path, change: Callable[[dict[str, JSON]], object]) -> None:
    try:
        with locked(path):
            whole, _ = _read(path)
            change(whole.setdefault(_key(path, whole), {}))
            text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
            write_private(Path(os.path.realpath(path)), text)  # a link to it stays a link
    except OSError as error:
        raise MappingError(
            f"{path} cannot be written: {error.strerror or error}; run this as the user of the server"
        ) from error


def _read(path: Path) -> tuple[dict[str, JSON], list[str]]:
    """The whole object, and a note for each key that stands twice in it."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        raise MappingError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > LARGEST:
        raise MappingError(f"{path} has more than {LARGEST // 1024**2} MiB, too much for a list of servers")
    notes: list[str] = []

    def once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        found = dict(pairs)
        if len(found) < len(pairs) and len(notes) < _MOST_NOTES:
            counted = Counter(name for name, _ in pairs)
            twice = [json.dumps(name) for name, times in counted.items() if times > 1]
            notes.append(f"{path}: {', '.join(twice[:5])} stands there twice; the last one counts")
        return found

    try:
        text = content.decode(json.detect_encoding(content))
        whole = sendable(json.loads(text, object_pairs_hook=once))
    except UnicodeDecodeError:
        raise MappingError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise MappingError(f"{path} is not JSON: {_fault(error)}") from None
    except (ValueError, RecursionError):
        raise MappingError(
            f"{path} is no JSON that can be read: nested too deep, or with too long a number"
        ) from None
    if not isinstance(whole, dict):
        raise MappingError(f'{path} is no JSON object; write {{"mcpServers": {{…}}}}')
    return whole, notes


def _key(path: Path, whole: Mapping[str, JSON]) -> str:
    """The key under which the servers stand, or would."""
    key = next((key for key in _KEYS if key in whole), "")
    if not key and whole:
        raise MappingError(f'{path} has no "mcpServers"; write {{"mcpServers": {{NAME: {{…}}}}}}')
    if not isinstance(whole.get(key, {}), dict):
        raise MappingError(f'"{key}" in {path} is no object; write {{"mcpServers": {{NAME: {{…}}}}}}')
    return key or _KEYS[0]


def _fault(error: json.JSONDecodeError) -> str:
    """Where, and the usual reasons."""
    if not error.doc.strip():
        return 'it is empty; write {"mcpServers": {}}'
    before, here = error.doc[: error.pos].rstrip(), error.doc[error.pos : error.pos + 1]
    hint = error.msg
    if here in ("/", "#"):
        hint = "comments are not allowed"
    elif (before.endswith(",") and here in ("}", "]")) or "trailing comma" in error.msg:
        hint = "a comma too many"
    return f"{hint} at line {error.lineno}, column {error.colno}"
