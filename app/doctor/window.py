"""Check of the model's context window."""

import secrets
from typing import TYPE_CHECKING, Any

from app.doctor.finding import FAIL, OK, WARN, Finding
from app.llm.model import ModelError, ModelRequest
from app.messages import JSON
from app.settings import Settings

if TYPE_CHECKING:
    from app.llm.client import ChatModel

SMALL_WINDOW = 8192
TELL_SECONDS = 3.0
PROBE_WORDS = 7000

_WIDER = "give it 16384 tokens where its server is started: docs/models.md"


async def check_window(model: "ChatModel", settings: Settings) -> list[Finding]:
    """Report a window too small for a turn with tools; OpenAI's own models all have room."""
    if not settings.openai_base_url:
        return []
    reported = await _reported_window(settings)
    if reported is None:
        return [await _probe_window(model, settings.llm_model)]
    size, cure = reported
    if size >= SMALL_WINDOW:
        return [Finding(OK, "context window", f"{size} tokens")]
    fact = f"{size} tokens are too few: longer prompts are cut or refused"
    return [Finding(WARN, "context window", fact, cure)]


async def _reported_window(settings: Settings) -> tuple[int, str] | None:
    """Return the window in tokens and how to widen it; None if the server does not tell."""
    import httpx2

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


async def _probe_window(model: "ChatModel", name: str) -> Finding:
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
            return Finding(FAIL, "context window", fact, _WIDER)
        fact = f"could not be tried with a long prompt: {error}"
        return Finding(WARN, "context window", fact, "look again later, or raise LLM_TIMEOUT")
    if word in answer.text:
        return Finding(OK, "context window", f"a prompt of {PROBE_WORDS} words arrives whole")
    fact = f"{name} does not know the beginning of a prompt of {PROBE_WORDS} words: it is cut"
    return Finding(WARN, "context window", fact, _WIDER)
