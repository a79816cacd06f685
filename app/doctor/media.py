"""Checks of what people send besides text: voice notes and pictures."""

import asyncio
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

from app.doctor.finding import Finding, fail, ok, warn
from app.llm.transcription import LOCAL, EndpointTranscriber, NotTranscribed, build_transcriber
from app.settings import Settings

_MODELS = "docs/models.md"


def check_voice(settings: Settings) -> Iterator[Finding]:
    """Say what transcribes voice notes; an endpoint is tried with three seconds of silence."""
    model = settings.transcription_model
    if model.startswith(LOCAL):
        yield _local(Path(model.removeprefix(LOCAL)).expanduser())
        return
    transcriber = build_transcriber(settings)
    if not isinstance(transcriber, EndpointTranscriber):
        cure = f"set TRANSCRIPTION_BASE_URL, or a model in a folder: {_MODELS}"
        yield ok("voice notes", "nothing transcribes them; people are told so", cure)
        return
    try:
        asyncio.run(_try(transcriber))
    except NotTranscribed as error:
        cure = f"set TRANSCRIPTION_BASE_URL, or TRANSCRIPTION_MODEL= for none: {_MODELS}"
        told = warn if settings.transcription_base_url else ok  # few servers of models transcribe, too
        yield told("voice notes", f"{settings.transcription_url} does not transcribe: {error}", cure)
    else:
        yield ok("voice notes", f"{model} transcribes them")


def _local(folder: Path) -> Finding:
    if not folder.is_dir():
        cure = "put a faster-whisper model there: nothing is downloaded by itself"
        return fail("voice notes", f"there is no folder {folder}", cure)
    if importlib.util.find_spec("faster_whisper") is None:
        return fail("voice notes", "faster-whisper is not installed", "pip install 'recado[voice]'")
    return ok("voice notes", f"faster-whisper transcribes them with {folder.name}")


async def _try(transcriber: EndpointTranscriber) -> None:
    from app.simulator.media import canned_clip

    with tempfile.NamedTemporaryFile(suffix=".ogg") as file:
        file.write(canned_clip())
        file.flush()
        await transcriber.transcribe(Path(file.name), "audio/ogg", "")
