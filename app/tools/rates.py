"""How often a person may call a tool: at most so many calls in any minute."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

WINDOW = 60.0
MOST_PER_MINUTE = 6000
_MOST_KEPT = 100_000


class Rates:
    """The times of the last minute's calls by tool and person.

    `clock` gives seconds that never go back. Where more than 100,000 times would have to be kept, those of
    whoever called longest ago are forgotten.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._kept = 0

    def wait(self, tool: str, person: str, per_minute: int) -> float:
        """Seconds until a call could start now; takes no place."""
        return _wait(self._starts.get((tool, person), ()), self._clock(), per_minute)

    def reserve(self, tool: str, person: str, per_minute: int, within: float = 0.0) -> float:
        """Seconds until this call may start; its place is taken only if that is now or before `within`."""
        now = self._clock()
        starts = self._starts.setdefault((tool, person), deque())
        self._starts.move_to_end((tool, person))
        while starts and starts[0] <= now - WINDOW:
            starts.popleft()
            self._kept -= 1
        wait = _wait(starts, now, per_minute)
        if wait == 0 or wait < within:
            starts.append(now + wait)
            self._kept += 1
            self._forget()
        return wait

    def _forget(self) -> None:
        """Drops what is over, and beyond the bound what was used longest ago."""
        long_ago = self._clock() - WINDOW
        while len(self._starts) > 1:
            key, starts = next(iter(self._starts.items()))
            if self._kept <= _MOST_KEPT and starts and starts[-1] > long_ago:
                return
            self._kept -= len(starts)
            del self._starts[key]


def _wait(starts: Sequence[float], now: float, per_minute: int) -> float:
    return 0.0 if len(starts) < per_minute else max(0.0, starts[-per_minute] + WINDOW - now)
