"""Running the server: its health, logs, sweep and alerts; here the form of what a check finds."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from app.text import visible


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact with its cure. FAIL: something is broken; WARN: a part is away or could be better.

    With OK the cure is advice. Both are lazy sentences, but for what has no words of ours.
    """

    level: Literal["OK", "WARN", "FAIL"]
    part: str
    fact: str
    cure: str = ""


ok = partial(Finding, "OK")
warn = partial(Finding, "WARN")
fail = partial(Finding, "FAIL")


def line(finding: Finding) -> str:
    """Format a finding in plain ASCII, on one line."""
    cure = f" -> {visible(finding.cure)}" if finding.cure else ""
    return f"{finding.level:<5}{finding.part}: {visible(finding.fact)}{cure}"
