"""What the doctor says of a model: one real tool call, the classifier, the context window, voice notes."""

from collections.abc import Callable

import pytest

from app.doctor.model import check_voice
from app.settings import Settings
from tests.doctor.house import found
from tests.standins.answers import Answer, AnsweringServer, Asked
from tests.standins.chat import CHAT, able, completion, window
from tests.standins.model import ModelServer, echo

pytestmark = pytest.mark.slow

KEY = "sk-the-key-of-the-operator"
CALL_AS_TEXT = (200, completion({"content": '{"name": "add_numbers", "arguments": {}}'}))


def refused(status: int, message: str) -> Answer:
    return status, {"error": {"message": message}}


def without_tools(asked: Asked) -> Answer:
    return refused(400, "small does not support tools") if "tools" in asked.body else CALL_AS_TEXT


@pytest.mark.parametrize(
    ("answers", "changes", "level", "fact", "cure"),
    [
        ({CHAT: able}, {}, "OK", "calls tools", ""),
        ({}, {"base": ""}, "FAIL", "404", "most need"),
        ({"/": (200, "<html>")}, {"base": "/"}, "FAIL", "", "/v1"),
        ({CHAT: refused(404, 'model "small" not found')}, {}, "FAIL", "not found", "ollama pull small"),
        ({CHAT: refused(401, f"bad key {KEY}")}, {}, "FAIL", "bad key ***", "OPENAI_API_KEY"),
        ({CHAT: (200, completion({"content": "It is 42."}))}, {}, "WARN", "did not call", "choose a model"),
        ({CHAT: CALL_AS_TEXT}, {}, "WARN", "as text", "choose a model"),
        ({CHAT: without_tools}, {}, "WARN", "as text", "choose a model"),
    ],
)
def test_a_model_that_does_not_do_gets_its_cure(answers, changes, level, fact, cure, server, settings):
    server.answers = answers
    chosen = settings(
        openai_base_url=server.url + changes.get("base", "/v1"), openai_api_key=KEY, llm_model="small"
    )
    (finding,) = found(chosen, "model")
    assert finding.level == level
    assert fact in finding.fact
    assert cure.replace("most need", "most servers need …/v1") in finding.cure


@pytest.mark.parametrize(
    ("changes", "level", "cure"),
    [
        ({"openai_api_key": "sk-something"}, "WARN", "it needs LLM_MODEL"),
        ({"llm_model": "small"}, "WARN", "it needs OPENAI_BASE_URL"),
        ({"openai_base_url": "localhost:11434/v1", "llm_model": "small"}, "FAIL", "http://"),
        (
            {"openai_base_url": "http://127.0.0.1:1/v1", "llm_model": "small"},
            "FAIL",
            "start the model's server",
        ),
    ],
)
def test_a_model_that_is_half_configured_gets_its_cure(changes, level, cure, settings):
    (finding,) = found(settings(**changes), "model")
    assert finding.level == level
    assert cure in str(finding)


def test_a_window_of_ollama_that_is_too_small_gets_its_cure(server, settings):
    server.answers = {CHAT: able, "/api/ps": window(4096)}
    (finding,) = found(settings(openai_base_url=f"{server.url}/v1", llm_model="small"), "context window")
    assert finding.level == "WARN"
    assert "4096 tokens are too few" in finding.fact
    assert "OLLAMA_CONTEXT_LENGTH" in finding.cure


def test_each_endpoint_of_the_list_is_tried(server, settings):
    server.answers = {CHAT: able}
    listed = [
        {"base_url": f"{server.url}/v1", "model": "small"},
        {"base_url": "http://127.0.0.1:1/v1", "model": "away"},
    ]
    first, second = found(settings(models=listed), "model")
    assert first.level == "OK"
    assert second.level == "FAIL"
    assert second.cure.startswith("entry 2 of MODELS: ")


def test_a_missing_classifier_is_named(server: AnsweringServer, settings: Callable[..., Settings]) -> None:
    def complete(asked: Asked) -> Answer:
        if asked.body["model"] == "tiny":
            return refused(404, 'model "tiny" not found, try pulling it first')
        return able(asked)

    server.answers = {CHAT: complete, "/api/ps": window(16384)}
    chosen = settings(openai_base_url=f"{server.url}/v1", llm_model="small", CLASSIFIER_MODEL="tiny")
    (classifier,) = found(chosen, "classifier")
    assert classifier.level == "WARN"
    assert "ollama pull tiny" in classifier.cure


def test_the_endpoint_of_voice_notes_is_tried_and_what_is_missing_for_them_is_said(settings):
    hears, deaf = ModelServer(echo, lambda data: ""), ModelServer(echo)
    for changes, level, fact in (
        ({"transcription_base_url": hears.url}, "OK", "transcribes"),
        ({"transcription_base_url": deaf.url}, "WARN", "404"),
        ({"transcription_model": "local:/no/such/folder"}, "FAIL", "no folder /no/such/folder"),
        ({"transcription_model": "whisper-1"}, "OK", "nothing transcribes them"),
    ):
        [finding] = check_voice(settings(**changes))
        assert (finding.level, fact in finding.fact) == (level, True)
    hears.stop()
    deaf.stop()
