"""Reading the settings for a command: a line a fault, no secret in any, logs on stderr."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.settings import SECRET_VARIABLES, Settings, take_settings

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_LONGEST_VALUE = 60
_EXPECTED = {
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
}


def read_settings(**changes: object) -> Settings:
    """The settings, with what the command line says in place of what the environment says.

    Raises ConfigurationError with a line for each faulty variable.
    """
    from pydantic import ValidationError

    try:
        settings = take_settings()
    except ValidationError as error:
        raise ConfigurationError("\n".join(faults(error))) from None  # its own text shows what was given
    except UnicodeDecodeError as error:
        raise ConfigurationError(f".env is not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f".env cannot be read: {error.strerror or error}; mend it") from None
    settings = settings.model_copy(
        update={name: value for name, value in changes.items() if value is not None}
    )
    try:
        _ = settings.database_path
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return settings


def faults(error: "ValidationError") -> list[str]:
    """A line for each faulty variable: its name, what was given (never a secret), what is expected."""
    return [_fault(detail) for detail in error.errors(include_url=False, include_context=False)]


def secrets_of(settings: Settings) -> Iterator[str]:
    """Every secret value among the settings."""
    from pydantic import SecretStr

    for _, value in settings:
        if isinstance(value, SecretStr) and value.get_secret_value():
            yield value.get_secret_value()


def configure_logs(settings: Settings, usual: str) -> None:
    """Logs to stderr: at LOG_LEVEL where it is set, else at the level that is usual for the command."""
    from app.observe.logs import configure

    level = settings.log_level if "log_level" in settings.model_fields_set else usual
    configure(level, settings.log_json, secrets_of(settings))


def _fault(detail: "ErrorDetails") -> str:
    variable = str(detail["loc"][0]).upper() if detail["loc"] else "configuration"
    expected = _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    expected = expected.replace("Input should be", "expected")
    given = "" if variable in SECRET_VARIABLES else f"={_shown(detail['input'])}"
    return f"{variable}{given}: {expected}; mend it in the environment or in .env"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
