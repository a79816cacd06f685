"""Settings, read once from the environment and `.env`."""

import base64
import os
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, get_args
from zoneinfo import available_timezones

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.calendar.rules import OpeningHours
from app.messages import Template
from app.people import Realm
from app.phones import canonical

Role = Literal["all", "web", "worker"]
"""The part of the work that a process does: all of it; webhooks and pages; or turns, sends and schedules."""
GRAPH_API = "https://graph.facebook.com/v25.0"
OPENAI_URL = "https://api.openai.com/v1"

SHORTEST_TOKEN = 16  # characters of ADMIN_TOKEN, which opens the console and /mcp
_MOST = 10**12  # has room in a row of the database
_LONGEST_NUMBER = 15  # digits of a phone number with its country code, by E.164


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many an hour, a day and a month (of UTC); 0: no limit."""

    hour: int = 0
    day: int = 0
    month: int = 0

    @classmethod
    def parse(cls, given: object) -> "Limit":
        """Read "30/hour 100/day". Raises ValueError that says how to write it."""
        text = str(given)
        found = re.findall(r"(\d{1,12})/(hour|day|month)", text)
        written = text.replace(",", " ").split()
        if [f"{most}/{period}" for most, period in found] != written:
            raise ValueError(f"{text!r} is no limit; write 30/hour 100/day 1000/month, or some of these")
        return cls(**{period: int(most) for most, period in found})

    def __bool__(self) -> bool:
        return bool(self.hour or self.day or self.month)


@dataclass(frozen=True, slots=True)
class MessageBudget:
    """A number of messages, or an amount in a currency (ISO 4217), for a month; 0: none."""

    amount: Decimal = Decimal(0)
    currency: str = ""

    @classmethod
    def parse(cls, given: object) -> "MessageBudget":
        """Read "500" or "25 USD". Raises ValueError that says how to write it."""
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(?: ?([A-Za-z]{3}))?", str(given))
        if found is None or (not found[2] and "." in found[1]):
            raise ValueError(
                f"{given!r} is no budget; write a number of messages, or an amount such as 25 USD"
            )
        return cls(Decimal(found[1]), (found[2] or "").upper())


def _phones(value: object) -> object:
    """Read numbers with commas between."""
    if not isinstance(value, str):
        return value
    written = [part.strip() for part in value.split(",") if part.strip()]
    for part in written:
        if not 0 < len(canonical(part)) <= _LONGEST_NUMBER or any(map(str.isalpha, part)):
            raise ValueError(
                f"{part!r} is no phone number; write +52 55 1234 5678, several with commas between"
            )
    return frozenset(map(canonical, written))


def _names(value: object) -> object:
    """Read names with commas or spaces between."""
    return frozenset(value.replace(",", " ").split()) if isinstance(value, str) else value


def _at_home(path: Path) -> Path:
    """Expand `~` in a path: no shell has read what is in `.env`."""
    return Path(os.path.expanduser(path))


ReadLimit = Annotated[Limit, NoDecode, BeforeValidator(Limit.parse)]
ReadBudget = Annotated[MessageBudget, NoDecode, BeforeValidator(MessageBudget.parse)]
Phones = Annotated[frozenset[str], NoDecode, BeforeValidator(_phones)]
Names = Annotated[frozenset[str], NoDecode, BeforeValidator(_names)]
Place = Annotated[Path, AfterValidator(_at_home)]


class TokenPrice(BaseModel, extra="forbid"):
    """The price of a million tokens, in a currency of the operator's."""

    prompt: float = Field(0, ge=0)
    completion: float = Field(0, ge=0)

    def of(self, prompt: int, completion: int) -> float:
        """Return what so many tokens cost."""
        return (prompt * self.prompt + completion * self.completion) / 1_000_000


class ModelEndpoint(BaseModel, extra="forbid", hide_input_in_errors=True):
    """An endpoint of `MODELS`.

    Without `tools` it writes its calls as plain text. With `vision` None, the first picture shows
    whether it takes pictures. `limit` bounds its tokens; `budget` is an amount for a month, in the
    currency of `price`.
    """

    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    model: str = Field(min_length=1)
    tools: bool = True
    vision: bool | None = None
    price: TokenPrice | None = None
    limit: ReadLimit = Limit()
    budget: float = Field(0, ge=0)

    @model_validator(mode="after")
    def _is_complete(self) -> "ModelEndpoint":
        if not (self.base_url or self.api_key.get_secret_value()):
            raise ValueError("it needs a base_url, or an api_key for OpenAI's own")
        if self.budget and self.price is None:
            raise ValueError("its budget needs a price")
        return self


Event = Literal["message.received", "message.replied", "conversation.handed_over", "limit.reached"]


class OutboundWebhook(BaseModel, extra="forbid"):
    """A system of the operator's that is told of events; `secret` is base64 behind "whsec_"."""

    url: str = Field(pattern=r"^https?://")
    secret: SecretStr
    events: list[Event] = list(get_args(Event))

    @field_validator("secret")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        try:
            key = base64.b64decode(value.get_secret_value().removeprefix("whsec_"), validate=True)
        except ValueError:
            key = b""
        if not 24 <= len(key) <= 64:
            raise ValueError(
                "a secret is whsec_ and 24 to 64 bytes in base64; make one: openssl rand -base64 32"
            )
        return value


class Settings(BaseSettings):
    """Settings by the names of their environment variables; every default works offline."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        env_ignore_empty=True,
        allow_inf_nan=False,
        validate_default=False,
        frozen=True,
    )

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    database_url: str = "sqlite:///data/recado.db"
    role: Role = "all"
    data_dir_setting: Place | None = Field(None, alias="DATA_DIR")

    whatsapp_access_token: SecretStr = SecretStr("")
    whatsapp_phone_number_id: str = ""
    whatsapp_verify_token: SecretStr = SecretStr("")
    whatsapp_app_secret: SecretStr = SecretStr("")
    whatsapp_reminder_template: str = Field("", pattern=r"^([a-z0-9_]+(:[a-z]{2,3}(_[A-Z]{2})?)?)?$")
    whatsapp_api_url_setting: str = Field("", alias="WHATSAPP_API_URL")
    allowed_phone_numbers: Phones = frozenset()
    owner_phone_numbers: Phones = frozenset()
    access: Literal["listed", "everyone", "code"] = "listed"
    disclosure: str = Field("", max_length=500)
    guest_limit: ReadLimit = Limit(hour=30, day=100)
    guests_limit: ReadLimit = Limit(hour=1_000, day=5_000)
    token_limit: ReadLimit = Limit()
    send_limit: ReadLimit = Limit()
    monthly_message_budget: ReadBudget = MessageBudget()
    outbound_webhooks: list[OutboundWebhook] = []
    handover_hours: float = Field(12, gt=0, le=24 * 365)
    handover_minutes: float = Field(15, gt=0, le=24 * 60)
    opening_hours: str = ""
    guest_tools: Names = frozenset()

    openai_base_url: str = ""
    openai_api_key: SecretStr = SecretStr("")
    llm_model: str = ""
    classifier_model_setting: str = Field("", alias="CLASSIFIER_MODEL")
    models: list[ModelEndpoint] = []
    llm_timeout: float = Field(120, gt=0)
    classifier_timeout: float = Field(20, gt=0)

    transcription_base_url: str = ""
    transcription_api_key: SecretStr = SecretStr("")
    transcription_model: str = Field(default_factory=lambda: _transcription_model())  # "": nothing does
    speech_model: str = ""
    speech_voice: str = ""
    vision: Literal["auto", "on", "off"] = "auto"

    skills_dir: Place = Path("skills")
    max_tools_per_call: int = Field(8, ge=1, le=128)
    max_tool_rounds: int = Field(5, ge=0, le=50)
    mcp_config_path: Place = Path("data/mcp_servers.json")
    mcp_registry_url: str = "https://registry.modelcontextprotocol.io"
    smithery_url: str = "https://api.smithery.ai"
    smithery_api_key: SecretStr = SecretStr("")
    agent_write_enabled: bool = False
    confirmation_mode: Literal["yolo", "confirm-sensitive", "confirm-all"] = "confirm-sensitive"
    dry_run: bool = False
    workspace_dir_setting: Place | None = Field(None, alias="WORKSPACE_DIR")
    allow_delete: bool = False
    knowledge_dir_setting: Place | None = Field(None, alias="KNOWLEDGE_DIR")
    data_quota_mb: float = Field(50, ge=0)
    files_quota_mb: float = Field(500, ge=0)
    free_space_mb: int = Field(500, ge=0, le=_MOST)

    rate_limit_max: int = Field(20, ge=0, le=_MOST)
    rate_limit_window: float = Field(60, gt=0)
    burst_quiet_seconds: float = Field(1.2, ge=0)
    burst_max_seconds: float = Field(5, ge=0)
    daily_token_budget: int = Field(0, ge=0, le=_MOST)
    send_reconcile_seconds: float = Field(15, ge=0)
    sweep_seconds: float = Field(30, gt=0)
    concurrent_turns: int = Field(100, ge=1)

    timezone: str = ""
    public_url: str = Field("", pattern=r"^(https?://[^\s/]+(/.*)?)?$")
    admin_token: SecretStr = SecretStr("")
    sandbox: Literal["auto", "off"] = "auto"
    simulator: Literal["auto", "on", "off"] = "auto"
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(str.upper)] = "INFO"
    log_json: bool = False

    @model_validator(mode="before")
    @classmethod
    def _first_of_several(cls, given: object) -> object:
        """Fill in the settings of a single model from the first endpoint of `MODELS`."""
        listed = given.get("models") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not (isinstance(listed, list) and listed):
            return given
        first = listed[0] if isinstance(listed[0], dict) else {}
        one = {"openai_base_url": "base_url", "openai_api_key": "api_key", "llm_model": "model"}
        return given | {name: first.get(key, "") for name, key in one.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _stripped(cls, value: object) -> object:
        """Strip space: a secret read from a file ends with a line end."""
        return value.strip() if isinstance(value, str) else value

    @field_validator("admin_token")
    @classmethod
    def _hard_to_guess(cls, value: SecretStr) -> SecretStr:
        if 0 < len(value.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(
                f"expected at least {SHORTEST_TOKEN} characters; take it out, and one is made, "
                "or make one: openssl rand -hex 32"
            )
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value and value not in available_timezones():
            raise ValueError(f"{value!r} is not a time zone; use a name such as America/Santiago")
        return value

    @field_validator("opening_hours")
    @classmethod
    def _readable_hours(cls, value: str) -> str:
        OpeningHours.parse(value)
        return value

    @property
    def database(self) -> Path | str:
        """Return the SQLite file, or the address of a PostgreSQL database.

        Raise ValueError for a URL of another kind or without a file.
        """
        if self.database_url.startswith("postgres"):
            kind, _, address = self.database_url.partition("://")
            if kind not in ("postgresql", "postgres") or "password=" in address.rpartition("@")[2]:
                raise ValueError("DATABASE_URL: write postgresql://USER:PASSWORD@HOST/NAME")
            login, at, _ = address.rpartition("@")
            if at and set("@/% ") & set(re.sub("%[0-9A-Fa-f]{2}", "", login)):
                raise ValueError(
                    "DATABASE_URL: write @, /, % and spaces of its login as %40, %2F, %25 and %20"
                )
            return self.database_url
        kind, _, path = self.database_url.partition(":///")
        if kind != "sqlite" or path in ("", ":memory:") or path.endswith("/"):
            raise ValueError(
                f"DATABASE_URL={self.database_url.split('@')[-1]!r} names no file: "
                "write sqlite:///data/recado.db, or postgresql://USER@HOST/NAME"
            )
        return _at_home(Path(path))

    @property
    def on_postgres(self) -> bool:
        return not isinstance(self.database, Path)

    @property
    def data_dir(self) -> Path:
        if self.data_dir_setting is not None:
            return self.data_dir_setting
        return self.database.parent if isinstance(self.database, Path) else _at_home(Path("data"))

    @property
    def workspace_dir(self) -> Path:
        return self.workspace_dir_setting or self.data_dir / "workspace"

    @property
    def knowledge_dir(self) -> Path:
        return self.knowledge_dir_setting or self.data_dir / "knowledge"

    @property
    def own_places(self) -> tuple[Path, ...]:
        """Return what no file tool may touch: the server's data, configuration and code."""
        beside: tuple[Path, ...] = ()
        if isinstance(self.database, Path):
            database = self.database.resolve()  # of a link the files beside it lie there
            beside = tuple(database.with_name(database.name + end) for end in ("", "-wal", "-shm", ".lock"))
        code = Path(__file__).parent
        return (self.data_dir, *beside, self.mcp_config_path, Path(".env"), self.skills_dir, code)

    @property
    def whatsapp_credentials(self) -> dict[str, str]:
        """Return the four credentials by variable name, "" if unset."""
        return {
            "WHATSAPP_ACCESS_TOKEN": self.whatsapp_access_token.get_secret_value(),
            "WHATSAPP_PHONE_NUMBER_ID": self.whatsapp_phone_number_id,
            "WHATSAPP_VERIFY_TOKEN": self.whatsapp_verify_token.get_secret_value(),
            "WHATSAPP_APP_SECRET": self.whatsapp_app_secret.get_secret_value(),
        }

    @property
    def missing_credentials(self) -> list[str]:
        """Return the unset credentials while others are set; empty if none or all are set."""
        unset = [name for name, value in self.whatsapp_credentials.items() if not value]
        return [] if len(unset) == len(self.whatsapp_credentials) else unset

    @property
    def reminder_template(self) -> Template | None:
        """Return the template for reminders outside WhatsApp's 24-hour window, None if there is none."""
        name, _, language = self.whatsapp_reminder_template.partition(":")
        return Template(name, language) if name else None

    @property
    def uses_simulator(self) -> bool:
        """Return True if no WhatsApp credential is set, so that the simulator's own are used."""
        return not any(self.whatsapp_credentials.values())

    @property
    def is_connected(self) -> bool:
        """Return True if all WhatsApp credentials are set."""
        return all(self.whatsapp_credentials.values())

    @property
    def realm(self) -> Realm:
        """Return the realm of the webhook's messages, in which an operator's numbers are valid."""
        return "simulator" if self.uses_simulator else "whatsapp"

    @property
    def whatsapp_api_url(self) -> str:
        if self.whatsapp_api_url_setting:
            return self.whatsapp_api_url_setting.rstrip("/")
        if not self.uses_simulator:
            return GRAPH_API
        return f"{self.own_url}/simulator/graph/v25.0"

    @property
    def own_url(self) -> str:
        """Return the address of this server on this machine."""
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def reached_at(self) -> str:
        """Return the address at which others reach this server, as far as it is known."""
        return self.public_url.rstrip("/") or self.own_url

    @property
    def default_timezone(self) -> str:
        """Return TIMEZONE, else the machine's zone."""
        from tzlocal import get_localzone_name

        return self.timezone or get_localzone_name() or "UTC"

    @property
    def classifier_model(self) -> str:
        return self.classifier_model_setting or self.llm_model

    @property
    def transcription_url(self) -> str:
        """Return the endpoint that transcribes: its own, else the model's."""
        return self.transcription_base_url or self.openai_base_url or OPENAI_URL

    @property
    def transcription_key(self) -> str:
        """Return the key of that endpoint; the model's key goes only to the model's endpoint."""
        own = self.transcription_api_key.get_secret_value()
        return own if own or self.transcription_base_url else self.openai_api_key.get_secret_value()

    def by_endpoint(self) -> list["Settings"]:
        """Return the settings with each endpoint of `MODELS` as the only model, or as they are without it."""
        changed = [
            {
                "openai_base_url": endpoint.base_url,
                "openai_api_key": endpoint.api_key,
                "llm_model": endpoint.model,
                "classifier_model_setting": "" if number else self.classifier_model_setting,
                "vision": {None: self.vision, True: "on", False: "off"}[endpoint.vision],
                "models": [endpoint],
            }
            for number, endpoint in enumerate(self.models)
        ]
        return [self.model_copy(update=one) for one in changed] or [self]

    def cost(self, model: str, prompt: int, completion: int) -> float | None:
        """Return what so many tokens of a model cost, None where its price is not known."""
        prices = [one.price for one in self.models if one.model == model and one.price is not None]
        return prices[-1].of(prompt, completion) if prices else None

    @property
    def has_model(self) -> bool:
        """Return True if a real model is configured: a base URL or a key, and the model's name."""
        return bool(self.llm_model and (self.openai_base_url or self.openai_api_key.get_secret_value()))


def _transcription_model() -> str:
    """Return the default, but "" where the variable is set to nothing, which otherwise counts as not set."""
    written = dotenv_values(".env", encoding="utf-8").get("TRANSCRIPTION_MODEL")
    return "" if os.environ.get("TRANSCRIPTION_MODEL", written) == "" else "whisper-1"


VARIABLES = {(field.alias or name).upper(): name for name, field in Settings.model_fields.items()}
"""The name of the field that each environment variable of ours sets."""

SECRET_VARIABLES = tuple(
    variable
    for variable, name in VARIABLES.items()
    if Settings.model_fields[name].annotation is SecretStr
    or name in ("models", "outbound_webhooks", "database_url")
)


def is_own(variable: str) -> bool:
    """Return True for a variable of Recado's own settings, which no skill is ever given."""
    return variable.upper() in VARIABLES


def skill_environment() -> dict[str, str]:
    """Return the variables that skills may ask for, from the process and `.env`, without our own."""
    written = dotenv_values(".env", encoding="utf-8")
    return {name: value for name, value in {**written, **os.environ}.items() if value and not is_own(name)}


OWN_FILE = "settings.env"  # in DATA_DIR: what the console keeps; the environment and `.env` come first


def own_settings(data_dir: Path) -> dict[str, str]:
    """Return the settings that the console keeps, by variable."""
    return {name: value for name, value in dotenv_values(data_dir / OWN_FILE).items() if value}


def take_settings() -> Settings:
    """Read the settings and remove every secret from the environment, so that no child inherits one."""
    settings = Settings()
    own = settings.data_dir / OWN_FILE
    if own.is_file():
        settings = Settings(_env_file=(own, ".env"))
    for name in list(os.environ):
        if name.upper() in SECRET_VARIABLES:
            del os.environ[name]
    return settings
