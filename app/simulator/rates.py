"""Meta's two rate limits: one for the whole number, one for each person."""

from collections.abc import Callable
from dataclasses import dataclass

from app.simulator.refusals import Refusal

PER_SECOND = 80
PAIR_BURST = 45
PAIR_SECONDS = 6.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """Token buckets; `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._number = _Bucket(PER_SECOND, clock())
        self._pairs: dict[str, _Bucket] = {}

    def take(self, person: str) -> None:
        """Counts one send to a person. Raises Refusal 130429 or 131056 over the limit."""
        pair = self._pairs.setdefault(person, _Bucket(PAIR_BURST, self._clock()))
        if not self._has_token(pair, PAIR_BURST, 1 / PAIR_SECONDS):
            raise Refusal(131056, "Too many messages to this person in a short time; wait and try again.")
        if not self._has_token(self._number, PER_SECOND, PER_SECOND):
            raise Refusal(130429, "Cloud API message throughput has been reached.")
        pair.tokens -= 1
        self._number.tokens -= 1

    def _has_token(self, bucket: _Bucket, size: float, per_second: float) -> bool:
        now = self._clock()
        bucket.tokens = min(size, bucket.tokens + (now - bucket.at) * per_second)
        bucket.at = now
        return bucket.tokens >= 1
