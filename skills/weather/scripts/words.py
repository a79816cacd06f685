"""What the tools of this skill say: skies, days, measures, questions and failures."""

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

SAID = {
    "es": {
        "feels": "sensación {degrees}",
        "humidity": "humedad {percent} %",
        "wind": "viento {speed}",
        "gusts": "viento hasta {speed}",
        "rain": "lluvia {percent} %",
        "today": "Hoy",
        "tomorrow": "Mañana",
        "day": "{sky} {day} en {place}: {words}",
        "range": "{low} a {high}",
        "age_minutes": "Datos de hace {count} min.",
        "age_hours": "Datos de hace {count} h: ahora no pude actualizarlos.",
        "set": "✓ Tu lugar para el tiempo: {place}",
        "ask_place": "¿De qué ciudad? Escribe «clima en Lima»; con «mi ciudad es Lima» la recuerdo.",
        "ask_city": "¿De qué ciudad de {country}?",
        "ask_which": "¿{name} de {options}?",
        "option": "{label}",
        "or": " o de ",
        "like": "Escribe, por ejemplo: clima en {name}, {label}",
        "NOT_FOUND": "No encontré el lugar «{place}».",
        "hint_NOT_FOUND": "Escribe el nombre de la ciudad y su país, como «Córdoba, España».",
        "TOO_FAR": "Solo hay pronóstico de hoy al {last}.",
        "hint_TOO_FAR": "Pregunta por hoy, mañana, el fin de semana, la semana o uno de esos días.",
        "AWAY": "No llego al servicio del tiempo ({host}).",
        "hint_AWAY": "Puede ser mi conexión o el servicio: prueba de nuevo en unos minutos.",
        "BUSY": "El servicio del tiempo ({host}) recibió demasiadas consultas.",
        "hint_BUSY": "Prueba de nuevo en un minuto.",
    },
    "pt": {
        "feels": "sensação {degrees}",
        "humidity": "umidade {percent}%",
        "wind": "vento {speed}",
        "gusts": "vento até {speed}",
        "rain": "chuva {percent}%",
        "today": "Hoje",
        "tomorrow": "Amanhã",
        "day": "{sky} {day} em {place}: {words}",
        "range": "{low} a {high}",
        "age_minutes": "Dados de {count} min atrás.",
        "age_hours": "Dados de {count} h atrás: agora não consegui atualizá-los.",
        "set": "✓ Seu lugar para o tempo: {place}",
        "ask_place": "De qual cidade? Escreva “clima em Recife”; com “minha cidade é Recife” eu guardo.",
        "ask_city": "De qual cidade ({country})?",
        "ask_which": "Qual delas: {options}?",
        "option": "{name} ({label})",
        "or": " ou ",
        "like": "Escreva, por exemplo: clima em {name}, {label}",
        "NOT_FOUND": "Não encontrei o lugar “{place}”.",
        "hint_NOT_FOUND": "Escreva o nome da cidade e o país, como “Córdoba, Espanha”.",
        "TOO_FAR": "Só há previsão de hoje a {last}.",
        "hint_TOO_FAR": "Pergunte por hoje, amanhã, o fim de semana, a semana ou um desses dias.",
        "AWAY": "Não consigo falar com o serviço do tempo ({host}).",
        "hint_AWAY": "Pode ser a minha conexão ou o serviço: tente de novo em alguns minutos.",
        "BUSY": "O serviço do tempo ({host}) recebeu consultas demais.",
        "hint_BUSY": "Tente de novo em um minuto.",
    },
    "en": {
        "feels": "feels like {degrees}",
        "humidity": "humidity {percent}%",
        "wind": "wind {speed}",
        "gusts": "wind up to {speed}",
        "rain": "rain {percent}%",
        "today": "Today",
        "tomorrow": "Tomorrow",
        "day": "{sky} {day} in {place}: {words}",
        "range": "{low} to {high}",
        "age_minutes": "Data from {count} min ago.",
        "age_hours": "Data from {count} h ago: I could not update it now.",
        "set": "✓ Your place for the weather: {place}",
        "ask_place": 'Which city? Write "weather in Boston"; with "my city is Boston" I keep it.',
        "ask_city": "Which city in {country}?",
        "ask_which": "Which one: {options}?",
        "option": "{name} ({label})",
        "or": " or ",
        "like": "Write, for example: weather in {name}, {label}",
        "NOT_FOUND": 'I did not find the place "{place}".',
        "hint_NOT_FOUND": 'Write the name of the city and its country, such as "Cordoba, Spain".',
        "TOO_FAR": "There is a forecast from today to {last} only.",
        "hint_TOO_FAR": "Ask for today, tomorrow, the weekend, the week, or one of these days.",
        "AWAY": "I cannot reach the weather service ({host}).",
        "hint_AWAY": "It may be my connection or the service: try again in a few minutes.",
        "BUSY": "The weather service ({host}) got too many questions.",
        "hint_BUSY": "Try again in a minute.",
    },
}


def spoken(language: str) -> str:
    return language if language in SAID else "en"


def say(language: str, key: str, **values: object) -> str:
    return SAID[spoken(language)][key].format(**values)


def sky(code: int | None, language: str, is_day: bool = True) -> tuple[str, str]:
    """Emoji and words of a WMO code; both "" where it is none that is known."""
    if code not in SKY:
        return "", ""
    signs, *words = SKY[code]
    return signs.split()[0 if is_day else 1], words[LANGUAGES.index(spoken(language))]
