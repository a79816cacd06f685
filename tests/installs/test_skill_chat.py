"""Skills from an address: nothing is fetched for others, nothing runs before the yes, and no more than the
card said afterwards."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.mcp.configuration import Secrets, SkillFile
from tests.console.test_pages import Browser
from tests.forks import run_recado
from tests.mailer import asked, press, questions
from tests.standins.model import ModelServer, calls, is_classifier
from tests.standins.site import answer, redirect
from tests.tides import SKILL, TOOLS, Web, cards, details, install, obeys, say, told
from tests.world import wait_for, world

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, Web, str, ModelServer]]:
    """A server, its graph, a site, a skill there and a model, for tests that install nothing."""
    web, played = Web(), ModelServer(obeys)
    options = {"OPENAI_BASE_URL": played.url, "LLM_MODEL": "stand-in"}
    for server, graph in world(tmp_path_factory.mktemp("quiet"), crowd=20, **options):
        web.start(server)
        tides = web.put("/tides.zip", {"SKILL.md": SKILL.format(address=""), "scripts/tools.py": TOOLS})
        yield server, graph, web, tides, played
    played.stop()
    web.stop()


@pytest.fixture
def tides(web: Web) -> str:
    return web.put("/tides.zip", {"SKILL.md": SKILL.format(address=web.site.url), "scripts/tools.py": TOOLS})


def installed(server: Any) -> list[Path]:
    return sorted((server.folder / "skills").glob("*/*/SKILL.md"))


def test_the_card_comes_before_the_yes_and_an_update_and_a_removal_ask_too(
    house: Any, web: Web, tides: str
) -> None:
    server, graph = house
    say(graph, "p0", "install_skill_from_url", url=tides)
    card = asked(graph, "p0")["text"]
    assert "2 tools, reaches “127.0.0.1”" in card
    assert "high_tide" not in card
    assert len(card) <= 500
    question, shown = details(graph, "p0", 2)
    assert list(question["buttons"]) == ["Install", "Install+trust", "No"]
    assert "high_tide" in shown
    assert "“127.0.0.1”" in shown
    assert installed(server) == []
    press(graph, "p0", question, "Install")
    told(graph, "p0", "✓ Installed: tides")
    (path,) = installed(server)
    assert not path.stat().st_mode & 0o222
    assert not list((server.folder / "quarantine").iterdir())
    say(graph, "p0", "high_tide", place="Lota")
    question = asked(graph, "p0", 3)
    assert list(question["buttons"]) == ["Yes", "No"]
    press(graph, "p0", question, "Yes")
    assert "high at noon in Lota" in told(graph, "p0", "high at noon")
    changed = TOOLS.replace("def high_tide", "def low_tide")
    mapping = {"mcpServers": {"sea": {"url": "https://example.org/mcp", "headers": {"X-Key": "${KEY}"}}}}
    files = {"SKILL.md": SKILL.format(address=web.site.url), "scripts/tools.py": changed}
    web.put("/tides.zip", {**files, "mcp.json": json.dumps(mapping)})
    install(graph, tides, count=4)
    assert "Update the skill tides?" in questions(graph, "p0")[3]["text"]
    wait_for(lambda: [*server.folder.glob("skills/tides/*/mcp.json")], "the update")
    kept_as = SkillFile("tides", server.folder, tides).secrets_name("tides_sea")
    Secrets(server.folder).put(kept_as, "KEY", "of the sea")
    say(graph, "p0", "remove_skill", name="tides")

    def removal() -> Any:  # perhaps after news of the server, which lacked its key at first
        return next((one for one in questions(graph, "p0")[4:] if [*one["buttons"]] == ["Yes", "No"]), None)

    question = wait_for(removal, "the question about the removal")
    press(graph, "p0", question, "Yes")
    told(graph, "p0", "✓ Removed: tides")
    assert installed(server) == []
    kept = [path.read_text() for path in (server.folder / "secrets").iterdir()]
    assert "of the sea" not in "".join(kept)


def test_after_a_no_or_a_look_nothing_is_installed(quiet: Any) -> None:
    server, graph, _, tides, _ = quiet
    say(graph, "p0", "preview_skill_from_url", url=tides)
    assert "high_tide" in told(graph, "p0", "Nothing is installed yet")
    assert questions(graph, "p0") == []
    say(graph, "p0", "install_skill_from_url", url=tides)
    press(graph, "p0", asked(graph, "p0"), "No")
    told(graph, "p0", "DENIED")
    assert installed(server) == []


def test_what_is_asked_about_stays_until_the_question_ends(house: Any, web: Web, tides: str) -> None:
    server, graph = house
    other = SKILL.format(address="").replace("name: tides", "name: library")
    asks = []
    for address in (tides, web.put("/library.zip", {"SKILL.md": other})):
        say(graph, "p0", "install_skill_from_url", url=address)
        asks.append(asked(graph, "p0", len(asks) + 1))
    kept = [*(server.folder / "quarantine").iterdir()]

    def a_week_later() -> None:
        server.stop()
        for folder in kept:
            if folder.exists():
                os.utime(folder, (1000, 1000))
        web.start(server)

    a_week_later()
    press(graph, "p0", asks[0], "Install")
    told(graph, "p0", "✓ Installed: tides")
    press(graph, "p0", asks[1], "No")
    told(graph, "p0", "DENIED")
    assert [folder.exists() for folder in kept].count(True) == 1
    a_week_later()
    wait_for(lambda: not any(folder.exists() for folder in kept), "the sweep")


def test_who_is_no_owner_installs_nothing_and_nothing_is_fetched(quiet: Any) -> None:
    server, graph, web, tides, _ = quiet
    before = list(web.asked)
    for count, tool in enumerate(("install_skill_from_url", "preview_skill_from_url"), start=1):
        say(graph, "p1", tool, url=tides)
        assert "NOT_OFFERED" in graph.reply("p1", count) or "UNKNOWN_TOOL" in graph.reply("p1", count)
    assert web.asked == before
    assert installed(server) == []


YOURSELF = "addresses that you write to me yourself"


def test_an_address_that_the_person_did_not_write_is_not_asked(quiet: Any) -> None:
    _, graph, web, tides, played = quiet
    before, unsaid = list(web.asked), tides.replace("tides", "unsaid")
    for count, tool in enumerate(("install_skill_from_url", "preview_skill_from_url"), 1):

        def led(body: dict[str, Any], tool: str = tool) -> Any:
            if is_classifier(body):
                return '{"categories": ["expand"]}'
            done = body["messages"][-1]["role"] == "tool"
            return f"result: {body['messages'][-1]['content']}" if done else calls((tool, {"url": unsaid}))

        played.play = led
        graph.say("p0", f"what about {tides.replace('tides', 'others')} ?")
        wait_for(lambda n=count: sum(YOURSELF in text for text in graph.texts("p0")) == n, tool)
    played.play = obeys
    assert web.asked == before


def test_what_is_no_skill_and_a_redirect_inwards_are_refused_politely(quiet: Any) -> None:
    _, graph, web, *_ = quiet
    web.pages["/page"] = answer(b"<html>hello</html>")
    web.pages["/inwards"] = redirect("https://127.0.0.1/x.zip")
    asked_before = len(questions(graph, "p0"))
    for path, words in (
        ("/page", "what is there is no skill"),
        ("/inwards", "skills only from https addresses on the public"),
        ("/none", "status 404"),
    ):
        say(graph, "p0", "install_skill_from_url", url=web.site.url + path)
        told(graph, "p0", words)
    assert len(questions(graph, "p0")) == asked_before


def test_it_reaches_only_the_hosts_of_its_card_its_words_are_foreign_and_a_changed_folder_is_not_loaded(
    house: Any, web: Web, tides: str
) -> None:
    server, graph = house
    web.pages["/now"] = answer(b"it is high now")
    web.pages["/away"] = redirect("https://localhost:1/")
    install(graph, tides, "Install+trust")
    for url, words in (
        (f"{web.site.url}/now", "it is high now"),
        (f"{web.site.url}/away", "none of the hosts allowed here"),
        ("https://example.org/", "example.org is none of the hosts allowed here"),
    ):
        say(graph, "p0", "ask_outside", url=url)
        told(graph, "p0", words)
    graph.say("p0", "what about the tide?")
    told(graph, "p0", "you said")
    (row,) = server.rows("SELECT taint FROM turns ORDER BY created_at DESC LIMIT 1")
    assert "skill:tides" in row["taint"].splitlines()
    server.stop()
    tools = installed(server)[0].with_name("scripts") / "tools.py"
    tools.chmod(0o600)
    tools.write_text(TOOLS + "# changed")
    web.start(server)
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "UNKNOWN_TOOL")
    assert "was changed since it was approved" in server.log


def test_a_long_card_is_shortened_if_it_holds_no_danger_else_approved_in_the_console(
    house: Any, web: Web
) -> None:
    server, graph = house
    files = {f"references/a-long-name-for-a-file-{n}.md": "text" for n in range(200)}
    plain = SKILL.format(address=web.site.url).replace("name: tides", "name: library")
    say(graph, "p0", "install_skill_from_url", url=web.put("/long.zip", {"SKILL.md": plain, **files}))
    asked(graph, "p0")
    question, shown = details(graph, "p0", 2)
    press(graph, "p0", question, "Install")
    told(graph, "p0", "✓ Installed: library")
    assert "201 files" in shown
    assert "- y 161 más" in shown or "- and 161 more" in shown
    hosts = [f"https://{'a-long-name-for-a-host.' * 6}h{n}.net" for n in range(90)]
    address = web.put("/hosts.zip", {"SKILL.md": SKILL.format(address="\n".join(hosts))})
    say(graph, "p0", "install_skill_from_url", url=address)
    assert list(asked(graph, "p0", 3)["buttons"]) == ["No"]
    browser, here = Browser(server), "/console/decisions"
    assert "a-long-name-for-a-host.h89.net" in browser.page(here)
    waiting = browser.found(here, r'name="id" value="(approval_\w+)"')
    assert browser.send(here, f"{here}/answer", id=waiting, choice="yes") == 303
    told(graph, "p0", "✓ Installed: tides")


def test_a_card_names_the_host_that_a_site_sent_us_on_to(make_world: Any, model: Any, web: Web) -> None:
    server, graph = make_world(start=False, model=model(obeys), CONFIRMATION_MODE="yolo")
    web.start(server)
    elsewhere = web.put("/tides.zip", {"SKILL.md": SKILL.format(address=""), "scripts/tools.py": TOOLS})
    elsewhere = elsewhere.replace("127.0.0.1", "localhost")
    web.pages["/tides.zip?key=1"] = web.pages["/tides.zip"]
    web.pages["/moved"] = redirect(f"{elsewhere}?key=1")
    say(graph, "p0", "install_skill_from_url", url=f"{web.site.url}/moved")
    assert "Its files come from: “localhost:" in asked(graph, "p0")["text"]
    question, shown = details(graph, "p0", 2)
    press(graph, "p0", question, "Install")
    told(graph, "p0", "✓ Installed")
    assert f"From: “{web.site.url}/moved”\nIts files come from: “localhost:" in shown
    assert "(CONFIRMATION_MODE=yolo): its calls run without a question" in shown
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "high at noon in Lota")
    assert len(questions(graph, "p0")) == 2


def test_without_a_sandbox_its_words_help_and_its_code_does_not_run(
    make_world: Any, model: Any, web: Web, tides: str
) -> None:
    played = model(obeys)
    server, graph = make_world(start=False, model=played, PATH="/nowhere")
    web.start(server)
    install(graph, tides, "Install+trust")
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "UNKNOWN_TOOL")
    assert "when somebody wants to swim" in played.main_calls[-1]["messages"][0]["content"]
    listed = _recado(server, "skills", "list").stdout
    assert "its tools do not run: bubblewrap (the program bwrap) is not installed" in listed


def test_with_the_sandbox_turned_off_the_card_says_so_and_the_trusted_code_runs_unasked(
    make_world: Any, model: Any, web: Web, tides: str
) -> None:
    server, graph = make_world(start=False, model=model(obeys), SANDBOX="off")
    web.start(server)
    install(graph, tides, "Install+trust")
    assert "its code gets all the rights that I have" in cards(graph, "p0")
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "high at noon in Lota")
    assert len(questions(graph, "p0")) == 1


def test_in_the_shell_the_card_comes_first_and_without_a_terminal_nothing_is_fetched(
    house: Any, web: Web, tides: str
) -> None:
    server, graph = house
    refused = _recado(server, "skills", "add", tides.replace("127.0.0.1", "example.org"))
    assert refused.returncode == 1
    assert "run this in a terminal" in refused.stderr
    status, shown = _at_a_terminal(server, web, tides, "n")
    assert (status, "high_tide" in shown, "nothing was installed" in shown) == (1, True, True)
    assert installed(server) == []
    status, shown = _at_a_terminal(server, web, tides, "y")
    assert (status, "Installed tides" in shown) == (0, True)
    say(graph, "p0", "high_tide", place="Lota")
    press(graph, "p0", asked(graph, "p0"), "Yes")
    told(graph, "p0", "high at noon in Lota")
    assert "Removed tides" in _recado(server, "skills", "remove", "tides").stdout


SHELL = """
import asyncio
import sys
from app.cli.skills import install_skill
from app.errors import RecadoError
from app.settings import take_settings
from app.http.transport import Transport
from tests.standins.site import authority
transport = Transport(allowed_hosts={("127.0.0.1", int(sys.argv[2]))}, tls=authority())
try:
    print(asyncio.run(install_skill(take_settings(), sys.argv[1], transport)))
except RecadoError as error:
    sys.exit(str(error))
"""


def _recado(server: Any, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_recado(arguments, server.folder, server.env)


def _at_a_terminal(server: Any, web: Web, address: str, answer: str) -> tuple[int, str]:
    """Run `skills add` with a transport that reaches the site; give its status and all that it shows."""
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-c", SHELL, address, str(web.site.port)],
        cwd=server.folder,
        env=server.env,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    os.close(theirs)
    os.close(ours)
    return done.returncode, done.stdout
