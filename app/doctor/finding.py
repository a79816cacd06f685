"""A finding of the doctor: a fact, its severity, and the cure."""

from dataclasses import dataclass
from typing import Final, Literal

from app.text import visible

Level = Literal["OK", "WARN", "FAIL"]

OK: Final = "OK"
WARN: Final = "WARN"
FAIL: Final = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. FAIL: something is broken; WARN: a part is away or could be better."""

    level: Level
    part: str
    fact: str
    cure: str = ""


def ok(part: str, fact: str, cure: str = "") -> Finding:
    """Return a finding that all is well; `cure` is advice then."""
    return Finding(OK, part, fact, cure)


def warn(part: str, fact: str, cure: str = "") -> Finding:
    """Return a finding that a part is away or could be better."""
    return Finding(WARN, part, fact, cure)


def fail(part: str, fact: str, cure: str = "") -> Finding:
    """Return a finding that something is broken."""
    return Finding(FAIL, part, fact, cure)


def line(finding: Finding) -> str:
    """Format a finding in plain ASCII, on one line."""
    cure = f" -> {visible(finding.cure)}" if finding.cure else ""
    return f"{finding.level:<5}{finding.part}: {visible(finding.fact)}{cure}"
