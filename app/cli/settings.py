"""Read the settings for a command: one line a fault, no secret in any, logs on stderr."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from app.errors import ConfigurationError
from app.http.endpoint import url_fault
from app.i18n import lazy
from app.settings import GRAPH_API, SECRET_VARIABLES, Settings, take_settings

LONGEST_VALUE = 60
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Universal"})


def read_settings(**changes: object) -> Settings:
    """Return the settings as the command line has them. Raise ConfigurationError, a line for each fault."""
    try:
        changed = {name: value for name, value in changes.items() if value is not None}
        settings = take_settings().model_copy(update=changed)
        _ = settings.database
    except ValidationError as error:
        faults = map(_fault, error.errors(include_url=False, include_context=False))
        raise ConfigurationError("\n".join(faults)) from None  # its own text shows what was given
    except SettingsError as error:  # its cause quotes what was given
        variable = str(error).partition('"')[2].partition('"')[0].upper()
        raise ConfigurationError(f"{variable} is no JSON; mend it in the environment or in .env") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(
            f".env is not UTF-8 text that this account may read ({error}); save it so"
        ) from None
    except ValueError as error:  # what DATABASE_URL names is no database
        raise ConfigurationError(str(error)) from None
    if settings.role != "all" and not settings.on_postgres:
        raise ConfigurationError("ROLE: several processes need PostgreSQL; set DATABASE_URL=postgresql://…")
    if settings.role != "all" and settings.uses_simulator:
        raise ConfigurationError("ROLE: the phone simulator works in one process only; set ROLE=all")
    for variable, given, example in (
        ("OPENAI_BASE_URL", settings.openai_base_url, "http://127.0.0.1:11434/v1"),
        ("WHATSAPP_API_URL", settings.whatsapp_api_url_setting, GRAPH_API),
    ):
        if given and (fault := url_fault(given)):
            raise ConfigurationError(f"{variable}: {fault}; write it like {example}")
    return settings


def zone_hint(settings: Settings) -> str:
    """Return advice if people's zone would default to UTC, else ""."""
    if settings.timezone or settings.default_timezone not in _UTC_NAMES:
        return ""
    return lazy(
        "TIMEZONE is not set and this machine is on UTC: the terminal, and people whose number names no "
        "country, are told UTC; set TIMEZONE=America/Mexico_City or the like"
    )


def model_line(settings: Settings) -> str:
    """Return which model is asked at which host, or which setting is ignored; "" without any."""
    if settings.has_model:
        host = urlsplit(settings.openai_base_url).netloc or "api.openai.com"
        return f"Model: {settings.llm_model} at {host}"
    if settings.llm_model:
        return lazy("LLM_MODEL is ignored: it needs OPENAI_BASE_URL, or OPENAI_API_KEY for OpenAI's own")
    if settings.openai_base_url or settings.openai_api_key.get_secret_value():
        given = "OPENAI_BASE_URL" if settings.openai_base_url else "OPENAI_API_KEY"
        return lazy("{name} is ignored: it needs LLM_MODEL, the name of a model there", name=given)
    return ""


def secrets_of(settings: BaseModel) -> Iterator[str]:
    """Yield every secret value among the settings, those of listed endpoints and webhooks too."""
    for _, value in settings:
        if isinstance(value, SecretStr) and value.get_secret_value():
            yield value.get_secret_value()
        for one in value if isinstance(value, list) else ():
            if isinstance(one, BaseModel):
                yield from secrets_of(one)


def _fault(detail: ErrorDetails) -> str:
    variable = str(detail["loc"][0]).upper() if detail["loc"] else "configuration"
    for part in detail["loc"][1:]:
        variable += f", entry {part + 1}" if isinstance(part, int) else f", {part}"
    expected = detail["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    given = "" if variable.partition(",")[0] in SECRET_VARIABLES else f"={detail['input']!r}"[:LONGEST_VALUE]
    return f"{variable}{given}: {expected}; mend it in the environment or in .env"
