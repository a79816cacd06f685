"""Pictures and files that tools return: kept, sent after the reply, once, to the one person they are for."""

import base64
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.channels.terminal import TerminalChannel
from app.messages import Address, Outgoing
from app.people import TERMINAL_USER
from app.store.media import KEPT_SECONDS, MediaFolder
from tests.browser.chromium import PROGRAM, browser
from tests.chaos.machine import injected
from tests.skills.folders import write
from tests.standins import mcp_server
from tests.standins.listener import Listener
from tests.standins.model import ModelServer, caller, calls, last_user_text, results, routed
from tests.world import ROOT, TOKEN, Graph, Server, Town, open_work, wait_for, world

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n" + b"a picture"

CODES = {400: 100, 401: 190, 500: 131000, 503: 131016}
"""What Meta says beside a status."""
BROKEN_OFF = {"Content-Length": "10"}
"""Of an answer without a body: uvicorn closes the connection."""

STUDIO = '''
import struct
import zlib
from pathlib import Path

from app.tools.result import ReturnedFile, ToolResult


def real_png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\\0" + b"900" * side) * side
    return PNG + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG = b"\\x89PNG\\r\\n\\x1a\\n"
MADE = {{
    "chart": (PNG + b"a picture", "image/png", "chart.png"),
    "plan": (b"%PDF-1.7 a plan", "application/pdf", "plan.pdf"),
    "archive": (b"PK\\x03\\x04\\x00", "application/zip", "all.zip"),
    "real": (real_png(40), "image/png", "square.png"),
    "film": (bytes(17 * 1024 * 1024), "video/mp4", "film.mp4"),
}}


def draw(what: str) -> ToolResult:
    """Draws what is asked for."""
    return _made(what, "drawn")


def sketch(what: str) -> ToolResult:
    """Sketches what is asked for; twice is once."""
    return _made(what, "sketched")


def fail_to_draw(what: str) -> ToolResult:
    """Draws, and fails all the same."""
    return ToolResult(False, None, None, {{}}, _made(what, "failed").attachments)


def _made(what, mark):
    with Path({marks!r}).open("a") as file:
        file.write(f"{{mark}}\\n")
    files = [ReturnedFile(*MADE[one]) if one in MADE else _own(one) for one in what.split()]
    return ToolResult(True, {{"made": len(files)}}, None, {{}}, tuple(files))


def _own(name):
    return ReturnedFile(PNG + name.encode(), "image/png", f"{{name}}.png")
'''


@routed("studio")
def artist(body: dict[str, Any]) -> Any:
    """Calls the tool that the message names with the words after it, then says that it is done."""
    if body["messages"][-1]["role"] == "tool":
        return "here it is"
    return calls(*((line.split()[0], {"what": line.partition(" ")[2]}) for line in said(body)))


def said(body: dict[str, Any]) -> list[str]:
    tools = ("draw", "sketch", "fail_to_draw")
    return [line for line in last_user_text(body).splitlines() if line.startswith(tools)]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with a skill that returns files."""
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    front, about = 'metadata:\n  idempotent-tools: "sketch"\n', "Draws pictures and makes files."
    code = STUDIO.format(marks=str(folder / "marks.txt"))
    write(folder / "skills" / "studio", code, about=about, front=front)
    (folder / "skills" / "bundled.txt").write_text("studio\n")
    return folder


class Uploads:
    """What stands before the stand-in: counts uploads and answers them as it is told."""

    def __init__(self, graph_url: str) -> None:
        self.script: list[int | None] = []
        """Statuses for the next uploads; 0: an answer that breaks off; None: it goes through."""
        self.tried = 0
        self._to = httpx.AsyncClient(base_url=graph_url, trust_env=False, timeout=30)
        self._listener = Listener(Starlette(routes=[Route("/{path:path}", self._pass, methods=["POST"])]))
        self.url = f"http://127.0.0.1:{self._listener.port}/v25.0"

    def stop(self) -> None:
        self._listener.stop()

    async def _pass(self, request: Request) -> Response:
        body = await request.body()
        if request.url.path.endswith("/media"):
            self.tried += 1
            status = self.script.pop(0) if self.script else None
            if status == 0:
                return Response(headers=BROKEN_OFF)
            if status is not None:
                return JSONResponse({"error": {"code": CODES[status]}}, status)
        answer = await self._to.post(request.url.path, content=body, headers=_passed_on(request))
        return Response(answer.content, answer.status_code, media_type="application/json")


def _passed_on(request: Request) -> dict[str, str]:
    return {name: request.headers[name] for name in ("authorization", "content-type")}


@pytest.fixture
def studio(
    make_world: Callable[..., Any], model: Callable[..., ModelServer], release: Path
) -> Callable[..., tuple[Server, Graph]]:
    """Makes a server of that release, and the stand-in Graph API."""

    def make(**options: Any) -> tuple[Server, Graph]:
        return make_world(model=model(artist), **of(release), **options)

    return make


def of(release: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(release), "SKILLS_DIR": str(release / "skills")}


@pytest.fixture(scope="module")
def _standing(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Town, Uploads]]:
    played = ModelServer(artist)
    options = {"OPENAI_BASE_URL": played.url, "LLM_MODEL": "stand-in", **of(release)}
    for server, graph in world(tmp_path_factory.mktemp("studio"), crowd=30, **options):
        uploads = Uploads(graph.url)
        server.env["WHATSAPP_API_URL"] = uploads.url
        server.start()
        yield Town(server, graph, played), uploads
        uploads.stop()
    played.stop()


@pytest.fixture
def shop(_standing: tuple[Town, Uploads]) -> tuple[Town, Uploads]:
    """The server that stands for many tests, and what stands before its uploads."""
    town, _ = _standing
    settled(town.server, town.graph)
    town.model.requests.clear()
    return _standing


def kinds(graph: Any, person: str | None = None) -> list[str]:
    return [entry["body"]["type"] for entry in graph.sends(person)]


def arrived(graph: Any, person: str, count: int) -> list[str]:
    wait_for(lambda: len(graph.sends(person)) >= count, f"{count} messages; there are {kinds(graph, person)}")
    return kinds(graph, person)


def fetched(graph: Any, entry: dict[str, Any]) -> bytes:
    """The bytes behind a message, as a phone gets them."""
    header = {"Authorization": f"Bearer {TOKEN}"}
    block = entry["body"][entry["body"]["type"]]
    url = graph.http.get(f"/v25.0/{block['id']}", headers=header).json()["url"]
    return bytes(graph.http.get(url, headers=header).content)


def kept(server: Any, folder: str = "") -> list[Path]:
    """The files there are; a folder may go while it is looked at."""
    walked = os.walk(server.folder / "media" / folder)
    return sorted(Path(at) / name for at, _, names in walked for name in names)


def id_of(town: Town, person: str) -> str:
    [row] = town.server.rows("SELECT person_id FROM aliases WHERE value = ?", town.phone(person))
    return str(row["person_id"])


def settled(server: Any, graph: Any) -> None:
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end of all sends")


def test_pictures_and_documents_follow_the_reply_and_the_model_reads_what_becomes_of_each_file(shop):
    town, uploads = shop
    graph, person, tried = town.graph, town.newcomer(), uploads.tried
    graph.say(person, "draw chart plan archive film")
    assert arrived(graph, person, 3) == ["text", "image", "document"]
    text, picture, document = graph.sends(person)
    assert text["body"]["text"]["body"] == "here it is"
    assert picture["body"]["image"].keys() == {"id"}
    assert document["body"]["document"]["filename"] == "plan.pdf"
    assert (fetched(graph, picture), fetched(graph, document)) == (PNG, b"%PDF-1.7 a plan")
    settled(town.server, graph)
    assert uploads.tried - tried == 2
    id_ = id_of(town, person)
    file = kept(town.server, id_)[0]
    assert [oct(path.stat().st_mode & 0o777) for path in (file, file.parent)] == ["0o600", "0o700"]
    out = "SELECT kind, text FROM messages WHERE direction = 'out' AND person_id = ? ORDER BY id"
    rows = [tuple(row) for row in town.server.rows(out, id_)]
    assert rows == [("text", "here it is"), ("image", "chart.png"), ("document", "plan.pdf")]
    [told] = results(town.model.main_calls[-1])
    assert told["data"] == {"made": 4}
    sent, _, archive, film = told["meta"]["files"]
    assert sent == "sent to the person with your answer: chart.png (image/png, 1 KB)"
    assert archive.startswith("not sent to the person: all.zip: WhatsApp takes ")
    assert film.startswith("not sent to the person: film.mp4: ")
    assert "a picture" not in json.dumps(town.model.requests)
    assert len(kept(town.server, id_)) == 2


def test_more_files_than_a_person_wants_are_not_sent_and_the_same_picture_is_sent_once(shop):
    town, uploads = shop
    graph, failed, many, twice, tried = (town.graph, *(town.newcomer() for _ in range(3)), uploads.tried)
    graph.ask(failed, "fail_to_draw chart")
    settled(town.server, graph)
    assert (kinds(graph, failed), uploads.tried) == (["text"], tried)
    assert kept(town.server, id_of(town, failed)) == []
    graph.say(many, "draw " + " ".join(f"picture{n}" for n in range(12)) + "\ndraw chart")
    assert arrived(graph, many, 11) == ["text", *["image"] * 10]
    graph.say(twice, "draw chart chart\ndraw chart")
    assert arrived(graph, twice, 2) == ["text", "image"]
    settled(town.server, graph)
    assert (len(graph.sends(many)), len(graph.sends(twice))) == (11, 2)


def test_each_person_gets_their_own_files_from_a_folder_of_their_own(shop):
    town, _ = shop
    graph, people = town.graph, {b"alfa": town.newcomer(), b"bravo": town.newcomer()}
    for own, person in people.items():
        graph.say(person, f"draw {own.decode()} chart")
    for own, person in people.items():
        assert arrived(graph, person, 3) == ["text", "image", "image"]
        assert [own in fetched(graph, entry) for entry in graph.sends(person)[1:]] == [True, False]
    settled(town.server, graph)
    for own, person in people.items():
        files = kept(town.server, id_of(town, person))
        assert sorted(own in path.read_bytes() for path in files) == [False, True]
    owners = town.server.rows("SELECT DISTINCT person_id, media FROM outbox WHERE media <> ''")
    assert all(row["media"].startswith(f"{row['person_id']}/") for row in owners)


def test_an_upload_is_tried_again_and_of_a_file_that_cannot_be_sent_the_person_is_told(shop):
    town, uploads = shop
    server, graph = town.server, town.graph
    for script in ([500, 503], [0, 0]):
        person, tried = town.newcomer(), uploads.tried
        uploads.script += script
        graph.say(person, "draw chart")
        assert arrived(graph, person, 2) == ["text", "image"]
        settled(server, graph)
        assert (uploads.tried - tried, kinds(graph, person)) == (3, ["text", "image"])
    for script in ([400], [0, 0, 0, 0]):  # refused for good, never answered
        person = town.newcomer()
        uploads.script += script
        graph.say(person, "draw chart plan")
        arrived(graph, person, 3)
        settled(server, graph)
        assert sorted(kinds(graph, person)) == ["document", "text", "text"]
        assert graph.texts(person)[0] == "here it is"
        assert "I could not send you this file: chart.png" in graph.texts(person)
        failed = "SELECT 1 FROM outbox WHERE state = 'failed' AND person_id = ?"
        assert len(server.rows(failed, id_of(town, person))) == 1
    assert "chart.png" not in server.log + str([tuple(row) for row in server.rows("SELECT * FROM alerts")])


def test_a_file_that_is_gone_or_that_whatsapp_reports_as_failed_is_said_to_the_person(shop):
    town, uploads = shop
    server, graph, gone, refused = town.server, town.graph, town.newcomer(), town.newcomer()
    tried = uploads.tried
    uploads.script += [500, 500]
    graph.say(gone, "draw chart")
    wait_for(lambda: uploads.tried > tried, "the first try")
    kept(server, id_of(town, gone))[0].unlink()
    arrived(graph, gone, 2)
    settled(server, graph)
    uploads.script.clear()
    graph.faults(fail=[None, {"code": 131053, "accept": True}])
    graph.say(refused, "draw chart")
    arrived(graph, refused, 3)
    settled(server, graph)
    for person in (gone, refused):
        assert graph.texts(person)[-1] == "I could not send you this file: chart.png"


def test_who_has_used_up_their_quota_and_everybody_on_a_disk_nearly_full_gets_the_words_and_no_file(studio):
    server, graph = studio(FILES_QUOTA_MB="0.00002")
    graph.say("p0", "draw chart plan")
    assert arrived(graph, "p0", 2) == ["text", "image"]
    graph.say("p1", "draw chart")
    assert arrived(graph, "p1", 2) == ["text", "image"]
    settled(server, graph)
    assert len(graph.sends("p0")) == 2
    server.restart(FILES_QUOTA_MB="100", FREE_SPACE_MB=str(10**12))
    assert graph.ask("p2", "draw chart") == "here it is"
    settled(server, graph)
    assert (kinds(graph, "p2"), len(kept(server))) == (["text"], 2)


def test_files_go_after_two_days(studio):
    server, graph = studio(SWEEP_SECONDS="0.2")
    for person, what in [("p0", "old"), ("p1", "hers")]:
        graph.say(person, f"draw {what}")
        arrived(graph, person, 2)
    settled(server, graph)
    old, new = sorted(kept(server), key=lambda path: path.read_bytes().endswith(b"hers"))
    past = time.time() - KEPT_SECONDS - 60
    os.utime(old, (past, past))
    wait_for(lambda: kept(server) == [new], "the old file to go")


@pytest.fixture
def installed(model: Callable[..., ModelServer], release: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of that release as it is installed, with its simulator."""
    server = Server(tmp_path, OPENAI_BASE_URL=model(artist).url, LLM_MODEL="stand-in", **of(release))
    yield server.start()
    server.kill()


async def test_the_simulators_phone_shows_the_picture_with_its_name_and_the_document(installed):
    message = {"person": "ana", "type": "text", "text": "draw real plan"}
    installed.http.post("/simulator/api/send", json=message).raise_for_status()

    def received() -> list[dict[str, Any]]:
        messages = installed.http.get("/simulator/api/state").json()["messages"]
        return [one for one in messages if one["by"] == "business"]

    wait_for(lambda: len(received()) == 3, "the reply and two files")
    _, picture, document = received()
    assert (picture["type"], picture["content"]["filename"]) == ("image", "square.png")
    assert (document["type"], document["content"]["filename"]) == ("document", "plan.pdf")
    files = [
        installed.http.get(f"/simulator/api/media/{one['content']['id']}") for one in (picture, document)
    ]
    assert files[0].content.startswith(PNG[:8])
    assert files[1].content == b"%PDF-1.7 a plan"
    assert "Content-Disposition" not in files[0].headers
    assert files[1].headers["Content-Disposition"] == "attachment"
    if PROGRAM is not None:
        async with browser() as page:
            await page.open(installed.simulator, 1100, 900)
            await page.until("document.querySelector('img.picture')?.naturalWidth === 40")
            await page.until("document.querySelector('a.card')?.innerText.includes('plan.pdf') === true")
            assert ("image", "square.png") in await page.names("image")


def test_a_picture_that_an_mcp_server_returns_reaches_the_phone(make_world, model):
    player = model(caller(("mcp_art_image", {}), to="art"))
    server, graph = make_world(start=False, model=player)
    pixel = mcp_server.tool("image", "draws a pixel", annotations={"readOnlyHint": True})
    first, *rest = mcp_server.command(tools=[pixel])
    path = server.folder / "mcp_servers.json"
    path.write_text(json.dumps({"mcpServers": {"art": {"command": first, "args": rest, "trust": True}}}))
    server.env["MCP_CONFIG_PATH"] = str(path)
    server.start()
    wait_for(lambda: " ready " in server.recado("mcp", "list"), "the server's tool")
    graph.say("p0", "draw a pixel")
    wait_for(lambda: kinds(graph, "p0") == ["text", "image"], "the picture")
    assert fetched(graph, graph.sends("p0")[-1]) == base64.b64decode(mcp_server.PIXEL)
    assert "sent to the person with your answer" in player.main_calls[-1]["messages"][-1]["content"]
    assert mcp_server.PIXEL not in json.dumps(player.requests)
    settled(server, graph)


async def test_the_terminal_shows_where_a_file_lies(tmp_path):
    media = MediaFolder(tmp_path / "media")
    terminal = TerminalChannel(media)
    file = media.keep("person_1", PNG, "image/png", "chart.png")
    await terminal.send(Address(user_id=TERMINAL_USER), Outgoing(file.name, file=file), "out_1")
    (shown,) = await terminal.replies(1)
    assert shown == f"chart.png: {media.absolute(file.path)}"
    assert media.absolute(file.path).read_bytes() == PNG


RESULT = "SELECT 1 FROM journal WHERE key LIKE 'tool:0:%'"
ROW = "SELECT 1 FROM outbox WHERE media <> '' AND state = 'ready'"
WIRE = "SELECT 1 FROM outbox WHERE media <> '' AND sending_at IS NOT NULL"
SENT = "SELECT 1 FROM outbox WHERE media <> '' AND state = 'sent'"
DEATHS = {
    "drawn, result lost": (RESULT, "BEFORE"),
    "reply lost": (ROW, "BEFORE"),
    "before the upload": (WIRE, "AFTER"),
    "sent, not known": (SENT, "BEFORE"),
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_at_any_step_loses_no_picture_and_doubles_none(studio, release, name):
    server, graph = studio(SEND_RECONCILE_SECONDS="2", graph={"retry_pause": 0.2})
    server.stop()
    marks = release / "marks.txt"
    marks.write_text("")
    sound, (state, when) = dict(server.env), DEATHS[name]
    server.env = sound | injected(**{f"DIE_{when}": state})
    server.start()
    graph.say("p0", "sketch chart")
    assert server.process.wait(30) == -signal.SIGKILL
    server.env = sound
    server.start()
    assert arrived(graph, "p0", 2) == ["text", "image"]
    settled(server, graph)
    assert kinds(graph) == ["text", "image"]
    assert len(kept(server)) == 1
    assert len(marks.read_text().split()) == (2 if name == "drawn, result lost" else 1)


def test_a_death_while_a_file_is_written_leaves_half_of_none(studio):
    server, graph = studio()
    server.stop()
    sound = dict(server.env)
    server.env = sound | injected(DIE_RENAMING=r"/media/.*\.png$")
    server.start()
    graph.say("p0", "sketch chart")
    assert server.process.wait(30) == -signal.SIGKILL
    assert [path.suffix for path in kept(server)] == [".new"]
    server.env = sound
    server.start()
    assert arrived(graph, "p0", 2) == ["text", "image"]
    assert fetched(graph, graph.sends("p0")[1]) == PNG
    settled(server, graph)
    assert {path.suffix for path in kept(server)} == {".new", ".png"}  # the former goes a day later
