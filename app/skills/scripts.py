"""The programs in a skill's `scripts/` that its instructions tell a model to run, and what each needs."""

import hashlib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.skills.folder import read_regular, walk

MOST_SCRIPTS = 60
READY = "ready"  # a file in the folder of packages once all of them are there
INTERPRETER_PATH = "/usr/local/bin:/usr/bin:/bin"  # what the sandbox shows
_BY_SUFFIX = {
    **{".py": "python3", ".sh": "bash", ".bash": "bash", ".rb": "ruby", ".pl": "perl"},
    **{".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "deno", ".php": "php"},
}
_BESIDE = ("requirements.txt", "package.json")  # in scripts/, else above it
_PYTHON = re.compile(r"python[\d.]*|uv|pipx")
# https://peps.python.org/pep-0723/
_INLINE = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


@dataclass(frozen=True, slots=True)
class Script:
    """A program, and the Python `packages` that it names; `lacks` says why it cannot run here."""

    path: str
    interpreter: str
    packages: tuple[str, ...] = ()
    lacks: str = ""


def scripts_of(folder: Path, data_dir: Path | None = None) -> tuple[Script, ...]:
    """Return the programs of a folder, as `scripts_in` finds them; none where it cannot be read. Blocks."""
    try:
        found = [one.path for one in walk(f"{folder}/scripts") if one.is_file(follow_symlinks=False)]
    except OSError:
        return ()
    names = [*(os.path.relpath(path, folder) for path in found), *_BESIDE]
    files: dict[str, bytes] = {}
    for name in names:
        with suppress(OSError):
            files[name] = read_regular(folder / name)
    return scripts_in(files, data_dir)


def scripts_in(files: Mapping[str, bytes], data_dir: Path | None = None) -> tuple[Script, ...]:
    """Return the programs in `scripts/` that can be told by their first line or their suffix; not tools.py.

    With `data_dir` their packages must be installed there.
    """
    texts = {path: files[path].decode("utf-8-sig", "replace") for path in sorted(files)}
    required = _beside(texts, "requirements.txt")
    found: list[Script] = []
    for path, text in texts.items():
        name = os.path.basename(path)
        if not path.startswith("scripts/") or name in ("tools.py", "__init__.py") or name.startswith("."):
            continue
        if interpreter := _interpreter(text, os.path.splitext(name)[1].lower()):
            packages = tuple(_packages(text, required)) if interpreter == "python3" else ()
            found.append(Script(path, interpreter, packages, _lack(interpreter, packages, texts, data_dir)))
    return tuple(found[:MOST_SCRIPTS])


def packages_folder(data_dir: Path, packages: Sequence[str]) -> Path:
    """Return the folder of an environment with these packages, which skills share."""
    mark = hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()
    return data_dir.absolute() / "skill-packages" / mark[:32]


def interpreter_place(script: Script, data_dir: Path) -> str:
    """Return the program that runs a script."""
    if script.packages:
        return str(packages_folder(data_dir, script.packages) / "bin" / "python")
    if script.interpreter == "python3":
        return sys.executable
    return shutil.which(script.interpreter, path=INTERPRETER_PATH) or script.interpreter


def _interpreter(text: str, suffix: str) -> str:
    """Return the interpreter of the first line, else of the suffix; "" for what is no program."""
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        words = [os.path.basename(word) for word in first[2:].split() if not word.startswith("-")]
        named = next((word for word in words if word != "env" and "=" not in word), "")
        return "python3" if _PYTHON.fullmatch(named) else named
    return _BY_SUFFIX.get(suffix, "")


def _packages(text: str, beside: str) -> list[str]:
    """Return the packages that a script itself names (PEP 723), else the requirements.txt `beside` it."""
    found = _INLINE.search(text)
    if found is None:
        required = (line.partition(" #")[0].strip() for line in beside.splitlines())
        return [line for line in required if line and not line.startswith(("#", "-"))]
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in found["content"].splitlines())
    try:
        wanted = tomllib.loads("\n".join(lines)).get("dependencies", [])
    except tomllib.TOMLDecodeError:
        return []
    return [one for one in wanted if isinstance(one, str)]


def _lack(interpreter: str, packages: Sequence[str], texts: Mapping[str, str], data_dir: Path | None) -> str:
    if interpreter != "python3" and shutil.which(interpreter, path=INTERPRETER_PATH) is None:
        return f"needs {interpreter}"
    if interpreter in ("node", "deno") and (wanted := _npm_packages(texts)):
        return f"needs packages of npm, which are not installed for scripts: {', '.join(wanted)}"
    if packages and data_dir is not None and not (packages_folder(data_dir, packages) / READY).exists():
        return f"needs packages: {', '.join(packages)}"
    return ""


def _npm_packages(texts: Mapping[str, str]) -> list[str]:
    try:
        return sorted(json.loads(_beside(texts, "package.json") or "{}").get("dependencies", {}))
    except (ValueError, AttributeError, TypeError):
        return []


def _beside(texts: Mapping[str, str], name: str) -> str:
    return texts.get(f"scripts/{name}", texts.get(name, ""))
