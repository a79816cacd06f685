"""The one place where the parts are made and tied together, and the order in which they start and stop."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import structlog

from app.channels import build_channels
from app.channels.handovers import Handovers
from app.channels.intake import Intake, Wakes
from app.channels.templates import TemplateSending
from app.http.transport import Transport
from app.installs.chat import Installs
from app.llm.audio import Speech, build_transcriber
from app.llm.model import Model
from app.mcp.server import ToolServer
from app.mcp.servers import build_mcp
from app.memory.history import History
from app.memory.knowledge import Knowledge
from app.memory.summary import Summarizer
from app.messages import JSON, Wakeable
from app.operator_calls import OperatorCalls, refuse_confirmation
from app.ops.alerts import AlertReporter
from app.ops.health import MODEL_AWAY, Health, Introspection, Metrics
from app.ops.outbound import Telemetry, WebhooksOut
from app.ops.sweep import DueWork, Sweep
from app.people import Realm
from app.processes.sandbox import Sandbox
from app.routing.tool_catalog import ToolCatalog, ToolSearch
from app.schedule.alarm import Reminders
from app.schedule.service import ScheduleService
from app.security import AdminToken
from app.settings import Settings, skill_environment
from app.skills import build_skills
from app.skills.model_tools import ScriptRunner
from app.store import audit, build_store, limits, people, turn_state, turns
from app.store.disk_space import MEGABYTE
from app.store.limits import read_rates
from app.store.personal_data import ErasedPerson
from app.tools import ConfirmationPolicy, ExecutionEngine, NoTTYError, ToolRegistry
from app.tools.documents import Documents
from app.tools.files import PAGE_IN_A_CHAT, Files
from app.tools.tool import Services
from app.turns.attachments import AttachmentReader
from app.turns.profiles import Profiles
from app.turns.replay import replay
from app.turns.scheduler import TurnScheduler
from app.turns.state import ToolContexts, TurnServices
from app.turns.turn import TurnRunner

log = structlog.get_logger(__name__)

LANES_SECONDS = 4.0
SENDER_SECONDS = 1.5


class Assistant:
    """Everything but HTTP: the store, the model, the lanes, the sender.

    `wakes=False` leaves every hint out, so that only the sweep finds work: nothing may depend on a hint.
    `transport` is what reaches addresses from outside. `must_stop` is set when the process has to exit.
    """

    def __init__(self, settings: Settings, *, wakes: bool = True, transport: Transport | None = None) -> None:
        self.settings = settings
        self.rows = store = build_store(settings)
        self.store, self.media, self.folders = store.database, store.media, store.folders
        self.history = History(self.store)
        self.message_rates = rates = read_rates(settings.data_dir)
        built = build_channels(settings, store, rates)
        self.access, self.credentials, self.whatsapp = built.access, built.credentials, built.whatsapp
        self.terminal, self.channels, self.sender = built.terminal, built.by_name, built.sender
        self.look_again = look_again = asyncio.Event()  # set, it makes the sweep look now
        self.must_stop = asyncio.Event()
        self._runs_turns = settings.role != "web"
        if settings.on_postgres:  # which every role but "all" needs
            from app.turns import jobs
        self.remote = None if self._runs_turns else jobs.HintPublisher(self.store, look_again)
        self.hints: Wakeable = self.remote or self.sender
        sender = self.hints if wakes else _NoHints()
        self.realm: Realm = self.access.realm
        rules = self.access.access_rules(self.realm)
        self.troubles = AlertReporter(self.store, settings.data_dir, rules, sender)
        self.metrics = Metrics()
        self.admin_token = AdminToken(settings.data_dir, settings.admin_token.get_secret_value())
        registry = ToolRegistry()
        self.transport = transport or Transport()
        self.sandbox = Sandbox(settings)
        self.skills, self.workers, self.switches = build_skills(settings, self.sandbox, self.troubles)
        environment = skill_environment()
        self.configuration, self.servers = build_mcp(
            settings, environment, self.skills, self.sandbox, self.troubles
        )
        self.files = Files(
            settings.workspace_dir,
            settings.allow_delete,
            quota=int(settings.files_quota_mb * MEGABYTE),
            least_free=settings.free_space_mb * MEGABYTE,
            documents=Documents(self.sandbox),
            page=PAGE_IN_A_CHAT,
            in_a_chat=True,
            closed=settings.own_places,
        )
        self.abilities = ToolCatalog(
            self.skills,
            registry,
            environment,
            servers=self.servers,
            guest_tools=settings.guest_tools,
            data_dir=settings.data_dir,
        )
        self.abilities.add_scripts(ScriptRunner(self.abilities, self.sandbox, self.files, settings.data_dir))
        # The next message finds what was installed.
        self.servers.listeners.append(self.abilities.refresh_soon)
        self.model = self._model()
        if settings.has_model:
            self.abilities.phrase_book.start(self.model, self.store)
        self.summarizer = Summarizer(self.store, self.model, settings.daily_token_budget)
        self.health = Health(self.store, settings.missing_credentials, rates)
        self.health.watch(self.model, told_as=MODEL_AWAY)
        if self.remote is not None:
            self.health.watch(self.remote)
        self.reminders = Reminders(
            self.store,
            self.channels.keys(),
            template=settings.reminder_template,
            access=self.access,
            sender=sender,
            look_again=look_again,
        )
        self.profiles = Profiles(self.access, settings.default_timezone, self.store)
        self.installs = Installs(
            settings,
            self.transport,
            self.sandbox,
            self.abilities,
            self.servers,
            self.model if settings.has_model else None,
        )
        self.handovers = Handovers(settings, self.store, self.access, sender)
        self.knowledge = Knowledge(settings.knowledge_dir, self.files.documents)
        self.contexts = self._contexts()
        services = TurnServices(
            store=self.store,
            model=self.model,
            tools=self.abilities,
            channels=self.channels,
            profiles=self.profiles,
            sender=sender,
            settings=settings,
            engine=self._engine(_nobody_to_ask),
            contexts=self.contexts,
            media=self.media,
            files=self.files,
            limits=built.limits,
            look_again=look_again,
        )
        parts = (services, TurnRunner(services), AttachmentReader(services, build_transcriber(settings)))
        self.jobs = jobs.ConversationJobs(*parts, self.must_stop) if settings.on_postgres else None
        self.carrier = self.jobs or TurnScheduler(*parts)
        dry = ExecutionEngine(self.abilities.registry, services.engine.policy, dry_run=True)
        self.replay = partial(replay, replace(services, engine=dry))
        unasked = replace(services, engine=self._engine(refuse_confirmation))
        self.tool_server = ToolServer(self.admin_token, OperatorCalls(unasked, self.access))
        pressed = replace(services, engine=self._engine(_agreed))
        self.console_calls = OperatorCalls(pressed, self.access, of_servers=True)
        hints = Wakes(self.carrier, self.hints, services.look_again) if wakes else None
        self.intake = Intake(self.store, self.access, self.metrics, hints)
        self.sweep = Sweep(
            store,
            self.channels.keys(),
            settings.sweep_seconds,
            DueWork(
                self.carrier,
                self.sender,
                self.reminders,
                self.handovers.tell,
                self.history,
                self.summarizer,
                self.installs,
            ),
            services.look_again,
        )
        self.health.watch(self.sweep)
        self.telemetry = Telemetry(self.store)
        self.webhooks_out = WebhooksOut(self.store, self.transport, settings.outbound_webhooks)

    def _engine(self, ask: Callable[[str, dict[str, JSON]], Awaitable[bool]]) -> ExecutionEngine:
        policy, told = ConfirmationPolicy(self.settings.confirmation_mode, ask), self.metrics.tool_called
        return ExecutionEngine(self.abilities.registry, policy, self.settings.dry_run, on_call=told)

    def _model(self) -> Model:
        if self.settings.has_model:
            from app.llm.client import build_model

            return build_model(self.settings, self.files, self.store, self.metrics.model_answered)
        from app.llm.offline.model import OfflineModel

        return OfflineModel(self.abilities)

    def _contexts(self) -> ToolContexts:
        return ToolContexts(
            self.store,
            self.abilities,
            Services(
                search=ToolSearch(self.abilities),
                installer=self.installs.skills,
                servers=self.installs.servers,
                history=self.history,
                knowledge=self.knowledge,
                admin=Introspection(self.settings, self.abilities, self.health),
                files=self.files,
                handover=self.handovers,
                schedule=ScheduleService(self.store, self.reminders),
                templates=TemplateSending(
                    self.settings, self.store, self.realm, self.message_rates, self.hints
                ),
                speech=Speech(self.settings),
                zones=self.profiles,
            ),
            self.transport,
            int(self.settings.data_quota_mb * MEGABYTE),
        )

    async def start(self) -> None:
        """Open the database and go on with unfinished work; needs no network."""
        await self.store.open()
        log.info("head of the audit, for recado audit verify --head", head=await self.store.read(audit.head))
        if self.jobs is not None and self._runs_turns:
            await self.jobs.register(alone=self.settings.role == "all")
        await self.access.open()
        try:
            await asyncio.to_thread(self.admin_token.value)
        except (OSError, ValueError) as error:
            log.error("the administrator's token cannot be kept in its file", error=str(error))
        if self.settings.role != "worker":
            await self.troubles.forget()
        if self.store.engine.is_first:  # no other process works on this database
            await asyncio.to_thread(self.installs.tidy)
            await self.store.tx(lambda conn: turn_state.recover_summaries(conn, time.time()))
            if self.settings.role == "all" and (cut_off := await self.store.tx(turns.recover)):
                log.warning("turns were cut off by a crash and go on", turns=cut_off)
        await self.abilities.refresh()
        if self.remote is not None:
            self.remote.start()
        if not self._runs_turns:
            return
        await self.store.tx(limits.release)
        await self.sender.recover()
        if self.jobs is not None:
            await self.jobs.start()
        await self.reminders.start()
        self.sweep.start()
        await self.webhooks_out.start()
        self.telemetry.start()

    async def listening(self) -> None:
        """Note that the port listens: statuses of a crashed run can come in from now on."""
        await self.sender.listening()
        await self.access.offer_ownership()

    async def stop(self) -> None:
        """Stop lanes, sender, their services, then the writer; the intake has stopped before."""
        await self.sweep.stop()
        await self.webhooks_out.stop()
        await self.telemetry.stop()
        await self.reminders.stop()
        await self.summarizer.stop()
        if self.remote is not None:
            await self.remote.stop()
        await self.carrier.close(LANES_SECONDS)
        await self.sender.close(SENDER_SECONDS)
        if self.jobs is not None:
            await self.jobs.unregister()
        await self.abilities.close()
        await self.installs.servers.directory.close()
        await self.servers.stop()
        await self.workers.close()
        await self.model.close()
        await self.whatsapp.close()
        await self.transport.close()
        await self.store.close()

    async def change_access(self, action: Literal["allow", "block", "owner"], who: str) -> str:
        """Let somebody in, shut them out or make them an owner; return who it is. Raises RecadoError."""
        change = {"allow": people.allow, "block": people.block, "owner": people.make_owner}[action]
        return await self.store.tx(
            lambda conn: change(conn, self.realm, who, time.time()), then=lambda _: self.look_again.set()
        )

    async def end(self, erased: ErasedPerson) -> None:
        """End what runs for an erased person."""
        await self.carrier.end(erased.conversations)
        await self.sender.end(erased.who.id)


async def _agreed(name: str, args: dict[str, object]) -> bool:
    """Say yes to a call: in the console, a person read its form and pressed its button."""
    return True


async def _nobody_to_ask(name: str, args: dict[str, object]) -> bool:
    """Refuse a call for which no question could be made when its round was looked at."""
    raise NoTTYError(f"{name} needs a yes, and what it would do could not be shown to anybody: call it again")


class _NoHints:
    """Takes the place of the sender where no hint may be relied on."""

    def wake(self, person: str) -> None: ...
