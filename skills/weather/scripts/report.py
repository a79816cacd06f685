"""The service's figures as a few lines for a phone, and as figures for a model, in a person's units."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from app.tools.authoring import Sentences, read_words

from .places import Place
from .service import Weather

# From here on the age of the data is said.
OLD_SECONDS = 5 * 60
_SKIES = read_words(__file__)


class Report:
    """The weather of a place in one language; `days` are today and those to come, there."""

    def __init__(self, place: Place, weather: Weather, say: Sentences, *, imperial: bool) -> None:
        offset = timedelta(seconds=weather.answer.get("utc_offset_seconds") or 0)
        self.today = datetime.now(timezone(offset)).date()
        self.days = {one["date"]: one for one in _rows(weather.answer["daily"]) if one["date"] >= self.today}
        self._place = place
        self._now = weather.answer["current"]
        self._age = weather.age
        self._say = say
        self._scale = Scale(imperial)

    def now(self) -> str:
        """Describe this moment, and today in a second line."""
        return self._with_age([self._now_line(), *(f"{self._day_line(day)}" for day in list(self.days)[:1])])

    def of(self, days: list[date]) -> str:
        """Return one day in a line, several in a list."""
        if len(days) > 1:
            return self._with_age([f"{self._place.label}:", *(f"• {self._day_line(day)}" for day in days)])
        mark, words = self._words(self.days[days[0]], wind=True)
        named = self.name(days[0])
        line = self._say("day", sky=mark, day=named, place=self._place.label, words=words)
        return self._with_age([line.strip()])

    def figures(self, days: list[date]) -> dict[str, Any]:
        """Return figures for a model that is asked for more than the lines say."""
        now, scale = self._now, self._scale
        return {
            "place": {"name": self._place.name, "region": self._place.region, "country": self._place.country},
            "now": {
                "temperature": scale.temperature(now.get("temperature_2m")),
                "wind": scale.wind(now.get("wind_speed_10m")),
                "sky": _sky(now.get("weather_code"), "en")[1],
            },
            "days": [
                {
                    "date": day.isoformat(),
                    "low": scale.temperature(self.days[day].get("temperature_2m_min")),
                    "high": scale.temperature(self.days[day].get("temperature_2m_max")),
                    "rain_percent": self.days[day].get("precipitation_probability_max"),
                    "sky": _sky(self.days[day].get("weather_code"), "en")[1],
                }
                for day in days
            ],
            "units": scale.units,
            "age_minutes": round(self._age / 60),
            "source": "open-meteo.com",
        }

    def name(self, day: date, *, short: bool = False) -> str:
        """Return a day as people call it: today, tomorrow, or weekday and number."""
        from babel.dates import format_date

        away = (day - self.today).days
        if away in (0, 1):
            return self._say("tomorrow" if away else "today")
        named = format_date(day, "EEE d" if short else "EEEE d", locale=self._say.language)
        return named[0].upper() + named[1:]

    def _now_line(self) -> str:
        now, scale = self._now, self._scale
        mark, words = _sky(now.get("weather_code"), self._say.language, now.get("is_day") != 0)
        parts = [
            words,
            self._said("feels", degrees=scale.degrees(now.get("apparent_temperature"))),
            self._said("humidity", percent=_whole(now.get("relative_humidity_2m"))),
            self._said("wind", speed=scale.speed(now.get("wind_speed_10m"))),
        ]
        told = ", ".join(filter(None, (scale.degrees(now.get("temperature_2m")), *parts)))
        return f"{mark} {self._place.label}: {told}".strip()

    def _day_line(self, day: date) -> str:
        mark, words = self._words(self.days[day])
        return f"{self.name(day, short=True)}: {f'{mark} {words}'.strip()}"

    def _words(self, day: dict[str, Any], *, wind: bool = False) -> tuple[str, str]:
        """Return emoji and words of a day."""
        scale = self._scale
        mark, words = _sky(day.get("weather_code"), self._say.language)
        low, high = (
            scale.temperature(day.get("temperature_2m_min")),
            scale.degrees(day.get("temperature_2m_max")),
        )
        rain = self._said("rain", percent=_whole(day.get("precipitation_probability_max")))
        parts = [
            words,
            self._said("range", low=low, high=high),
            rain + scale.rain(day.get("precipitation_sum")) if rain else "",
            self._said("gusts", speed=scale.speed(day.get("wind_speed_10m_max"))) if wind else "",
        ]
        return mark, ", ".join(filter(None, parts))

    def _said(self, key: str, **values: object) -> str:
        """Fill a sentence in; "" where the service did not know one of the values."""
        return "" if None in values.values() else self._say(key, **values)

    def _with_age(self, lines: list[str]) -> str:
        minutes = round(self._age / 60)
        if self._age >= 3600:
            lines.append(self._say("age_hours", count=round(self._age / 3600)))
        elif self._age >= OLD_SECONDS:
            lines.append(self._say("age_minutes", count=minutes))
        return "\n".join(lines)


@dataclass(frozen=True)
class Scale:
    """Metric figures in the units that a person uses; None stays None."""

    imperial: bool

    @property
    def units(self) -> dict[str, str]:
        names = ("°F", "mph") if self.imperial else ("°C", "km/h")
        return dict(zip(("temperature", "wind"), names, strict=True))

    def temperature(self, celsius: float | None) -> int | None:
        return _whole(celsius * 9 / 5 + 32 if self.imperial and celsius is not None else celsius)

    def wind(self, kilometres: float | None) -> int | None:
        return _whole(kilometres / 1.609344 if self.imperial and kilometres is not None else kilometres)

    def degrees(self, celsius: float | None) -> str | None:
        return None if celsius is None else f"{self.temperature(celsius)} {self.units['temperature']}"

    def speed(self, kilometres: float | None) -> str | None:
        return None if kilometres is None else f"{self.wind(kilometres)} {self.units['wind']}"

    def rain(self, millimetres: float | None) -> str:
        """Write the rain in brackets, where it is worth a word."""
        if not millimetres or millimetres < 1:
            return ""
        return f" ({millimetres / 25.4:.1f} in)" if self.imperial else f" ({round(millimetres)} mm)"


def _rows(daily: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the service's columns as rows; what it does not know is None."""
    columns = {key: column for key, column in daily.items() if key != "time"}
    return [
        {"date": date.fromisoformat(day)}
        | {key: column[at] if at < len(column) else None for key, column in columns.items()}
        for at, day in enumerate(daily.get("time") or [])
    ]


def _sky(code: int | None, language: str, is_day: bool = True) -> tuple[str, str]:
    """Return emoji and words of a WMO code; both "" where it is none that is known."""
    named = _SKIES.get(code)
    return (named["day" if is_day else "night"], named[language]) if named else ("", "")


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
