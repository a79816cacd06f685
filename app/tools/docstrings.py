"""Read docstrings in Google, NumPy and reST style as plain data."""

import inspect
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(\s*)(?:examples?|ejemplos?|exemplos?)\s*:\s*(.*)$", re.IGNORECASE)
_EXAMPLE_TITLE = re.compile(r"^\s*(?:examples?|ejemplos?|exemplos?)\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^\s*-{3,}\s*$")
_BULLET = re.compile(r"^[-*•]\s+")
_GOOGLE_TITLE = re.compile(
    r"^(\s*)(args|arguments|params|parameters|(?:keyword|other) (?:args|arguments|parameters)"
    r"|returns?|raises|yields?|notes?):\s*$",
    re.I,
)
_NUMPY_TITLE = re.compile(r"^\s*(other parameters|parameters|returns|raises|yields|notes)\s*$", re.I)
_FIELD = re.compile(r"^\s*:(?:param|parameter|arg|argument|key|returns?|raises)\b[^:\n]*:", re.MULTILINE)
_NAME = re.compile(r"[*`]*(\w+)")
_EXAMPLES_KEPT = 2
_GOOGLE: Any = {"warnings": False, "returns_named_value": False, "returns_multiple_items": False}


@dataclass(frozen=True)
class Docstring:
    """A docstring's summary without its full stop, parameters by name, result, and examples."""

    description: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: tuple[str, ...] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles; what it does not say stays empty."""
    lines, examples = _without_examples(inspect.cleandoc((text or "").replace("\r\n", "\n")).split("\n"))
    description, returns = "", ""
    params: dict[str, str] = {}
    for section in _sections(_set_apart("\n".join(lines).strip())):
        if section.kind is griffe.DocstringSectionKind.text and not description:
            description = _summary(section.value)
        elif section.kind.value in ("parameters", "other parameters"):
            params |= {_bare(item.name): _one_line(item.description) for item in section.value}
        elif section.kind is griffe.DocstringSectionKind.returns and not returns:
            returns = " ".join(_one_line(item.description) for item in section.value).strip()
    return Docstring(description, params, returns, examples)


def _sections(text: str) -> list[Any]:
    """Parse Google's or NumPy's sections, and reST fields, which may stand beside them."""
    fields, rest = _fields_apart(text) if _FIELD.search(text) else ("", text)
    found: list[Any] = []
    lines = rest.split("\n")
    docstring = griffe.Docstring(f"\n{rest}", lineno=1)  # a first line would lose what is indented below it
    if any(_NUMPY_TITLE.match(line) and _UNDERLINE.match(below) for line, below in pairwise(lines)):
        found += griffe.parse_numpy(docstring, warnings=False)
    elif not fields or any(map(_GOOGLE_TITLE.match, lines)):
        found += griffe.parse_google(docstring, **_GOOGLE)
    if fields:
        docstring = griffe.Docstring(fields if found else text, lineno=1)
        found += griffe.parse_sphinx(docstring, warnings=False)
    return found


def _fields_apart(text: str) -> tuple[str, str]:
    """Return the reST fields with what is indented below them, and the rest."""
    fields: list[str] = []
    rest: list[str] = []
    within = -1
    for line in text.split("\n"):
        if _FIELD.match(line):
            within = _indent(line)
        elif line.strip() and _indent(line) <= within:
            within = -1
        (rest if within < 0 else fields).append(line)
    return "\n".join(fields).strip(), "\n".join(rest).strip()


def _bare(name: str) -> str:
    """Return a parameter's name without what may stand around it: `a (int) `, `**a`, marks."""
    found = _NAME.match(name)
    return found[1] if found else name


def _set_apart(text: str) -> str:
    """Put a blank line before each Google section title: the parser takes only those as sections."""
    lines: list[str] = []
    for line in text.split("\n"):
        if _GOOGLE_TITLE.match(line) and lines and lines[-1].strip():
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _without_examples(lines: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the lines that are no examples, and the first examples that are sentences (no doctests)."""
    kept: list[str] = []
    examples: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])
        start = at + 1
        if _EXAMPLE_TITLE.match(line) and underlined:
            start = at = at + 2
            while at < len(lines) and not (at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])):
                at += 1
            examples += _sentences(lines[start:at])
        elif match := _EXAMPLE.match(line):
            at += 1
            while (
                not match[2]
                and at < len(lines)
                and (not lines[at].strip() or _indent(lines[at]) > len(match[1]))
            ):
                at += 1
            examples += _sentences([match[2]] if match[2] else lines[start:at])
        else:
            kept.append(line)
            at += 1
    return kept, tuple(examples[:_EXAMPLES_KEPT])


def _sentences(block: list[str]) -> list[str]:
    if any(line.strip().startswith((">>>", "```")) for line in block):
        return []
    return [_BULLET.sub("", line.strip()).strip("\"'“”«» ") for line in block if line.strip()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _summary(text: str) -> str:
    line = _one_line(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0])
    return line[:-1] if line.endswith(".") and not line.endswith("..") else line


def _one_line(text: str) -> str:
    return " ".join(text.split())
