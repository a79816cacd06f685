"""How much of the processor's caches is ours: other programs take them away, those of other machines on the
same processor without any trace here, and what touches much memory then takes twice as long."""

import random
import time
from array import array

from bench.measure import Row, ratio

SMALL, LARGE = 16 * 1024, 4 * 1024 * 1024
"""Bytes: what no other program can take away, and what needs the cache that all cores share."""
STEPS = 200_000


class Caches:
    """Walks through memory at random, each step where the one before leads."""

    def __init__(self) -> None:
        self._small, self._large = _ring(SMALL), _ring(LARGE)
        self._figures: dict[str, list[float]] = {"small": [], "large": []}

    def look(self) -> None:
        """Takes a tenth of a second or two."""
        self._figures["small"].append(_step_ns(self._small))
        self._figures["large"].append(_step_ns(self._large))

    def row(self, group: str) -> Row:
        """Of all looks; without a goal."""
        what = f"a step through 4 MB of memory, before and after {group}"
        return ratio(what, self._figures["large"], self._figures["small"], "ns", named="through 16 KB")


def _ring(size: int) -> "array[int]":
    """For each place the next one, all of them in one ring (Sattolo's algorithm)."""
    places = array("q", range(size // 8))
    rng = random.Random(1)
    for place in range(len(places) - 1, 0, -1):
        other = rng.randrange(place)
        places[place], places[other] = places[other], places[place]
    return places


def _step_ns(places: "array[int]") -> float:
    place, started = 0, time.perf_counter()
    for _ in range(STEPS):
        place = places[place]
    return (time.perf_counter() - started) / STEPS * 1e9
