"""Opening hours as an operator writes them: "mon-fri 09:00-13:00 15:00-19:00, sat 09:00-13:00"."""

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """The times of a week when somebody is there; none at all where nothing is said about it."""

    spans: tuple[tuple[int, time, time], ...] = ()  # weekday (0: Monday), from, until

    @classmethod
    def parse(cls, text: str) -> "OpeningHours":
        """Read the form that stands above. Raises ValueError that says how to write it."""
        spans: list[tuple[int, time, time]] = []
        for part in filter(None, (part.strip().casefold() for part in re.split("[,;]", text))):
            days, *times = part.split()
            found = [_SPAN.fullmatch(one) for one in times]
            first, _, last = days.partition("-")
            try:
                begins, ends = _DAYS.index(first), _DAYS.index(last or first)
                hours = [_span(*map(int, one.groups())) for one in found if one is not None]
            except ValueError:
                hours = []
            if not hours or len(hours) != len(times):
                raise ValueError(f"{part!r} is not understood; write mon-fri 09:00-18:00, sat 09:00-13:00")
            week = range(begins, begins + (ends - begins) % 7 + 1)
            spans += [(day % 7, *span) for day in week for span in hours]
        return cls(tuple(spans))

    def next_open(self, moment: datetime) -> datetime | None:
        """Return the moment itself if somebody is there, else when they come; None where nothing is said."""
        for ahead in range(8):
            day = moment + timedelta(days=ahead)
            for weekday, begins, ends in sorted(self.spans):
                opens = datetime.combine(day.date(), begins, moment.tzinfo)
                closes = datetime.combine(day.date(), ends, moment.tzinfo)
                if weekday == day.weekday() and moment < closes:
                    return max(moment, opens)
        return None


def _span(hour: int, minute: int, until_hour: int, until_minute: int) -> tuple[time, time]:
    end = time.max if (until_hour, until_minute) == (24, 0) else time(until_hour, until_minute)
    begin = time(hour, minute)
    if begin >= end:
        raise ValueError("it ends before it begins")
    return begin, end
