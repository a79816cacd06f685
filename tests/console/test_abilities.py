"""Decisions and abilities in the console: answers, switches, a tool that is tried, an install to its end."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.console.test_pages import Browser
from tests.standins.mcp_server import command, tool
from tests.test_dropped_skills import LAMPS, drop
from tests.tides import SKILL, TOOLS
from tests.world import wait_for

HERE = "/console/abilities"


def test_a_question_is_answered_in_place_of_who_was_asked(offline_town: Any) -> None:
    server, graph = offline_town.server, offline_town.graph
    person = offline_town.newcomer()
    graph.ask(person, "add milk to the party list")
    graph.ask(person, "delete the list party")
    browser = Browser(server)
    assert "Shall I delete the list “party”" in browser.page("/console/decisions")
    question = browser.found("/console/decisions", r'name="id" value="(approval_\w+)"')
    browser.post("/console/decisions", "/console/decisions/answer", id=question, choice="yes")
    graph.reply(person, 3)
    assert question not in browser.page("/console/decisions")
    gone = browser.http.post("/console/decisions/answer", data={"id": question, "choice": "yes"})
    assert gone.status_code == 403


def test_a_skill_that_is_turned_off_is_not_offered_and_comes_back(make_world: Any) -> None:
    server, graph = make_world()
    browser = Browser(server)
    assert "turned off" in browser.post(HERE, f"{HERE}/skills/notes/off")
    graph.ask("p0", "note: buy bread")
    assert not server.rows("SELECT 1 FROM skill_data WHERE skill = 'notes'")
    browser.post(HERE, f"{HERE}/skills/notes/on")
    browser.post(HERE, f"{HERE}/skills/notes/owners")
    graph.ask("p1", "note: buy bread")
    assert not server.rows("SELECT 1 FROM skill_data WHERE skill = 'notes'")
    (server.folder / "skills.json").write_text("{ no JSON")  # opens nothing to anybody
    graph.ask("p1", "note: buy bread")
    assert not server.rows("SELECT 1 FROM skill_data WHERE skill = 'notes'")
    assert "buy bread" in graph.ask("p0", "note: buy bread")
    tried = browser.post(
        f"{HERE}/tools/calculate", f"{HERE}/tools/calculate", **{"argument-expression": "6*7"}
    )
    assert "42" in tried
    agreed = browser.http.get(f"{HERE}/tools/delete_list", headers={"accept-language": "pt"}).text
    assert re.search(r"Apago a lista … com tudo.*é o seu sim.*<button>Executar", agreed, re.DOTALL)
    for odd in ("[" * 60_000, "[NaN]", '["\\ud800"]'):
        chart, secret = f"{HERE}/tools/chart", browser.csrf(HERE)
        given = {"argument-title": "of May", "argument-labels": '["a"]', "argument-values": odd}
        refused = browser.http.post(chart, data={"csrf": secret, "page": chart, **given}).text
        assert re.search(r'name="argument-values"[^>]*aria-describedby="fault"', refused)
        assert 'value="of May"' in refused


def test_no_name_of_a_tool_or_skill_hides_it_from_the_audit_or_leads_its_switch_to_another_form(
    make_world: Any, tmp_path: Path
) -> None:
    drop(tmp_path / "skills", "checks", LAMPS.replace("switch_lamp", "check"))
    about = drop(tmp_path / "skills", "lamps", LAMPS) / "SKILL.md"
    about.write_text(about.read_text().replace("name: lamps", 'name: "../tools/switch_lamp?"'))
    server, _ = make_world(SKILLS_DIR=str(tmp_path / "skills"))
    browser = Browser(server)
    [action] = re.findall(r'action="([^"]+switch_lamp[^"]+/off)"', browser.page(HERE))
    assert "turned off" in browser.post(HERE, urljoin(HERE, html.unescape(action)))
    assert not server.rows("SELECT 1 FROM audit WHERE action LIKE 'abilities/tools/%'")
    tried = browser.post(f"{HERE}/tools/check", f"{HERE}/tools/check", **{"argument-room": "hall"})
    assert "lit: hall" in tried
    assert len(server.rows("SELECT 1 FROM audit WHERE action = 'abilities/tools/check'")) == 1


@pytest.mark.slow
@pytest.mark.both
def test_a_skill_from_an_address_is_installed_with_its_card_and_its_progress(house, web):
    server, _ = house
    browser = Browser(server)
    address = web.put("/tides.zip", {"SKILL.md": SKILL, "scripts/tools.py": TOOLS})
    card = browser.post(HERE, f"{HERE}/skill", address=address)
    assert "sha256" in card
    subject = re.search(r'name="subject" value="([^"]+)"', card)
    assert subject is not None
    fields = {"kind": "skill", "name": "tides", "subject": subject[1], "address": address}
    page = browser.post(HERE, f"{HERE}/install", choice="yes", **fields)
    where = re.search(r'sse-connect="(/console/abilities/installs/\w+)', page)
    assert where is not None
    wait_for(lambda: "It is installed." in browser.page(where[1]), "the end of the install")
    wait_for(lambda: "tides" in browser.page(HERE), "the skill in the list")
    removed = browser.post(HERE, f"{HERE}/skills/tides/remove")
    assert "tides" not in removed


def test_a_server_gets_its_secret_and_what_it_changed_waits_for_approval(make_world: Any) -> None:
    server, _ = make_world(start=False)
    tools, config = server.folder / "tools.json", server.folder / "data" / "mcp_servers.json"
    tools.write_text(json.dumps([tool("echo")]))
    program, *arguments = command(tools_file=str(tools))
    config.parent.mkdir(exist_ok=True)
    entry = {"command": program, "args": arguments, "env": {"API_KEY": "${API_KEY}"}}
    config.write_text(json.dumps({"mcpServers": {"files": entry}}))
    server.start()
    browser, here = Browser(server), f"{HERE}/servers/files"
    assert 'name="variable" value="API_KEY"' in browser.page(here)
    spanish, told = (
        {"accept-language": "es"},
        "el servidor MCP files: necesita algo que nadie le dio: API_KEY",
    )
    wait_for(lambda: told in browser.http.get("/console", headers=spanish).text, "the alert in Spanish")
    assert browser.send(here, f"{here}/secret", variable="PATH", value="x") == 400
    kept = browser.post(here, f"{here}/secret", variable="API_KEY", value="key-of-the-test")
    assert "key-of-the-test" not in kept
    wait_for(lambda: "mcp_files_echo" in browser.page(here), "the server with its secret")
    tools.write_text(json.dumps([tool("echo"), tool("erase")]))
    browser.post(HERE, f"{here}/off")
    browser.post(HERE, f"{here}/on")
    wait_for(lambda: "Changed tools of files" in browser.page("/console/decisions"), "the new tool")
    assert "mcp_files_erase" not in browser.page(here)
    hashes = json.loads(html.unescape(browser.found("/console/decisions", r'name="hashes" value="([^"]+)"')))
    approve = {"name": "files", "hashes": json.dumps(dict.fromkeys(hashes, "0" * 64))}
    assert "Changed tools of files" in browser.post(
        "/console/decisions", "/console/decisions/tools", **approve
    )
    browser.post("/console/decisions", "/console/decisions/tools", **approve | {"hashes": json.dumps(hashes)})
    wait_for(lambda: "mcp_files_erase" in browser.page(here), "the approved tool")
