"""Messages that the business begins: templates that Meta approved, and `POST /api/messages`.

The operator lists the templates in DATA_DIR/templates.yaml:

    templates:
      - name: appointment
        language: es
        variables: [name, day, time]
        text: "Hola {name}, te esperamos el {day} a las {time}."

`text` is the body as Meta approved it, the variables by name in the order of {{1}}, {{2}}, …
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import orjson
import structlog
import yaml
from fastapi import APIRouter, Depends, Header, HTTPException
from pydantic import BaseModel, Field, model_validator

from app.channels.whatsapp.formatting import split_message
from app.channels.whatsapp.payloads import objects
from app.errors import RecadoError
from app.http.limits import Guard
from app.i18n import say
from app.messages import JSON, Outgoing, Template, Wakeable
from app.people import Realm
from app.phones import country
from app.settings import Settings
from app.store import outbox, people
from app.store.database import Connection, Database, Row
from app.store.limits import REGULAR, RateTable
from app.store.outbox import Draft
from app.store.statistics import day_of
from app.text import Private
from app.tools import ToolContext, ToolResult
from app.tools.result import Refused
from app.turns.cards import Card

FILE = "templates.yaml"
LONGEST_VALUE = 900
LONGEST_TEXT = 16_000  # of a message of a system
_VARIABLE = re.compile(r"\{(\w+)\}")


log = structlog.get_logger(__name__)


class ListedTemplate(BaseModel, extra="forbid"):
    """One template of the file."""

    name: str = Field(pattern=r"^[a-z0-9_]{1,512}$")
    language: str = Field(pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")
    variables: list[str] = []
    text: str = Field(max_length=1024)

    @model_validator(mode="after")
    def _names_its_variables(self) -> "ListedTemplate":
        if set(_VARIABLE.findall(self.text)) != set(self.variables):
            raise ValueError(f"{self.name}: the text has other variables in braces than the list")
        return self

    def filled(self, values: Mapping[str, str]) -> Outgoing:
        """Return the message with these values. Raises RecadoError where one is missing or not known."""
        if set(values) != set(self.variables):
            raise RecadoError(
                f"the template {self.name} takes these values: {', '.join(self.variables) or 'none'}"
            )
        bare = {name: " ".join(str(value).split())[:LONGEST_VALUE] for name, value in values.items()}
        if empty := [name for name, value in bare.items() if not value]:
            raise RecadoError(f"the template {self.name} needs a value for {', '.join(empty)}")
        text = _VARIABLE.sub(lambda found: bare[found[1]], self.text)
        parameters = tuple(bare[name] for name in self.variables)
        return Outgoing(text, template=Template(self.name, self.language, parameters, is_filled=True))


class Templates(BaseModel, extra="forbid"):
    """The templates of a file."""

    listed: list[ListedTemplate] = Field([], alias="templates")

    def find(self, name: str, language: str = "") -> ListedTemplate:
        """Return a template, in a language if there are several. Raises RecadoError for none."""
        named = [one for one in self.listed if one.name == name]
        found = [one for one in named if one.language.split("_")[0] == language.split("_")[0]] or named[:1]
        if not found:
            known = ", ".join(sorted({one.name for one in self.listed})) or "none"
            raise RecadoError(f"there is no template {name!r}; templates.yaml has: {known}")
        return found[0]


def read_templates(data_dir: Path) -> Templates:
    """Read the file; without one there are none. Raises RecadoError for one that cannot be read."""
    file = data_dir / FILE
    try:
        written = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {}
        return Templates.model_validate(written or {})
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecadoError(f"{file} is no list of templates: {error}") from error


def differences(listed: ListedTemplate, approved: Sequence[Mapping[str, object]]) -> str:
    """Say how a template differs from Meta's list, "" if it does not.

    `approved`: `data` of GET /{business account}/message_templates.
    """
    wanted = (listed.name, listed.language)
    same = [one for one in approved if (one.get("name"), one.get("language")) == wanted]
    if not same:
        return "Meta does not know it in this language"
    if (status := str(same[0].get("status"))) != "APPROVED":
        return f"Meta says {status}"
    components = objects(same[0].get("components"))
    bodies = [str(one.get("text")) for one in components if one.get("type") == "BODY"]
    numbered = listed.text
    for number, name in enumerate(listed.variables, 1):
        numbered = numbered.replace(f"{{{name}}}", f"{{{{{number}}}}}")
    return "" if not bodies or bodies[0] == numbered else f"Meta has another text: {bodies[0]}"


class TemplateSending:
    """Lists the templates of the operator's file, shows one filled in, and sends it."""

    def __init__(
        self, settings: Settings, store: Database, realm: Realm, rates: RateTable, sender: Wakeable
    ) -> None:
        self._settings = settings
        self._store = store
        self._realm: Realm = realm
        self._rates = rates
        self._sender = sender

    def listed(self) -> Templates:
        """Return the templates. Blocks. Raises RecadoError."""
        return read_templates(self._settings.data_dir)

    async def card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        """Return the question whether to send: to whom, the words, the price. Raises Refused."""
        language, to = context.language, str(arguments.get("to", ""))
        try:
            message = await self._filled(arguments)
            people.sender_named(to)
        except RecadoError as error:
            log.info("a template cannot be sent", reason=Private(error))
            said = say(language, "That cannot be sent: look at the template, its values and the number.")
            raise Refused(ToolResult.failure("BAD_REQUEST", said)) from error
        text = say(
            language,
            "Send this to {to}?\n\n{text}\n\n{price}",
            to=to,
            text=message.text,
            price=self._price(to, language),
        )
        return Card(text, say(language, "a template for {to}", to=to))

    async def send(self, arguments: Mapping[str, JSON], context: ToolContext) -> str:
        """Queue the message and return its words. Raises RecadoError."""
        message = await self._filled(arguments)
        to = str(arguments["to"])
        source = f"api:template:{context.idempotency_key}"
        draft = Draft(message.text, (message,))
        now = time.time()
        queued = self._store.tx(
            lambda conn: outbox.put_for(conn, self._realm, to, source, draft, now), then=self._sender.wake
        )
        await queued
        return message.text

    async def _filled(self, arguments: Mapping[str, JSON]) -> Outgoing:
        templates = await asyncio.to_thread(self.listed)
        values = arguments.get("values") or {}
        if not isinstance(values, dict):
            raise RecadoError("the values of a template are given by name")
        listed = templates.find(str(arguments.get("template", "")), str(arguments.get("language") or ""))
        return listed.filled({str(name): str(value) for name, value in values.items()})

    def _price(self, to: str, language: str) -> str:
        where = country(to) if to.lstrip("+")[:1].isdigit() else to[:2]
        row = {"country": where, "category": "utility", "kind": REGULAR, "day": day_of(time.time())}
        price = self._rates.price(row)
        if price is None:
            return say(language, "What it costs is not known: Meta bills it.")
        return say(language, "It costs about {price} {currency}.", price=price, currency=self._rates.currency)


class TemplateName(BaseModel, extra="forbid"):
    """A template of templates.yaml with its values by name."""

    name: str
    language: str = ""
    variables: dict[str, str] = {}


class NewMessage(BaseModel, extra="forbid"):
    """A message to a phone number with its country code, or to a WhatsApp user id."""

    to: str
    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    template: TemplateName | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "NewMessage":
        if bool(self.text.strip()) == (self.template is not None):
            raise ValueError("give a text or a template")
        return self


class Queued(BaseModel):
    """The id of the outbox row; it comes back as `biz_opaque_callback_data` in statuses."""

    id: str


def messages_router(
    store: Database, realm: Realm, data_dir: Path, sender: Wakeable, guard: Guard
) -> APIRouter:
    """Return the route, which wants the administrator's token."""
    router = APIRouter(
        prefix="/api", tags=["messages"], dependencies=[Depends(guard.token)], route_class=guard.route_class()
    )

    @router.post("/messages", status_code=202)
    async def send_message(
        message: NewMessage, idempotency_key: Annotated[str, Header(min_length=1, max_length=255)]
    ) -> Queued:
        """Queue a message; the same key queues it once, and is refused with another message."""
        now, parts = time.time(), [Outgoing(part) for part in split_message(message.text)]
        if (named := message.template) is not None:
            parts = [read_templates(data_dir).find(named.name, named.language).filled(named.variables)]
        source = f"api:{sha256(idempotency_key.encode()).hexdigest()[:32]}"
        mark = sha256(orjson.dumps(message.model_dump())).hexdigest()[:16]

        def write(conn: Connection) -> Row:
            known = outbox.first_of(conn, source)
            if known is None:
                draft = Draft(message.text, tuple(parts))
                outbox.put_for(conn, realm, message.to, f"{source}:{mark}", draft, now)
                known = outbox.first_of(conn, source)
            assert known is not None
            if not known["source"].endswith(mark):
                raise HTTPException(409, "this Idempotency-Key came with another message before")
            return known

        row = await store.tx(write, then=lambda kept: sender.wake(kept["person_id"]))
        return Queued(id=row["id"])

    return router
