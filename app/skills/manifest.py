"""SKILL.md as data: the frontmatter as YAML reads it, the body, and warnings for its author."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON, mapping
from app.people import Audience

MAX_NAME = 64
MAX_FRONTMATTER = 64 * 1024
MAX_BODY = 256 * 1024
# References (`*name`) to other values; nested, a few dozen of them grow into gigabytes once written out.
MAX_ALIASES = 16
MAX_NESTING = 100
SAFE_MARKS = 1000

# The lists of tools that are asked about more often; a misplaced one counts too.
_ASK_FOR_CARE = ("sensitive-tools", "destructive-tools")
GATING_NAMESPACES = ("openclaw", "clawdbot", "nanobot", "hermes")

_FENCE = re.compile(r"\A\s*---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
# A key of the first level with a plain value, which may go on in indented lines.
_TOP_LEVEL = re.compile(r"^([A-Za-z_][\w.-]*):[ \t]+([^\s\"'\[{|>&*!#%@`].*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_STANDARD_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class ManifestError(RecadoError):
    """A SKILL.md that cannot be read; the text says where and what to write instead."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One SKILL.md. `fields` is the whole frontmatter as YAML gave it, unknown keys included.

    `metadata` has what stands under that key, and of what was written beside it only what asks for care.
    """

    name: str
    description: str = ""
    metadata: Mapping[Any, JSON] = field(default_factory=dict)
    body: str = ""
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, JSON] = field(default_factory=dict)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of `metadata`, written as a string ("write_file delete_file") or a YAML list."""
        return _words(self.metadata.get(key))

    def text(self, key: str) -> str:
        """Return one string of `metadata`, "" where it is absent."""
        value = self.metadata.get(key)
        return "" if value is None or isinstance(value, dict | list) else str(value).strip()

    def needs(self, key: str) -> tuple[str, ...]:
        """Return the `bins`, `anyBins`, `env` or `os` that it needs, as metadata of other assistants says."""
        blocks = [block for name in GATING_NAMESPACES if isinstance(block := self.metadata.get(name), dict)]
        if key != "os":
            blocks = [needed for block in blocks if isinstance(needed := block.get("requires"), dict)]
        return tuple(dict.fromkeys(word for block in blocks for word in _words(block.get(key))))


def may_use_network(manifest: Manifest) -> bool:
    """Tell whether a skill's scripts get the internet, which its card names: `script-network: "yes"`."""
    return manifest.text("script-network") == "yes"


def read_manifest(content: bytes, folder: str) -> Manifest:
    """Read the SKILL.md of a folder. Raises ManifestError where it lacks a frontmatter or a description."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ManifestError(f"SKILL.md is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    found = _FENCE.match(text)
    if found is None:
        raise ManifestError(
            lazy(
                "SKILL.md must start with a frontmatter: a line ---, then `name:` and `description:`, "
                "then ---"
            )
        )
    fields, warnings = parse_frontmatter(found[1].removesuffix("\n"))
    body = text[found.end() :]
    description = _one_line(fields.get("description"))
    if not description:
        raise ManifestError(
            "SKILL.md has no description; add `description: what it does and when to use it` "
            "between the --- lines"
        )
    name = _one_line(fields.get("name"))
    if not name:
        name = folder
        warnings.append(f"no name; the folder's name {folder!r} is used")
    if len(body) > MAX_BODY:
        raise ManifestError(
            f"SKILL.md has {len(body)} characters of instructions; {MAX_BODY} at most: "
            "move the rest to references/"
        )
    if name != folder:
        warnings.append(f"the name {name!r} is not the folder's name {folder!r}")
    if not is_standard_name(name):
        warnings.append(
            f"the name {name!r} should be lowercase letters, digits and single hyphens, {MAX_NAME} at most"
        )
    metadata = fields.get("metadata")
    given = {str(key): value for key, value in mapping(metadata).items()}
    meant = ((key.lower().replace("_", "-"), value) for key, value in [*fields.items(), *given.items()])
    # wherever and however it is written
    careful = {key: value for key, value in meant if key in _ASK_FOR_CARE}
    return Manifest(
        name=name,
        description=description,
        metadata={**careful, **given},
        body=body.strip(),
        warnings=tuple(warnings),
        fields=fields,
    )


def is_standard_name(name: str) -> bool:
    """Tell whether the standard allows the name: lowercase letters, digits and single hyphens."""
    return len(name) <= MAX_NAME and _STANDARD_NAME.fullmatch(name) is not None


def parse_frontmatter(frontmatter: str) -> tuple[dict[str, JSON], list[str]]:
    """Return the mapping as PyYAML reads it, and warnings.

    Invalid YAML in real skills is nearly always an unquoted `: ` in a value, so plain top-level values are
    quoted and read once more. Raises ManifestError for what is still invalid.
    """
    if len(frontmatter) > MAX_FRONTMATTER:
        raise ManifestError(f"the frontmatter has {len(frontmatter)} characters; {MAX_FRONTMATTER} at most")
    warnings: list[str] = []
    try:
        value = load_yaml(f"\n{frontmatter}", "SKILL.md")  # lines count from the --- above it
    except ManifestError as error:
        try:
            value = load_yaml(_quoted(frontmatter))
        except ManifestError:
            raise error from None  # it has the lines of the file
        warnings.append(f"invalid YAML, read with its values quoted ({error})")
    if not isinstance(value, dict):
        raise ManifestError(f"the frontmatter must be `key: value` lines, not {type(value).__name__}")
    return {str(key): item for key, item in value.items()}, warnings


def audience_of(manifest: Manifest) -> Audience:
    """Return who may use it; words of other assistants in that field count for nothing."""
    words = {word.lower() for word in manifest.words("audience")}
    if not words.isdisjoint({"owner", "owners"}):
        return "owners"
    return "everyone" if words == {"everyone"} else "members"


def load_yaml(text: str, file: str = "") -> JSON:
    """Read a YAML text of that file. Raises ManifestError, also for what grows or nests beyond reason."""
    try:
        _check_shape(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)  # in C: a tenth of safe_load's time
    except yaml.YAMLError as error:
        said = " ".join(str(error).split()).replace('"<unicode string>"', file or "it")
        raise ManifestError(f"invalid YAML: {said}") from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # such as a date of month 13
        raise ManifestError(f"invalid YAML value: {error}") from error


def _check_shape(text: str) -> None:
    """Refuse deep nesting: CSafeLoader recurses in C, and 30,000 levels end the whole process."""
    if text.count("*") <= MAX_ALIASES and sum(map(text.count, "[{-?:")) <= SAFE_MARKS:
        return
    aliases = depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if aliases > MAX_ALIASES:
            raise ManifestError(f"invalid YAML: more than {MAX_ALIASES} references (*); write the values out")
        if depth > MAX_NESTING:
            raise ManifestError(f"invalid YAML: nested more than {MAX_NESTING} deep")


def _quoted(frontmatter: str) -> str:
    def quote(line: re.Match[str]) -> str:
        value = line[2].replace("\\", "\\\\").replace('"', '\\"')
        return f'{line[1]}: "{value}"'

    return _TOP_LEVEL.sub(quote, frontmatter)


def _one_line(value: JSON) -> str:
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, list):
        value = ", ".join(str(item) for item in value)
    return " ".join(str(value).split())


def _words(value: JSON) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(
            text for item in value if not isinstance(item, dict | list) and (text := str(item).strip())
        )
    return () if value is None or isinstance(value, dict) else tuple(str(value).replace(",", " ").split())
