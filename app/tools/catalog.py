"""The catalogue of a file of tools, kept until it changes."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import structlog

from app import __version__
from app.messages import JSON
from app.security import write_private
from app.tools.source import LARGEST_SOURCE, FoundTool, find_tools

if TYPE_CHECKING:
    from app.tools.tool import Tool

log = structlog.get_logger(__name__)

CACHE_FILE = "tool_catalog.json"


def build_catalog(path: str | Path) -> dict[str, JSON]:
    """Return the catalogue of a file; `hash` is the SHA-1 of the source, `version` its first 12 digits.

    Raises SyntaxError for a file that is not Python, and OSError.
    """
    return _built(_source(Path(path)))


def get_catalog_cached(path: str | Path, cache_dir: str | Path | None = None) -> dict[str, JSON]:
    """Return `build_catalog`, kept in `cache_dir` until the file or this release change.

    For whoever asks again and again about files that are not served; a server has a catalogue of its own.
    Without a `cache_dir` the settings are read anew, and it is `.cache` in their data folder.
    """
    from app.settings import Settings

    path, cache = Path(path), Path(cache_dir or Settings().data_dir / ".cache") / CACHE_FILE
    source = _source(path)
    key = f"{__version__}-{_sha1(source)}"
    kept = _load(cache)
    entry = kept.get(str(path.absolute()))
    if not isinstance(entry, dict) or entry.get("key") != key:
        entry = {"key": key, "catalog": _built(source)}
        try:
            write_private(cache, json.dumps({**kept, str(path.absolute()): entry}))
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


def _built(source: bytes) -> dict[str, JSON]:
    tools, _ = find_tools(source)
    digest = _sha1(source)
    return {
        "version": digest[:12],
        "hash": digest,
        "count": len(tools),
        "promptList": prompt_list(tools),
        "functionSchema": [tool.definition() for tool in tools],
    }


def _source(path: Path) -> bytes:
    if not path.is_file():  # a pipe would be waited for
        raise FileNotFoundError(f"{path} is no file")
    with path.open("rb") as file:
        return file.read(LARGEST_SOURCE + 1)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _load(cache: Path) -> dict[str, JSON]:
    try:
        kept = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}
