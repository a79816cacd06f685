"""An end for what might compute without one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_SECONDS = 3
"""What one call may take of a processor: while it computes, nobody else is answered."""


class _Ended(BaseException):
    pass


@contextmanager
def limited() -> Iterator[None]:
    """Raises TimeoutError in the main thread once this process has computed for that long."""

    def end(signum: int, frame: FrameType | None) -> None:
        raise _Ended

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    except _Ended:  # where it was at that moment may be no line at all
        raise TimeoutError(f"it computed for {CPU_SECONDS} s") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
