"""One skill: what a folder holds, read without ever raising for what is wrong in it."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from app.messages import JSON
from app.skills.manifest import Manifest, ManifestError, Requirements, read_manifest
from app.skills.modules import ToolsModuleError, tool_functions
from app.tools import Tool

RELEASE_SKILLS = Path(__file__).resolve().parents[2] / "skills"
"""The skills shipped with this release; `bundled.txt` in it names those that run in process."""

LANGUAGES = ("es", "pt", "en")
MAX_FILES = 256
MAX_BYTES = 8 * 1024 * 1024
MAX_PHRASES = 200
MAX_PHRASE = 200
DEFAULT_TIMEOUT = 30.0

OWN_PROCESS = "runs in its own process: not available in this version"
_SYSTEMS = {"macos": "darwin", "osx": "darwin", "windows": "win32"}
_NOT_COUNTED = {"__pycache__", "node_modules"}

Audience = Literal["everyone", "owners"]
Phrases = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Example phrases: tool → language → what people write."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder with a SKILL.md.

    `faults` are what does not work, `warnings` what a careful author would mend. `available` is False
    where nothing of it may be offered; `reason` says why, and also why `idle_tools` cannot run; `lacks`
    is what the machine would need.
    """

    name: str
    description: str
    folder: Path
    manifest: Manifest
    tools: tuple[Tool, ...] = ()
    idle_tools: tuple[str, ...] = ()
    phrases: Phrases = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    available: bool = True
    reason: str = ""
    lacks: str = ""
    bundled: bool = False
    audience: Audience = "everyone"

    @property
    def instructions(self) -> str:
        """The body for the model, with the folder in place of `{baseDir}`."""
        return self.manifest.body.replace("{baseDir}", str(self.folder))

    @property
    def include_tools(self) -> tuple[str, ...]:
        """Tools of other skills that are wanted beside its own."""
        return self.manifest.words("include-tools")

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the variables its tools find in `context.settings`."""
        return self.manifest.words("settings")


def load_skill(folder: Path, *, release: Path = RELEASE_SKILLS) -> Skill:
    """Reads one skill folder. Only a skill named in `release`/bundled.txt has its code imported."""
    folder = Path(os.path.abspath(folder))
    bundled = is_bundled(folder, release)
    try:
        manifest = _manifest(folder)
    except ManifestError as error:
        return broken_skill(folder, str(error), bundled=bundled)
    lacks = missing(manifest.requirements)
    parts = _bundled_tools(folder, manifest) if bundled and not lacks else _idle_tools(folder)
    phrases, phrase_warnings = _phrases(folder, {*(tool.name for tool in parts.tools), *parts.idle})
    return Skill(
        name=manifest.name,
        description=manifest.line,
        folder=folder,
        manifest=manifest,
        tools=parts.tools,
        idle_tools=parts.idle,
        phrases=phrases,
        faults=parts.faults,
        warnings=(*manifest.warnings, *parts.warnings, *phrase_warnings, *_mcp_warnings(folder)),
        available=not lacks and parts.usable,
        reason=lacks or parts.reason,
        lacks=lacks,
        bundled=bundled,
        audience=_audience(manifest),
    )


def broken_skill(folder: Path, fault: str, *, bundled: bool = False) -> Skill:
    """A folder that could not be read, kept so that it can be named with its fault."""
    return Skill(
        name=folder.name,
        description="",
        folder=folder,
        manifest=Manifest(name=folder.name),
        faults=(fault,),
        available=False,
        reason=fault,
        bundled=bundled,
    )


def bundled_names(release: Path) -> frozenset[str]:
    """The folder names in bundled.txt, one a line, # for comments; none where there is no such file."""
    try:
        lines = (release / "bundled.txt").read_text("utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(name for line in lines if (name := line.split("#")[0].strip()))


def is_bundled(folder: Path, release: Path) -> bool:
    """Whether it is, links followed, a folder directly in `release` that bundled.txt names."""
    real = Path(os.path.realpath(folder))
    return real.parent == Path(os.path.realpath(release)) and real.name in bundled_names(release)


def missing(
    needs: Requirements,
    *,
    which: Callable[[str], str | None] = shutil.which,
    environment: Mapping[str, str] = os.environ,
    system: str = sys.platform,
) -> str:
    """What the machine lacks for these requirements, in words; "" where it has all."""
    reasons = [f"the program {name} is not installed" for name in needs.bins if not which(name)]
    if needs.any_bins and not any(which(name) for name in needs.any_bins):
        reasons.append(f"none of these programs is installed: {', '.join(needs.any_bins)}")
    reasons += [
        f"the environment variable {name} is not set" for name in needs.env if not environment.get(name)
    ]
    wanted = [_SYSTEMS.get(name.lower(), name.lower()) for name in needs.systems]
    if wanted and system not in wanted:
        reasons.append(f"it is for {', '.join(needs.systems)}, and this is {system}")
    return "; ".join(reasons)


@dataclass(frozen=True, slots=True)
class _Tools:
    tools: tuple[Tool, ...] = ()
    idle: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""
    usable: bool = True


def _manifest(folder: Path) -> Manifest:
    try:
        _check_size(folder)
        content = _inside(folder, "SKILL.md").read_bytes()
    except OSError as error:
        raise ManifestError(f"SKILL.md cannot be read: {error.strerror or error}") from error
    return read_manifest(content, folder.name)


def _inside(folder: Path, name: str) -> Path:
    """A file of the folder. Raises ManifestError where a link leads out of it."""
    path = folder / name
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(folder) + os.sep):
        raise ManifestError(f"{name} is a link that leads out of the skill's folder; copy the file into it")
    return path


def _check_size(folder: Path) -> None:
    size = 0
    for files, entry in enumerate(_files(str(folder)), start=1):
        size += entry.stat(follow_symlinks=False).st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise ManifestError(
                f"the folder is too big: at most {MAX_FILES} files and {MAX_BYTES // 1024**2} MiB in all"
            )


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _NOT_COUNTED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry


def _bundled_tools(folder: Path, manifest: Manifest) -> _Tools:
    """The tools of a shipped skill, imported into this process."""
    if not (folder / "scripts" / "tools.py").exists():
        return _Tools()
    try:
        functions, left_out = tool_functions(_inside(folder, "scripts/tools.py"), manifest.name)
    except (ToolsModuleError, ManifestError) as error:
        return _Tools(faults=(str(error),), reason=str(error), usable=False)
    timeout, warnings = _timeout(manifest)
    sensitive, idempotent = (set(manifest.words(key)) for key in ("sensitive-tools", "idempotent-tools"))
    unknown = sorted((sensitive | idempotent) - functions.keys())
    warnings += [
        f"metadata names the tool {name!r}, which scripts/tools.py does not have" for name in unknown
    ]
    tools: list[Tool] = []
    faults: list[str] = []
    for name, function in functions.items():
        try:
            tool = Tool.from_function(
                function,
                name=name,
                category=manifest.name,
                sensitive=name in sensitive,
                idempotent=name in idempotent,
                timeout=timeout,
                audience=_audience(manifest),
            )
        except Exception as error:  # a signature no schema can be made of leaves out this tool alone
            faults.append(f"the function {name} cannot become a tool: {error}")
        else:
            tools.append(tool)
            warnings += [f"{name}: {warning}" for warning in tool.warnings]
    return _Tools(tuple(tools), faults=tuple(faults), warnings=(*left_out, *warnings))


def _idle_tools(folder: Path) -> _Tools:
    """Names of the tools of a folder whose code does not run here; nothing of it is imported."""
    path = folder / "scripts" / "tools.py"
    if not path.exists():
        return _Tools()
    from app.tools import build_catalog

    try:
        catalog = build_catalog(_inside(folder, "scripts/tools.py"))
    except (ManifestError, SyntaxError, ValueError, OSError) as error:
        return _Tools(faults=(f"scripts/tools.py cannot be read: {error}",), reason=OWN_PROCESS)
    names = tuple(str(schema["name"]) for schema in catalog["functionSchema"])
    return _Tools(idle=names, reason=OWN_PROCESS if names else "")


def _audience(manifest: Manifest) -> Audience:
    return "owners" if manifest.text("audience") == "owners" else "everyone"


def _timeout(manifest: Manifest) -> tuple[float, list[str]]:
    text = manifest.text("timeout-seconds")
    if not text:
        return DEFAULT_TIMEOUT, []
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds <= 3600:
        return seconds, []
    return DEFAULT_TIMEOUT, [f"timeout-seconds is {text!r}; expected seconds from 1 to 3600"]


def _phrases(folder: Path, tools: set[str]) -> tuple[Phrases, list[str]]:
    if not (folder / "assets" / "phrases.yaml").exists():
        return {}, []
    try:
        content = _inside(folder, "assets/phrases.yaml").read_bytes()
        value = yaml.load(content, Loader=yaml.CSafeLoader)
    except (OSError, ValueError, TypeError, RecursionError, ManifestError, yaml.YAMLError) as error:
        return {}, [f"assets/phrases.yaml is left out: {' '.join(str(error).split())}"]
    if not isinstance(value, dict):
        return {}, ["assets/phrases.yaml is left out: expected tool: {es: […], pt: […], en: […]}"]
    phrases: dict[str, dict[str, tuple[str, ...]]] = {}
    warnings: list[str] = []
    for tool, languages in value.items():
        if tool not in tools:
            warnings.append(f"assets/phrases.yaml names the tool {tool!r}, which there is not")
        elif not isinstance(languages, dict):
            warnings.append(f"assets/phrases.yaml: under {tool} expected es, pt, en with a list each")
        else:
            phrases[tool] = {code: _phrase_list(languages.get(code)) for code in LANGUAGES}
    return phrases, warnings


def _phrase_list(value: JSON) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    texts = (" ".join(item.split()) for item in value if isinstance(item, str))
    return tuple(text for text in texts if 0 < len(text) <= MAX_PHRASE)[:MAX_PHRASES]


def _mcp_warnings(folder: Path) -> list[str]:
    if not (folder / "mcp.json").exists():
        return []
    try:
        content = json.loads(_inside(folder, "mcp.json").read_bytes())
    except (OSError, ValueError, RecursionError, ManifestError) as error:
        return [f"mcp.json is left out: {error}"]
    if not isinstance(content, dict) or not isinstance(content.get("mcpServers"), dict):
        return ["mcp.json is left out: expected an object mcpServers"]
    return ["mcp.json: MCP servers are not available in this version"]
