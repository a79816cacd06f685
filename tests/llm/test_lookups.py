"""Questions that no tool's phrase fits, answered out of what the person wrote down or had remembered."""

import json

from app.i18n import say
from app.llm.model import ModelAnswer, ModelRequest
from app.llm.offline.model import OfflineModel
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import NOW, person

NOTHING = json.dumps({"ok": True, "data": {"summary": "Nothing there.", "count": 0}, "meta": {}})
FOUND = json.dumps({"ok": True, "data": {"summary": "1. wifi: Gato1234", "count": 1}, "meta": {}})


async def answered(abilities: ToolCatalog, language: str, said: str, *results: str) -> ModelAnswer:
    """What the model answers once its calls had these results."""
    model = OfflineModel(abilities, now=lambda: NOW)
    who = person(language)
    tools = abilities.offer(sorted(abilities.tool_categories(who)), who)
    messages = [{"role": "user", "content": said}]
    for result in results:
        messages += [{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": result}]
    return await model.complete(ModelRequest("answer", messages, tools, said, who))


async def test_what_is_asked_for_is_looked_for_in_notes_and_facts(abilities: ToolCatalog) -> None:
    for language, said, query in [
        ("es", "cuál es el wifi?", "wifi"),
        ("es", "¿dónde dejé las llaves?", "llaves"),
        ("es", "la clave?", "clave"),
        ("pt", "qual é o código do cadeado?", "cadeado"),
        ("en", "what's the locker code?", "locker"),
        ("en", "wheres my passport", "passport"),
    ]:
        looked = {call.name: call.arguments for call in (await answered(abilities, language, said)).calls}
        assert looked == {"search_notes": {"query": query}, "recall": {"about": query}}


async def test_only_what_was_found_is_told(abilities: ToolCatalog) -> None:
    answer = await answered(abilities, "en", "what's the wifi", NOTHING, FOUND)
    assert answer.text == "1. wifi: Gato1234"


async def test_a_question_that_nothing_answers_was_not_understood(abilities: ToolCatalog) -> None:
    for said in ["what is the meaning of life", "I forgot - also butter"]:
        looked = (await answered(abilities, "en", said)).calls
        answer = await answered(abilities, "en", said, *[NOTHING] * len(looked))
        assert answer.text.startswith(say("en", "I did not understand that."))


async def test_what_asks_nothing_is_not_looked_for(abilities: ToolCatalog) -> None:
    for said in ["el wifi de la casa es Gato1234", "me duele la cabeza", "y en lima?", "¿?"]:
        assert not (await answered(abilities, "es", said)).calls


async def test_a_first_question_is_about_notes_too(abilities: ToolCatalog) -> None:
    for language, said in [("es", "cuál es el wifi?"), ("pt", "qual é o wifi"), ("en", "what's the wifi")]:
        model = OfflineModel(abilities, now=lambda: NOW)
        who = person(language)
        categories = tuple(abilities.categories(who))
        answer = await model.complete(
            ModelRequest("classify", [], said=said, person=who, categories=categories)
        )
        assert "notes" in json.loads(answer.text)["categories"]
