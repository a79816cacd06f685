"""The built-in model against a catalogue of its own: what it calls, asks, answers, and leaves alone."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.llm.model import ModelRequest
from app.llm.offline.slots import Parameter, Reader, convert
from app.llm.results import results_text
from app.mcp.adapter import to_result
from app.people import Person
from tests.llm.catalogue import CATEGORIES, asked, offline, person

Call = tuple[str, dict[str, Any]]


CALLS: list[tuple[str, str, list[Call]]] = [
    ("es", "¿Qué hora es en Tokio?", [("time_in_place", {"place": "Tokio"})]),
    ("es", "bórrame la nota 2 por favor", [("delete_note", {"number": 2})]),
    (
        "es",
        "recuérdame mañana a las 9 comprar leche",
        [("set_reminder", {"text": "comprar leche", "when": "2026-11-22T09:00:00-06:00"})],
    ),
    ("en", "convert 20 EUR to USD", [("convert_currency", {"amount": 20, "source": "EUR", "target": "USD"})]),
]


async def test_calls_the_right_tool_with_the_right_arguments() -> None:
    for language, said, calls in CALLS:
        answer = await offline().complete(asked(said, language))
        assert [(call.name, call.arguments) for call in answer.calls] == calls
        assert len({call.id for call in answer.calls}) == len(answer.calls)
        assert not answer.text


CHIT_CHAT = [
    *(("es", said) for said in ("me gusta la pizza", "¿qué es una nota?", "¿cuánto es un kilo de tomates?")),
    *(("en", said) for said in ("I love pizza", "the weather is nice", "how much is the iPhone?", "")),
    *(("en", said) for said in ("call me at +52 55 1234 5678", "2026-11-21", "🙂", "今日はいい天気ですね")),
]


async def test_small_talk_calls_nothing_and_gets_an_answer() -> None:
    for language, said in CHIT_CHAT:
        answer = await offline().complete(asked(said, language))
        assert answer.calls == (), said
        assert answer.text.strip()


def _round(said: str, *results: dict[str, Any]) -> ModelRequest:
    calls = [{"id": f"call_{n}", "type": "function"} for n in range(1, len(results) + 1)]
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": f"call_{n}", "content": json.dumps(r)}
            for n, r in enumerate(results, 1)
        ),
    ]
    return ModelRequest("answer", messages, asked(said).tools, said, person())


async def test_answers_with_the_summaries_of_its_calls() -> None:
    said = "what time is it in Tokyo and how much is 12*7"
    results = [{"ok": True, "data": {"summary": "It is 9 am in Tokyo."}}, {"ok": True, "data": "12 × 7 = 84"}]
    answer = await offline().complete(_round(said, *results))
    assert answer.calls == ()
    assert answer.text == "It is 9 am in Tokyo.\n\n12 × 7 = 84"


async def test_what_a_model_is_told_about_a_servers_failure_is_not_told_to_a_person() -> None:
    failure = to_result({"isError": True, "content": [{"type": "text", "text": "No such zone."}]}).to_json()
    answer = await offline().complete(_round("what time is it in Nowhere", json.loads(failure)))
    assert answer.text == "That did not work. No such zone."


async def test_what_was_asked_already_is_not_told_as_refused() -> None:
    error = {"code": "DENIED", "message": "the person was asked already", "hint": "say so"}
    failure = {"ok": False, "error": error, "meta": {"waits": True}}
    answer = await offline().complete(_round("what time is it in Nowhere", failure))
    assert answer.text == "I asked you that already: the question above still waits for your answer."


async def test_of_a_picture_a_person_reads_only_what_was_said_with_it() -> None:
    one = {"type": "image", "mime": "image/png", "bytes": 4033, "attachment": 0}
    lost = {"type": "image", "problem": "it is no base64"}
    for data, told in (({"text": "The logo.", "content": [one]}, "The logo."), ({"content": [one]}, "Done.")):
        assert results_text([json.dumps({"ok": True, "data": data})], "en") == told
    result = {"ok": True, "data": {"text": "The logo.", "content": [one, lost]}}
    assert "it is no base64" in results_text([json.dumps(result)], "en")


async def test_lists_and_objects_become_markdown() -> None:
    data = {"count": 2, "rows": [{"title": "Milk", "id": 1}, {"title": "Bread", "id": 2}]}
    answer = await offline().complete(_round("list people", {"ok": True, "data": data}))
    assert "- **count**: 2" in answer.text
    assert "title: Milk, id: 1" in answer.text


async def test_calls_of_one_category_go_a_round_each_and_the_last_takes_the_rest() -> None:
    said = "\n".join(f"{n}+{n}" for n in range(1, 8))
    request = asked(said)
    messages: list[dict[str, Any]] = [{"role": "user", "content": said}]
    made, ids = [], set()
    while (answer := await offline().complete(replace(request, messages=messages))).calls:
        made.append(len(answer.calls))
        ids |= {call.id for call in answer.calls}
        calls = [{"id": call.id} for call in answer.calls]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "content": '{"ok": true, "data": "x"}'} for _ in calls]
    assert made == [1, 1, 1, 1, 3]
    assert len(ids) == 7


async def test_without_tools_it_answers_from_what_it_has() -> None:
    request = _round("how much is 2+2", {"ok": True, "data": "4"})
    answer = await offline().complete(ModelRequest("answer", request.messages, [], request.said, person()))
    assert answer.text == "4"


async def test_what_is_not_understood_leads_to_help() -> None:
    request = asked("write me a poem about the sea")
    owner = replace(person(), role="owner")
    for who in (person(), owner):
        answer = await offline().complete(replace(request, person=who))
        assert "/help" in answer.text
        assert "OPENAI_BASE_URL" not in answer.text
        assert "…" not in answer.text
    answer = await offline().complete(asked("escribe un poema sobre el mar", "es"))
    assert "/ayuda" in answer.text


async def test_ability_examples_are_in_the_persons_language() -> None:
    answer = await offline().complete(asked("o que você pode fazer?", "pt"))
    assert "“quanto é 12 × 7”" in answer.text
    assert "You can" not in answer.text
    assert "qué hora es" not in answer.text


async def test_classifies_by_phrases_and_index() -> None:
    for said, categories in [("qué hora es en Tokio", ["clock"]), ("I love pizza", []), ("", [])]:
        request = ModelRequest("classify", [], said=said, person=person("es"), categories=CATEGORIES)
        reading = json.loads((await offline().complete(request)).text)
        assert reading["categories"] == categories
        assert reading["language"] in {"es", "en"}


async def test_long_messages_take_no_long_time() -> None:
    for said in ["a" * 100_000, "2+" * 5_000 + "2", "y " * 20_000, "¿" * 9_000, "note: " + "x y " * 9_000]:
        answer = await offline().complete(asked(said))
        assert answer.text or answer.calls


async def test_small_talk_is_answered_fittingly() -> None:
    for language, said, answer in [
        ("es", "hola q tal", "¡Hola"),
        ("pt", "obrigada viu", "De nada"),
        ("pt", "eae blz", "Olá"),
        ("en", "yes", "I am not waiting for an answer"),
        ("pt", "deixa pra lá", "Tudo bem, não mudei nada."),
        ("pt", "tá bom", "👍"),
        ("es", "perdón", "👍"),
        ("en", "what can u do", "I am an assistant"),
        ("en", "so who am I talking to?", "I am an assistant"),
        ("es", "ahora en español por favor", "👍"),
        ("pt", "vc é top demais", "👍"),
        ("en", "are you a real person?", "I am an assistant"),
    ]:
        assert (await offline().complete(asked(said, language))).text.startswith(answer)


async def test_a_yes_beside_an_open_question_is_not_told_that_there_is_none() -> None:
    waiting = replace(asked("sí", "es"), waits=True)
    assert (await offline().complete(waiting)).text.startswith("Si con eso respondes una pregunta mía")


def test_numbers_are_read_as_people_write_them() -> None:
    for kind, written, read in [
        ("number", "1.000", None),
        ("number", "1.234,5", None),
        ("number", "7,5", 7.5),
        ("number", "-7.25", -7.25),
        ("number", "192.168.1.1", None),
        ("number", "9" * 400, None),
        ("integer", "1.500", None),
        ("integer", "15", 15),
        ("integer", "tres", 3),
        ("integer", "9" * 5000, None),
    ]:
        reader = Reader(Person("p1", "simulator"), lambda: datetime.now(UTC))
        assert convert(written, Parameter("n", {"type": kind}, True), reader) == read
