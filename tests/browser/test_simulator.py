"""A newcomer's first minutes: the server as installed, the simulator in a real browser."""

import json
import os
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
        ("¿Qué hora es en Tokio?", "En Tokio son las"),
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


async def test_three_people_in_three_languages_get_right_answers(tmp_path: Path) -> None:
    server = Server(tmp_path, BURST_QUIET_SECONDS="0.2").start()
    shots = Path(os.environ.get("RECADO_SCREENSHOTS") or tmp_path)
    try:
        async with browser() as page:
            await page.open(f"{server.url}/simulator", 1100, 900)
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
            for theme in ("light", "dark"):
                for width, height in ((1100, 900), (390, 844)):
                    await page.open(f"{server.url}/simulator", width, height, theme)
                    await page.until("document.querySelectorAll('.row').length >= 8")
                    assert await page.evaluate("document.documentElement.scrollWidth") <= width
                    await page.screenshot(shots / f"simulator-{theme}-{width}.png")
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


async def test_what_could_not_be_sent_is_marked_and_sent_again_by_hand(tmp_path: Path) -> None:
    server = Server(tmp_path, BURST_QUIET_SECONDS="0.2").start()
    try:
        async with browser() as page:
            await page.open(f"{server.url}/simulator", 1100, 900)
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
            await page.until("document.querySelector('#presence').innerText === 'en línea'")
            await page.evaluate("document.querySelector('.retry').click()")
            assert "391" in await reply(page, 1)
            assert await page.evaluate("document.querySelectorAll('.row.mine').length") == 1
            assert not await page.evaluate("Boolean(document.querySelector('.retry'))")
        assert server.stop() == 0
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


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
    await page.command("Input.insertText", text=text)
    for kind in ("keyDown", "keyUp"):
        await page.command(
            "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13
        )
    await page.until(f"document.querySelector('#log').innerText.includes({json.dumps(text)})")


async def reply(page: Page, count: int) -> str:
    """The text of the assistant's `count`-th bubble."""
    rows = "[...document.querySelectorAll('#log .row:not(.mine):not(.typing) .bubble')]"
    return str(await page.until(f"{rows}.length >= {count} && {rows}[{count - 1}].innerText"))
