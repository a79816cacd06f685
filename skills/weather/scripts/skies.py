"""Skies: the service's codes as emoji and words of three languages."""

LANGUAGES = ("es", "pt", "en")

# WMO code 4677 as open-meteo uses it: emoji by day and by night, then the words of each language.
SKY = {
    0: ("☀️ 🌙", "despejado", "céu limpo", "clear"),
    1: ("🌤️ 🌙", "casi despejado", "quase sem nuvens", "mostly clear"),
    2: ("⛅ ☁️", "parcialmente nublado", "parcialmente nublado", "partly cloudy"),
    3: ("☁️ ☁️", "nublado", "nublado", "overcast"),
    45: ("🌫️ 🌫️", "niebla", "neblina", "fog"),
    48: ("🌫️ 🌫️", "niebla con escarcha", "neblina com geada", "freezing fog"),
    51: ("🌦️ 🌧️", "llovizna débil", "garoa fraca", "light drizzle"),
    53: ("🌦️ 🌧️", "llovizna", "garoa", "drizzle"),
    55: ("🌧️ 🌧️", "llovizna intensa", "garoa forte", "heavy drizzle"),
    56: ("🌧️ 🌧️", "llovizna helada débil", "garoa congelante fraca", "light freezing drizzle"),
    57: ("🌧️ 🌧️", "llovizna helada", "garoa congelante", "freezing drizzle"),
    61: ("🌦️ 🌧️", "lluvia débil", "chuva fraca", "light rain"),
    63: ("🌧️ 🌧️", "lluvia", "chuva", "rain"),
    65: ("🌧️ 🌧️", "lluvia fuerte", "chuva forte", "heavy rain"),
    66: ("🌧️ 🌧️", "lluvia helada débil", "chuva congelante fraca", "light freezing rain"),
    67: ("🌧️ 🌧️", "lluvia helada", "chuva congelante", "freezing rain"),
    71: ("🌨️ 🌨️", "nieve débil", "neve fraca", "light snow"),
    73: ("🌨️ 🌨️", "nieve", "neve", "snow"),
    75: ("🌨️ 🌨️", "nevada fuerte", "neve forte", "heavy snow"),
    77: ("🌨️ 🌨️", "granos de nieve", "grãos de neve", "snow grains"),
    80: ("🌦️ 🌧️", "chubascos débiles", "pancadas fracas de chuva", "light showers"),
    81: ("🌧️ 🌧️", "chubascos", "pancadas de chuva", "showers"),
    82: ("🌧️ 🌧️", "chubascos fuertes", "pancadas fortes de chuva", "heavy showers"),
    85: ("🌨️ 🌨️", "chubascos de nieve", "pancadas de neve", "snow showers"),
    86: ("🌨️ 🌨️", "chubascos fuertes de nieve", "pancadas fortes de neve", "heavy snow showers"),
    95: ("⛈️ ⛈️", "tormenta", "tempestade", "thunderstorm"),
    96: ("⛈️ ⛈️", "tormenta con granizo", "tempestade com granizo", "thunderstorm with hail"),
    99: (
        "⛈️ ⛈️",
        "tormenta con granizo fuerte",
        "tempestade com granizo forte",
        "thunderstorm with heavy hail",
    ),
}


def sky(code: int | None, language: str, is_day: bool = True) -> tuple[str, str]:
    """Return emoji and words of a WMO code; both "" where it is none that is known."""
    if code not in SKY:
        return "", ""
    signs, *words = SKY[code]
    return signs.split()[0 if is_day else 1], words[LANGUAGES.index(language)]
