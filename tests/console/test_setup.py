"""Setting the assistant up with the console alone, and signing in with a link from the chat."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from starlette.responses import Response

from tests.console.test_pages import Browser
from tests.forks import run_recado
from tests.standins.model import ModelServer, calls, echo
from tests.test_cli import House, Terminal
from tests.world import NUMBER, SECRET, TOKEN, Graph, Server, wait_for

HERE = "/console/setup"


def again(server: Server, words: str) -> None:
    """Wait until the server started anew and its page of the set-up says so."""

    def said() -> bool:
        try:
            return words in server.http.get(HERE).text
        except Exception:  # it is just starting
            return False

    wait_for(said, words)


@pytest.mark.slow
@pytest.mark.both
def test_a_model_and_whatsapp_are_connected_without_a_terminal(tmp_path: Path) -> None:
    server, model = Server(tmp_path), ModelServer(echo)
    graph = Graph(tmp_path, server, people=[], crowd=2)
    try:
        server.start()
        browser = Browser(server)
        page = browser.page(HERE)
        assert page.count("not yet") == 5
        fields = {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in", "OPENAI_API_KEY": "sk-of-the-test"}
        assert "starts anew" in browser.post(HERE, f"{HERE}/save", **fields)
        again(server, 'A model is connected <span class="quiet">done')
        assert "sk-of-the-test" not in browser.page(HERE)
        moved = {"csrf": browser.csrf(HERE), "OPENAI_BASE_URL": "https://elsewhere.example/v1"}
        refused = browser.http.post(f"{HERE}/save", data=moved)  # the kept key would be sent there
        assert refused.status_code == 400
        assert "OPENAI_API_KEY" in refused.text
        assert (tmp_path / "settings.env").stat().st_mode & 0o777 == 0o600
        token = browser.found(HERE, r'name="WHATSAPP_VERIFY_TOKEN" value="([\w-]+)"')
        fields = {
            "WHATSAPP_ACCESS_TOKEN": TOKEN,
            "WHATSAPP_PHONE_NUMBER_ID": NUMBER,
            "WHATSAPP_APP_SECRET": SECRET,
            "WHATSAPP_VERIFY_TOKEN": token,
            "WHATSAPP_API_URL": f"http://127.0.0.1:{graph.port}/v25.0",
            "ACCESS": "everyone",
        }
        browser.post(HERE, f"{HERE}/save", **fields)
        again(server, 'four values are here <span class="quiet">done')
        asked = {"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "7"}
        assert server.http.get("/webhook", params=asked).text == "7"
        code = re.search(r"<code>(\w{4}-\w{4}-\w{4})</code>", browser.post(HERE, f"{HERE}/owner"))
        assert code is not None
        graph.ask("p0", code[1])
        wait_for(lambda: browser.page(HERE).count("not yet") == 0, "every step to be done")
        assert "are you there?" in graph.ask("p1", "are you there?")
        server.stop()
        server.start(wait=False)
        wait_for(server.healthy, "the server")
        assert browser.page(HERE).count("not yet") == 0
    finally:
        graph.stop()
        model.stop()
        server.kill()


@pytest.mark.slow
def test_the_same_steps_are_taken_in_a_terminal(tmp_path: Path) -> None:
    server, model = Server(tmp_path), ModelServer(echo)
    graph = Graph(tmp_path, server, people=[], crowd=1)
    server.env["WHATSAPP_API_URL"] = f"http://127.0.0.1:{graph.port}/v25.0"
    try:
        server.start()
        with Terminal(House(tmp_path, server.env), "setup") as terminal:
            terminal.type("y\n", "at which the internet reaches this server")
            terminal.type("recado.example\n", "http://host or https://host")
            terminal.type("https://recado.example\n", "Id of the phone number")
            for value, asked in (
                (NUMBER, "Access token: "),
                (TOKEN, "App secret: "),
                (SECRET, "Verify token  "),
            ):
                terminal.type(f"{value}\n", asked)
            terminal.expect("Press Enter")
            assert "https://recado.example/webhook" in terminal.seen
            token = re.search(r"Verify token  (\S+)", terminal.seen)
            assert token is not None
            handshake = {"hub.mode": "subscribe", "hub.verify_token": token[1], "hub.challenge": "7"}
            assert server.http.get("/webhook", params=handshake).text == "7"
            terminal.type("\n", "Connect a model?")
            terminal.type("y\n", "Address of the model's server")
            for value, asked in (
                (model.url, "Name of the model"),
                ("tiny", "wants one: "),
                ("", "tiny answers"),
            ):
                terminal.type(f"{value}\n", asked)
            terminal.expect("who may write?")
            terminal.type("y\n", "Who may write")
            code = re.search(r"\w{4}-\w{4}-\w{4}", terminal.seen)
            assert code is not None
            graph.ask("p0", code[0])
            for value, asked in (("code", "Time zone"), ("", "Save a backup?"), ("y", "Saved")):
                terminal.type(f"{value}\n", asked)
            assert terminal.status() == 0
        for done in ("Meta's handshake arrived", "The first message arrived", "Owners: "):
            assert f"[x] {done}" in terminal.seen
        assert TOKEN not in terminal.seen
        assert SECRET not in terminal.seen
        [backup] = tmp_path.glob("backup-*.zip")
        assert backup.stat().st_mode & 0o777 == 0o600
        assert "recado.db" in ZipFile(backup).namelist()
        graph.say("p0", "are you there?")
        assert "are you there?" in graph.reply("p0", 2)
    finally:
        graph.stop()
        model.stop()
        server.kill()


def test_the_steps_in_a_terminal_are_said_in_its_language(tmp_path: Path) -> None:
    env = Server(tmp_path, LANG="es_MX.UTF-8").env
    said = run_recado(["setup"], tmp_path, env, typed="y\n\n\n\n\n\nn\nn\nn\n").stdout
    for words in ("¿Conectar WhatsApp?", "Id del número", "Pulsa Intro", "[ ] Hay un modelo conectado"):
        assert words in said


@pytest.mark.slow
@pytest.mark.both
def test_a_model_is_tried_with_a_tool_a_picture_and_a_voice_note_in_the_owners_language(tmp_path):
    def blind(body: dict[str, Any]) -> Any:
        if body.get("tools"):
            return calls(("add_numbers", {"first": 20, "second": 22}))
        return Response("this model does not support image input", 400) if "image_url" in str(body) else "?"

    sees = ModelServer(lambda body: "Red" if "image_url" in str(body) else blind(body), lambda data: "")
    not_sees = ModelServer(blind)
    try:
        for model, facts in (
            (sees, ("llama herramientas", "tiny ve imágenes", "whisper-1 las transcribe")),
            (not_sees, ("llama herramientas", "no se le muestran imágenes", "el servicio respondió 404")),
        ):
            server = Server(tmp_path, OPENAI_BASE_URL=model.url, LLM_MODEL="tiny")
            server.start()
            try:
                browser = Browser(server)
                browser.http.headers["accept-language"] = "es"
                shown = browser.post(HERE, f"{HERE}/check", what="model")
                assert [fact for fact in facts if fact not in shown] == []
                assert "badge warn" not in shown
                assert "badge fail" not in shown
            finally:
                server.kill()
    finally:
        sees.stop()
        not_sees.stop()


def test_a_link_from_an_owners_chat_signs_in_once(offline_town: Any) -> None:
    server, graph = offline_town.server, offline_town.graph
    graph.say(offline_town.newcomer(), "/console")
    link = re.search(r"/console/enter\?code=([\w-]+)", graph.ask("p0", "/console"))
    assert link is not None
    assert not [text for text in graph.texts() if "enter?code" in text and text not in graph.texts("p0")]
    browser = Browser(server)
    assert link[1] not in browser.page(browser.conversation("Whoever has this link"))
    server.http.cookies.clear()
    for _ in range(2):  # whoever only looks at it does not use it up
        assert link[1] in server.http.get(link[0]).text
    assert server.http.post("/console/enter", data={"code": link[1]}).status_code == 303
    assert server.http.get("/console").status_code == 200
    server.http.cookies.clear()
    assert server.http.post("/console/enter", data={"code": link[1]}).status_code == 401
    assert server.http.get("/console").status_code == 401


def test_a_link_and_its_session_end_with_the_owners_role(offline_town: Any) -> None:
    server, graph = offline_town.server, offline_town.graph
    person = offline_town.newcomer()
    graph.ask(person, "hi")
    phone = offline_town.phone(person)
    server.recado("people", "owner", phone)
    codes = []
    for _ in range(2):
        found = re.search(r"enter\?code=([\w-]+)", graph.ask(person, "/console"))
        assert found is not None
        codes.append(found[1])
    server.http.cookies.clear()
    assert server.http.post("/console/enter", data={"code": codes[0]}).status_code == 303
    assert server.http.get("/console").status_code == 200
    server.recado("people", "block", phone)
    assert server.http.get("/console").status_code == 401
    assert server.http.post("/console/enter", data={"code": codes[1]}).status_code == 401
