"""The console in a real browser: every page, live parts, a take-over, an install, a waterfall."""

import asyncio
import os
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import PROGRAM, Page, browser
from tests.browser.test_simulator import choose, reply, write
from tests.tides import SKILL, TOOLS, Web
from tests.world import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine"),
]

PAGES = (
    *("", "/conversations", "/decisions", "/abilities", "/abilities/find", "/abilities/tools/save_note"),
    *("/knowledge", "/people", "/schedules", "/costs", "/log", "/audit", "/setup", "/sessions"),
)
AXE = "axe-core@4.14.1"
WATCH = """
window.faults = [];
addEventListener("error", (event) => faults.push(event.message || event.target.src), true);
addEventListener("securitypolicyviolation", (event) => faults.push(`CSP ${event.violatedDirective}`));
const told = console.error;
console.error = (...words) => { faults.push(words.join(" ")); told(...words); };
"""
SERIOUS = """
axe.run().then((found) => found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rules of accessibility, fetched from npm."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("there is no npm")
    ran = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True, timeout=120)
    if ran.returncode:
        pytest.skip(f"npm cannot be reached: {ran.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        found = archive.extractfile("package/axe.min.js")
        assert found is not None
        return found.read().decode()


@pytest.fixture
def server(tmp_path: Path, web: Web) -> Iterator[Server]:
    """As installed, and reaching a site with a skill."""
    server = Server(tmp_path, BURST_QUIET_SECONDS="0.2")
    try:
        web.start(server)
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


@pytest.fixture
async def page(server: Server) -> AsyncIterator[Page]:
    """A tab that is signed in with the token, as an owner does."""
    async with browser() as page:
        await page.command("Page.enable")
        await page.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        await page.open(f"{server.url}/console", 1100, 900)
        await page.type((server.folder / "admin_token").read_text().strip())
        await page.press("Enter", code=13)
        await arrive(page, "document.querySelector('h1')?.innerText === 'Hoy'")
        yield page


async def arrive(page: Page, script: str) -> None:
    """Wait for a condition that another page fulfils: what waits in the old one ends with it."""
    try:
        await page.until(script)
    except AssertionError as error:
        if "navigated" not in str(error):
            raise
        await page.until(script)


async def click(page: Page, selector: str) -> None:
    is_settled = "!document.querySelector('.htmx-added, .htmx-settling')"  # else no htmx sends it
    await page.until(f"Boolean(document.querySelector({selector!r})) && {is_settled}")
    await page.evaluate(f"document.querySelector({selector!r}).click()")


async def test_every_page_has_content_and_no_fault_in_both_widths_and_themes(
    server: Server, page: Page, axe: str, tmp_path: Path
) -> None:
    shots = Path(os.environ.get("RECADO_SCREENSHOTS") or tmp_path)
    await page.open(server.simulator, 1100, 900)
    await choose(page, "Bruno")
    await write(page, "Anota: <b>ligar</b> para a Paula")
    await reply(page, 1)
    [where] = server.rows("SELECT id, person_id FROM conversations")
    [turn] = server.rows("SELECT id FROM turns")
    own = (f"/conversations/{where['id']}", f"/people/{where['person_id']}", f"/turns/{turn['id']}")
    for path in (*PAGES, *own):
        name = path.strip("/").split("/")[0] or "today"
        kind = f"{name}-one" if path in own else path.strip("/").replace("/", "-") or name
        for width in (390, 1100):
            await page.open(f"{server.url}/console{path}", width, 1400)
            await page.until("document.querySelector('h1')?.innerText.length > 1")
            await asyncio.sleep(0.3)  # the live part has connected
            await page.evaluate(f"{axe};1")
            for theme in ("light", "dark"):
                await page.wear(theme)
                assert await page.evaluate(SERIOUS) == [], (path, width, theme)
                await page.screenshot(shots / f"console-{kind}-{width}-{theme}.png")
            assert await page.evaluate("faults") == [], (path, width)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


async def test_an_owner_sees_a_message_come_answers_it_and_reads_why(server: Server, page: Page) -> None:
    await page.open(f"{server.url}/console/conversations", 390, 800)
    server.admin("terminal/type", text="hello from the terminal")
    await page.until("document.querySelectorAll('#live li a').length === 1")  # without a reload
    await page.open(server.simulator, 1100, 900)
    await choose(page, "Bruno")
    await write(page, "Que horas são em Lisboa?")
    await reply(page, 1)
    [where] = server.rows("SELECT id FROM conversations WHERE channel = 'simulator'")
    await page.open(f"{server.url}/console/conversations/{where['id']}", 390, 800)
    await page.evaluate("document.querySelector('#reply textarea').focus()")
    await page.type("Aqui fala a Olga, às cinco.")
    await click(page, "#reply button")
    await page.until("document.querySelector('#live .business')?.innerText.includes('Olga')")
    assert await page.evaluate("document.querySelector('#reply textarea').value") == ""
    await click(page, "a.why")
    await arrive(page, "Boolean(document.querySelector('.waterfall .model summary'))")
    await click(page, ".waterfall .route summary")
    await click(page, ".waterfall .model summary")
    assert await page.evaluate("document.querySelector('.waterfall .route table tbody tr').innerText")
    assert await page.evaluate("document.querySelector('.waterfall .model details').innerText") != ""
    await click(page, "#replay button")
    await page.until("Boolean(document.querySelector('#replay pre'))")
    assert await page.evaluate("faults") == []
    await page.open(server.simulator, 1100, 900)
    await choose(page, "Bruno")
    await page.until("document.querySelector('#log').innerText.includes('Aqui fala a Olga')")


async def test_a_refused_form_keeps_its_words_and_leads_to_its_fault(server: Server, page: Page) -> None:
    settings = server.folder / "settings.env"
    settings.write_text("ACCESS='code'\n")
    server.stop()
    server.start()
    await page.open(f"{server.url}/console/people", 390, 800)
    await click(page, "details.card summary")
    for name, text in (("uses", "7"), ("hours", "many")):
        await page.evaluate(f"document.querySelector('input[name={name}]').select()")
        await page.type(text)
    await click(page, "details.card button")
    await page.until("document.activeElement?.getAttribute('aria-describedby') === 'fault'")
    assert await page.evaluate("[document.activeElement.value, location.pathname]") == [
        "many",
        "/console/people",
    ]
    assert await page.evaluate("document.querySelector('input[name=uses]').value") == "7"
    await page.evaluate("document.querySelector('input[name=hours]').select()")
    await page.type("12")
    await click(page, "details.card button")
    await page.until("Boolean(document.querySelector('main [role=status] + p code'))")
    await page.open(f"{server.url}/console/setup", 390, 800)
    await page.evaluate("document.querySelector('input[name=LLM_MODEL]').focus()")
    await page.type("tiny model")
    await page.press("Enter", code=13)
    await arrive(page, "document.activeElement?.getAttribute('aria-describedby') === 'fault'")
    assert await page.evaluate("[document.activeElement.name, document.activeElement.value]") == [
        "LLM_MODEL",
        "tiny model",
    ]
    assert await page.evaluate("faults") == []


async def test_an_install_is_watched_to_its_end(server: Server, page: Page, web: Web) -> None:
    address = web.put("/tides.zip", {"SKILL.md": SKILL, "scripts/tools.py": TOOLS})
    await page.open(f"{server.url}/console/abilities", 390, 900)
    await click(page, "details.card summary")
    await page.evaluate("document.querySelector('input[name=address]').focus()")
    await page.type(address)
    await page.press("Enter", code=13)
    await page.until("document.querySelector('.card pre')?.innerText.includes('sha256')")
    await click(page, ".card form button")
    await page.until("Boolean(document.querySelector('#live .state.ok'))")
    await page.open(f"{server.url}/console/abilities", 390, 900)
    await page.until("document.querySelector('#live').innerText.includes('tides')")
    assert await page.evaluate("faults") == []
