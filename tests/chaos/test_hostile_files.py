"""Files that are made to hurt: each gets an honest answer, and the server keeps its memory and its disk."""

import base64
import io
import threading
import zipfile
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfWriter

from app.simulator.graph import canned_clip
from tests.standins.model import echo, last_user_text
from tests.world import wait_for

pytestmark = pytest.mark.slow

MB = 1024 * 1024
MOST_GROWTH = 60 * MB


def zip_bomb(name: str) -> bytes:
    """Return an Office file of which one part unpacks to half a gigabyte."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as part,
    ):
        for _ in range(512):
            part.write(bytes(MB))
    return written.getvalue()


def png_bomb() -> bytes:
    """A PNG of 50,000 by 50,000 pixels in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (50_000).to_bytes(4, "big")
    rows = zlib.compress(bytes(4 * MB), 9)
    head = chunk(b"IHDR", size + size + b"\x08\x02\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def long_picture() -> bytes:
    written = io.BytesIO()
    Image.new("L", (20_000, 2_000), 200).save(written, "JPEG")
    return written.getvalue()


def animated() -> bytes:
    written, frames = io.BytesIO(), [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    frames[0].save(written, "WEBP", save_all=True, append_images=frames[1:])
    return written.getvalue()


def forty_pages() -> bytes:
    written, writer = io.BytesIO(), PdfWriter()
    for _ in range(40):
        writer.add_blank_page(300, 300)
    writer.write(written)
    return written.getvalue()


OFFICE = "application/vnd.openxmlformats-officedocument"
FILES = {
    "a picture of 20,000 pixels": ("image", long_picture, "image/jpeg", "", "picture"),
    "an animated sticker": ("sticker", animated, "image/webp", "", "sticker"),
    "a picture that unpacks to far too much": ("image", png_bomb, "image/png", "", "damaged"),
    "a Word file that unpacks to far too much": (
        *("document", lambda: zip_bomb("word/document.xml"), f"{OFFICE}.wordprocessingml.document"),
        *("a.docx", "damaged"),
    ),
    "an Excel file that unpacks to far too much": (
        *("document", lambda: zip_bomb("xl/workbook.xml"), f"{OFFICE}.spreadsheetml.sheet"),
        *("a.xlsx", "damaged"),
    ),
    "a document of 99 MB": ("document", lambda: bytes(99 * MB), "application/pdf", "g.pdf", "too large"),
    "audio of 16 MB": ("audio", lambda: canned_clip() + bytes(16 * MB - 4096), "audio/ogg", "", "you said"),
    "text that says it is a picture": ("image", lambda: b"hello", "image/jpeg", "", "damaged"),
    "a picture that says it is a PDF": ("document", long_picture, "application/pdf", "f.pdf", "kept as"),
    "a PDF of 40 empty pages": ("document", forty_pages, "application/pdf", "v.pdf", "holds no words"),
}


def resident(server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_hostile_files_get_honest_answers_and_cost_no_memory(make_world, model):
    played = model(echo)
    played.hear = lambda data: "un audio largo"
    server, graph = make_world(model=played)
    graph.inbound({"person": "p1", "type": "voice"})
    graph.reply("p1")
    graph.inbound({"person": "p1", "type": "image", "data": b64(animated()), "mime_type": "image/webp"})
    graph.reply("p1", 2)
    before = resident(server)
    for count, (name, (kind, make, mime_type, filename, found)) in enumerate(FILES.items(), 3):
        message = {"type": kind, "data": b64(make()), "mime_type": mime_type, "filename": filename}
        graph.inbound({"person": "p1", **message})
        graph.reply("p1", count, seconds=90)
        prompt = last_user_text(played.main_calls[-1])
        assert found in prompt or found == "you said", f"{name}: {prompt}"
    assert resident(server) - before < MOST_GROWTH
    assert not list((server.folder / "media").rglob("in-*"))


class _Endless(BaseHTTPRequestHandler):
    """Answers for a file's address, and then never stops sending it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        if self.path.startswith("/endless"):
            while True:
                self.wfile.write(bytes(64 * 1024))
        self.wfile.write(
            b'{"url": "http://%s/endless", "mime_type": "application/pdf"}' % self.headers["Host"].encode()
        )

    def log_message(self, *_: object) -> None: ...


def test_an_address_that_never_ends_is_left(make_world, model):
    played = model(echo)
    server, graph = make_world(model=played, start=False)
    meta = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    threading.Thread(target=meta.serve_forever, daemon=True).start()
    server.env["WHATSAPP_API_URL"] = f"http://127.0.0.1:{meta.server_port}"
    server.start()
    graph.inbound({"person": "p1", "type": "document", "data": b64(b"%PDF-"), "mime_type": "application/pdf"})
    wait_for(lambda: played.main_calls, "the prompt")
    assert "too large" in last_user_text(played.main_calls[0])
    meta.shutdown()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
