"""Docstrings in Google, NumPy and reST style as plain data."""

import inspect
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

_EXAMPLE = re.compile(r"^(\s*)(?:examples?|ejemplos?|exemplos?)\s*:\s*(.*)$", re.IGNORECASE)
_EXAMPLE_TITLE = re.compile(r"^\s*(?:examples?|ejemplos?|exemplos?)\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^\s*-{3,}\s*$")
_BULLET = re.compile(r"^[-*•]\s+")
_GOOGLE_TITLE = re.compile(
    r"^(\s*)(args|arguments|params|parameters|(?:keyword|other) (?:args|arguments|parameters)"
    r"|returns?|raises|yields?|notes?):\s*$",
    re.I,
)
_FIELD = re.compile(r"^\s*:(?:param|parameter|arg|argument|key|returns?|raises)\b[^:\n]*:", re.MULTILINE)
_OTHER_MARKS = re.compile(r"```|>>>|^\s*:\w|^\s*[\w ]+:\s*$|^\s*-{3,}\s*$", re.MULTILINE)
_ARGUMENT = re.compile(r"( +)(\w+)(?: \([^()]*\))?: (\S.*)")
_NUMPY_TITLE = re.compile(r"^\s*(other parameters|parameters|returns|raises|yields|notes)\s*$", re.I)
_NAME = re.compile(r"[*`]*(\w+)")
_EXAMPLES_KEPT = 2


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says: the summary without its full stop, parameters by name, what comes back."""

    description: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: tuple[str, ...] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Reads a docstring of any of the three styles; what it does not say stays empty."""
    lines, examples = _without_examples(inspect.cleandoc((text or "").replace("\r\n", "\n")).split("\n"))
    cleaned = "\n".join(lines).strip()
    if "\n" not in cleaned and not cleaned.startswith(":"):
        return Docstring(description=_summary(cleaned), examples=examples)
    text = _set_apart(cleaned)
    return _commonest(text, examples) or _sections(text, examples)


def _commonest(text: str, examples: tuple[str, ...]) -> Docstring | None:
    """What is only described, or has one list `Args:` below that; None for anything else.

    The parser of all styles takes 2 MB and a tenth of the server's start, and hardly a docstring needs it.
    """
    said, _, listed = f"\n\n{text}".partition("\n\nArgs:\n")
    if _FIELD.search(text) or _OTHER_MARKS.search(said) or _OTHER_MARKS.search(listed):
        return None
    params: dict[str, str] = {}
    indent, name = "", ""
    for line in listed.split("\n") if listed else ():
        found = _ARGUMENT.fullmatch(line)
        if found and found[1] == (indent or found[1]):
            indent, name = found[1], found[2]
            params[name] = _one_line(found[3])
        elif name and line.startswith(f"{indent} "):
            params[name] = _one_line(f"{params[name]} {line}")
        else:
            return None
    return Docstring(_summary(said), params, examples=examples)


def _sections(text: str, examples: tuple[str, ...]) -> Docstring:
    import griffe

    quiet = {"warnings": False}
    google: Any = {**quiet, "returns_named_value": False, "returns_multiple_items": False}
    styles: Any = {"google": google, "numpy": quiet, "sphinx": quiet}
    fields, rest = _fields_apart(text) if _FIELD.search(text) else ("", text)
    found: list[Any] = []
    if not fields or _has_titles(rest):
        docstring = griffe.Docstring(rest, lineno=1)
        found += griffe.parse_auto(docstring, method="heuristics", per_style_options=styles)
    if fields:
        docstring = griffe.Docstring(fields if found else text, lineno=1)
        found += griffe.parse_sphinx(docstring, warnings=False)
    description, returns = "", ""
    params: dict[str, str] = {}
    for section in found:
        if section.kind is griffe.DocstringSectionKind.text and not description:
            description = _summary(section.value)
        elif section.kind in (
            griffe.DocstringSectionKind.parameters,
            griffe.DocstringSectionKind.other_parameters,
        ):
            params |= {_bare(item.name): _one_line(item.description) for item in section.value}
        elif section.kind is griffe.DocstringSectionKind.returns and not returns:
            returns = " ".join(_one_line(item.description) for item in section.value).strip()
    return Docstring(description, params, returns, examples)


def _fields_apart(text: str) -> tuple[str, str]:
    """The reST fields with what is indented below them, and the rest: other styles stand beside them."""
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


def _has_titles(text: str) -> bool:
    """Whether there are sections of Google's or NumPy's style."""
    lines = text.split("\n")
    return any(_GOOGLE_TITLE.match(line) for line in lines) or any(
        _NUMPY_TITLE.match(line) and _UNDERLINE.match(below) for line, below in pairwise(lines)
    )


def _bare(name: str) -> str:
    """A parameter's name as it was written before its colon: `a `, `a (int) `, `**a`, or in marks."""
    found = _NAME.match(name)
    return found[1] if found else name


def _set_apart(text: str) -> str:
    """A blank line before each Google section title: the parser takes only those as sections."""
    lines: list[str] = []
    for line in text.split("\n"):
        if _GOOGLE_TITLE.match(line) and lines and lines[-1].strip():
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _without_examples(lines: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The lines that are not examples, and the first examples that are sentences (not doctests)."""
    kept: list[str] = []
    examples: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])
        if _EXAMPLE_TITLE.match(line) and underlined:
            block, at = _numpy_block(lines, at + 2)
            examples += _sentences(block)
        elif match := _EXAMPLE.match(line):
            at += 1
            if match[2].strip():
                examples += _sentences([match[2]])
            else:
                block, at = _indented_block(lines, at, len(match[1]))
                examples += _sentences(block)
        else:
            kept.append(line)
            at += 1
    return kept, tuple(examples[:_EXAMPLES_KEPT])


def _indented_block(lines: list[str], at: int, indent: int) -> tuple[list[str], int]:
    start = at
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
        at += 1
    return lines[start:at], at


def _numpy_block(lines: list[str], at: int) -> tuple[list[str], int]:
    start = at
    while at < len(lines) and not (at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])):
        at += 1
    return lines[start:at], at


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
