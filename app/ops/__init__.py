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

    def __str__(self) -> str:
        """Return it on one line, in plain ASCII."""
        cure = f" -> {visible(self.cure)}" if self.cure else ""
        return f"{self.level:<5}{self.part}: {visible(self.fact)}{cure}"


ok = partial(Finding, "OK")
warn = partial(Finding, "WARN")
fail = partial(Finding, "FAIL")
