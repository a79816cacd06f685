"""The web application: an assistant behind the routes by which it is reached."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from app.assistant import Assistant
from app.channels.whatsapp.webhook import WebhookFirst, WhatsAppWebhook
from app.console.admin import Admin, admin_routes
from app.console.pages import console_routes
from app.console.servers import server_routes
from app.erasure import Erasure
from app.http.transport import Transport
from app.ops.health import health_routes
from app.security import is_local
from app.settings import Settings
from app.store.belongings import Erased
from app.turns.inbound import classify_inbound

if TYPE_CHECKING:
    from app.simulator import Simulator


def create_app(settings: Settings, *, wakes: bool = True, transport: Transport | None = None) -> Starlette:
    """The web application; `app.state` holds the `assistant` that it serves and its `admin`."""
    assistant = Assistant(settings, wakes=wakes, transport=transport)
    simulator = _simulator(assistant) if settings.uses_simulator and settings.simulator != "off" else None
    erasure = _erasure(assistant, simulator)
    admin = Admin(
        assistant.store,
        assistant.realm,
        assistant.admin_token,
        type_in=assistant.intake.type_in,
        replies=assistant.terminal.replies,
        health=assistant.health.state,
        erase=partial(erasure.erase, assistant.realm),
        on_change=assistant.sweep.soon,
        card=assistant.card,
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
        await assistant.tool_server.close()
        if simulator is not None:
            await simulator.stop()

    pages = simulator.routes() if simulator is not None else []
    webhook = _webhook(assistant)
    tools = assistant.abilities.registry.list_all
    routes = [
        Route("/webhook", webhook, methods=["GET", "POST"]),
        *health_routes(assistant.health, assistant.admin_token, lambda: {tool.name for tool in tools()}),
        *console_routes(assistant.admin_token),
        Route("/mcp", assistant.tool_server, methods=["GET", "POST", "DELETE"]),
        *admin_routes(admin),
        *server_routes(admin, assistant.configuration, assistant.servers),
        *pages,
    ]
    app = WebhookFirst(webhook, routes, lifespan)
    app.state.assistant = assistant
    app.state.admin = admin
    app.state.close_streams = close_streams
    return app


def _webhook(assistant: Assistant) -> WhatsAppWebhook:
    return WhatsAppWebhook(
        assistant.store,
        cache(lambda: assistant.entrances.entrance(assistant.realm)),  # made once the store is open
        app_secret=assistant.credentials.app_secret,
        verify_token=assistant.credentials.verify_token,
        arrival=classify_inbound,
        on_received=assistant.intake.received,
        on_answer=assistant.metrics.answered,
    )


def _erasure(assistant: Assistant, simulator: "Simulator | None") -> Erasure:
    async def end(erased: Erased) -> None:
        await assistant.carrier.end(erased.conversations)
        await assistant.sender.end(erased.who.id)

    def forget_phones(names: Sequence[str]) -> None:
        if simulator is not None:
            return simulator.graph.forget(names)
        from app.simulator.history import forget

        return forget(assistant.settings.data_dir, names)

    return Erasure(assistant.store, assistant.folders, end, forget_phones)


def _simulator(assistant: Assistant) -> "Simulator":
    from app.simulator import Simulator
    from app.simulator.history import TRANSCRIPT

    settings = assistant.settings
    published = settings.simulator == "on"
    return Simulator(
        assistant.credentials,
        f"{settings.own_url}/webhook",
        settings.data_dir / TRANSCRIPT,
        lambda request: is_local(request, published=published),
    )
