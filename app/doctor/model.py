"""Check of the model by one real tool call, and of its context window."""

import asyncio
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from app.cli.settings import model_line
from app.doctor.finding import FAIL, OK, WARN, Finding, Level, fail, ok, warn
from app.errors import ConfigurationError
from app.llm.client import ChatModel
from app.llm.errors import ModelError
from app.llm.model import ModelAnswer, ModelRequest
from app.llm.reading import calls_in_text
from app.messages import JSON
from app.settings import Settings

SMALL_WINDOW = 8192
TELL_SECONDS = 3.0
PROBE_WORDS = 7000

_WIDER = "give it 16384 tokens where its server is started: docs/models.md"


async def check_window(model: ChatModel, settings: Settings) -> list[Finding]:
    """Report a window too small for a turn with tools; OpenAI's own models all have room."""
    if not settings.openai_base_url:
        return []
    reported = await _reported_window(settings)
    if reported is None:
        return [await _probe_window(model, settings.llm_model)]
    size, cure = reported
    if size >= SMALL_WINDOW:
        return [ok("context window", f"{size} tokens")]
    fact = f"{size} tokens are too few: longer prompts are cut or refused"
    return [warn("context window", fact, cure)]


async def _reported_window(settings: Settings) -> tuple[int, str] | None:
    """Return the window in tokens and how to widen it; None if the server does not tell."""
    base = settings.openai_base_url.rstrip("/")
    root = base.removesuffix("/v1")
    key = settings.openai_api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(timeout=TELL_SECONDS, trust_env=False, headers=headers) as http:
        for teller, address, cure in (
            (_ollama, f"{root}/api/ps", "start Ollama with OLLAMA_CONTEXT_LENGTH=16384"),
            (_llama_cpp, f"{root}/props", "start llama-server with --ctx-size 16384"),
            (_vllm, f"{base}/models", "start vLLM with --max-model-len 16384"),
        ):
            try:
                return teller((await http.get(address)).json(), settings.llm_model), cure
            except (httpx2.HTTPError, ValueError, LookupError, TypeError, AttributeError):
                continue  # another kind of server
    return None


def _ollama(answer: Any, model: str) -> int:
    sizes = {one["name"].removesuffix(":latest"): one["context_length"] for one in answer["models"]}
    return int(sizes[model.removesuffix(":latest")])


def _llama_cpp(answer: Any, model: str) -> int:
    return int(answer["default_generation_settings"]["n_ctx"])


def _vllm(answer: Any, model: str) -> int:
    return int({one["id"]: one["max_model_len"] for one in answer["data"]}[model])


async def _probe_window(model: ChatModel, name: str) -> Finding:
    """Send a prompt as long as a full turn's, and ask at its end for its beginning."""
    word = f"mango-{secrets.randbelow(9000) + 1000}"
    messages: list[dict[str, JSON]] = [
        {"role": "user", "content": f"The code word is {word}. Remember it."},
        {"role": "assistant", "content": "I remember it."},
        {
            "role": "user",
            "content": f"{'note ' * PROBE_WORDS}\nWhat is the code word? Answer with it alone.",
        },
    ]
    try:
        answer = await model.complete(ModelRequest("answer", messages))
    except ModelError as error:
        if error.status in (400, 413, 422):
            fact = f"{name} refuses a prompt of {PROBE_WORDS} words: {error}"
            return fail("context window", fact, _WIDER)
        fact = f"could not be tried with a long prompt: {error}"
        return warn("context window", fact, "look again later, or raise LLM_TIMEOUT")
    if word in answer.text:
        return ok("context window", f"a prompt of {PROBE_WORDS} words arrives whole")
    fact = f"{name} does not know the beginning of a prompt of {PROBE_WORDS} words: it is cut"
    return warn("context window", fact, _WIDER)


_CONNECT = "connect one with OPENAI_BASE_URL (or OPENAI_API_KEY) and LLM_MODEL: docs/models.md"
_TOOL: JSON = {
    "type": "function",
    "function": {
        "name": "add_numbers",
        "description": "Adds two whole numbers and gives their sum.",
        "parameters": {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
            "required": ["first", "second"],
        },
    },
}
_MESSAGES: list[dict[str, JSON]] = [
    {
        "role": "system",
        "content": "You never calculate yourself: for every sum you call the tool add_numbers.",
    },
    {"role": "user", "content": "How much is 20 plus 22?"},
]


def check_model(settings: Settings) -> Iterator[Finding]:
    """Name the model that answers; give each real one a sum and one tool to do it with."""
    try:
        told = model_line(settings)
    except ConfigurationError as error:
        fact, _, cure = str(error).partition("; ")
        yield fail("model", fact, cure)
        return
    if not settings.has_model:
        level: Level = WARN if told else OK
        fact = "the built-in offline model answers"
        yield Finding(level, "model", f"{fact}: {told}" if told else fact, _CONNECT)
        return
    for number, own in enumerate(settings.by_endpoint(), 1):
        for finding in asyncio.run(_try(own)):
            in_list = f"entry {number} of MODELS: {finding.cure}" if settings.models and finding.cure else ""
            yield replace(finding, cure=in_list or finding.cure)


async def _try(settings: Settings) -> list[Finding]:
    model = ChatModel(settings)
    try:
        findings = [await _tool_call(model, settings)]
        if findings[0].level != FAIL:
            findings += [*await check_window(model, settings), *await _classifier(model, settings)]
    finally:
        await model.close()
    return findings


async def _tool_call(model: ChatModel, settings: Settings) -> Finding:
    started = time.monotonic()
    try:
        answer = await model.complete(ModelRequest("answer", _MESSAGES, [_TOOL]))
    except ModelError as error:
        return fail("model", str(error), cure_of(error, settings))
    seconds = time.monotonic() - started
    return _tool_finding(answer, settings.llm_model, seconds, refused=model.tools_refused)


def _tool_finding(answer: ModelAnswer, name: str, seconds: float, *, refused: bool) -> Finding:
    better = "choose a model that is made for tool calls"
    written = calls_in_text(answer.text, ["add_numbers"], [])
    if refused:
        how = "its calls are read from its text" if written else "and it wrote no call instead"
        return warn("model", f"{name} answers, but the server refuses tools: {how}", better)
    if any(call.name == "add_numbers" for call in answer.calls):
        return ok("model", f"{name} answers and calls tools ({seconds:.1f} s)")
    if written:
        return warn("model", f"{name} writes its tool calls as text; they are read", better)
    said = answer.text.strip()[:80] or "nothing"
    return warn("model", f"{name} answers, but did not call the tool it needed (it said: {said})", better)


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
        return [warn("classifier", f"{error}; the word index decides alone", cure)]
    return [ok("classifier", f"{name} answers")]


def cure_of(error: ModelError, settings: Settings, prefix: str = "LLM") -> str:
    """Return what the operator can do about a model that does not answer."""
    base = settings.openai_base_url.rstrip("/")
    if error.cause == "not_sent":
        return _unreachable(base)
    if error.cause == "timed_out":
        return (
            f"raise {prefix}_TIMEOUT (the first answer may have to load the model), or choose a smaller one"
        )
    if error.status in (401, 403):
        return "set OPENAI_API_KEY to a key that is valid there"
    if error.status == 404 and "model" in str(error).lower().partition("404")[2]:
        named = f"set {prefix}_MODEL to a model that is there"
        pull = f"{_ollama_command(base)} pull {settings.llm_model}"
        return f"with Ollama: {pull}; else {named}" if base else named
    if error.status in (*range(300, 400), 404, 405) or error.cause == "no_completion":
        wanted = base if base.endswith("/v1") else f"{base}/v1"
        return f"see that OPENAI_BASE_URL is right; most servers need …/v1: {wanted}"
    if error.status == 429:
        return "the key's quota is used up, or it is asked too often: see the provider's page"
    if error.status >= 500:
        return "the server has a fault of its own: see its log"
    return "see what the model's server says in its log"


def _ollama_command(base: str) -> str:
    """Return Ollama's command; beside Recado in the compose file it is a service of that name."""
    return "docker compose exec ollama ollama" if urlsplit(base).hostname == "ollama" else "ollama"


def _unreachable(base: str) -> str:
    if urlsplit(base).hostname == "ollama":
        return "start it with: docker compose up -d; another model's address goes into OPENAI_BASE_URL"
    cure = "start the model's server, and see that OPENAI_BASE_URL has its address"
    if Path("/.dockerenv").exists() and urlsplit(base).hostname in ("127.0.0.1", "localhost"):
        return f"{cure}; in a container the host is not localhost: try host.docker.internal"
    return cure
