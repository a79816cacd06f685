"""What servers and commands of tests are forked from has done once what each of them would do alike: imported
what their first messages need, compiled the shipped skills, read their phrases and the languages' tables."""

import asyncio
import importlib
import threading
import time
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from httpx import ASGITransport, AsyncClient

from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.main import create_app
from app.routing.snapshot import build_snapshot
from app.search.index import ToolIndex
from app.settings import Settings
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from tests.llm.catalogue import Installed, person

_NEEDED = (
    *("app.schedule.alarm", "app.tools.authoring", "apscheduler.jobstores.memory"),
    *("apscheduler.schedulers.asyncio", "babel.dates", "babel.lists", "encodings.idna"),
    *("html.parser", "httpcore2", "stringprep", "truststore", "typer._click.decorators"),
)
_SAID = {
    "es": ("recuérdame mañana a las 8 llamar a Ana", "anota comprar pan", "el viernes a las 10"),
    "pt": ("me lembre amanhã às 8 de ligar para Ana", "anote comprar pão", "na sexta às 10"),
    "en": ("remind me tomorrow at 8 to call Ana", "note buy bread", "on Friday at 10"),
}


async def _talk(model: OfflineModel, tools: list[dict[str, Any]]) -> None:
    for language, texts in _SAID.items():
        for said in texts:
            await model.complete(ModelRequest("answer", [], tools, said, person(language)))
    await model.close()


async def _serve(folder: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{folder}/recado.db", _env_file=None)  # type: ignore[call-arg]
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = ASGITransport(app)
        async with AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/health")


def _warm() -> None:
    for name in _NEEDED:
        importlib.import_module(name)
    loader = SkillLoader(RELEASE_SKILLS)
    loader.refresh()
    view = build_snapshot(loader.skills, loader.tools)
    index = ToolIndex(view.documents({}))
    phrases = {tool.name: tuple(chain(*tool.phrases.values())) for tool in loader.tools}
    asyncio.run(_talk(OfflineModel(Installed(index, phrases)), list(view.definitions.values())))
    with TemporaryDirectory() as folder:
        asyncio.run(_serve(Path(folder)))
    while threading.active_count() > 1:  # a fork has none of them, but the locks that they hold
        time.sleep(0.01)


_warm()
