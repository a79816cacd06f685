"""Checks of the models: a real tool call, a picture, the context window, and what transcribes voice notes."""

import asyncio
import importlib.util
import io
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2

from app.cli.settings import model_line
from app.i18n import lazy
from app.llm.audio import LOCAL, EndpointTranscriber, NotTranscribed, build_transcriber
from app.llm.client import ChatModel
from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.llm.reading import calls_in_text
from app.messages import JSON
from app.ops import Finding, fail, ok, warn
from app.people import Person
from app.settings import Settings
from app.tools import Tool

SMALL_WINDOW = 8192
TELL_SECONDS = 3.0

_CONNECT = lazy("connect one with OPENAI_BASE_URL (or OPENAI_API_KEY) and LLM_MODEL: docs/models.md")
_MESSAGES: list[dict[str, JSON]] = [
    {
        "role": "system",
        "content": "You never calculate yourself: for every sum you call the tool add_numbers.",
    },
    {"role": "user", "content": "How much is 20 plus 22?"},
]
_QUESTION = "Which colour fills this picture? Answer with its English name alone."
_SHOWN: list[dict[str, JSON]] = [
    {"role": "user", "content": [{"type": "text", "text": _QUESTION}, {"type": "picture", "path": "red"}]}
]


def add_numbers(first: int, second: int) -> int:
    """Adds two whole numbers and gives their sum."""
    return first + second


def check_model(settings: Settings) -> Iterator[Finding]:
    """Name the model that answers; give each real one a sum with a tool for it, and a picture."""
    told = model_line(settings)
    if not settings.has_model:
        offline = ok("model", lazy("the built-in offline model answers"), _CONNECT)
        yield warn("model", told, _CONNECT) if told else offline
        return
    for number, own in enumerate(settings.by_endpoint(), 1):
        for finding in asyncio.run(_try(own)):
            if settings.models and finding.cure:
                cure = lazy("entry {number} of MODELS: {cure}", number=number, cure=finding.cure)
                finding = replace(finding, cure=cure)
            yield finding


async def _try(settings: Settings) -> list[Finding]:
    model = ChatModel(settings)
    started = time.monotonic()
    try:
        tools = [Tool.from_function(add_numbers).get_schema()]
        answer = await model.complete(ModelRequest("answer", _MESSAGES, tools))
        seconds = time.monotonic() - started
        called = _tool_finding(answer, settings.llm_model, seconds)
        others = [*await _window(settings), *await _classifier(model, settings)]
        return [called, await _picture(settings), *others]
    except ModelError as error:
        return [fail("model", error.told, cure_of(error, settings))]
    finally:
        await model.close()


def _tool_finding(answer: ModelAnswer, name: str, seconds: float) -> Finding:
    if any(call.name == "add_numbers" for call in answer.calls):
        return ok("model", lazy("{name} answers and calls tools ({n} s)", name=name, n=f"{seconds:.1f}"))
    if calls_in_text(answer.text, ["add_numbers"], []):
        fact = lazy("{name} writes its tool calls as text; they are read", name=name)
    else:
        text = answer.text.strip()[:80] or "–"
        fact = lazy(
            "{name} answers, but did not call the tool it needed (it said: {text})", name=name, text=text
        )
    return warn("model", fact, lazy("choose a model that is made for tool calls"))


class _Red:
    """The only picture that the check shows."""

    def read_bytes(self, person: Person | None, path: str) -> bytes:
        from PIL import Image

        file = io.BytesIO()
        Image.new("RGB", (64, 64), path).save(file, "JPEG")
        return file.getvalue()


async def _picture(settings: Settings) -> Finding:
    """Show the model a red picture; one that takes none is no fault."""
    name, model = settings.llm_model, ChatModel(settings, _Red())
    choose = lazy("choose a model that sees, where people send pictures")
    try:
        answer = await model.complete(ModelRequest("answer", _SHOWN)) if model.sees else None
    except ModelError as error:
        return warn("pictures", error.told, cure_of(error, settings))
    finally:
        await model.close()
    if answer is None or not model.sees:
        return ok("pictures", lazy("{name} is shown no pictures; people are told so", name=name), choose)
    if "red" in answer.text.lower():
        return ok("pictures", lazy("{name} sees pictures", name=name))
    text = answer.text.strip()[:80] or "–"
    fact = lazy("{name} did not see that a picture is red (it said: {text})", name=name, text=text)
    return warn("pictures", fact, lazy("set VISION=off, or choose a model that sees"))


async def _window(settings: Settings) -> list[Finding]:
    """Report a window of Ollama's that is too small for a turn with tools: it cuts prompts without a word."""
    base, name = settings.openai_base_url.rstrip("/"), settings.llm_model.removesuffix(":latest")
    try:
        async with httpx2.AsyncClient(timeout=TELL_SECONDS, trust_env=False) as http:
            answer = (await http.get(f"{base.removesuffix('/v1')}/api/ps")).json()
        sizes = {one["name"].removesuffix(":latest"): one["context_length"] for one in answer["models"]}
        size = int(sizes[name])
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError, AttributeError):
        return []  # another kind of server, which refuses what is too long
    if size >= SMALL_WINDOW:
        return [ok("context window", lazy("{size} tokens", size=size))]
    fact = lazy("{size} tokens are too few: longer prompts are cut or refused", size=size)
    cure = lazy("give it more: {server}", server="OLLAMA_CONTEXT_LENGTH=16384")
    return [warn("context window", fact, cure)]


async def _classifier(model: ChatModel, settings: Settings) -> list[Finding]:
    """Check CLASSIFIER_MODEL if it is another; without it the word index decides alone."""
    name = settings.classifier_model
    if name == settings.llm_model:
        return []
    messages: list[dict[str, JSON]] = [{"role": "user", "content": "Answer with the word none."}]
    try:
        await model.complete(ModelRequest("classify", messages))
    except ModelError as error:
        cure = cure_of(error, settings.model_copy(update={"llm_model": name}), "CLASSIFIER")
        fact = lazy("{error}; the word index decides alone", error=error.told)
        return [warn("classifier", fact, cure)]
    return [ok("classifier", lazy("{name} answers", name=name))]


def cure_of(error: ModelError, settings: Settings, prefix: str = "LLM") -> str:
    """Return what the operator can do about a model that does not answer."""
    base = settings.openai_base_url.rstrip("/")
    if error.cause == "not_sent":
        return lazy(
            "start the model's server (with Docker Compose: docker compose up -d), and see that "
            "OPENAI_BASE_URL has its address; in a container this machine is host.docker.internal"
        )
    if error.cause == "timed_out":
        return lazy(
            "raise {prefix}_TIMEOUT (the first answer may have to load the model), or choose a smaller one",
            prefix=prefix,
        )
    if error.status in (401, 403):
        return lazy("set OPENAI_API_KEY to a key that is valid there")
    if error.status == 404 and "model" in str(error).lower().partition("404")[2]:
        named = {"prefix": prefix, "name": settings.llm_model}
        return lazy("set {prefix}_MODEL to a model that is there; with Ollama: ollama pull {name}", **named)
    if error.status in (*range(300, 400), 404, 405) or error.cause == "no_completion":
        wanted = base if base.endswith("/v1") else f"{base}/v1"
        return lazy("see that OPENAI_BASE_URL is right; most servers need …/v1: {wanted}", wanted=wanted)
    if error.status == 429:
        return lazy("the key's quota is used up, or it is asked too often: see the provider's page")
    return lazy("see what the model's server says in its log")


def check_voice(settings: Settings) -> Iterator[Finding]:
    """Say what transcribes voice notes; an endpoint is tried with three seconds of silence."""
    model = settings.transcription_model
    if model.startswith(LOCAL):
        yield _local(Path(model.removeprefix(LOCAL)).expanduser())
        return
    transcriber = build_transcriber(settings)
    if not isinstance(transcriber, EndpointTranscriber):
        cure = lazy("set TRANSCRIPTION_BASE_URL, or a model in a folder: docs/models.md")
        yield ok("voice notes", lazy("nothing transcribes them; people are told so"), cure)
        return
    from app.simulator.graph import canned_clip

    try:
        with tempfile.NamedTemporaryFile(suffix=".ogg") as file:
            file.write(canned_clip())
            file.flush()
            asyncio.run(transcriber.transcribe(Path(file.name), "audio/ogg", ""))
    except NotTranscribed as error:
        cure = lazy("set TRANSCRIPTION_BASE_URL, or TRANSCRIPTION_MODEL= for none: docs/models.md")
        told = warn if settings.transcription_base_url else ok  # few servers of models transcribe, too
        fact = lazy("{url} does not transcribe: {error}", url=settings.transcription_url, error=error.told)
        yield told("voice notes", fact, cure)
    else:
        yield ok("voice notes", lazy("{name} transcribes them", name=model))


def _local(folder: Path) -> Finding:
    if not folder.is_dir():
        cure = lazy("put a faster-whisper model there: nothing is downloaded by itself")
        return fail("voice notes", lazy("there is no folder {folder}", folder=folder), cure)
    if importlib.util.find_spec("faster_whisper") is None:
        return fail("voice notes", lazy("faster-whisper is not installed"), "pip install 'recado[voice]'")
    return ok("voice notes", lazy("faster-whisper transcribes them with {name}", name=folder.name))
