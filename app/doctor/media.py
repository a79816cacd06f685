"""Checks of what people send besides text: voice notes and pictures."""

import asyncio
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

from app.doctor.finding import OK, WARN, Finding, Level, fail, ok
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
        # few servers of models transcribe, too
        level: Level = WARN if settings.transcription_base_url else OK
        fact = f"{settings.transcription_url} does not transcribe: {error}"
        yield Finding(level, "voice notes", fact, cure)
    else:
        yield ok("voice notes", f"{model} transcribes them")


def check_pictures(settings: Settings) -> Iterator[Finding]:
    """Say whether the model sees pictures, as far as that is known."""
    if not settings.has_model:
        return
    if settings.vision == "off":
        yield ok("pictures", "are not shown to the model (VISION=off)")
    else:
        yield ok("pictures", "are shown to the model until it refuses one")


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
