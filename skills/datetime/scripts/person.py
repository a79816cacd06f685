"""The person's language, country and time zone, and how times and days are written for them."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from app.tools.authoring import Sentences, read_said

SAID = read_said(__file__)
LANGUAGES = ("es", "pt", "en")
LONGEST = 100

DATE = {"es": "EEEE d 'de' MMMM 'de' y", "pt": "EEEE, d 'de' MMMM 'de' y", "en": "EEEE, MMMM d, y"}
DAY = {"es": "d 'de' MMMM 'de' y", "pt": "d 'de' MMMM 'de' y", "en": "MMMM d, y"}


@dataclass(frozen=True)
class Who:
    """`say`: the sentences in their language."""

    say: Sentences
    locale: str
    country: str
    zone: tzinfo

    @property
    def language(self):
        return self.say.language


def who_asks(context):
    """Return language, locale, country and zone of the person; plain English and UTC where there is none."""
    say, person = Sentences(SAID, context), getattr(context, "person", None)
    country = (getattr(person, "country", "") or "").upper()
    return Who(say, _locale(say.language, country), country, _zone(getattr(person, "timezone", "")))


def _zone(name):
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


@lru_cache(maxsize=512)
def _locale(language, country):
    from babel import Locale, UnknownLocaleError

    for name in (f"{language}_{country}" if country else "", language):
        try:
            return str(Locale.parse(name)) if name else str(Locale.parse({"pt": "pt_BR"}[language]))
        except (KeyError, ValueError, UnknownLocaleError):
            continue
    return "en"


def time_parts(moment, who):
    from babel.dates import format_date, format_time

    time = format_time(moment, "short", locale=who.locale)
    time = time.replace("\u202f", " ").replace("\u00a0", " ")  # phones show these as they like
    one = moment.hour == 1 or (moment.hour == 13 and time.startswith("1:"))
    are = {"es": ("son las", "es la"), "pt": ("são", "é"), "en": ("", "")}[who.language][one]
    return {"time": time, "date": format_date(moment, DATE[who.language], locale=who.language), "are": are}


def sentence(text):
    return text[:1].upper() + text[1:]


def day_text(day, who):
    from babel.dates import format_date

    return format_date(day, DAY[who.language], locale=who.language)


def full_day(day, who):
    """Return a day with its weekday and year."""
    from babel.dates import format_date

    return format_date(day, DATE[who.language], locale=who.language)


def fields_of(moment, place):
    minutes = round(moment.utcoffset().total_seconds() / 60)
    return {
        "place": place,
        "time": moment.strftime("%H:%M"),
        "date": moment.date().isoformat(),
        "iso": moment.isoformat(timespec="seconds"),
        "timezone": str(moment.tzinfo),
        "utc_offset": f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}",
    }


def than(moment, who):
    seconds = (moment.utcoffset() - moment.astimezone(who.zone).utcoffset()).total_seconds()
    if not seconds:
        return who.say("same")
    hours = f"{abs(seconds) / 3600:.2f}".rstrip("0").rstrip(".")
    hours = hours if who.language == "en" else hours.replace(".", ",")
    return who.say("more" if seconds > 0 else "less", hours=hours)


def folded(text):
    """Return lower case without accents, and single spaces for everything that parts words."""
    return " ".join(re.sub(r"[_./,;?!¿¡()\"«»]+", " ", without_accents(text)).split())


def without_accents(text):
    """Return the text without accents, in lower case."""
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(char for char in plain if not unicodedata.combining(char))
