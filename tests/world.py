"""A whole world for a test: our server as a process, Meta's stand-in as another, their logs, their deaths."""

import asyncio
import hashlib
import hmac
import json
import os
import random
import re
import signal
import socket
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import orjson

from app.store.database import Location, engine_of
from tests.databases import database_at
from tests.forks import SERVE, ForkedServer, run_recado
from tests.standins.graph import control_app, graph_of
from tests.standins.listener import Listener
from tests.standins.model import ModelServer, Play, echo

ROOT = Path(__file__).resolve().parents[1]
SECRET = "app-secret-of-the-test"
TOKEN = "access-token-of-the-test"
DISCLOSED = "(automatic)"
NUMBER = "106540352242922"
VERIFY = "verify-token-of-the-test"
DEADLINE = 30.0

_reservations: deque[socket.socket] = deque(maxlen=100)


def free_port() -> int:
    """A port for one server of this test process.

    It lies below those that the system gives to whoever asks for any. The same port of UDP, which no
    server uses, stays bound until a hundred ports later: until then no other test process takes it.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            reservation.bind(("127.0.0.1", port))
            _reservations.append(reservation)
            return port
        reservation.close()


def wait_for(what: Callable[[], Any], reason: str, seconds: float = DEADLINE) -> Any:
    """The first true value of `what()`. Fails the test after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"waited {seconds:g} s in vain for {reason}")
        time.sleep(0.02)


async def until(what: Callable[[], Any], reason: str, seconds: float = DEADLINE) -> Any:
    """The same for what happens on this loop."""
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:g} s in vain for {reason}")
        await asyncio.sleep(0.01)
    return found


class Server:
    """`recado serve` in a data folder of its own."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=DEADLINE, trust_env=False, verify=False)
        self.env = {
            "PATH": os.environ["PATH"],
            "PORT": str(self.port),
            "DATABASE_URL": f"sqlite:///{folder}/recado.db",
            "SKILLS_DIR": str(ROOT / "skills"),
            "TIMEZONE": "UTC",
            "BURST_QUIET_SECONDS": "0",
            "RATE_LIMIT_MAX": "0",
            "DISCLOSURE": DISCLOSED,
            "PYTHONPATH": str(ROOT),
            **env,
        }
        self.process: ForkedServer | None = None
        self.simulator = ""  # the link that opens it

    def start(self, wait: bool = True, launcher: tuple[str, ...] = SERVE) -> "Server":
        printed = len(self.log)
        self.process = ForkedServer(self.folder, self.env, self.folder / "server.log", launcher)
        if wait:
            wait_for(self.healthy, f"the server; its log:\n{self.log[-3000:]}")
            if "WHATSAPP_ACCESS_TOKEN" not in self.env and self.env.get("SIMULATOR") != "off":
                self._open_simulator(printed)
        return self

    def _open_simulator(self, printed: int) -> None:
        """Opens the link that the start printed after so much of the log."""
        link = re.compile(r"\S+/simulator\?key=\S+")
        self.simulator = str(wait_for(lambda: link.search(self.log, printed), "the simulator's link")[0])
        assert self.http.get(self.simulator).status_code == 303

    def healthy(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log[-3000:]}")
        with socket.socket() as probe:  # as long as nothing listens, a client of HTTP would only cost time
            if probe.connect_ex(("127.0.0.1", self.port)):
                return False
        try:
            return self.http.get("/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """SIGTERM; gives the exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)

    def restart(self, **env: str) -> None:
        """Stop it, change its environment, and start it again."""
        assert self.stop() == 0
        self.env |= env
        self.start()

    @property
    def log(self) -> str:
        path = self.folder / "server.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def rows(self, sql: str, *parameters: object) -> list[Any]:
        """A question to the database, beside the server."""
        if isinstance(self.database, str):
            from app.store import postgres

            with closing(postgres.Session(self.database)) as database:
                return database.execute(sql, parameters).fetchall()
        with closing(sqlite3.connect(f"file:{self.folder}/recado.db?mode=ro", uri=True, timeout=10)) as file:
            file.row_factory = sqlite3.Row
            return file.execute(sql, parameters).fetchall()

    def change(self, *statements: str) -> None:
        """Change rows of the database while the server is stopped."""
        with closing(engine_of(self.database).connect()) as database:
            for sql in statements:
                database.execute(sql)

    @property
    def database(self) -> Location:
        address = self.env["DATABASE_URL"]
        return address if address.startswith("postgresql:") else self.folder / "recado.db"

    def recado(self, *arguments: str, fails: bool = False) -> str:
        """What a command of the shell prints, on its error output where it is to fail."""
        ran = run_recado(arguments, self.folder, self.env)
        assert (ran.returncode != 0) == fails, ran.stderr
        return ran.stderr if fails else ran.stdout

    def admin(self, path: str, /, **body: Any) -> Any:
        """What the administrator's API answers, as commands ask it of a running server."""
        record = self.folder / "server.json"
        wait_for(record.exists, "the server to say where it is")
        token = json.loads(record.read_text())["token"]
        answer = self.http.post(f"/admin/{path}", json=body, headers={"Authorization": f"Bearer {token}"})
        return answer.raise_for_status().json()["result"]

    def post(self, body: bytes | dict[str, Any], signature: str | None = None) -> httpx.Response:
        """A webhook, signed unless a signature is given."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        header = signature if signature is not None else sign(raw)
        return self.http.post("/webhook", content=raw, headers={"X-Hub-Signature-256": header})


def open_work(server: Server) -> bool:
    """Whether anything waits: a message, a turn, a send."""
    return bool(
        server.rows(
            "SELECT 1 FROM inbox WHERE done_at IS NULL UNION SELECT 1 FROM turns WHERE state <> 'done'"
            " UNION SELECT 1 FROM outbox WHERE state IN ('ready', 'sending', 'unknown', 'held')"
            " AND due_at IS NOT NULL"
        )
    )


class Graph:
    """The stand-in Graph API, in a thread of this process."""

    def __init__(self, folder: Path, server: Server, **config: Any) -> None:
        self.folder = folder
        self._server = server
        credentials = {"access_token": TOKEN, "phone_number_id": NUMBER, "app_secret": SECRET}
        quick = {"status_pause": 0, "retry_pause": 0.2}
        self._stand_in = graph_of({**credentials, **quick, **config}, f"{server.url}/webhook")
        self._listener = Listener(control_app(self._stand_in))
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=20, trust_env=False, verify=False)

    def stop(self) -> None:
        self._listener.stop()

    def inbound(self, *messages: dict[str, Any]) -> list[str]:
        """Lets people write; gives the wamids."""
        answer = self.http.post("/control/inbound", json={"messages": list(messages)})
        answer.raise_for_status()
        return list(answer.json()["ids"])

    def say(self, person: str, text: str, **more: Any) -> str:
        return self.inbound({"person": person, "type": "text", "text": text, **more})[0]

    def ask(self, person: str, text: str, **more: Any) -> str:
        """Says something; gives the text of our next message to the person."""
        before = len(self.sends(person))
        self.say(person, text, **more)
        return self.reply(person, before + 1)

    def faults(self, **changes: Any) -> None:
        self.http.post("/control/faults", json=changes).raise_for_status()

    @property
    def pending(self) -> int:
        """How many webhooks were not answered yet."""
        return int(self._stand_in.pending)

    def log(self) -> dict[str, Any]:
        """What `/control/log` gives, taken from its memory: tests ask for it all the time."""
        now = {"pending": self._stand_in.pending, "entries": list(self._stand_in.log)}
        return dict(orjson.loads(orjson.dumps(now)))

    def sends(self, person: str | None = None) -> list[dict[str, Any]]:
        """The messages that were accepted, in order, without the disclosure that the first one holds."""
        sent = [
            entry
            for entry in list(self._stand_in.log)
            if entry["kind"] == "send" and entry["wamid"] and person in (None, entry["person"])
        ]
        return list(orjson.loads(orjson.dumps(sent).replace(f"{DISCLOSED}\\n\\n".encode(), b"")))

    def texts(self, person: str | None = None) -> list[str]:
        return [str(entry["body"].get("text", {}).get("body", "")) for entry in self.sends(person)]

    def reply(self, person: str, count: int = 1, seconds: float = DEADLINE) -> str:
        """The text of the person's `count`-th message from us."""
        try:
            texts = wait_for(
                lambda: (texts := self.texts(person)) and len(texts) >= count and texts,
                f"reply {count} to {person}",
                seconds,
            )
        except AssertionError as late:
            log = self._server.log[-3000:]
            raise AssertionError(f"{late}; there are: {self.texts(person)}; the log:\n{log}") from None
        return str(texts[count - 1])


class Town:
    """A server with its stand-ins, and people who have not written yet."""

    def __init__(self, server: Server, graph: Graph, model: ModelServer) -> None:
        self.server, self.graph, self.model = server, graph, model
        self._newcomers = (f"p{number}" for number in count(1))  # p0 owns

    def newcomer(self) -> str:
        return next(self._newcomers)

    @staticmethod
    def phone(person: str) -> str:
        return f"1212555{int(person[1:]):04}"


def standing(folder: Path, play: Play = echo, **options: Any) -> Iterator[Town]:
    """A server for a module of tests, with a model that this plays, and its people; ends them."""
    played = ModelServer(play)
    options = {"OPENAI_BASE_URL": played.url, "LLM_MODEL": "stand-in"} | options
    for server, graph in world(folder, **options):
        server.start()
        yield Town(server, graph, played)
    played.stop()


def connected(graph_port: int) -> dict[str, str]:
    """The environment of a server that uses a stand-in Graph API as if it were Meta's."""
    return {
        "WHATSAPP_ACCESS_TOKEN": TOKEN,
        "WHATSAPP_PHONE_NUMBER_ID": NUMBER,
        "WHATSAPP_VERIFY_TOKEN": VERIFY,
        "WHATSAPP_APP_SECRET": SECRET,
        "WHATSAPP_API_URL": f"http://127.0.0.1:{graph_port}/v25.0",
    }


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def text_body(wamid: str, text: str, phone: str = "525550100001", **more: Any) -> dict[str, Any]:
    """A webhook body with one text message."""
    message = {
        "from": phone,
        "id": wamid,
        "timestamp": str(int(time.time())),
        "type": "text",
        "text": {"body": text},
        **more,
    }
    return messages_body(message, phone=phone)


def messages_body(*messages: Any, phone: str = "525550100001") -> dict[str, Any]:
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550783881", "phone_number_id": NUMBER},
        "contacts": [{"profile": {"name": "Ana"}, "wa_id": phone}],
        "messages": list(messages),
    }
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": "1", "changes": [{"value": value, "field": "messages"}]}],
    }


def world(folder: Path, *, crowd: int = 4, graph: dict[str, Any] | None = None, **env: str) -> Iterator[Any]:
    """A server connected to a stand-in with people p0, p1, …, all of them allowed; ends both."""
    phones = ",".join(f"1212555{n:04}" for n in range(crowd))
    server = Server(folder, **{"ALLOWED_PHONE_NUMBERS": phones, "OWNER_PHONE_NUMBERS": "12125550000", **env})
    stand_in = Graph(folder, server, **{"people": [], "crowd": crowd, **(graph or {})})
    server.env.update({**connected(stand_in.port), **env})
    database = database_at(folder / "recado.db")
    if isinstance(database, str):
        server.env |= {"DATABASE_URL": database, "DATA_DIR": str(folder), **env}
    try:
        yield server, stand_in
    finally:
        stand_in.stop()
        if server.process is not None and server.process.poll() is None:
            server.kill()
