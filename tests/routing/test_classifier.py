"""The classifier call: its prompt, and what becomes of every kind of answer; phrases that a model wrote."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.people import Person
from app.routing import Intent, IntentRequest, classify_intent
from app.routing.classifier import read_intent
from app.routing.phrase_book import read_answer
from app.search.index import Document, ToolIndex
from app.store.journal import Tokens
from app.store.turn_state import Exchange

REQUEST = IntentRequest(
    said="anota comprar pan",
    person=Person("p", "simulator", language="es"),
    categories=(("weather", "Forecasts"), ("notes", "Keeps\nnotes")),
    earlier=(Exchange("hola", "¡hola!", 0.0), Exchange("¿y ahora?", "", 0.0)),
    timeout=5,
)


class Scripted:
    """A model that answers with one text, raises, or never answers."""

    def __init__(self, text: str = "", error: Exception | None = None, hangs: bool = False) -> None:
        self.text = text
        self.error = error
        self.hangs = hangs
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        return ModelAnswer(self.text, tokens=Tokens(10, 2))

    async def close(self) -> None:
        """Holds nothing."""


async def test_takes_what_the_model_chose_and_what_it_cost() -> None:
    model = Scripted('{"categories": ["notes"], "phrases": ["save a note"]}')
    classified = await classify_intent(model, REQUEST)
    assert classified.intent == Intent(("notes",), ("save a note",), "model")
    assert classified.answer is not None
    assert classified.answer.tokens == Tokens(10, 2)
    assert classified.problem == ""
    assert [request.purpose for request in model.requests] == ["classify"]
    assert model.requests[0].tools == []


async def test_falls_back_to_sticky_categories_then_to_the_index() -> None:
    for model in [
        Scripted(""),
        Scripted("I would rather not."),
        Scripted(error=ModelError("503", "status", status=503)),
        Scripted(error=ValueError("a bug")),
        Scripted(hangs=True),
    ]:
        request = replace(REQUEST, timeout=0.05)
        classified = await classify_intent(model, request)
        assert classified.intent == Intent(source="index")
        assert classified.problem
        sticky = await classify_intent(model, replace(request, sticky=("weather", "gone")))
        assert sticky.intent == Intent(("weather",), source="sticky")


async def test_nothing_is_a_valid_answer() -> None:
    for text in ["none", "[]", '{"categories": ["unknown"]}']:
        assert (await classify_intent(Scripted(text), REQUEST)).intent == Intent(source="none")
        sticky = await classify_intent(Scripted(text), replace(REQUEST, sticky=("notes",)))
        assert sticky.intent.categories == ("notes",)
        assert sticky.intent.source == "sticky"


async def test_many_categories_are_shortlisted_by_the_index() -> None:
    categories = tuple((f"c{n:03}", f"Category {n}") for n in range(500))
    documents = [Document(f"t{n}", f"tool{n}", "Something", f"c{n:03}") for n in range(499)]
    index = ToolIndex([*documents, Document("bread", "buy_bread", "Buys bread at the baker's", "c499")])
    model = Scripted("none")
    request = replace(REQUEST, said="bread please", categories=categories, sticky=("c400",))
    await classify_intent(model, request, index)
    shown = [name for name, _ in model.requests[0].categories]
    assert len(shown) == 40
    assert {"c499", "c400"} <= set(shown)
    assert shown == sorted(shown)
    await classify_intent(model, replace(request, said="something else altogether"), index)
    first, second = (request.messages for request in model.requests)
    assert first[0] == second[0]
    assert "c499" in first[1]["content"]


DAYS = ToolIndex(
    [
        Document("forecast", "forecast", "Weather of a day: rain, wind", "weather"),
        Document("save_note", "save_note", "Saves a note", "notes"),
    ]
)


async def test_no_call_where_the_conversation_clearly_goes_on() -> None:
    for said, asked in [
        ("gracias!", False),
        ("vale", False),
        ("claro que sí", False),
        ("tá bom", False),
        ("sounds good", False),
        ("👍", False),
        ("y en Cusco?", False),
        ("and the wind?", False),
        ("e amanhã", False),
        ("Lima", True),
    ]:
        model = Scripted('{"categories": ["notes"]}')
        request = replace(REQUEST, said=said, asked=asked, sticky=("weather", "gone"))
        classified = await classify_intent(model, request, DAYS)
        assert classified.intent == Intent(("weather",), source="continued")
        assert model.requests == []


async def test_what_may_be_something_new_is_asked_about() -> None:
    for said, asked, sticky in [
        ("Lima", False, ("weather",)),
        ("vale", True, ()),
        ("dale, y guarda una nota", False, ("weather",)),
        ("y guarda una nota", False, ("weather",)),
        ("save note", True, ("weather",)),
        ("and then there are many more words to be read", False, ("weather",)),
    ]:
        model = Scripted('{"categories": ["notes"]}')
        classified = await classify_intent(
            model, replace(REQUEST, said=said, asked=asked, sticky=sticky), DAYS
        )
        assert classified.intent == Intent(("notes",), source="model")


KNOWN = ("notes", "weather", "date-time", "calculator", "mcp_github")

FULL = '{"categories": ["notes", "weather"], "phrases": ["save a note", "weather in Rome"]}'
READ = Intent(("notes", "weather"), ("save a note", "weather in Rome"), "model")


def test_an_answer_is_read_whatever_shape_it_comes_in() -> None:
    for text, expected in [
        (FULL, READ),
        (f"```json\n{FULL}\n```", READ),
        (f"Sure! Here it is:\n{FULL}\nAnything else?", READ),
        ('["notes"]', Intent(("notes",), source="model")),
        ('[{"name": "notes"}, {"name": "weather"}]', Intent(("notes", "weather"), source="model")),
        ('{"categories": "notes, weather"}', Intent(("notes", "weather"), source="model")),
        ('{"Categories": ["NOTES"]}', Intent(("notes",), source="model")),
        ('{"categories": {"notes": 0.9, "weather": 0}}', Intent(("notes",), source="model")),
        ('{"categories": ["date_time", "Date Time"]}', Intent(("date-time",), source="model")),
        ('{"categories": ["notes", "astrology"]}', Intent(("notes",), source="model")),
        ('{"categories": []}', Intent()),
        ('{"categories": [1, null, ["notes"]]}', Intent(("notes",), source="model")),
        ('{"categories": ["notes"], "phrases": "one thing"}', Intent(("notes",), ("one thing",), "model")),
        ('{"categories": ["notes"], "phrases": [1, {}, " a  b "]}', Intent(("notes",), ("a b",), "model")),
        ("[]", Intent()),
        ("none", Intent()),
        ("notes", Intent(("notes",), source="model")),
        ("notes, weather", Intent(("notes", "weather"), source="model")),
        ("**mcp_github**", Intent(("mcp_github",), source="model")),
        ("{'categories': ['notes'], 'phrases': ['weather in Rome']}", Intent(("notes",), source="model")),
        ('{"categories": ["notes", "weat', Intent(("notes",), source="model")),
        ('{"categories": ["notes",], }', Intent(("notes",), source="model")),
        ("", None),
        ("I cannot help with that.", None),
        ("{" * 5000, None),
        ("\x00\x00", None),
    ]:
        assert read_intent(text, KNOWN) == expected


def test_at_most_six_categories_and_short_phrases() -> None:
    known = [f"c{n}" for n in range(20)]
    reading = read_intent(f'{{"categories": {known}, "phrases": ["{"x" * 900}"]}}'.replace("'", '"'), known)
    assert reading is not None
    assert reading.categories == tuple(known[:6])
    assert len(reading.phrases[0]) == 200


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('```json\n{"a": {"es": ["uno", "uno", 3]}}\n```', {"a": {"es": ("uno",)}}),
        (
            '{as asked}: {"a": {"fr": ["un"], "en": ["one\\ntwo"]}, "b": {"en": ["two"]}}',
            {"a": {"en": ("one two",)}},
        ),
        ('{"a": {"en": ["do {x}", "' + "x" * 200 + '", "\\ud800", "hid\\u202eden"]}}', {}),
        ('{"a": {"en": ["1","2","3","4","5","6","7"]}}', {"a": {"en": tuple("12345")}}),
        ("nothing", {}),
        ('{"a": ' * 5000, {}),
    ],
)
def test_of_phrases_that_a_model_wrote_only_short_visible_phrases_are_kept(answer: str, kept: Any) -> None:
    assert read_answer(answer, ["a"]) == kept
