"""A finding of the doctor: a fact, its severity, and the cure."""

from dataclasses import dataclass
from typing import Final, Literal

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


def line(finding: Finding) -> str:
    """Format a finding in plain ASCII, on one line."""
    from app.text import visible

    cure = f" -> {visible(finding.cure)}" if finding.cure else ""
    return f"{finding.level:<5}{finding.part}: {visible(finding.fact)}{cure}"
