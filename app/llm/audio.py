"""Voice notes as text, by an OpenAI-compatible endpoint or faster-whisper on this machine; text as speech."""

import asyncio
import json
import sys
from pathlib import Path

import structlog

from app.errors import RecadoError
from app.i18n import lazy
from app.processes.host import Command, HostedProcess, kept_environment
from app.settings import OPENAI_URL, Settings
from app.text import Private

log = structlog.get_logger(__name__)

SECONDS = 60.0
LOCAL_SECONDS = 120.0  # on a small machine, to load the model too
LONGEST_TRANSCRIPT = 20_000  # characters: an hour of speech
LONGEST_SPEECH = 1_200  # characters: a minute and a half
LARGEST_SPEECH = 512 * 1024  # bytes: more has no play icon in WhatsApp
DEFAULT_VOICE = "alloy"
LOCAL = "local:"
_PROGRAM = Path(__file__).absolute().with_name("whisper_program.py")
_ENDINGS = {"audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/aac": ".aac", "audio/amr": ".amr"}
_NO_SUCH_SERVICE = frozenset({401, 403, 404, 405, 501})


class NotTranscribed(RecadoError):
    """A voice note has no transcript; `final` if the note is at fault, so that no other try gives one."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class EndpointTranscriber:
    """`POST {base}/audio/transcriptions` of any OpenAI-compatible endpoint."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def transcribe(self, file: Path, mime_type: str, language: str) -> str:
        """Return what is said in a file, "" for silence; `language` is a hint. Raises NotTranscribed."""
        from openai import APIError, APIStatusError, omit

        from app.llm.connection import open_client

        url, key = self._settings.transcription_url, self._settings.transcription_key
        data = await asyncio.to_thread(file.read_bytes)
        ending = _ENDINGS.get(mime_type.partition(";")[0].strip().lower(), ".ogg")  # WhatsApp's is Ogg Opus
        opening = asyncio.to_thread(open_client, url, key, max_retries=1)
        try:
            async with asyncio.timeout(SECONDS), await opening as client:
                answer = await client.audio.transcriptions.create(
                    file=(f"voice{ending}", data),
                    model=self._settings.transcription_model,
                    language=language or omit,
                    response_format="json",
                )
        except APIStatusError as error:
            status = error.status_code
            final = 400 <= status < 500 and status not in {*_NO_SUCH_SERVICE, 408, 429}
            reason = lazy("the endpoint answered {status}", status=status)
            raise NotTranscribed(reason, final=final) from error
        except TimeoutError as error:
            raise NotTranscribed(lazy("no answer within {seconds} s", seconds=f"{SECONDS:g}")) from error
        except (APIError, OSError, ValueError) as error:
            raise NotTranscribed(lazy("no answer: {reason}", reason=type(error).__name__)) from error
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise NotTranscribed(lazy("the answer holds no text"))
        return text.strip()[:LONGEST_TRANSCRIPT]


class LocalTranscriber:
    """faster-whisper, in a process for each note.

    `folder` holds the model, put there by the operator: nothing is downloaded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = asyncio.Lock()

    async def transcribe(self, file: Path, mime_type: str, language: str) -> str:
        """Do as `EndpointTranscriber.transcribe` does."""
        environment = {**kept_environment("PYTHONPATH", "HOME"), "HF_HUB_OFFLINE": "1"}
        args = [sys.executable, str(_PROGRAM), str(self._folder), str(file), language]
        async with self._one_at_a_time:
            process = await HostedProcess.start(Command(args, environment, piped=True))
            try:
                async with asyncio.timeout(LOCAL_SECONDS):
                    answer = json.loads(await process.output.readline())
            except (OSError, ValueError, TimeoutError) as error:
                printed = Private(f"{error} {process.printed}")
                log.warning("faster-whisper gave no transcript", reason=printed)
                raise NotTranscribed(f"faster-whisper gave no answer: {type(error).__name__}") from error
            finally:
                await process.end()
        if "error" in answer:
            raise NotTranscribed(str(answer["error"]), final=True)
        return str(answer["text"]).strip()[:LONGEST_TRANSCRIPT]


Transcriber = EndpointTranscriber | LocalTranscriber


def build_transcriber(settings: Settings) -> Transcriber | None:
    """Return what transcribes as the settings say, None where nothing does."""
    model = settings.transcription_model
    if model.startswith(LOCAL):
        return LocalTranscriber(Path(model.removeprefix(LOCAL)).expanduser())
    if not model or not (settings.transcription_base_url or settings.has_model):
        return None
    return EndpointTranscriber(settings)


class NotSpoken(RecadoError):
    """A text could not be turned into speech."""


class Speech:
    """`context.services.speech`: speaks by `POST {base}/audio/speech` of the model's endpoint.

    With `SPEECH_MODEL` and `SPEECH_VOICE`; `is_on` is False without a model.
    """

    error = NotSpoken

    def __init__(self, settings: Settings) -> None:
        self.is_on = bool(settings.speech_model)
        self._settings = settings

    async def speak(self, text: str) -> bytes:
        """Return a text of up to `LONGEST_SPEECH` characters as Ogg Opus. Raises NotSpoken."""
        from openai import APIError

        from app.llm.connection import open_client

        url = self._settings.openai_base_url or OPENAI_URL
        key = self._settings.openai_api_key.get_secret_value()
        try:
            async with asyncio.timeout(SECONDS), await asyncio.to_thread(open_client, url, key) as client:
                answer = await client.audio.speech.create(
                    model=self._settings.speech_model,
                    voice=self._settings.speech_voice or DEFAULT_VOICE,
                    input=text[:LONGEST_SPEECH],
                    response_format="opus",
                )
                data = await answer.aread()
        except (APIError, OSError, ValueError, TimeoutError) as error:
            raise NotSpoken(f"the endpoint gave no speech: {type(error).__name__}") from error
        if not data.startswith(b"OggS") or len(data) > LARGEST_SPEECH:
            raise NotSpoken("what the endpoint gave is no Ogg Opus")
        return data
