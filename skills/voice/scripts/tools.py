"""Answers as voice notes."""

from app.tools.authoring import Sentences, read_said
from app.tools.result import ReturnedFile, ToolResult

SAID = read_said(__file__)


async def answer_with_voice(text: str, context=None) -> ToolResult:
    """Speaks a text as a voice note that goes with the answer. Only when the person asks for audio.

    Args:
        text: What to say, in the person's language, as one would say it aloud.

    Example: respóndeme con audio
    Example: me manda em áudio
    """
    say, speech = Sentences(SAID, context), context.services.get("speech")
    if not text.strip():
        return ToolResult.of(say.failed("EMPTY", code="BAD_REQUEST"))
    if speech is None or not speech.is_on:
        return ToolResult.of(say.failed("UNAVAILABLE"))
    try:
        spoken = await speech.speak(text.strip())
    except speech.error:
        return ToolResult.of(say.failed("UNAVAILABLE"))
    recording = ReturnedFile(spoken, "audio/ogg", "audio.ogg")
    return ToolResult(ok=True, data={"spoken": len(text)}, attachments=(recording,))
