"""Lines of a list that it does not have, the other one of two, and one more after the first."""

import pytest

from app.i18n import say
from app.llm.model import ModelRequest
from app.llm.offline.answers import lacking_text, no_list_text
from app.llm.offline.model import OfflineModel
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import NOW, answered, person

TWO = {
    "es": [
        "mis recordatorios",
        "Tus recordatorios (2 de 2):\n#4 · mañana 09:00: pagar\n#7 · mañana 10:00: ir",
    ],
    "pt": ["meus lembretes", "Seus lembretes (2 de 2):\n#4 · amanhã 09:00: pagar\n#7 · amanhã 10:00: ir"],
    "en": ["my reminders", "Your reminders (2 of 2):\n#4 · tomorrow 09:00: pay\n#7 · tomorrow 10:00: go"],
}
GONE = "✓ Recordatorio cancelado: pagar"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("es", "borra el quinto"),
        ("es", "cancela la tercera"),
        ("pt", "apaga o terceiro"),
        ("en", "delete the third one"),
    ],
)
async def test_a_line_that_the_list_lacks_is_said_to_be_none_of_it(
    abilities: ToolCatalog, language: str, said: str
) -> None:
    answer = await answered(abilities, language, *TWO[language], said)
    assert (answer.calls, answer.text) == ((), lacking_text(2, language))


@pytest.mark.parametrize(
    ("language", "said"),
    [("es", "borra el segundo"), ("pt", "apaga o primeiro"), ("en", "delete the first one")],
)
async def test_a_line_of_no_list_is_asked_for_by_its_list(
    abilities: ToolCatalog, language: str, said: str
) -> None:
    assert (await answered(abilities, language, said)).text == no_list_text(language)


async def test_what_only_begins_with_a_place_is_named_as_it_is(abilities: ToolCatalog) -> None:
    answer = await answered(abilities, "es", "borra el primero de enero")
    assert "«primero de enero»" in answer.text


@pytest.mark.parametrize(
    ("language", "first", "said"),
    [
        ("es", "borra el primero", "y el otro también"),
        ("es", "borra el primero", "borra el otro"),
        ("es", "borra el primero", "y el segundo tambien"),
        ("pt", "apaga o primeiro", "e o outro também"),
        ("en", "cancel the first one", "and the other one too"),
        ("en", "cancel the first one", "cancel the other one"),
    ],
)
async def test_the_other_line_is_the_one_that_is_left(
    abilities: ToolCatalog, language: str, first: str, said: str
) -> None:
    (call,) = (await answered(abilities, language, *TWO[language], first, GONE, said)).calls
    assert (call.name, call.arguments) == ("cancel_reminder", {"reminder": "7"})


async def test_the_other_one_of_more_than_one_that_is_left_is_none(abilities: ToolCatalog) -> None:
    answer = await answered(abilities, "es", *TWO["es"], "borra el otro")
    assert (answer.calls, answer.text) == ((), lacking_text(2, "es"))
    answer = await answered(abilities, "es", *TWO["es"], "y el otro también")
    assert answer.text.startswith(say("es", "I did not understand that."))


@pytest.mark.parametrize(
    ("language", "said", "tool", "number"),
    [
        ("es", "borra lo de pagar", "cancel_reminder", "4"),
        ("es", "cancela el de ir", "cancel_reminder", "7"),
        ("es", "cambia el de pagar para las 11", "change_reminder", "4"),
        ("pt", "apaga o de pagar", "cancel_reminder", "4"),
        ("en", "cancel the pay one", "cancel_reminder", "4"),
    ],
)
async def test_a_line_is_meant_by_its_words(
    abilities: ToolCatalog, language: str, said: str, tool: str, number: str
) -> None:
    (call,) = (await answered(abilities, language, *TWO[language], said)).calls
    assert (call.name, call.arguments["reminder"]) == (tool, number)


async def test_a_line_of_what_was_looked_up_is_meant_too(abilities: ToolCatalog) -> None:
    found = ["qual boleto?", "Encontrei 1 com “boleto”:\n2. boleto 340 dia 10"]
    (call,) = (await answered(abilities, "pt", *found, "apaga a do boleto")).calls
    assert (call.name, call.arguments) == ("delete_note", {"note": "2"})


async def test_a_receipt_that_names_undo_is_undone(abilities: ToolCatalog) -> None:
    gone = ["bórralo", "✓ Nota 1 borrada: pan\nPara recuperarla: «deshacer»."]
    (call,) = (await answered(abilities, "es", "anota pan", "✓ Nota guardada: pan", *gone, "deshacer")).calls
    assert call.name == "undo_note"


async def test_words_that_no_line_or_several_hold_mean_none(abilities: ToolCatalog) -> None:
    both = ["mis recordatorios", "Tus recordatorios (2 de 2):\n#4 · hoy: ver a Ana\n#7 · hoy: llamar a Ana"]
    for said in ("borra lo de Ana", "borra lo del taller"):
        assert (await answered(abilities, "es", *both, said)).calls == ()


async def test_a_place_that_no_tool_is_about_is_no_line(abilities: ToolCatalog) -> None:
    answer = await answered(abilities, "es", *TWO["es"], "vivo en el quinto piso")
    assert answer.text != lacking_text(2, "es")


@pytest.mark.parametrize("said", ["delete the first one", "delete the mom one"])
async def test_a_line_after_one_that_was_lacking_is_of_the_same_list(
    abilities: ToolCatalog, said: str
) -> None:
    recent = (TWO["en"][0], "delete the third one")
    model = OfflineModel(lambda: abilities.index, abilities.phrases, now=lambda: NOW)
    who = person("en")
    categories = tuple(abilities.categories(who))
    request = ModelRequest("classify", [], said=said, person=who, categories=categories, recent=recent)
    assert "reminders" in (await model.complete(request)).text
