"""The service behind the skill `templates`: an owner sends an approved message, after seeing its price."""

import asyncio
import time
from collections.abc import Mapping

import structlog

from app.channels.templates import Templates, read_templates
from app.errors import RecadoError
from app.i18n import say
from app.messages import JSON, Outgoing, Wakeable
from app.people import Realm
from app.phones import country
from app.settings import Settings
from app.store import outbox, people
from app.store.billing import REGULAR, RateTable
from app.store.database import Database
from app.store.outbox import Draft
from app.store.tool_statistics import day_of
from app.text import Private
from app.tools import ToolContext, ToolResult
from app.turns.approvals import Refused
from app.turns.cards import Card

log = structlog.get_logger(__name__)


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
        message, now, to = await self._filled(arguments), time.time(), str(arguments["to"])
        draft, source = Draft(message.text, (message,)), f"api:template:{context.idempotency_key}"
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
