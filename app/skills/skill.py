"""One skill: the content of a folder, read without ever raising for a fault in it."""

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, TypeAdapter, ValidationError

from app.errors import first_fault
from app.i18n import joined, lazy
from app.messages import JSON
from app.people import Audience
from app.settings import skill_environment
from app.skills.folder import KNOWN_FILES, Signature, files_of, read_file, signature
from app.skills.installed import Installed
from app.skills.manifest import Manifest, ManifestError, audience_of, load_yaml, read_manifest
from app.skills.scripts import Script, scripts_of
from app.skills.tools import SkillTools, read_tools
from app.skills.workers import Workers
from app.text import on_one_line
from app.tools import Tool

# Characters of a description in the catalogue; half of the real ones are shorter than 212.
CATALOGUE_DESCRIPTION = 300
# The skills of this release; its `bundled.txt` names those that run in process.
RELEASE_SKILLS = Path(__file__).resolve().parents[2] / "skills"

PHRASES = "assets/phrases.yaml"
SENTENCES = "assets/sentences.yaml"
_Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_InLanguage = Annotated[tuple[_Phrase, ...], Field(max_length=200)]
_PHRASES_FILE: TypeAdapter[Any] = TypeAdapter(dict[str, dict[Literal["es", "pt", "en"], _InLanguage]])

InLanguages = dict[str, Annotated[str, StringConstraints(min_length=1, max_length=300)]]


class ToolSentences(BaseModel, frozen=True, extra="forbid"):
    """Sentences about one tool, by language.

    `ask` is the question on a card before a call, with `{argument}` for its values. When the argument `by`
    has another value than `usual`, the question is that of `cases` for this value. `source` names the text
    of others in its results. `arguments` are words for the arguments that the question leaves out.
    """

    ask: InLanguages = Field(default_factory=dict)
    by: str = ""
    usual: Any = None
    cases: dict[str, InLanguages] = Field(default_factory=dict)
    source: InLanguages = Field(default_factory=dict)
    arguments: dict[str, InLanguages] = Field(default_factory=dict)

    def question(self, language: str, arguments: Mapping[str, JSON]) -> str:
        """Return the question about a call, "" when there are no words for it."""
        value = arguments.get(self.by, self.usual) if self.by else self.usual
        written = self.ask if value == self.usual else self.cases.get(str(value).lower(), {})
        return in_language(written, language)


class _File(BaseModel, frozen=True, extra="forbid"):
    tools: dict[str, ToolSentences] = Field(default_factory=dict)
    arguments: dict[str, InLanguages] = Field(default_factory=dict)  # shared by all tools
    said: dict[str, dict[str, str]] = Field(default_factory=dict)  # by the functions: `read_said`

    def of_tools(self) -> dict[str, ToolSentences]:
        """Return the sentences by tool, each with the shared words for arguments."""
        return {
            name: one.model_copy(update={"arguments": {**self.arguments, **one.arguments}})
            for name, one in self.tools.items()
        }


# Reads a file as the sentences of each tool.
SENTENCES_FILE: TypeAdapter[Any] = TypeAdapter(Annotated[_File, AfterValidator(_File.of_tools)])


def in_language(written: Mapping[str, str], language: str) -> str:
    """Return the text in a language, else in English, else in any; "" when there is none."""
    return written.get(language) or written.get("en") or next(iter(written.values()), "")


MOST_FILES = 60
_SYSTEMS = {"macos": "darwin", "osx": "darwin", "windows": "win32"}


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder with a SKILL.md.

    `faults` do not work, `warnings` a careful author would mend, `left_out` are the public functions that are
    no tools, and why. Nothing is offered unless `available`; `reason` says why not. `aside` says why its code
    is no longer run in this version of the folder.

    `instructions` is the body for the model, with the folder in place of `{baseDir}`; `files` are those that
    it may want to read, by their paths in the folder. `installed` is the record of an installed skill, and
    `unrun` says why its code does not run here. `scripts` are programs that its instructions may tell to run.
    """

    name: str
    description: str
    folder: Path
    manifest: Manifest
    tools: tuple[Tool, ...] = ()
    sentences: Mapping[str, ToolSentences] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    available: bool = True
    reason: str = ""
    aside: str = ""
    bundled: bool = False
    audience: Audience = "members"
    version: Signature = ()
    installed: Installed | None = None
    unrun: str = ""
    instructions: str = ""
    files: tuple[str, ...] = ()
    scripts: tuple[Script, ...] = ()


def load_skill(
    folder: Path,
    *,
    release: Path = RELEASE_SKILLS,
    workers: Workers | None = None,
    version: Signature | None = None,
    is_installed: bool = False,
    runs_code: bool = True,
) -> Skill:
    """Read one skill folder. Only a skill named in `release`/bundled.txt has its code imported here.

    The tools of the others run in `workers`; without them each call has a worker of its own, but an installed
    skill does not run. Without `runs_code` all tools have their schemas only. `version` is the folder's
    signature, where it is known. Not all that an installed skill says of itself is believed.
    """
    folder = Path(os.path.abspath(folder))
    version = signature(folder) if version is None else version
    bundled = is_bundled(folder, release)
    try:
        files = files_of(folder)
        manifest = read_manifest(read_file(folder, "SKILL.md"), folder.name)
    except OSError as error:
        fault = f"the folder cannot be read: {error.strerror or error}"
        return broken_skill(folder, fault, bundled=bundled, version=version)
    except ManifestError as error:
        return broken_skill(folder, error.told, bundled=bundled, version=version)
    if not os.path.exists(f"{folder}/scripts/tools.py"):
        found = SkillTools()
    else:
        own = {"bundled": bundled, "is_installed": is_installed, "runs_code": runs_code}
        found = read_tools(folder, manifest, workers, version, **own)
    wanted = (lazy("it needs the package {name}, which is not installed", name=one) for one in found.packages)
    # what the code has for itself is for the model only where the body names it
    code = ("scripts/", "assets/", "tests/") if "scripts/tools.py" in files else ()
    readable = [one for one in files if not one.startswith(code) or one in manifest.body]
    readable = [one for one in readable if one.isprintable() and one not in KNOWN_FILES]
    lacks = joined(filter(None, (missing(manifest), *wanted)))
    aside = workers.aside(folder, version) if workers is not None else ""
    names = frozenset(tool.name for tool in found.tools)
    phrases, phrase_warnings = _asset(folder, PHRASES, _PHRASES_FILE, names)
    sentences, sentence_warnings = _asset(folder, SENTENCES, SENTENCES_FILE, names)
    warnings = [*manifest.warnings, *found.warnings, *phrase_warnings, *sentence_warnings]
    return Skill(
        name=manifest.name,
        description=on_one_line(manifest.description, CATALOGUE_DESCRIPTION),
        folder=folder,
        manifest=manifest,
        tools=tuple(tool.replace(phrases=phrases.get(tool.name, {})) for tool in found.tools),
        sentences=sentences,
        faults=found.faults,
        warnings=tuple(warnings),
        left_out=found.left_out,
        available=not (lacks or found.broken or aside),
        reason=lacks or (found.faults[0] if found.broken else aside),
        aside=aside,
        bundled=bundled,
        audience=audience_of(manifest),
        version=version,
        instructions=manifest.body.replace("{baseDir}", str(folder)),
        files=() if bundled else tuple(readable[:MOST_FILES]),
        scripts=() if bundled else scripts_of(folder),
    )


def broken_skill(folder: Path, fault: str, *, bundled: bool = False, version: Signature = ()) -> Skill:
    """Make a skill of a folder that could not be read, so that it can be named with its fault."""
    return Skill(
        name=folder.name,
        description="",
        folder=folder,
        manifest=Manifest(name=folder.name),
        faults=(fault,),
        available=False,
        reason=fault,
        bundled=bundled,
        version=version,
    )


def bundled_names(release: Path) -> frozenset[str]:
    """Return the folder names in bundled.txt, one a line, # for comments; none without such a file."""
    try:
        lines = (release / "bundled.txt").read_text("utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(name for line in lines if (name := line.split("#")[0].strip()))


def is_bundled(folder: Path, release: Path) -> bool:
    """Tell whether it is, links followed, a folder directly in `release` that bundled.txt names."""
    with suppress(OSError):
        is_named = os.path.basename(os.path.realpath(folder)) in bundled_names(release)
        return is_named and os.path.samefile(f"{folder}/..", release)
    return False


def missing(manifest: Manifest) -> str:
    """Say which of its requirements the machine does not meet; "" where it meets all."""
    any_bins, systems, environment = manifest.needs("anyBins"), manifest.needs("os"), skill_environment()
    absent = [name for name in manifest.needs("bins") if not which(name)]
    reasons = [lazy("the program {name} is not installed", name=name) for name in absent]
    if any_bins and not any(map(which, any_bins)):
        reasons.append(lazy("none of these programs is installed: {names}", names=", ".join(any_bins)))
    reasons += [
        lazy("the environment variable {name} is not set", name=name)
        for name in manifest.needs("env")
        if not environment.get(name)
    ]
    if systems and sys.platform not in {_SYSTEMS.get(name.lower(), name.lower()) for name in systems}:
        reasons.append(
            lazy("it is for {names}, and this is {system}", names=", ".join(systems), system=sys.platform)
        )
    return joined(reasons)


def _asset(
    folder: Path, path: str, form: TypeAdapter[Any], tools: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a YAML file says of these tools, and warnings of what is left out."""
    if not os.path.exists(f"{folder}/{path}"):
        return {}, []
    try:
        said = form.validate_python(load_yaml(read_file(folder, path).decode("utf-8-sig")))
    except ValidationError as error:
        return {}, [f"{path} is left out: {first_fault(error)}"]
    except (OSError, ValueError, ManifestError) as error:
        return {}, [f"{path} is left out: {' '.join(str(error).split())}"]
    unknown = [f"{path} names the tool {tool!r}, which there is not" for tool in said if tool not in tools]
    return {tool: said[tool] for tool in said if tool in tools}, unknown
