"""The catalogue of a file or a folder of tools, kept until its sources change."""

import errno
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import orjson
import structlog

from app.messages import JSON
from app.tools.source import LARGEST_SOURCE, FoundTool, find_tools, registers

log = structlog.get_logger(__name__)

CACHE_FILE = "tool_catalog.json"

_CACHED_PATHS = 64
_READERS = ("griffelib", "pydantic", "pydantic-core", "typing-extensions")
"""Packages whose release may change what a catalogue says."""


def build_catalog(path: str | Path) -> dict[str, JSON]:
    """Return the catalogue of a file, of a skill's folder, or of a folder of skills and adapters.

    Of a folder: `scripts/tools.py` beside its SKILL.md, those of the skills directly in it, and the files
    directly in it that register tools with a decorator. Links that lead out of it are not followed.
    `hash` is the SHA-1 of the source (of a folder: of its files' names and hashes) and `version` its first
    12 digits. Raises SyntaxError for a file that is not Python, OSError for one that cannot be read; in a
    folder such files are left out and named in the log.
    """
    path = Path(path)
    return _built(path, _sources(path))


def get_catalog_cached(path: str | Path, cache_dir: str | Path | None = None) -> dict[str, JSON]:
    """Return `build_catalog`, kept in `cache_dir` until the sources or the code that reads them change.

    For whoever asks again and again about files that are not served; a server has a catalogue of its own.
    Without a `cache_dir` the settings are read anew, and it is `.cache` in their data folder.
    """
    path, cache = Path(path), Path(cache_dir or _usual_cache_dir()) / CACHE_FILE
    sources = _sources(path)
    key = f"{_own_hash()}-{_hash(path, sources)}"
    place = str(path.absolute())
    kept = _load(cache)
    entry = kept.get(place)
    if isinstance(entry, dict) and entry.get("key") == key and _is_catalog(entry.get("catalog")):
        catalog: dict[str, JSON] = entry["catalog"]
        return catalog
    catalog = _built(path, sources)
    kept.pop(place, None)
    recent = dict(list(kept.items())[-(_CACHED_PATHS - 1) :])
    _store(cache, {**recent, place: {"key": key, "catalog": catalog}})
    return catalog


def stamp(definitions: Iterable[Mapping[str, JSON]]) -> tuple[str, str]:
    """Return version (12 digits) and hash (SHA-1) of tool definitions, in whatever order they come.

    A definition is `{name, description, parameters}`, alone or as `function` of the OpenAI form.
    """
    plain = sorted((one.get("function", one) for one in definitions), key=lambda one: str(one["name"]))
    digest = _sha1(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))
    return digest[:12], digest


class Described(Protocol):
    """The parts of a line about a tool, read or live."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def examples(self) -> tuple[str, ...]: ...


def prompt_list(tools: Iterable[Described]) -> str:
    """Write the tools as lines "- name: description", each with its examples below it."""
    lines = []
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}")
        lines += [f"  e.g. {example}" for example in tool.examples]
    return "\n".join(lines)


def _written(tools: Iterable[FoundTool], digest: str) -> dict[str, JSON]:
    listed = list(tools)
    return {
        "version": digest[:12],
        "hash": digest,
        "count": len(listed),
        "promptList": prompt_list(listed),
        "functionSchema": [tool.definition() for tool in listed],
    }


def _built(path: Path, sources: Mapping[str, bytes]) -> dict[str, JSON]:
    tools: list[FoundTool] = []
    for name, content in sources.items():
        try:
            tools += find_tools(content)[0]
        except SyntaxError as error:
            if not path.is_dir():
                raise
            log.warning("left out of the catalogue", file=name, error=f"line {error.lineno}: {error.msg}")
    return _written(tools, _hash(path, sources))


def _sources(path: Path) -> dict[str, bytes]:
    """Return the texts a catalogue is made of, by their names within a folder."""
    if not path.is_dir():
        return {path.name: _content(path)}
    real = os.path.realpath(path)
    found: dict[str, bytes] = {}
    for file in _tool_files(path):
        try:
            inside = os.path.realpath(file).startswith(real + os.sep)
            content = _content(file) if inside else b""
        except OSError as error:
            log.warning("left out of the catalogue", file=str(file), error=error.strerror or str(error))
            continue
        if inside and (file.parent != path or registers(content)):
            found[str(file.relative_to(path))] = content
    return found


def _tool_files(folder: Path) -> Iterator[Path]:
    """Return the files of a folder that may hold tools; a `tools.py` in other places is a library."""
    for skill in (folder, *sorted(folder.iterdir())):
        if (skill / "SKILL.md").is_file() and (skill / "scripts" / "tools.py").exists():
            yield skill / "scripts" / "tools.py"
    yield from sorted(folder.glob("*.py"))


def _content(file: Path) -> bytes:
    """Read a file, at most a little more than is taken.

    Raises OSError, also for what is no regular file: reading a pipe waits.
    """
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    with file.open("rb") as opened:
        return opened.read(LARGEST_SOURCE + 1)


def _hash(path: Path, sources: Mapping[str, bytes]) -> str:
    if not path.is_dir():
        return _sha1(next(iter(sources.values())))
    return _sha1("\n".join(f"{name} {_sha1(content)}" for name, content in sources.items()).encode())


def _own_hash() -> str:
    """Return a hash of this code, Python and the packages that make catalogues."""
    code = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    releases = [platform.python_version(), *(version(package) for package in _READERS)]
    return _sha1(b"".join([*code, " ".join(releases).encode()]))


def _usual_cache_dir() -> Path:
    from app.settings import Settings

    return Settings().data_dir / ".cache"


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _load(cache: Path) -> dict[str, JSON]:
    try:
        kept = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _is_catalog(value: JSON) -> bool:
    wanted = {"version": str, "hash": str, "count": int, "promptList": str, "functionSchema": list}
    return isinstance(value, dict) and all(isinstance(value.get(key), kind) for key, kind in wanted.items())


def _store(cache: Path, kept: dict[str, JSON]) -> None:
    """Write the cache whole or not at all; where that fails it costs time, not the catalogue."""
    temporary = cache.with_name(f".{cache.name}.{secrets.token_hex(6)}")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, cache)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        log.warning("the tool catalogue was not cached", error=type(error).__name__)
