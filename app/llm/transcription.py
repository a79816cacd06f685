"""Voice notes as text: by an OpenAI-compatible endpoint, or by faster-whisper on this machine."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Protocol

import structlog

from app.errors import RecadoError
from app.processes.host import Command, HostedProcess, kept_environment
from app.settings import Settings
from app.text import Private

log = structlog.get_logger(__name__)

SECONDS = 60.0
LOCAL_SECONDS = 120.0  # on a small machine; the first note also loads the model
IDLE_SECONDS = 600.0
ATTEMPTS = 2
PAUSE_SECONDS = 1.0
LONGEST_TRANSCRIPT = 20_000  # characters: an hour of speech
LOCAL = "local:"
_PROGRAM = Path(__file__).absolute().with_name("whisper_program.py")
_ENDINGS = {"audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/aac": ".aac", "audio/amr": ".amr"}
_NO_SUCH_SERVICE = frozenset({401, 403, 404, 405, 501})


class NotTranscribed(RecadoError):
    """A voice note has no transcript; `final` if the note is at fault, so that no other try gives one."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcribe(self, file: Path, mime_type: str, language: str) -> str:
        """Return what is said in a file, "" for silence; `language` ("es") is a hint.

        Raises NotTranscribed.
        """

    async def close(self) -> None: ...


def build_transcriber(settings: Settings) -> Transcriber | None:
    """Return what transcribes as the settings say, None where nothing does."""
    model = settings.transcription_model
    if model.startswith(LOCAL):
        return LocalTranscriber(Path(model.removeprefix(LOCAL)).expanduser())
    if not model or not (settings.transcription_base_url or settings.has_model):
        return None
    return EndpointTranscriber(settings)


class EndpointTranscriber:
    """`POST {base}/audio/transcriptions` of any OpenAI-compatible endpoint."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.transcription_url
        self._key = settings.transcription_key
        self._model = settings.transcription_model

    async def close(self) -> None: ...

    async def transcribe(self, file: Path, mime_type: str, language: str) -> str:
        data = await asyncio.to_thread(file.read_bytes)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return (await self._post(f"voice{_ending(mime_type)}", data, language))[:LONGEST_TRANSCRIPT]
            except NotTranscribed as error:
                log.warning("a voice note was not transcribed", reason=Private(error), attempt=attempt)
                if error.final or attempt == ATTEMPTS:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError("unreachable")

    async def _post(self, name: str, data: bytes, language: str) -> str:
        from openai import APIError, APIStatusError, omit

        from app.llm.connection import open_client

        opening = asyncio.to_thread(open_client, self._url, self._key)
        try:
            async with asyncio.timeout(SECONDS), await opening as client:
                answer = await client.audio.transcriptions.create(
                    file=(name, data), model=self._model, language=language or omit, response_format="json"
                )
        except APIStatusError as error:
            final = 400 <= error.status_code < 500 and error.status_code not in {*_NO_SUCH_SERVICE, 408, 429}
            raise NotTranscribed(f"the endpoint answered {error.status_code}", final=final) from error
        except TimeoutError as error:
            raise NotTranscribed(f"no answer within {SECONDS:g} s") from error
        except (APIError, OSError, ValueError) as error:
            raise NotTranscribed(f"no answer: {type(error).__name__}") from error
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise NotTranscribed("the answer holds no text")
        return text.strip()


class LocalTranscriber:
    """faster-whisper in a process of its own, which ends when no note came for a while.

    `folder` holds the model, put there by the operator: nothing is downloaded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: HostedProcess | None = None
        self._one_at_a_time = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        await self._end()

    async def transcribe(self, file: Path, mime_type: str, language: str) -> str:
        async with self._one_at_a_time:
            self._end_later()
            try:
                async with asyncio.timeout(LOCAL_SECONDS):
                    process = self._process or await self._start()
                    asked = {"file": str(file), "language": language}
                    process.input.write(json.dumps(asked).encode() + b"\n")
                    await process.input.drain()
                    line = await process.output.readline()
                answer = json.loads(line)
                if "error" in answer:
                    raise NotTranscribed(str(answer["error"]), final=True)
                return str(answer["text"]).strip()[:LONGEST_TRANSCRIPT]
            except (OSError, ValueError, TimeoutError) as error:
                printed = str(self._process.printed) if self._process is not None else ""
                await self._end()
                log.warning("faster-whisper gave no transcript", reason=Private(f"{error} {printed}"))
                raise NotTranscribed(f"faster-whisper gave no answer: {type(error).__name__}") from error

    async def _start(self) -> HostedProcess:
        if not self._folder.is_dir():
            raise FileNotFoundError(f"there is no model in {self._folder}")
        environment = {**kept_environment("PYTHONPATH", "HOME"), "HF_HUB_OFFLINE": "1"}
        command = Command([sys.executable, str(_PROGRAM), str(self._folder)], environment, piped=True)
        self._process = await HostedProcess.start(command)
        return self._process

    def _end_later(self) -> None:
        """End the process once it was idle for a while, from now on."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        self._ending = asyncio.create_task(self._end(), name="end faster-whisper")

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                await process.end()


def _ending(mime_type: str) -> str:
    """Return the file ending by which an endpoint knows the format; WhatsApp's own is Ogg Opus."""
    return _ENDINGS.get(mime_type.partition(";")[0].strip().lower(), ".ogg")
