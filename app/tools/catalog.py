"""The catalogue of a file or a folder of tools, kept until its sources change."""

import errno
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import structlog

from app.messages import JSON
from app.security import write_private
from app.tools.source import LARGEST_SOURCE, FoundTool, find_tools, registers

if TYPE_CHECKING:
    from app.tools.tool import Tool

log = structlog.get_logger(__name__)

CACHE_FILE = "tool_catalog.json"

_CACHED_PATHS = 64


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
    from app.settings import Settings

    path, cache = Path(path), Path(cache_dir or Settings().data_dir / ".cache") / CACHE_FILE
    sources = _sources(path)
    key = f"{_own_hash()}-{_hash(path, sources)}"
    kept = _load(cache)
    entry = kept.pop(str(path.absolute()), None)
    if not isinstance(entry, dict) or entry.get("key") != key:
        entry = {"key": key, "catalog": _built(path, sources)}
        recent = dict(list(kept.items())[-(_CACHED_PATHS - 1) :])
        try:
            write_private(cache, json.dumps({**recent, str(path.absolute()): entry}))
        except OSError as error:  # it costs time, not the catalogue
            log.warning("the tool catalogue was not cached", error=type(error).__name__)
    catalog: dict[str, JSON] = entry["catalog"]
    return catalog


def stamp(definitions: Iterable[Mapping[str, JSON]]) -> tuple[str, str]:
    """Return version (12 digits) and hash (SHA-1) of tool definitions, in whatever order they come.

    A definition is `{name, description, parameters}`, alone or as `function` of the OpenAI form.
    """
    plain = sorted((one.get("function", one) for one in definitions), key=lambda one: str(one["name"]))
    digest = _sha1(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))
    return digest[:12], digest


def prompt_list(tools: "Iterable[FoundTool | Tool]") -> str:
    """Write the tools as lines "- name: description", each with its examples below it."""
    lines = []
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}")
        lines += [f"  e.g. {example}" for example in tool.examples]
    return "\n".join(lines)


def _built(path: Path, sources: Mapping[str, bytes]) -> dict[str, JSON]:
    tools: list[FoundTool] = []
    for name, content in sources.items():
        try:
            tools += find_tools(content)[0]
        except SyntaxError as error:
            if not path.is_dir():
                raise
            log.warning("left out of the catalogue", file=name, error=f"line {error.lineno}: {error.msg}")
    digest = _hash(path, sources)
    return {
        "version": digest[:12],
        "hash": digest,
        "count": len(tools),
        "promptList": prompt_list(tools),
        "functionSchema": [tool.definition() for tool in tools],
    }


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
    releases = [platform.python_version(), *(version(package) for package in ("griffelib", "pydantic"))]
    return _sha1(b"".join([*code, " ".join(releases).encode()]))


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _load(cache: Path) -> dict[str, JSON]:
    try:
        kept = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}
