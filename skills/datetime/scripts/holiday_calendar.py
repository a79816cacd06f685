"""National holidays and business days, by the tables of the package `holidays`."""

from datetime import timedelta

from .person import folded

# Days that are counted one by one.
LONGEST_SPAN = 366 * 20


def calendar_of(country, language):
    """Return the holidays of a country, a mapping of days to names; None where there is no table of it.

    Names are in the language where the table has it, else in the country's own.
    """
    import holidays

    entity = getattr(holidays, country, None) if len(country) == 2 and country.isupper() else None
    if entity is None:
        return None
    spoken = [code for code in entity.supported_languages if code.split("_")[0] == language]
    own = entity.default_language
    return holidays.country_holidays(country, language=own if own in spoken or not spoken else spoken[0])


def is_business_day(day, calendar):
    return day.weekday() not in calendar.weekend and day not in calendar


def business_days(start, end, calendar):
    """Return the business days after `start` up to and with `end`, and the holidays among weekdays."""
    days = [start + timedelta(days=n) for n in range(1, (end - start).days + 1)]
    weekdays = [day for day in days if day.weekday() not in calendar.weekend]
    free = [day for day in weekdays if day in calendar]
    return len(weekdays) - len(free), free


def business_day_after(start, count, calendar):
    """Return the day that is so many business days after `start`, before it where `count` is negative."""
    day, step = start, timedelta(days=1 if count > 0 else -1)
    for _ in range(abs(count)):
        day += step
        while not is_business_day(day, calendar):
            day += step
    return day


def next_holidays(today, calendar, count=3):
    """Return the next days that are holidays, today among them."""
    days = (today + timedelta(days=n) for n in range(800))
    return [day for day, _ in zip((day for day in days if day in calendar), range(count), strict=False)]


def holidays_between(start, end, calendar):
    return [day for n in range((end - start).days + 1) if (day := start + timedelta(days=n)) in calendar]


def named(words, today, calendar):
    """Return the next holiday whose name holds all these words; None where there is none within two years."""
    wanted = folded(words).split()
    return next(
        (
            day
            for day in next_holidays(today, calendar, count=100)
            if all(word in folded(calendar[day]).split() for word in wanted)
        ),
        None,
    )
