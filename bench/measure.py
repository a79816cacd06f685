"""Figures beside their baselines: interleaved runs, medians, rows with a goal, and the table."""

import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a run is: `rounds` of each side, and what part of the usual work in each.

    `frameworks` is the interpreter that the agent frameworks are looked for in.
    """

    rounds: int = 7
    share: float = 1.0
    frameworks: str = sys.executable

    def of(self, amount: int) -> int:
        return max(math.ceil(amount * self.share), 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: ours and a baseline's of the same run, and the goal for their ratio or difference.

    `bound` says whether `goal` is the most or the least that `value` may be; without a goal the row
    only informs.
    """

    what: str
    ours: str
    baseline: str
    value: float
    goal: float | None = None
    bound: Literal["most", "least"] = "most"
    unit: str = "×"

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value <= self.goal if self.bound == "most" else self.value >= self.goal

    def cells(self) -> tuple[str, ...]:
        sign = "≤" if self.bound == "most" else "≥"
        goal = "–" if self.goal is None else f"{sign} {self.goal:g}{self.unit}"
        met = {None: "–", True: "yes", False: "**no**"}[self.met]
        return self.what, self.ours, self.baseline, f"{self.value:.2f}{self.unit}", goal, met


def ratio(
    what: str,
    ours: Sequence[float],
    baseline: Sequence[float],
    unit: str,
    *,
    goal: float | None = None,
    bound: Literal["most", "least"] = "most",
    named: str = "",
) -> Row:
    """A row of two medians and their ratio."""
    mine, theirs = statistics.median(ours), statistics.median(baseline)
    beside = f"{number(theirs)} {unit}" + (f" ({named})" if named else "")
    return Row(what, f"{number(mine)} {unit}", beside, mine / theirs, goal, bound)


Side = Callable[[], Awaitable[float]]


async def interleaved(rounds: int, sides: Mapping[str, Side]) -> dict[str, list[float]]:
    """Measures every side once a round, in turn, so that a busy moment of the machine meets all."""
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            figures[name].append(await side())
    return figures


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(math.ceil(share * len(ordered)), len(ordered)) - 1]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, all its threads, ended ones too.

    The clock id of a process is made as in clock_getcpuclockid(3) on Linux.
    """
    return time.clock_gettime((~pid << 3) | 2)


def memory_mb(pid: int) -> float:
    """Resident memory of a process, in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        line = next(line for line in file if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.{1 if value >= 10 else 2}f}"


def absolute(what: str, ours: Sequence[float], unit: str, goal: float) -> Row:
    """Return a row whose goal is for the figure itself, at most `goal`."""
    mine = statistics.median(ours)
    return Row(what, f"{number(mine)} {unit}", "–", mine, goal, unit=f" {unit}")


HEADER = ("what", "ours", "baseline", "ratio", "goal", "met")


def print_header() -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {platform.machine()}, Python {platform.python_version()}\n")
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}", flush=True)


def print_rows(rows: Iterable[Row]) -> None:
    for row in rows:
        print(f"| {' | '.join(row.cells())} |", flush=True)
