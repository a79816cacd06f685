"""Files on the disk: what they are, how they are called, whose they are, and when they go."""

import os
import threading
import time
from contextlib import suppress

import pytest

from app.store.media import LARGEST, MediaFolder, NotKept

PNG = b"\x89PNG\r\n\x1a\n" + b"a picture"
JPEG = b"\xff\xd8\xff\xe0" + b"a photo"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
OPUS = b"OggS" + bytes(24) + b"OpusHead" + bytes(20)
MP4 = bytes(4) + b"ftypisom" + bytes(20)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("data", "said_type", "name", "expected"),
    [
        (PNG, "image/png", "chart.png", ("image", "image/png", "chart.png")),
        (JPEG, "image/jpg", "", ("image", "image/jpeg", "file.jpg")),
        (JPEG, "image/png", "photo.png", ("image", "image/jpeg", "photo.png.jpg")),
        (JPEG, "", "photo.JPEG", ("image", "image/jpeg", "photo.JPEG")),
        (SVG, "image/svg+xml", "logo.svg", ("document", "text/plain", "logo.svg")),
        (SVG, "image/png", "logo.png", ("document", "text/plain", "logo.png")),
        (b"<h1>hi</h1>", "text/html", "page.html", ("document", "text/plain", "page.html")),
        (b"a,b\n", "text/csv; charset=utf-8", "", ("document", "text/plain", "file.txt")),
        (b"%PDF-1.4", "application/octet-stream", "report", ("document", "application/pdf", "report.pdf")),
        (b"%PDF-1.4", "application/pdf", "report.exe", ("document", "application/pdf", "report.exe.pdf")),
        (b"PK\x03\x04\0", DOCX, "letter.docx", ("document", DOCX, "letter.docx")),
        (OPUS, "audio/ogg", "voice.ogg", ("audio", "audio/ogg", "voice.ogg")),
        (MP4, "video/mp4", "film.mp4", ("video", "video/mp4", "film.mp4")),
        (MP4, "audio/mp4", "song.m4a", ("audio", "audio/mp4", "song.m4a")),
        (PNG, "image/png", "../../.ssh/keys", ("image", "image/png", "keys.png")),
        (PNG, "image/png", "C:\\x\\a.png", ("image", "image/png", "a.png")),
        (PNG, "image/png", "a\u202egnp\r\n\x00.png", ("image", "image/png", "a_gnp___.png")),
        (PNG, "image/png", 'a"; filename="b.png', ("image", "image/png", "a_; filename=_b.png")),
        (PNG, "image/png", "..", ("image", "image/png", "file.png")),
        (PNG, "image/png", "x" * 9000, ("image", "image/png", "x" * 76 + ".png")),
    ],
)
def test_what_a_file_is_is_told_by_its_bytes_and_its_name_is_made_safe(
    tmp_path, data, said_type, name, expected
):
    media = MediaFolder(tmp_path / "media")
    file = media.keep("person_1", data, said_type, name)
    assert (file.kind, file.mime_type, file.name) == expected
    assert media.absolute(file.path).resolve().parent == (tmp_path / "media" / "person_1").resolve()
    assert media.read(file) == data


def test_what_whatsapp_does_not_take_is_not_kept(tmp_path):
    for data, said_type in [
        (b"", "image/png"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"PK\x03\x04\0", "application/zip"),
        (bytes(100), "image/png"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (PNG + bytes(5 * 1024 * 1024), "image/png"),
        (b"%PDF-" + bytes(LARGEST), "application/pdf"),
    ]:
        with pytest.raises(NotKept):
            MediaFolder(tmp_path / "media").keep("person_1", data, said_type, "a")
    for person in ("", "..", "a/b", "a\0"):  # an id that is no plain name
        with pytest.raises(NotKept):
            MediaFolder(tmp_path / "media").keep(person, PNG, "image/png", "a.png")
    assert not (tmp_path / "media").exists()


def test_a_file_that_is_asked_for_again_while_the_old_ones_go_is_never_lost(tmp_path):
    media = MediaFolder(tmp_path / "media")
    file = media.keep("person_1", PNG, "image/png", "a.png")
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            media.discard_old(time.time())

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for _ in range(200):
            with suppress(FileNotFoundError):  # gone already
                os.utime(media.absolute(file.path), (0, 0))
            assert media.read(media.keep("person_1", PNG, "image/png", "a.png")) == PNG
    finally:
        stop.set()
        thread.join()
