"""The one place where the parts are made and tied together, and the order in which they start and stop."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from sqlite3 import Connection

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan, Receive, Scope, Send

from app.access import AdminToken, is_local
from app.channels.sender import Sender
from app.channels.terminal import TERMINAL_USER, TerminalChannel, typed
from app.channels.whatsapp.channel import WhatsAppChannel
from app.channels.whatsapp.client import GraphClient
from app.channels.whatsapp.webhook import Received, WhatsAppWebhook, log_received
from app.console.admin import Admin, admin_routes
from app.console.pages import console_routes
from app.health import Health
from app.language import say
from app.llm.model import Model
from app.messages import Channel, Outgoing
from app.observe.metrics import Metrics
from app.people import Person, Realm
from app.routing.abilities import Abilities
from app.routing.tool_search import ToolSearch
from app.settings import Settings, skill_environment
from app.simulator import Credentials, Simulator, load_credentials
from app.simulator.people import PEOPLE
from app.skills import SkillLoader, Workers
from app.skills.elsewhere import Elsewhere
from app.skills.install_service import InstallService
from app.skills.installed import is_from_elsewhere, tidy
from app.skills.installer import Installer
from app.skills.quarantine import discard_old
from app.skills.sandbox import Sandbox
from app.store import alerts, approvals, inbox, turns
from app.store.database import Database
from app.store.inbox import Entrance, Pace, Taken
from app.store.outbox import Draft
from app.store.ownership import Doors, offer_ownership
from app.store.space import MEGABYTE, Disk
from app.sweep import Sweep
from app.tools import ConfirmationPolicy, ExecutionEngine, NoTTYError, ToolRegistry
from app.transport.transport import Transport
from app.turns.arrivals import read_arrival
from app.turns.calls import ToolCalls
from app.turns.carrier import LocalCarrier
from app.turns.consent import Consent
from app.turns.endings import Endings
from app.turns.hearing import Hearing
from app.turns.installs import INSTALL_TOOL, PREVIEW_TOOL, REMOVE_TOOL, InstallQuestions, own_address
from app.turns.profile import Profiles, local_timezone
from app.turns.turn import Limits, TurnRunner

log = structlog.get_logger(__name__)

LANES_SECONDS = 4.0
SENDER_SECONDS = 1.5
WARM_SECONDS = 10.0
QUARANTINE_SECONDS = 7 * 24 * 3600.0
"""How long a skill that was looked at waits for a yes."""


class Assistant:
    """Everything but HTTP: the store, the model, the lanes, the sender.

    `wakes=False` leaves every hint out, so that only the sweep finds work: nothing may depend on a hint.
    `policy` is who may say yes to a sensitive tool, None for the person in the chat; `transport` is what
    reaches addresses from outside.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        wakes: bool = True,
        policy: ConfirmationPolicy | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.settings = settings
        self.store = Database(settings.database_path)
        self.metrics = Metrics()
        self.admin_token = AdminToken(settings.data_dir, settings.admin_token.get_secret_value())
        self.realm: Realm = "simulator" if settings.uses_simulator else "whatsapp"
        self.credentials = _credentials(settings)
        self.client = GraphClient(
            settings.whatsapp_api_url, self.credentials.phone_number_id, self.credentials.access_token
        )
        self.terminal = TerminalChannel()
        self.channels: dict[str, Channel] = {
            self.realm: WhatsAppChannel(self.client),
            "terminal": self.terminal,
        }
        registry = ToolRegistry()
        self.transport = transport or Transport()
        self.sandbox = Sandbox(settings)
        self.workers = Workers(
            launcher=self._launcher, on_aside=self._skill_aside, homes=settings.data_dir / "workers"
        )
        elsewhere = Elsewhere(settings.data_dir, self.sandbox.refusal)
        loader = SkillLoader(settings.skills_dir, workers=self.workers, elsewhere=elsewhere)
        installer = Installer(self.transport, settings.data_dir, settings.skills_dir)
        self.installs = InstallQuestions(installer, sandboxed=not self.sandbox.off)
        self.abilities = Abilities(loader, registry, skill_environment())
        self.model: Model = _model(settings, self.abilities)
        engine = ExecutionEngine(
            registry,
            policy or ConfirmationPolicy(settings.confirmation_mode, _nobody_to_ask),
            settings.dry_run,
            on_call=self.metrics.tool_called,
        )
        self.sender = Sender(self.store, self.channels, reconcile_seconds=settings.send_reconcile_seconds)
        self.runner = TurnRunner(
            self.store,
            self.model,
            self.abilities,
            ToolCalls(
                self.store,
                engine,
                self.abilities,
                services={
                    "tools": ToolSearch(self.abilities),
                    "installer": InstallService(installer, sandboxed=not self.sandbox.off),
                },
                data_quota=int(settings.data_quota_mb * MEGABYTE),
                transport=self.transport,
            ),
            Consent(
                self.store,
                self.abilities,
                engine,
                {INSTALL_TOOL: self.installs.install, REMOVE_TOOL: self.installs.remove},
                self.sender.wake if wakes else _no_hint,
                asks=policy is None and not settings.dry_run,
                guards={INSTALL_TOOL: own_address, PREVIEW_TOOL: own_address},
            ),
            Endings(self.store, self.sender.wake if wakes else _no_hint),
            self.channels,
            Profiles(self.store, self.doors, settings.timezone or local_timezone()),
            Limits(
                settings.max_tools_per_call,
                settings.max_tool_rounds,
                settings.daily_token_budget,
                settings.classifier_timeout,
            ),
            offline=not settings.has_model,
        )
        self.carrier = LocalCarrier(
            self.store,
            self.runner,
            quiet=settings.burst_quiet_seconds,
            longest=settings.burst_max_seconds,
            at_once=settings.concurrent_turns,
            ready=self.ready,
            hearing=Hearing(self.channels),
            on_notice=self.sender.wake if wakes else _no_hint,
        )
        self.sweep = Sweep(
            self.store,
            settings.sweep_seconds,
            self.channels.keys(),
            Disk(settings.data_dir, settings.free_space_mb * MEGABYTE),
            wake_conversation=self.carrier.wake,
            wake_person=self.sender.wake,
            discard=lambda now: discard_old(settings.data_dir, now - QUARANTINE_SECONDS),
        )
        self.health = Health(
            self.store,
            self.metrics,
            missing_credentials=settings.missing_credentials,
            model_failure=lambda: self.model.failure,
            running_turns=lambda: self.carrier.running,
        )
        self._wakes = wakes
        self._hash_key = b""
        self._warming: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Opens the database and takes up what was left; needs no network."""
        await self.store.open()
        self._hash_key = await self.store.tx(_hash_key)
        await self.store.tx(lambda conn: alerts.enter_realm(conn, self.realm, time.time()))
        await self.store.tx(lambda conn: alerts.mend(conn, alerts.ABOUT_SKILLS, time.time()))
        await asyncio.to_thread(self._tidy)
        await self.abilities.refresh()
        cut_off = await self.store.tx(turns.recover)
        if cut_off:
            log.warning("turns were cut off by a crash and go on", turns=cut_off)
        await self.sender.recover()
        self.sweep.start()
        self._warming = asyncio.create_task(self._warm(), name="warm clients")

    async def listening(self) -> None:
        """The port listens: the time in which statuses of a crashed run can come in begins now."""
        await self.sender.listening()
        await self._offer_ownership()

    async def stop(self) -> None:
        """Lanes, skills' workers, sender, model, then the writer; intake has stopped before."""
        if self._warming is not None:
            self._warming.cancel()
        await self.sweep.stop()
        await self.carrier.close(LANES_SECONDS)
        await self.abilities.close()
        await self.workers.close()
        await self.sender.close(SENDER_SECONDS)
        await self.model.close()
        await self.client.close()
        await self.transport.close()
        await self.store.close()

    def doors(self, realm: str) -> Doors | None:
        """Who may come in from a realm."""
        settings = self.settings
        if realm == "terminal":
            owners = frozenset({TERMINAL_USER}) if settings.uses_simulator else frozenset[str]()
            return Doors("terminal", owners=owners, open=True)
        if realm == "simulator":
            first = PEOPLE[0]
            return Doors("simulator", owners=frozenset(filter(None, (first.phone, first.user_id))), open=True)
        return Doors(
            "whatsapp",
            allowed=settings.allowed_phone_numbers,
            owners=settings.owner_phone_numbers,
            code_key=self._hash_key,
        )

    def entrance(self, realm: Realm) -> Entrance:
        """How messages of a realm come in."""
        doors = self.doors(realm)
        assert doors is not None
        return Entrance(
            channel=realm,
            doors=doors,
            pace=Pace(self.settings.rate_limit_max, self.settings.rate_limit_window),
            key=self._hash_key,
            too_fast=_too_fast,
            owner_welcome=_owner_welcome,
        )

    async def type_in(self, text: str) -> None:
        """Takes in a line from the terminal."""
        arrival = read_arrival(typed(text))
        if text.strip().casefold() == "a" and await approvals.is_asked_on(self.store, "terminal"):
            arrival = replace(arrival, kind="stop")  # of [y/n/a]: it ends the turn that asks
        entrance, now = self.entrance("terminal"), time.time()
        await self.store.tx(
            lambda conn: inbox.take_in(conn, entrance, [arrival], [], [], [], now), then=self.hint
        )

    def received(self, received: Received) -> None:
        """After a webhook's commit: figures, logs, hints."""
        taken = received.taken
        self.metrics.taken("accepted", taken.accepted)
        self.metrics.taken("duplicate", taken.duplicates)
        self.metrics.taken("turned_away", len(taken.turned_away))
        log_received(received)
        self.hint(taken)
        if self._wakes:
            for applied in received.applied:
                self.sender.wake(applied.person_id)

    def hint(self, taken: Taken) -> None:
        """Wakes what the rows say already."""
        if not self._wakes:
            return
        for conversation in taken.expect:
            self.carrier.expect(conversation)
        for conversation in taken.wake:
            self.carrier.wake(conversation)
        for person in taken.notices:
            self.sender.wake(person)

    async def _offer_ownership(self) -> None:
        """With credentials and no owner: a code for whoever is to own this, for this console only."""
        doors = self.doors("whatsapp")
        assert doors is not None
        if self.realm != "whatsapp":
            return
        now = time.time()
        code = await self.store.tx(lambda conn: offer_ownership(conn, doors, now))
        if code is not None:
            print(  # noqa: T201
                f"\nNobody owns this assistant yet. Within an hour, send it this code from your WhatsApp:\n"
                f"\n    {code}\n",
                flush=True,
            )

    async def _skill_aside(self, folder: Path, reason: str) -> None:
        """A skill's code is not run any more; without a reason: it is tried again."""
        skill = folder.parent.name if is_from_elsewhere(self.settings.data_dir, folder) else folder.name
        code, now = f"{alerts.ABOUT_SKILLS}{skill}:", time.time()
        if reason:
            text = f"the skill {skill} is {reason}"
            await self.store.tx(lambda conn: alerts.raise_alert(conn, code, text, now))
        else:
            await self.store.tx(lambda conn: alerts.mend(conn, code, now))

    def _tidy(self) -> None:
        try:
            tidy(self.settings.data_dir)
        except OSError as error:
            log.warning("earlier versions of skills could not be removed", error=str(error))

    def _launcher(self, folder: Path) -> Sequence[str]:
        """Code that came from elsewhere starts in the sandbox."""
        return self.sandbox.command(folder) if is_from_elsewhere(self.settings.data_dir, folder) else ()

    async def _warm(self) -> None:
        await self.model.warm()
        await self.client.warm()

    async def ready(self) -> None:
        """Returns once the clients are loaded; what went wrong with them shows at the first call."""
        if self._warming is not None:
            await asyncio.wait({self._warming}, timeout=WARM_SECONDS)


def create_app(settings: Settings, *, wakes: bool = True, transport: Transport | None = None) -> Starlette:
    """The web application; `app.state` holds the `assistant` that it serves and its `admin`."""
    assistant = Assistant(settings, wakes=wakes, transport=transport)
    simulator = _simulator(assistant) if settings.uses_simulator and settings.simulator != "off" else None
    admin = Admin(
        assistant.store,
        assistant.realm,
        assistant.admin_token,
        type_in=assistant.type_in,
        replies=assistant.terminal.replies,
        health=assistant.health.state,
        on_change=assistant.sweep.soon,
        card=assistant.installs.whole,
        on_answer=assistant.carrier.wake,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            await assistant.start()
            if simulator is not None:
                await simulator.start()
            yield
        finally:
            await close_streams()
            await assistant.stop()

    async def close_streams() -> None:
        """Ends what holds a connection open."""
        if simulator is not None:
            await simulator.stop()

    pages = simulator.routes() if simulator is not None else []
    webhook = _webhook(assistant)
    routes = [Route("/webhook", webhook, methods=["GET", "POST"]), *_routes(assistant)]
    app = _Application(webhook, [*routes, *admin_routes(admin), *pages], lifespan)
    app.state.assistant = assistant
    app.state.admin = admin
    app.state.close_streams = close_streams
    return app


class _Application(Starlette):
    """Posted webhooks, which are most of all requests, go past the middleware and the router."""

    def __init__(
        self, webhook: WhatsAppWebhook, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]
    ) -> None:
        super().__init__(routes=routes, lifespan=lifespan)
        self._webhook = webhook

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/webhook" and scope["method"] == "POST":
            await self._webhook(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _webhook(assistant: Assistant) -> WhatsAppWebhook:
    return WhatsAppWebhook(
        assistant.store,
        cache(lambda: assistant.entrance(assistant.realm)),  # made once the store is open
        app_secret=assistant.credentials.app_secret,
        verify_token=assistant.credentials.verify_token,
        arrival=read_arrival,
        on_received=assistant.received,
        on_answer=assistant.metrics.answered,
    )


def _routes(assistant: Assistant) -> list[BaseRoute]:
    """The other routes that are there whatever is configured."""

    async def health(request: Request) -> Response:
        state = await assistant.health.state()
        return JSONResponse(state.body(), state.http_status)

    async def metrics(request: Request) -> Response:
        if not (is_local(request) or assistant.admin_token.opens(request)):
            return PlainTextResponse("from this machine, or with the administrator's token", 401)
        await assistant.health.measure()
        assistant.metrics.keep_tools({tool.name for tool in assistant.abilities.registry.list_all()})
        return PlainTextResponse(assistant.metrics.text(), media_type="text/plain; version=0.0.4")

    return [
        Route("/health", health),
        Route("/metrics", metrics),
        *console_routes(assistant.admin_token),
    ]


def _simulator(assistant: Assistant) -> Simulator:
    settings = assistant.settings
    published = settings.simulator == "on"
    return Simulator(
        assistant.credentials,
        f"{settings.own_url}/webhook",
        settings.data_dir / "simulator.jsonl",
        lambda request: is_local(request, published=published),
    )


def _credentials(settings: Settings) -> Credentials:
    """The simulator's own, random for each data folder; Meta's as soon as one of those is set."""
    if settings.uses_simulator:
        return load_credentials(settings.data_dir)
    return Credentials(
        access_token=settings.whatsapp_access_token.get_secret_value(),
        phone_number_id=settings.whatsapp_phone_number_id,
        app_secret="" if settings.missing_credentials else settings.whatsapp_app_secret.get_secret_value(),
        verify_token=settings.whatsapp_verify_token.get_secret_value(),
    )


def _model(settings: Settings, abilities: Abilities) -> Model:
    if settings.has_model:
        from app.llm.client import ChatModel

        return ChatModel(settings)
    from app.llm.offline import OfflineModel

    return OfflineModel(lambda: abilities.index, abilities.phrases)


def _hash_key(conn: Connection) -> bytes:
    """The key of this database's hashes, made once."""
    conn.execute("INSERT INTO meta VALUES ('hash_key', ?) ON CONFLICT DO NOTHING", (os.urandom(32).hex(),))
    row = conn.execute("SELECT value FROM meta WHERE key = 'hash_key'").fetchone()
    return bytes.fromhex(row["value"])


def _too_fast(person: Person) -> Draft:
    text = say(
        person.language,
        "You write faster than I may answer. I kept your messages and answer them in a moment, in order.",
    )
    return Draft(text, (Outgoing(text),))


def _owner_welcome(person: Person) -> Draft:
    text = say(
        person.language,
        "This assistant is now yours. Write /help to see what it can do; "
        "let others in with: recado people allow PHONE",
    )
    return Draft(text, (Outgoing(text),))


async def _nobody_to_ask(name: str, args: dict[str, object]) -> bool:
    raise NoTTYError(f"{name} needs a yes, and asking for one in the chat is not available in this version")


def _no_hint(person: str) -> None:
    """Takes the place of a hint where none may be relied on."""
