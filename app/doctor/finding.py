"""What the doctor finds: a fact, how bad it is, and the cure."""

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
    """The finding as it is printed, marks in plain ASCII, all on one line."""
    from app.text import visible

    cure = f" -> {visible(finding.cure)}" if finding.cure else ""
    return f"{finding.level:<5}{finding.part}: {visible(finding.fact)}{cure}"
