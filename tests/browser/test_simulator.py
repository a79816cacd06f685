"""A newcomer's first minutes: the server as installed, the simulator in a real browser."""

import json
import os
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import PROGRAM, Page, browser
from tests.world import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine"),
]

CONVERSATIONS = {
    "Ana": [
        ("¿Qué hora es en Tokio?", "15 h más que tu hora"),
        ("¿Cuánto es 12% de 3,450?", "414"),
        ("Guarda una nota: comprar pan", "comprar pan"),
        ("Mis notas", "comprar pan"),
    ],
    "Bruno": [
        ("Que horas são em Lisboa?", "Lisboa"),
        ("Quanto é 1.250,50 + 10%?", "1.375,55"),
        ("Anota: ligar para a Paula", "ligar para a Paula"),
        ("Minhas notas", "ligar para a Paula"),
    ],
    "Chris": [
        ("What time is it in London?", "London"),
        ("How much is 15% of 2,480?", "372"),
        ("Note: renew the passport in March", "renew the passport in March"),
        ("Show my notes", "renew the passport in March"),
    ],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """As installed; it must end well and have had nothing to complain of."""
    server = Server(tmp_path, BURST_QUIET_SECONDS="0.2")
    try:
        yield server.start()
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with browser() as page:
        yield page


async def test_three_people_in_three_languages_get_right_answers(
    server: Server, page: Page, tmp_path: Path
) -> None:
    shots = Path(os.environ.get("RECADO_SCREENSHOTS") or tmp_path)
    await page.open(server.simulator, 1100, 900)
    for person, exchanges in CONVERSATIONS.items():
        await choose(page, person)
        for count, (text, expected) in enumerate(exchanges, 1):
            await write(page, text)
            answer = await reply(page, count)
            assert expected in answer, f"{person}: {text!r} was answered {answer!r}"
        others = {text for name, rest in CONVERSATIONS.items() if name != person for text, _ in rest}
        shown = await page.evaluate("document.querySelector('#log').innerText")
        assert not [text for text in others if text in shown]
    await choose(page, "Ana")
    await page.until("document.querySelectorAll('.row.mine .read').length >= 4")
    for name, width, height in (("desktop", 1280, 800), ("phone", 390, 844)):
        for theme in ("light", "dark"):
            await page.open(server.simulator, width, height, theme)
            await page.until("document.querySelectorAll('.row').length >= 8")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await page.screenshot(shots / f"simulator-{name}-{theme}.png")


async def test_what_could_not_be_sent_is_marked_and_sent_again_by_hand(server: Server, page: Page) -> None:
    await page.open(server.simulator, 1100, 900)
    await choose(page, "Ana")
    await page.evaluate("document.querySelector('#attach').click()")
    inside = await page.evaluate(
        "((sheet, phone) => sheet.left >= phone.left && sheet.right <= phone.right"
        " && sheet.top >= phone.top && sheet.bottom <= phone.bottom)"
        "(...['#sheet', '#phone'].map((one) => document.querySelector(one).getBoundingClientRect()))"
    )
    assert inside
    await page.evaluate("document.querySelector('#sheet-close').click()")
    server.kill()
    await page.until("document.querySelector('#presence').innerText === 'sin conexión'")
    await write(page, "¿Cuánto es 17*23?")
    await page.until("document.querySelector('.row.mine .meta').innerText.includes('no enviado')")
    server.start()
    await page.until("document.querySelector('#alert').innerText.includes('recado simulator')")
    await page.evaluate(f"fetch({json.dumps(server.simulator)})")  # the new link, opened in another window
    await page.until("document.querySelector('#presence').innerText === 'en línea'")
    await page.evaluate("document.querySelector('.retry').click()")
    assert "391" in await reply(page, 1)
    assert await page.evaluate("document.querySelectorAll('.row.mine').length") == 1
    assert not await page.evaluate("Boolean(document.querySelector('.retry'))")


async def test_with_the_keyboard_alone_one_converses_and_switches_a_fault(server: Server, page: Page) -> None:
    await page.open(server.simulator, 1280, 800, language="en-GB")
    await page.until("document.querySelectorAll('.chip').length === 3")
    await tab_to(page, ".chip")
    await page.press("Enter", code=13)
    assert "Tokyo" in await reply(page, 1)
    await tab_to(page, "#text")
    await page.type("What is 12*12?")
    await page.press("Enter", code=13)
    assert "144" in await reply(page, 2)

    await tab_to(page, "#log", back=True)
    await page.press("ArrowUp", code=38)
    await page.press("Enter", code=13)
    await page.until("document.querySelector('#sheet').open")
    await page.press("Escape", code=27)
    await page.until("!document.querySelector('#sheet').open")
    await page.until("document.activeElement.matches('.row')")

    await tab_to(page, "#panel-open")
    await page.press("Enter", code=13)
    await page.until("document.activeElement.id === 'panel-close'")
    await tab_to(page, "#fail-set")
    await page.press("Enter", code=13)
    await page.until("document.querySelector('#switches .badge').innerText === '1'")
    await page.press("Escape", code=27)
    await page.until("document.activeElement.id === 'panel-open'")
    await tab_to(page, "#text")
    await page.type("What is 13*13?")
    await page.press("Enter", code=13)
    await page.until("document.querySelector('.refusal')?.innerText.includes('131026')")
    await page.until("document.querySelector('#switches .badge').hidden")

    for width, height in ((1280, 800), (390, 844)):
        await page.open(server.simulator, width, height, language="pt-BR")
        await page.until("document.querySelectorAll('.row').length >= 4")
        await page.evaluate("document.querySelector('#panel-open').click()")
        await page.until("document.activeElement.id === 'panel-close'")
        await check_names(page)


async def test_what_went_wrong_is_said_in_the_pages_language(
    server: Server, page: Page, tmp_path: Path
) -> None:
    await page.open(server.simulator, 1280, 800)
    await page.until("document.querySelectorAll('.chip').length === 3")
    assert await page.evaluate("location.pathname") == "/simulator"
    note = "document.querySelector('#note').getBoundingClientRect().bottom"
    assert await page.evaluate(f"{note} <= innerHeight")

    server.http.post("/simulator/api/faults", json={"fail": [{"code": 131047}]}).raise_for_status()
    await page.until("document.querySelector('#panel-open').ariaLabel === 'Banco de pruebas, 1 activo'")
    await page.evaluate("document.querySelector('.chip').click()")
    assert await page.evaluate("document.activeElement.id") == "text"
    assert "más de 24 h" in await page.until("document.querySelector('.refusal')?.innerText")
    await page.until("!document.querySelector('.typing')")

    program = tmp_path / "x.exe"
    program.write_bytes(b"MZ")
    await page.choose_file("#file", program)
    assert "documentos (PDF" in await page.until("document.querySelector('#alert').innerText")

    before = "document.querySelector('#people').getBoundingClientRect().height"
    height = await page.evaluate(before)
    server.http.post(
        "/simulator/api/send", json={"person": "bruno", "type": "text", "text": "Que horas são?"}
    )
    await page.until("Boolean(document.querySelector('#people .count'))")
    assert await page.evaluate(before) == height


async def fill(page: Page, **values: str) -> None:
    """Writes into the open form and sends it."""
    await page.until("document.querySelector('#sheet').open")
    for name, value in values.items():
        field = f"document.querySelector('.fields [name={name}]')"
        await page.evaluate(f"{field}.value = {json.dumps(value)}")
    await page.evaluate("document.querySelector('.fields .main').click()")


async def check_names(page: Page) -> None:
    """Everything that can be used or landed on has a name, in the page's language."""
    used = await page.names(
        *("button", "textbox", "switch", "combobox", "spinbutton", "link", "DisclosureTriangle"),
        *("log", "navigation", "main", "complementary", "image", "group", "form", "status"),
    )
    roles = {role for role, _ in used}
    assert {"button", "switch", "combobox", "spinbutton", "complementary"} <= roles, roles
    unnamed = [one for one in used if not one[1] and one[0] not in {"group", "status", "form"}]
    assert unnamed == []
    assert ("complementary", "Bancada de testes") in used


async def tab_to(page: Page, selector: str, *, back: bool = False) -> None:
    """Presses Tab until it is there, as long as that may reasonably take."""
    for _ in range(60):
        if await page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            shown = "getComputedStyle(document.activeElement)"
            ring = f"{shown}.outlineStyle !== 'none' || {shown}.boxShadow !== 'none'"
            assert await page.evaluate(f"{ring} || document.activeElement.matches(':focus-visible')")
            return
        await page.press("Tab", code=9, shift=back)
    raise AssertionError(f"Tab does not reach {selector}")


async def choose(page: Page, person: str) -> None:
    find = (
        f"[...document.querySelectorAll('#people .person')].find((one) => one.innerText.includes('{person}'))"
    )
    await page.until(f"Boolean({find})")
    await page.evaluate(f"{find}.click()")
    await page.until(f"{find}.getAttribute('aria-current') === 'true'")


async def write(page: Page, text: str) -> None:
    """Types and presses Enter, as a person does."""
    await page.evaluate("document.querySelector('#text').focus()")
    await page.type(text)
    await page.press("Enter", code=13)
    await page.until(f"document.querySelector('#log').innerText.includes({json.dumps(text)})")


async def reply(page: Page, count: int) -> str:
    """The text of the assistant's `count`-th bubble."""
    rows = "[...document.querySelectorAll('#log .row:not(.mine):not(.typing) .bubble')]"
    return str(await page.until(f"{rows}.length >= {count} && {rows}[{count - 1}].innerText"))


async def test_the_phone_comes_first_and_a_picture_is_seen_before_it_is_sent(
    server: Server, page: Page, tmp_path: Path
) -> None:
    shots = Path(os.environ.get("RECADO_SCREENSHOTS") or tmp_path)
    await page.open(server.simulator, 1280, 800)
    await choose(page, "Ana")
    assert not await page.evaluate(
        "document.querySelector('#panel').checkVisibility({visibilityProperty: true})"
    )
    picture = tmp_path / "flor.png"
    picture.write_bytes(one_pixel_png())
    await page.choose_file("#file", picture)
    await page.until("document.querySelector('.preview img')?.naturalWidth > 0")
    await page.screenshot(shots / "simulator-preview.png")
    assert await page.evaluate("document.querySelectorAll('.row.mine').length") == 0
    await fill(page, caption="¿Qué flor es?")
    await page.until("Boolean(document.querySelector('.row.mine .picture'))")
    await page.until("document.querySelector('.row.mine').innerText.includes('¿Qué flor es?')")

    await reply(page, 1)
    await write(page, "hola")
    await reply(page, 2)
    for action, text in (("#i-edit", "buenas"), ("#i-bin", "")):
        await page.evaluate("document.querySelectorAll('.row.mine .more')[1].click()")
        await page.until("document.querySelector('#sheet').open")
        assert "wamid" not in await page.evaluate("document.querySelector('#sheet').innerText")
        await page.evaluate(f"document.querySelector('#sheet .option:has([href=\"{action}\"])').click()")
        if text:
            await page.evaluate("document.querySelector('#text').value = ''")
            await write(page, text)
            await page.until("document.querySelectorAll('.row.mine')[1].innerText.includes('editado')")
    last = "document.querySelectorAll('.row.mine')[1].innerText"
    await page.until(f"{last}.includes('eliminado') || {last}.includes('eliminaste')")
    assert "editado" not in await page.evaluate(last)


def one_pixel_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0\xb8\x4d\x31")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
