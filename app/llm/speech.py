"""Text as speech, by `POST {base}/audio/speech` of the model's endpoint: `context.services.speech`."""

import asyncio

from app.errors import RecadoError
from app.settings import OPENAI_URL, Settings

SECONDS = 60.0
LONGEST_TEXT = 1_200  # characters: a minute and a half
DEFAULT_VOICE = "alloy"
LARGEST = 512 * 1024  # more has no play icon in WhatsApp


class NotSpoken(RecadoError):
    """A text could not be turned into speech."""


class Speech:
    """Speaks with `SPEECH_MODEL` and `SPEECH_VOICE`; `is_on` is False without a model."""

    error = NotSpoken

    def __init__(self, settings: Settings) -> None:
        self.is_on = bool(settings.speech_model)
        self._settings = settings

    async def speak(self, text: str) -> bytes:
        """Return a text of up to `LONGEST_TEXT` characters as Ogg Opus. Raises NotSpoken."""
        from openai import APIError

        from app.llm.connection import open_client

        url = self._settings.openai_base_url or OPENAI_URL
        key = self._settings.openai_api_key.get_secret_value()
        try:
            async with asyncio.timeout(SECONDS), await asyncio.to_thread(open_client, url, key) as client:
                answer = await client.audio.speech.create(
                    model=self._settings.speech_model,
                    voice=self._settings.speech_voice or DEFAULT_VOICE,
                    input=text[:LONGEST_TEXT],
                    response_format="opus",
                )
                data = await answer.aread()
        except (APIError, OSError, ValueError, TimeoutError) as error:
            raise NotSpoken(f"the endpoint gave no speech: {type(error).__name__}") from error
        if not data.startswith(b"OggS") or len(data) > LARGEST:
            raise NotSpoken("what the endpoint gave is no Ogg Opus")
        return data
