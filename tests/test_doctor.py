import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.doctor import Finding, examine, line
from app.messages import Sender
from app.settings import Settings
from app.store import alerts, people
from app.store.database import Database
from app.store.ownership import Doors

SECRET = "EAAG-secret-token-of-the-operator"
CREDENTIALS = {
    "whatsapp_access_token": SECRET,
    "whatsapp_phone_number_id": "106540352242922",
    "whatsapp_verify_token": "a word of mine",
    "whatsapp_app_secret": "app-secret-of-the-operator",
}
NUMBER = {"id": "106540352242922", "display_phone_number": "+52 55 1234 5678", "verified_name": "Recado"}

Answer = tuple[int, Any]


class Server:
    """A real HTTP server that answers each path as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | Callable[[dict[str, Any]], Answer]] = {}
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        house = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: dict[str, Any]) -> None:
                path = self.path.split("?")[0]
                house.asked.append((path, body, self.headers.get("Authorization", "")))
                found = house.answers.get(path, (404, "404 page not found"))
                status, answer = found(body) if callable(found) else found
                content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings of a house of its own, which the shell's variables do not reach."""
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.alias), raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)

    def make(**changes: Any) -> Settings:
        usual = {"database_url": f"sqlite:///{tmp_path}/data/recado.db", "port": 1}
        return Settings(**{**usual, **changes})

    return make


def found(settings: Settings, part: str) -> list[Finding]:
    findings = list(examine(settings))
    assert not any(SECRET in line(finding) for finding in findings)
    assert all(line(finding).isprintable() for finding in findings)
    return [finding for finding in findings if finding.part == part]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "small", "choices": [{"message": {"role": "assistant", **message}}]}


CALL = answer(
    {"tool_calls": [{"id": "1", "function": {"name": "add_numbers", "arguments": '{"first": 20}'}}]}
)


def test_an_empty_folder_is_sound_and_stays_empty(settings: Callable[..., Settings], tmp_path: Path) -> None:
    findings = list(examine(settings()))
    assert [finding for finding in findings if finding.level == "FAIL"] == []
    assert {"configuration", "time zone", "data folder", "database", "server", "model", "WhatsApp"} <= {
        finding.part for finding in findings
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "changes", "level", "fact", "cure"),
    [
        ({"/v1/chat/completions": (200, CALL)}, {}, "OK", "calls tools", ""),
        ({}, {"base": ""}, "FAIL", "404", "most need"),
        ({"/": (200, "<html>")}, {"base": "/"}, "FAIL", "", "/v1"),
        (
            {"/v1/chat/completions": (404, {"error": {"message": 'model "small" not found'}})},
            {},
            "FAIL",
            "not found",
            "ollama pull small",
        ),
        (
            {"/v1/chat/completions": (401, {"error": {"message": f"bad key {SECRET}"}})},
            {},
            "FAIL",
            "bad key ***",
            "OPENAI_API_KEY",
        ),
        (
            {"/v1/chat/completions": (200, answer({"content": "It is 42."}))},
            {},
            "WARN",
            "did not call",
            "choose a model",
        ),
        (
            {"/v1/chat/completions": (200, answer({"content": '{"name": "add_numbers", "arguments": {}}'}))},
            {},
            "WARN",
            "as text",
            "choose a model",
        ),
        (
            {
                "/v1/chat/completions": lambda body: (
                    (400, {"error": {"message": "small does not support tools"}})
                    if "tools" in body
                    else (200, answer({"content": '{"name": "add_numbers", "arguments": {}}'}))
                )
            },
            {},
            "WARN",
            "refuses tools",
            "choose a model",
        ),
        ({"/v1/chat/completions": (429, {"error": {"message": "quota"}})}, {}, "FAIL", "429", "quota"),
    ],
)
def test_a_model_that_does_not_do_gets_its_cure(
    answers: dict[str, Answer],
    changes: dict[str, str],
    level: str,
    fact: str,
    cure: str,
    server: Server,
    settings: Callable[..., Settings],
) -> None:
    server.answers = answers
    chosen = settings(
        openai_base_url=server.url + changes.get("base", "/v1"), openai_api_key=SECRET, llm_model="small"
    )
    (finding,) = found(chosen, "model")
    assert finding.level == level
    assert fact in finding.fact
    assert cure.replace("most need", "most servers need …/v1") in finding.cure


@pytest.mark.parametrize(
    ("changes", "level", "cure"),
    [
        ({"openai_api_key": "sk-something"}, "WARN", "set LLM_MODEL"),
        ({"llm_model": "small"}, "WARN", "set OPENAI_BASE_URL"),
        ({"openai_base_url": "localhost:11434/v1", "llm_model": "small"}, "FAIL", "http://"),
        (
            {"openai_base_url": "http://127.0.0.1:1/v1", "llm_model": "small"},
            "FAIL",
            "start the model's server",
        ),
    ],
)
def test_a_model_that_is_half_configured_gets_its_cure(
    changes: dict[str, str], level: str, cure: str, settings: Callable[..., Settings]
) -> None:
    (finding,) = found(settings(**changes), "model")
    assert finding.level == level
    assert cure in finding.cure


def test_a_small_context_window_and_a_missing_classifier_are_named(
    server: Server, settings: Callable[..., Settings]
) -> None:
    def complete(body: dict[str, Any]) -> Answer:
        if body["model"] == "tiny":
            return 404, {"error": {"message": 'model "tiny" not found, try pulling it first'}}
        return 200, CALL

    server.answers = {
        "/v1/chat/completions": complete,
        "/api/ps": (200, {"models": [{"name": "small:latest", "context_length": 4096}]}),
    }
    chosen = settings(openai_base_url=f"{server.url}/v1", llm_model="small", CLASSIFIER_MODEL="tiny")
    assert [finding.level for finding in found(chosen, "model")] == ["OK", "WARN"]
    assert "OLLAMA_CONTEXT_LENGTH" in found(chosen, "model")[1].cure
    (classifier,) = found(chosen, "classifier")
    assert classifier.level == "WARN"
    assert "ollama pull tiny" in classifier.cure


@pytest.mark.parametrize(
    ("reply", "level", "cure"),
    [
        ((200, NUMBER), "OK", ""),
        ((401, {"error": {"code": 190, "message": "Session has expired"}}), "FAIL", "System users"),
        ((400, {"error": {"code": 100, "message": "Unsupported get request"}}), "FAIL", "API Setup"),
        ((404, "nothing here"), "FAIL", "API Setup"),
        (
            (403, {"error": {"code": 200, "message": "Permissions error"}}),
            "FAIL",
            "whatsapp_business_messaging",
        ),
        ((500, {"error": {"code": 1, "message": "unknown"}}), "WARN", "try again"),
        ((200, "<html>"), "FAIL", "WHATSAPP_API_URL"),
    ],
)
def test_what_meta_says_about_our_number_gets_its_cure(
    reply: Answer, level: str, cure: str, server: Server, settings: Callable[..., Settings]
) -> None:
    server.answers = {"/v25.0/106540352242922": reply}
    (finding,) = found(settings(**CREDENTIALS, WHATSAPP_API_URL=f"{server.url}/v25.0"), "WhatsApp")
    assert finding.level == level
    assert cure in finding.cure
    assert server.asked[0][2] == f"Bearer {SECRET}"


def test_a_missing_credential_is_named_with_where_to_find_it(settings: Callable[..., Settings]) -> None:
    partly = {name: value for name, value in CREDENTIALS.items() if "secret" not in name}
    (finding,) = found(settings(**partly), "WhatsApp")
    assert finding.level == "FAIL"
    assert "WHATSAPP_APP_SECRET" in finding.fact
    assert "App settings > Basic" in finding.cure


def test_without_a_network_whatsapp_is_a_warning(settings: Callable[..., Settings]) -> None:
    (finding,) = found(settings(**CREDENTIALS, WHATSAPP_API_URL="http://127.0.0.1:1/v25.0"), "WhatsApp")
    assert finding.level == "WARN"


async def test_those_turned_away_are_named_whole_with_the_command(
    settings: Callable[..., Settings], server: Server
) -> None:
    server.answers = {"/106540352242922": (200, NUMBER)}
    chosen = settings(**CREDENTIALS, WHATSAPP_API_URL=server.url)
    database = Database(chosen.database_path)
    await database.open()
    doors, now = Doors("whatsapp"), time.time()
    for phone in ("5215512345678", "5491155550000"):
        ana = Sender(phone=phone, name="Ana\u202e")
        await database.tx(lambda conn, ana=ana: people.admit(conn, doors, ana, "hola", "es", now))  # type: ignore[misc]
    await database.tx(lambda conn: people.block(conn, "whatsapp", "+54 9 11 5555 0000", now))
    await database.tx(lambda conn: alerts.raise_alert(conn, "send:190", "the token expired", now))

    nobody, turned_away = _sync(found, chosen, "people")
    assert "nobody may talk" in nobody.fact
    assert "recado people owner" in nobody.cure
    assert "5215512345678 (Ana" in turned_away.fact
    assert turned_away.cure.endswith("recado people allow 5215512345678")
    assert [finding.fact for finding in _sync(found, chosen, "alert")] == ["the token expired"]

    await database.tx(lambda conn: people.make_owner(conn, "whatsapp", "5215512345678", now))
    (owned,) = _sync(found, chosen, "people")
    assert owned.level == "OK"
    await database.close()


def _sync(look: Callable[[Settings, str], list[Finding]], settings: Settings, part: str) -> list[Finding]:
    """The doctor runs a loop of its own, so it is asked from another thread."""
    results: list[list[Finding]] = []
    thread = threading.Thread(target=lambda: results.append(look(settings, part)))
    thread.start()
    thread.join(30)
    return results[0]


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        (b"this is no database, but a text of some length that pretends to be one" * 20, "restore a copy"),
        ("CREATE TABLE orders (id INTEGER)", "DATABASE_URL"),
        (
            "CREATE TABLE schema_version (version INTEGER, name TEXT, applied_at REAL);"
            "INSERT INTO schema_version VALUES (999, 'later', 0)",
            "start the newer version",
        ),
    ],
)
def test_a_database_that_is_not_ours_gets_its_cure(
    content: bytes | str, cure: str, settings: Callable[..., Settings], tmp_path: Path
) -> None:
    path = tmp_path / "data" / "recado.db"
    path.parent.mkdir()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        connection = sqlite3.connect(path)
        connection.executescript(content)
        connection.close()
    (finding,) = found(settings(), "database")
    assert finding.level == "FAIL"
    assert cure in finding.cure
    assert not (tmp_path / "data" / "recado.db.lock").exists()


def test_a_data_folder_that_cannot_be_made_gets_its_cure(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    chosen = settings(database_url=f"sqlite:///{tmp_path}/file/recado.db")
    (finding,) = found(chosen, "data folder")
    assert finding.level == "FAIL"
    assert "DATA_DIR" in finding.cure


def test_faulty_skills_misspelt_variables_and_mcp_servers_are_named(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    (tmp_path / "mine" / "broken").mkdir(parents=True)
    (tmp_path / "mine" / "broken" / "SKILL.md").write_text("no frontmatter at all")
    (tmp_path / "servers.json").write_text("{}")
    (tmp_path / ".env").write_text("OPENAI_BASEURL=http://x\nWEATHER_KEY=1\n")
    chosen = settings(skills_dir=tmp_path / "mine", mcp_config_path=tmp_path / "servers.json")

    (fault,) = [finding for finding in found(chosen, "skills") if finding.level == "FAIL"]
    assert "broken" in fault.fact
    assert "recado skills check" in fault.cure
    (misspelt,) = [finding for finding in found(chosen, "configuration") if finding.level == "WARN"]
    assert "OPENAI_BASE_URL" in misspelt.cure
    (servers,) = found(chosen, "MCP servers")
    assert "not available in this version" in servers.fact


def test_what_the_operator_has_mistyped_is_named(
    settings: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://x")
    (tmp_path / ".env").write_text(f"OPENAI_URL=http://x\nno line {SECRET}\nOWNER_PHONE_NUMBERS=12\n")
    chosen = settings(skills_dir=tmp_path / "nowhere", simulator="off")
    told = {line(finding) for finding in examine(chosen) if finding.level != "OK"}
    for level, part, fact, cure in (
        ("WARN", "configuration", "line 2 of .env cannot be read", "NAME=value"),
        ("WARN", "configuration", "OPENAI_URL is set, which nothing reads", "OPENAI_BASE_URL?"),
        ("WARN", "configuration", "OPENAI_API_BASE is set", "OPENAI_BASE_URL?"),
        ("WARN", "WhatsApp", "nobody can write", "SIMULATOR"),
        ("FAIL", "people", "OWNER_PHONE_NUMBERS has 12", "+52 55"),
        ("FAIL", "skills", "nowhere is no folder", "SKILLS_DIR"),
    ):
        assert any(one.startswith(f"{level:<5}{part}:") and fact in one and cure in one for one in told), fact


def test_a_port_that_something_else_has_is_a_warning(
    settings: Callable[..., Settings], server: Server
) -> None:
    (finding,) = found(settings(port=int(server.url.rpartition(":")[2])), "server")
    assert finding.level == "WARN"
    assert "PORT" in finding.cure
