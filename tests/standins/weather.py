"""A stand-in for open-meteo.com: its geocoding and its forecast, with bodies of the same shape."""

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.standins.listener import Listener


def place(
    name: str, region: str, code: str, country: str, people: int | None, *at: float, kind: str = "PPL"
) -> dict[str, Any]:
    """One row of geocoding; latitude and longitude are (1, 2) where they do not matter."""
    latitude, longitude = at or (1.0, 2.0)
    row = {
        "id": abs(hash((name, region))) % 10**7,
        "name": name,
        "latitude": latitude,
        "longitude": longitude,
        "elevation": 12.0,
        "feature_code": kind,
        "country_code": code,
        "admin1_id": 1,
        "timezone": "UTC",
        "population": people,
        "country_id": 2,
        "country": country,
        "admin1": region,
    }
    return {key: value for key, value in row.items() if value is not None}


ARGENTINA, SPAIN = ("AR", "Argentina"), ("ES", "España")
CORDOBAS = [
    place("Córdoba", "Córdoba", *ARGENTINA, 1428214, -31.4, -64.18, kind="PPLA"),
    place("Córdoba", "Andalucía", *SPAIN, 325708, 37.89, -4.78, kind="PPLA2"),
    place("Córdoba", "Veracruz", "MX", "México", 141000, 18.88, -96.92),
    place("Córdoba", "Bolívar", "CO", "Colombia", 14000),
]
PLACES = {
    "cordoba": CORDOBAS,
    "lima": [place("Lima", "Lima", "PE", "Perú", 7737002, -12.04, -77.03, kind="PPLC")],
    "rosario": [place("Rosario", "Santa Fe", *ARGENTINA, 1193605, -32.95, -60.64)],
    "recife": [place("Recife", "Pernambuco", "BR", "Brasil", 1653461, -8.05, -34.88)],
    "boston": [place("Boston", "Massachusetts", "US", "United States", 675647, 42.36, -71.06)],
    "cdmx": [place("Ciudad de México", "Ciudad de México", "MX", "México", 12294193, 19.43, -99.13)],
    "peru": [place("Perú", "", "PE", "Perú", 31989256, -10.0, -75.25, kind="PCLI")],
}


class WeatherService:
    """Answers at `/v1/search` and `/v1/forecast`; `failing` in place of an answer, `asked` what came."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.failing: Response | None = None
        self.places = PLACES
        routes = [Route("/v1/search", self._search), Route("/v1/forecast", self._forecast)]
        self._listener = Listener(Starlette(routes=routes))
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return {"WEATHER_URL": self.url, "GEOCODING_URL": self.url}

    def stop(self) -> None:
        self._listener.stop()

    async def _search(self, request: Request) -> Response:
        self.asked.append((request.url.path, dict(request.query_params)))
        if self.failing is not None:
            return self.failing
        found = self.places.get(_folded(request.query_params["name"]), [])
        return JSONResponse({"generationtime_ms": 0.5} | ({"results": found} if found else {}))

    async def _forecast(self, request: Request) -> Response:
        self.asked.append((request.url.path, dict(request.query_params)))
        if self.failing is not None:
            return self.failing
        now = datetime.now(UTC)
        days = [(now.date() + timedelta(days=number)).isoformat() for number in range(7)]
        daily = {
            "time": days,
            "weather_code": [61, 95, 3, 0, 2, 45, 73],
            "temperature_2m_max": [24.6, 20.1, 21.0, 22.0, 23.0, 24.0, 25.0],
            "temperature_2m_min": [15.4, 14.0, 13.0, 12.0, 11.0, 10.0, -0.4],
            "precipitation_probability_max": [60, 85, 10, 0, 5, None, 40],
            "precipitation_sum": [0.3, 12.4, 0.0, 0.0, 0.0, 0.0, 3.0],
            "wind_speed_10m_max": [18.2, 40.0, 10.0, 10.0, 10.0, 10.0, 10.0],
        }
        return JSONResponse(
            {
                "latitude": float(request.query_params["latitude"]),
                "longitude": float(request.query_params["longitude"]),
                "generationtime_ms": 0.1,
                "utc_offset_seconds": 0,
                "timezone": "GMT",
                "timezone_abbreviation": "GMT",
                "elevation": 12.0,
                "current_units": {"time": "iso8601", "temperature_2m": "°C", "wind_speed_10m": "km/h"},
                "current": {
                    "time": now.strftime("%Y-%m-%dT%H:%M"),
                    "interval": 900,
                    "temperature_2m": 18.4,
                    "apparent_temperature": 17.6,
                    "relative_humidity_2m": 80,
                    "weather_code": 2,
                    "wind_speed_10m": 12.3,
                    "is_day": 1,
                },
                "daily_units": {"time": "iso8601", "temperature_2m_max": "°C"},
                "daily": daily,
            }
        )


def _folded(name: str) -> str:
    return name.casefold().translate(str.maketrans("áéíóúãç", "aeiouac"))
