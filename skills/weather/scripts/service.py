"""open-meteo.com: places by name, the weather by coordinates, and what of it is kept for a while."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta, timezone
from itertools import chain
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from app.http.address import FetchError

WEATHER = "https://api.open-meteo.com"
GEOCODING = "https://geocoding-api.open-meteo.com"
SECONDS = 8
# New values come out every 15 minutes.
FRESH_SECONDS = 15 * 60
# How old the weather may be where nothing newer can be had.
USABLE_SECONDS = 24 * 3600
PLACE_SECONDS = 24 * 3600
CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m,is_day"
DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max,precipitation_sum,"
    "wind_speed_10m_max"
)


class ServiceError(Exception):
    """Nothing usable came from `host`; `busy`: it refuses for now, and may say for how many seconds."""

    def __init__(self, host: str, *, busy: bool = False, retry_after: int | None = None) -> None:
        super().__init__(host)
        self.host = host
        self.busy = busy
        self.retry_after = retry_after


class Kept:
    """The last answers, at most so many, each with the time at which it came."""

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._kept: OrderedDict[object, tuple[float, Any]] = OrderedDict()

    def put(self, key: object, value: Any) -> None:
        with self._lock:
            self._kept[key] = self._clock(), value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, key: object, seconds: float) -> tuple[float, Any] | None:
        """Return age in seconds and value, where it is not older than `seconds`."""
        with self._lock:
            at, value = self._kept.get(key, (0.0, None))
        age = max(self._clock() - at, 0.0)
        return (age, value) if value is not None and age <= seconds else None


@dataclass(frozen=True)
class Weather:
    """The service's answer, and how old it is."""

    answer: dict[str, Any]
    age: float


_PLACES = Kept(1024)
_WEATHER = Kept(256)


def places_named(name: str, language: str, context: Any) -> list[dict[str, Any]]:
    """Return places of that name as the service lists them. Raises ServiceError."""
    key = " ".join(name.casefold().split()), language
    kept = _PLACES.get(key, PLACE_SECONDS)
    if kept is not None:
        return kept[1]
    address = _address(context.settings.get("GEOCODING_URL") or GEOCODING, "/v1/search")
    answer = _asked(address, {"name": name, "count": 20, "language": language, "format": "json"}, context)
    found = answer.get("results")
    found = found if isinstance(found, list) else []
    _PLACES.put(key, found)
    return found


def weather_at(latitude: float, longitude: float, context: Any, kept: Kept = _WEATHER) -> Weather:
    """Fetch now and seven days, or reuse a recent answer for a place nearby. Raises ServiceError."""
    key = round(latitude, 2), round(longitude, 2)
    fresh = kept.get(key, FRESH_SECONDS)
    if fresh is not None:
        return Weather(fresh[1], fresh[0])
    params = {"latitude": key[0], "longitude": key[1], "current": CURRENT, "daily": DAILY}
    address = _address(context.settings.get("WEATHER_URL") or WEATHER, "/v1/forecast")
    try:
        answer = _asked(address, {**params, "timezone": "auto", "forecast_days": 7}, context)
        if not _is_weather(answer):
            raise ServiceError(_host(address))
    except ServiceError:
        old = kept.get(key, USABLE_SECONDS)
        if old is None:
            raise
        return Weather(old[1], old[0])
    kept.put(key, answer)
    return Weather(answer, 0.0)


def _is_weather(answer: dict[str, Any]) -> bool:
    """Tell whether an answer has the service's form; figures may be missing."""
    now, daily, offset = (answer.get(key) for key in ("current", "daily", "utc_offset_seconds"))
    if not isinstance(now, dict) or not isinstance(daily, dict):
        return False
    columns = [daily.get(name) or [] for name in DAILY.split(",")]
    days = daily.get("time") or []
    if not all(isinstance(column, list) for column in (days, *columns)):
        return False
    figures = [offset, *(now.get(name) for name in CURRENT.split(",")), *chain(*columns)]
    try:
        timezone(timedelta(seconds=offset or 0))
        return all(date.fromisoformat(day) for day in days) and all(
            figure is None or isinstance(figure, int | float) for figure in figures
        )
    except (TypeError, ValueError, OverflowError):
        return False


def _asked(address: str, params: dict[str, Any], context: Any) -> dict[str, Any]:
    host = _host(address)
    try:
        came = context.http.get(address, params=params, seconds=SECONDS)
        if came.status == 429:
            seconds = came.headers.get("retry-after", "")
            raise ServiceError(host, busy=True, retry_after=int(seconds) if seconds.isdecimal() else None)
        answer = came.json()
    except (FetchError, ValueError) as error:
        raise ServiceError(host) from error
    if not came.ok or not isinstance(answer, dict):
        raise ServiceError(host)
    return answer


def _address(base: str, path: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith(path) else base + path


def _host(address: str) -> str:
    return urlsplit(address).hostname or address
