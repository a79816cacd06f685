"""A day by voice, picture, file, place and choice, in the simulator's page."""

import base64
import io
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from app.simulator.graph import canned_clip
from tests.browser.chromium import PROGRAM, Page, browser
from tests.browser.test_simulator import choose
from tests.standins.model import ModelServer, calls, is_classifier, last_user_text
from tests.tools.papers import pdf
from tests.world import Server, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine"),
]

INVOICE = ("Factura 118\nLavandería Sol", "Servicios de noviembre", "Total: 4,580.00 MXN\nVence: 15/12/2026")
HEARD = "Recuérdame que el viernes ceno con Luisa"
EXPENSES = {"title": "Gastos", "labels": ["Renta", "Comida", "Luz"], "values": [8000, 3500, 600]}
PICK = {"question": "¿Dónde comemos?", "options": ["Pizzería Roma", "Tacos El Güero", "Sushi"]}


def play(body: dict[str, Any]) -> Any:
    """A model that reads its prompt and nothing else."""
    if is_classifier(body):
        return '{"categories": ["charts", "choices", "files"], "phrases": []}'
    last, said = body["messages"][-1], last_user_text(body)
    if last["role"] == "tool":
        return "Aquí está."
    if total := re.search(r"Total: ([\d.,]+ \w+).*Vence: ([\d/]+)", said):
        return f"{total[1]} · {total[2]}"
    if isinstance(last["content"], list):
        return "Veo un ticket de 186.50."
    if "gráfico" in said:
        return calls(("chart", EXPENSES))
    if "latitude" in said:
        return calls(("ask_to_choose", PICK))
    return f"✓ {said.splitlines()[-1]}"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer(play)
    yield server
    server.stop()


@pytest.fixture
def server(tmp_path: Path, model: ModelServer) -> Iterator[Server]:
    server = Server(tmp_path, OPENAI_BASE_URL=model.url, LLM_MODEL="stand-in")
    try:
        yield server.start()
        assert "Traceback" not in server.log
    finally:
        server.kill()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with browser() as page:
        yield page


def receipt() -> bytes:
    picture, written = Image.new("RGB", (420, 300), "white"), io.BytesIO()
    lines = "ABARROTES LUPITA\n\nPan        42.50\nLeche      64.00\nHuevo      80.00\n\nTOTAL     186.50"
    ImageDraw.Draw(picture).text((40, 30), lines, "black", ImageFont.load_default(24))
    picture.save(written, "JPEG")
    return written.getvalue()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def send(server: Server, person: str, **message: Any) -> None:
    answer = server.http.post(
        "/simulator/api/send", json={"person": person, **message}, headers={"Origin": server.url}
    )
    assert answer.status_code == 200, answer.text


def answered(server: Server, person_count: int) -> None:
    sent = "SELECT 1 FROM outbox WHERE state = 'sent'"
    wait_for(lambda: len(server.rows(sent)) >= person_count, f"{person_count} messages")


async def test_a_day_by_voice_picture_file_place_and_choice(
    server: Server, model: ModelServer, page: Page, tmp_path: Path
) -> None:
    shots = Path(os.environ.get("RECADO_SCREENSHOTS") or tmp_path)
    model.hear = lambda data: HEARD
    place = {"latitude": 19.432608, "longitude": -99.133209, "name": "", "address": ""}
    invoice = {
        "type": "document",
        "data": b64(pdf(*INVOICE)),
        "mime_type": "application/pdf",
        "filename": "factura.pdf",
        "caption": "¿Cuánto es el total y cuándo vence?",
    }
    ticket = {"type": "image", "data": b64(receipt()), "mime_type": "image/jpeg", "caption": "¿Qué decía?"}
    steps: list[tuple[dict[str, Any], int]] = [
        ({"type": "voice", "data": b64(canned_clip()), "mime_type": "audio/ogg"}, 1),
        (ticket, 2),
        (invoice, 3),
        ({"type": "text", "text": "Hazme un gráfico de mis gastos"}, 5),
        ({"type": "location", "location": place}, 6),
    ]
    for message, answers in steps:
        send(server, "ana", **message)
        answered(server, answers)
    await page.open(server.simulator, 1100, 900)
    await choose(page, "Ana")
    shown = await page.until(
        "document.querySelectorAll('#log .row').length >= 11 && document.querySelector('#log').innerText"
    )
    for words in (f"✓ {HEARD}", "186", "4,580.00 MXN · 15/12/2026", "Pizzería Roma"):
        assert words in shown
    assert await page.evaluate("document.querySelectorAll('#log .map').length") == 1
    await page.until("[...document.querySelectorAll('#log img.picture')].every((one) => one.naturalWidth)")
    await page.evaluate("document.querySelectorAll('#log .choice')[1].click()")
    answered(server, 7)
    await page.until("document.querySelector('#log').innerText.includes('✓ Tacos El Güero')")
    for width, height, wide in ((1280, 800, "desktop"), (390, 844, "phone")):
        await page.open(server.simulator, width, height)
        await choose(page, "Ana")
        await page.until("document.querySelectorAll('#log .row').length >= 13")
        await page.until("[...document.querySelectorAll('#log img')].every((one) => one.complete)")
        await page.screenshot(shots / f"media-ana-{wide}.png")
