"""Voice notes, pictures and documents that people send: fetched and read once, answered honestly."""

import asyncio
import base64
import io
import json
import threading
import time
from typing import Any

import pytest
from PIL import Image
from starlette.responses import Response

from app.simulator.graph import canned_clip
from tests.standins.model import ModelServer, caller, calls, echo, last_user_text, none_needed, routed
from tests.tools import papers
from tests.world import ROOT, wait_for

VOICE = {"type": "voice", "data": base64.b64encode(canned_clip()).decode(), "mime_type": "audio/ogg"}


def last_message(body: dict[str, Any]) -> dict[str, Any]:
    return body["messages"][-1]


def newest(model: ModelServer) -> dict[str, Any]:
    return last_message(model.main_calls[-1])


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def pictures_in(body: dict[str, Any]) -> list[Image.Image]:
    """The pictures of a request, opened."""
    return [
        Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2])))
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def photo(width: int = 40, height: int = 20) -> str:
    """A JPEG that lies on its side and says where it was taken."""
    picture, written = Image.new("RGB", (width, height), "red"), io.BytesIO()
    exif = picture.getexif()
    exif[0x0112] = 6  # turned by a quarter
    exif.get_ifd(0x8825)[2] = (19.0, 25.0, 57.0)
    picture.save(written, "JPEG", exif=exif)
    return base64.b64encode(written.getvalue()).decode()


def document(data: bytes, name: str, mime_type: str = "application/pdf") -> dict[str, Any]:
    content = base64.b64encode(data).decode()
    return {"type": "document", "data": content, "mime_type": mime_type, "filename": name}


@pytest.fixture
def chat(town):
    """The server that stands for many tests, its model, and a person who has not written yet."""
    yield town.graph, town.model, town.newcomer()
    town.model.hear = None
    town.model.heard.clear()


def test_a_voice_note_is_answered_as_what_was_said_in_it(chat):
    graph, model, person = chat
    model.hear = lambda data: "recuérdame comprar leche"
    graph.ask(person, "buenos días, ¿qué tal?")
    wamid = graph.inbound({"person": person, **VOICE})[0]
    assert graph.reply(person, 2) == "you said: recuérdame comprar leche"
    assert "transcribed" in text_of(newest(model))
    graph.inbound({"person": person, **VOICE, "id": wamid})  # a redelivery
    graph.say(person, "gracias")
    graph.reply(person, 3)
    assert [(one["model"], one["language"], one["file"]) for one in model.heard] == [
        ("whisper-1", "es", "voice.ogg")
    ]
    assert "recuérdame comprar leche" in str(model.main_calls[-1]["messages"])


@routed("files")
def asks_to_write(body: dict[str, Any]) -> Any:
    """Plays a model that asks to write a file, and says what became of it."""
    if "escribe el archivo" in last_user_text(body) and body["messages"][-1]["role"] == "user":
        return calls(("write_file", {"path": "a.txt", "content": "hola"}))
    return f"done: {text_of(body['messages'][-1])[:60]}"


def asked_to_write(graph: Any, person: str) -> list[dict[str, Any]]:
    """The buttons of a question that waits for the person."""
    graph.say(person, "escribe el archivo")
    wait_for(lambda: graph.sends(person), "the question")
    return [one["reply"] for one in graph.sends(person)[-1]["body"]["interactive"]["action"]["buttons"]]


def test_a_yes_counts_in_the_persons_own_voice_and_not_in_a_forwarded_one(chat, town):
    graph, model, person = chat
    other, yes = town.newcomer(), "SELECT 1 FROM approvals WHERE state = 'yes'"
    before = len(town.server.rows(yes))
    model.hear, model.play = (lambda data: "sí"), asks_to_write
    asked_to_write(graph, person)
    graph.inbound({"person": person, **VOICE, "forwarded": True})
    graph.inbound({"person": person, "type": "audio", "data": VOICE["data"], "mime_type": "audio/ogg"})
    wait_for(lambda: len(model.heard) == 2, "both to be heard")
    graph.reply(person, 2)
    assert len(town.server.rows(yes)) == before
    asked_to_write(graph, other)
    graph.inbound({"person": other, **VOICE})
    wait_for(lambda: len(town.server.rows(yes)) > before, "the yes")
    graph.say(person, "/stop")


def test_a_press_is_taken_while_a_file_is_read(chat, town):
    graph, model, person = chat
    server, pressed = town.server, threading.Event()

    async def slow(data: bytes) -> str:
        await asyncio.to_thread(pressed.wait, 20)
        return "hola"

    model.hear, model.play = slow, asks_to_write
    *_, no = asked_to_write(graph, person)
    graph.inbound({"person": person, **VOICE})
    wait_for(lambda: model.heard, "the note to be heard")
    graph.inbound({"person": person, "type": "button", "reply": no})
    wait_for(lambda: server.rows("SELECT 1 FROM approvals WHERE state = 'no'"), "the no", 10)
    pressed.set()


def test_a_model_that_neither_hears_nor_sees_is_remembered_and_the_person_told(make_world, model):
    def blind(body: dict[str, Any]) -> Any:
        if pictures_in(body):
            return Response('{"error": {"message": "this model does not support image input"}}', 400)
        return echo(body)

    played = model(blind)
    server, graph = make_world(model=played)
    graph.inbound({"person": "p1", **VOICE})
    graph.reply("p1")
    assert "cannot listen" in text_of(newest(played))
    assert server.rows("SELECT reason FROM attachments")[0]["reason"] == "unheard"
    for count in (2, 3):
        graph.inbound({"person": "p1", "type": "image", "data": photo(), "mime_type": "image/jpeg"})
        graph.reply("p1", count)
    assert "cannot see" in text_of(newest(played))
    assert len([body for body in played.requests if pictures_in(body)]) == 1


def test_an_endpoint_that_fails_gets_an_honest_answer(chat):
    graph, model, person = chat
    answers = [Response("no", 400), Response("{}", 200), Response("<html>", 500)]
    model.hear = lambda data: answers[len(model.heard) - 1]
    for count in (1, 2, 3):
        graph.inbound({"person": person, **VOICE})
        graph.reply(person, count)
        assert "say so" in text_of(newest(model))


def test_a_model_sees_pictures_upright_small_and_without_where_they_were_taken_and_in_later_turns(chat, town):
    graph, model, person = chat
    people, before = town.server.folder / "workspace" / "people", time.time()

    def play(body: dict[str, Any]) -> Any:
        if none := none_needed(body):
            return none
        if "otra vez" in text_of(body["messages"][-1]) and body["messages"][-1]["role"] == "user":
            path = json.dumps(body["messages"], ensure_ascii=False).split("kept as ")[1].split('\\"')[1]
            return calls(("look_at_picture", {"path": path}))
        return "vi la foto" if pictures_in(body) else "no vi nada"

    model.play = play
    graph.inbound({"person": person, "type": "image", "data": photo(4000, 2000), "mime_type": "image/jpeg"})
    assert graph.reply(person) == "vi la foto"
    [picture] = pictures_in(model.main_calls[0])
    assert picture.size == (800, 1600)
    assert not picture.getexif()
    [kept] = [path for path in people.rglob("*.jpg") if path.stat().st_mtime > before]
    assert not Image.open(kept).getexif()
    assert graph.ask(person, "mira otra vez la foto que te mandé") == "vi la foto"


def test_a_documents_words_are_in_the_prompt_and_the_file_is_the_persons(chat, town):
    graph, model, person = chat
    server, other = town.server, town.newcomer()
    data = papers.pdf("Factura 12", "Servicios de noviembre", "Total 4,580.00 MXN\nVence el 15 de diciembre")
    graph.inbound({"person": person, **document(data, "factura.pdf"), "caption": "cuánto es el total?"})
    graph.reply(person)
    prompt = text_of(newest(model))
    for words in ("4,580.00", "15 de diciembre", "cuánto es el total?"):
        assert words in prompt
    [kept] = (server.folder / "workspace" / "people").rglob("factura.pdf")
    assert kept.read_bytes() == data

    @routed("files")
    def find(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "user":
            return calls(("list_files", {"words": "servicio noviembre"}))
        return body["messages"][-1]["content"]

    model.play = find
    for who, found in ((person, True), (other, False)):
        assert ("factura.pdf" in graph.ask(who, "¿dónde está la factura de los servicios?")) is found


SLIDE = (
    '<p:sld xmlns:p="p" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
    "<a:p><a:r><a:t>Plan 2027</a:t></a:r></a:p></p:sld>"
)


def test_documents_of_each_kind_are_read_or_their_fault_is_said(chat, town):
    graph, model, _ = chat
    chapters = papers.pdf(*(f"Capitulo {n}\n" + "palabras " * 300 for n in range(40)))
    files = {
        "charla.pptx": (papers.packed({"ppt/slides/slide1.xml": SLIDE}), "Plan 2027"),
        "lista.csv": (b"pan,12\nleche,30\n", "leche,30"),
        "cita.ics": (b"BEGIN:VEVENT\nSUMMARY:Dentista\nEND:VEVENT\n", "Dentista"),
        "roto.pdf": (b"%PDF-1.4 nothing", "damaged"),
        "secreto.pdf": (papers.locked_pdf(), "protected by a password"),
        "largo.pdf": (chapters, "page 1 of"),
        "roto.docx": (b"PK\x03\x04 nothing", "damaged"),
        "cosa.bin": (bytes(range(256)) * 9, "damaged"),
    }
    people = {name: town.newcomer() for name in files}
    for name, person in people.items():
        graph.inbound({"person": person, **document(files[name][0], name, "application/octet-stream")})
    for person in people.values():
        graph.reply(person)
    texts = [text_of(last_message(body)) for body in model.main_calls]
    read = {name: text for name in files for text in texts if name in text}
    assert {name: text for name, text in read.items() if files[name][1] not in text} == {}
    assert read.keys() == files.keys()


def test_a_scanned_pdf_is_shown_as_pictures(chat):
    graph, model, person = chat
    written = io.BytesIO()
    Image.new("RGB", (300, 400), "white").save(written, "PDF")
    graph.inbound({"person": person, **document(written.getvalue(), "escaneo.pdf")})
    graph.reply(person)
    assert [picture.size for picture in pictures_in(model.main_calls[-1])] == [(300, 400)]


def test_numbers_are_drawn_as_a_picture(chat, town):
    graph, model, person = chat
    numbers = {"title": "Gastos", "labels": ["renta", "luz"], "values": [8000, 600]}
    model.play = caller(("chart", numbers), to="charts")
    graph.say(person, "hazme un gráfico de mis gastos: renta 8000, luz 600")
    wait_for(lambda: len(graph.sends(person)) == 2, "the text and the picture")
    assert graph.sends(person)[1]["body"]["type"] == "image"
    [kept] = (town.server.folder / "media").rglob("*.png")
    assert Image.open(kept).size == (1080, 720)


STAND_IN_WHISPER = """
class Part:
    def __init__(self, text):
        self.text = text


class WhisperModel:
    def __init__(self, folder, **options):
        assert options["local_files_only"]

    def transcribe(self, file, language=None, **options):
        data = open(file, "rb").read()
        if data.endswith(b"#broken"):
            raise ValueError("no audio")
        return [Part(" comprar "), Part("pan")], None
"""


def test_voice_notes_are_transcribed_on_this_machine(make_world, model, tmp_path):
    package, weights = tmp_path / "packages", tmp_path / "small"
    package.mkdir()
    weights.mkdir()
    (package / "faster_whisper.py").write_text(STAND_IN_WHISPER)
    paths = f"{package}:{ROOT}"
    played = model(echo)
    _, graph = make_world(model=played, TRANSCRIPTION_MODEL=f"local:{weights}", PYTHONPATH=paths)
    graph.inbound({"person": "p1", **VOICE})
    assert graph.reply("p1") == "you said: comprar pan"
    broken = base64.b64encode(canned_clip() + b"#broken").decode()
    graph.inbound({"person": "p1", **VOICE, "data": broken})
    graph.reply("p1", 2)
    assert "damaged" in text_of(newest(played))
    graph.inbound({"person": "p1", **VOICE})
    assert graph.reply("p1", 3) == "you said: comprar pan"
    assert played.heard == []


@pytest.mark.slow
def test_a_note_is_fetched_at_the_second_try_and_its_answer_spoken(make_world, model):
    @routed("voice")
    def play(body: dict[str, Any]) -> Any:
        if "audio" in last_user_text(body) and last_message(body)["role"] == "user":
            return calls(("answer_with_voice", {"text": "Mañana llueve en Lima"}))
        return "Mañana llueve en Lima."

    played = model(play)
    played.hear = lambda data: "respóndeme con audio: ¿llueve mañana?"
    server, graph = make_world(model=played, SPEECH_MODEL="tts-1", SWEEP_SECONDS="0.05")
    graph.ask("p1", "hola")
    wait_for(lambda: not graph.log()["pending"], "the statuses")
    graph.faults(offline=True)
    graph.inbound({"person": "p1", **VOICE})
    wait_for(lambda: server.rows("SELECT 1 FROM attachments WHERE attempts = 1"), "the first try")
    time.sleep(0.3)  # in which it fails; the second comes a second later, whatever is swept meanwhile
    graph.faults(offline=False)
    wait_for(lambda: len(graph.sends("p1")) == 3, "the text and the recording")
    text, recording = (entry["body"] for entry in graph.sends("p1")[1:])
    assert text["text"]["body"] == "Mañana llueve en Lima."
    assert recording["audio"]["voice"] is True
    assert played.spoken[0]["response_format"] == "opus"


def test_a_location_sets_the_time_zone_after_the_persons_yes(chat, town):
    graph, model, person = chat

    @routed("datetime")
    def play(body: dict[str, Any]) -> Any:
        if "sí, úsala" in last_user_text(body) and body["messages"][-1]["role"] == "user":
            return calls(("set_time_zone", {"place": "32.51,-117.04"}))
        return "¿Uso tu ubicación para la hora?"

    model.play = play
    place = {"latitude": 32.51, "longitude": -117.04}
    graph.inbound({"person": person, "type": "location", "location": place})
    graph.reply(person)
    assert "32.51" in text_of(newest(model))
    graph.ask(person, "sí, úsala")
    assert town.server.rows("SELECT 1 FROM people WHERE timezone = 'America/Tijuana'")
