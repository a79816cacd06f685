"""Findings in a skill that is to be installed: hidden text, orders to the model, risky commands and calls.

Findings inform and never block: a quarter of honest skills have some. Every file is searched as text; nothing
of it runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import yaml

from app.skills.installed import Files
from app.text import on_one_line, visible

Kind = Literal["hidden-text", "instruction", "shell", "credentials", "runs-code", "unreadable"]

LONGEST_EXCERPT = 120
# Characters of a file: the searches of all files must end within the time limit of an examination.
LOOKED_AT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding at one place; `line` counts from 1, `excerpt` is on one line with nothing invisible."""

    kind: Kind
    file: str
    line: int
    excerpt: str


def find(files: Files) -> tuple[Finding, ...]:
    """Return the first finding of each kind in each file. Takes up to seconds: not for the event loop."""
    return tuple(finding for path in sorted(files) for finding in _in_file(path, files[path]))


def hosts(files: Files) -> tuple[str, ...]:
    """Return the hosts of all addresses in text and code, sorted; "example" ones left out."""
    texts = (text_of(content) or "" for content in files.values())
    found = {match[1].lower() for text in texts for match in _ADDRESS.finditer(text)}
    return tuple(sorted(host for host in found if not _EXAMPLE.search(host)))


def text_of(content: bytes) -> str | None:
    """Return the beginning of a file as text; None for other files."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")[:LOOKED_AT]
    except UnicodeDecodeError:
        return content.decode("latin-1")[:LOOKED_AT]


def _in_file(path: str, content: bytes) -> Iterator[Finding]:
    text = text_of(content)
    if text is None:
        if not path.lower().endswith(_PICTURES):
            yield Finding("unreadable", path, 1, "neither text nor a picture")
        return
    if len(content) > 4 * LOOKED_AT or len(text) == LOOKED_AT:
        yield Finding(
            "unreadable", path, 1, f"{len(content)} bytes, of which only the beginning was looked at"
        )
    matches = ((kind, found.start(), found[0]) for kind, one in _PATTERNS for found in one.finditer(text))
    seen: set[Kind] = set()
    for kind, place, excerpt in chain(_hidden(text), matches):
        if kind not in seen:
            seen.add(kind)
            shown = on_one_line(visible(excerpt), LONGEST_EXCERPT)
            yield Finding(kind, path, text.count("\n", 0, place) + 1, shown)


def _hidden(text: str) -> Iterator[tuple[Kind, int, str]]:
    """Yield what cannot be seen, with its place and an excerpt."""
    for match in _HIDDEN.finditer(_FLAG.sub(lambda flag: "x" * len(flag[0]), text)):
        tags = "".join(chr(ord(c) - 0xE0000) for c in match[0] if 0xE0020 <= ord(c) <= 0xE007E)
        before, after = text[max(0, match.start() - 30) : match.start()], text[match.end() : match.end() + 30]
        codes = match[0][:6].encode("unicode_escape").decode()
        shown = f"{before}<{codes}, {len(match[0])} in all>{after}"
        yield "hidden-text", match.start(), f"in tag characters: {tags}" if tags else shown


_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".ttf", ".otf", ".woff", ".woff2")

# The flags of England, Scotland, Wales: tag characters that mean a picture.
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f")
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f]+"
    "|[\U000e0100-\U000e01ef\ufe00-\ufe0f]{2,}|[\U000e0100-\U000e01ef]"  # bytes smuggled as variations
    "|[\u202a-\u202e\u2066-\u2069]+"
    "|[\u200b\u2060-\u2064\u206a-\u206f\u180e\u115f\u1160\u3164\uffa0]+"
    r"|(?<!^)(?<!\n)\ufeff"
    # joiners belong between letters and pictures beyond ASCII; bidirectional marks beside such letters
    r"|(?<=[\x00-\x7f])[\u200c-\u200f]+(?=[\x00-\x7f]|$)"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+"
)

_WRITTEN = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text("utf-8"))
_PLACES = {"{space}": r"\s{1,12}", "{gap}": "[^.]{0,40}?"}


def _compiled(written: dict[str, Any]) -> re.Pattern[str]:
    pattern = "|".join(written["patterns"])
    for place, meant in _PLACES.items():
        pattern = pattern.replace(place, meant)
    return re.compile(pattern, re.IGNORECASE if written["any_case"] else 0)


_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple((one["kind"], _compiled(one)) for one in _WRITTEN)

_ADDRESS = re.compile(
    r"\b(?:https?|wss?|ftps?|ssh|git)://(?:[^\s/@\"'<>()]{1,100}@)?"
    r"([a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"(?:^|\.)example\.(?:com|org|net)$|\.(?:example|test|invalid)$|^example$")
