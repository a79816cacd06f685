"""Messages that add to the last thing that was set, or correct its hour."""

import json

import pytest

from app.i18n import say
from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import NOW, calls, person

SET = {
    "es": ["recuérdame mañana a las 9 pagar la luz", "✓ Recordatorio mañana 09:00: pagar la luz"],
    "pt": ["me lembra amanhã às 9 de pagar a luz", "✓ Lembrete amanhã 09:00: pagar a luz"],
    "en": ["remind me tomorrow at 9 to pay the bill", "✓ Reminder tomorrow 09:00: pay the bill"],
}
EACH_WEEK = {
    "es": ["recuérdame todos los martes a las 7 sacar la basura", "✓ Recordatorio: sacar la basura"],
    "pt": ["me lembra toda terça às 7 de tirar o lixo", "✓ Lembrete: tirar o lixo"],
    "en": ["remind me every tuesday at 7 to take out the trash", "✓ Reminder: take out the trash"],
}
MOTHER = ["y a las 10 llamar a mi mamá", "✓ Recordatorio mañana 10:00: llamar a mi mamá"]


@pytest.mark.parametrize(
    ("language", "said", "text", "when"),
    [
        ("es", "y a las 10 llamar a mi mamá", "llamar a mi mamá", "mañana a las 10"),
        ("es", "a las 10 llamar a mi mamá", "llamar a mi mamá", "mañana a las 10"),
        ("es", "y otro a las 10 para llamar a mi mamá", "llamar a mi mamá", "mañana a las 10"),
        ("es", "y recoger la ropa a las 5 de la tarde", "recoger la ropa", "mañana a las 5 de la tarde"),
        ("es", "y el viernes a las 17:00 recoger el traje", "recoger el traje", "el viernes a las 17:00"),
        ("es", "y en una hora apagar el horno", "apagar el horno", "en una hora"),
        ("es", "y el viernes también", "pagar la luz", "el viernes a las 9"),
        ("pt", "e às 10 ligar pra minha mãe", "ligar pra minha mãe", "amanhã às 10"),
        ("en", "and at 10 call my mom", "call my mom", "tomorrow at 10"),
        ("en", "also at 10 to call my mom", "call my mom", "tomorrow at 10"),
    ],
)
async def test_another_moment_after_a_receipt_is_one_more_reminder(
    abilities: ToolCatalog, language: str, said: str, text: str, when: str
) -> None:
    made = await calls(abilities, language, *SET[language], said)
    assert made == [("set_reminder", {"text": text, "when": when})]


@pytest.mark.parametrize(
    ("language", "said", "when"),
    [
        ("es", "y los jueves también", "los jueves a las 7"),
        ("es", "y el jueves tambien", "cada jueves a las 7"),
        ("es", "y los jueves a las 8", "los jueves a las 8"),
        ("pt", "e também às quintas", "às quintas às 7"),
        ("pt", "e na quinta tbm", "cada quinta às 7"),
        ("en", "and on thursdays too", "on thursdays at 7"),
        ("en", "and thursday as well", "every thursday at 7"),
    ],
)
async def test_another_day_for_what_comes_every_week_comes_every_week(
    abilities: ToolCatalog, language: str, said: str, when: str
) -> None:
    ((tool, arguments),) = await calls(abilities, language, *EACH_WEEK[language], said)
    assert (tool, arguments["when"]) == ("set_reminder", when)
    assert arguments["text"].endswith(("sacar la basura", "tirar o lixo", "take out the trash"))


async def test_another_day_of_the_month_comes_every_month(abilities: ToolCatalog) -> None:
    card = ["recuérdame pagar la tarjeta el día 15 de cada mes", "✓ Recordatorio: pagar la tarjeta"]
    made = await calls(abilities, "es", *card, "y la luz el dia 20")
    assert made == [("set_reminder", {"text": "la luz", "when": "el dia 20 de cada mes"})]


@pytest.mark.parametrize(
    ("language", "said", "text"),
    [
        ("es", "y el agua también", "el agua"),
        ("pt", "e o gás tbm", "o gás"),
        ("en", "and the rent too", "the rent"),
    ],
)
async def test_another_thing_without_a_moment_is_for_the_same_one(
    abilities: ToolCatalog, language: str, said: str, text: str
) -> None:
    ((tool, arguments),) = await calls(abilities, language, *SET[language], said)
    assert (tool, arguments["text"]) == ("set_reminder", text)
    assert arguments["when"].startswith(("mañana", "amanhã", "tomorrow"))


@pytest.mark.parametrize(
    ("language", "spoken", "when"),
    [
        ("en", ["remind me to pay in 2 days", "✓ Reminder Tue: pay", "no, 3"], "in 3 days"),
        ("pt", ["me avisa em 20 min pra pagar", "✓ Lembrete hoje: pagar", "melhor em 15"], "em 15 min"),
    ],
)
async def test_a_number_corrects_how_long_it_is_until_then(
    abilities: ToolCatalog, language: str, spoken: list[str], when: str
) -> None:
    assert await calls(abilities, language, *spoken) == [
        ("change_reminder", {"reminder": spoken[1].rpartition(": ")[2], "when": when})
    ]


async def test_another_hour_for_something_else_comes_as_often(abilities: ToolCatalog) -> None:
    made = await calls(abilities, "es", *EACH_WEEK["es"], "y a las 8 pasear al perro")
    assert made == [("set_reminder", {"text": "pasear al perro", "when": "todos los martes a las 8"})]


async def test_an_hour_that_has_passed_on_the_day_of_the_first_is_the_next_one(
    abilities: ToolCatalog,
) -> None:
    today = ["recuérdame hoy a las 9 de la noche pagar la luz", "✓ Recordatorio hoy 21:00: pagar la luz"]
    made = await calls(abilities, "es", *today, "y a las 8 de la mañana llamar a mi mamá")
    assert made == [("set_reminder", {"text": "llamar a mi mamá", "when": "a las 8 de la mañana"})]


@pytest.mark.parametrize(
    ("spoken", "tool", "arguments"),
    [
        (
            [*MOTHER, "y a las 11 ir al banco"],
            "set_reminder",
            {"text": "ir al banco", "when": "mañana a las 11"},
        ),
        ([*MOTHER, "cancélalo"], "cancel_reminder", {"reminder": "llamar a mi mamá"}),
        (
            [*MOTHER, "gracias", "De nada", "mejor a las 11"],
            "change_reminder",
            {"reminder": "llamar a mi mamá", "when": "a las 11"},
        ),
        (
            ["am", say("es", "I did not understand that."), "cancélalo"],
            "cancel_reminder",
            {"reminder": "pagar la luz"},
        ),
        (
            ["no", "Ahora no espero ninguna respuesta.", "era a las 8"],
            "change_reminder",
            {"reminder": "pagar la luz", "when": "a las 8"},
        ),
        (
            ["no, a las 8", "✓ Recordatorio ahora mañana 08:00: pagar la luz", "y el viernes también"],
            "set_reminder",
            {"text": "pagar la luz", "when": "el viernes a las 8"},
        ),
        (
            ["no, a las 8", "✓ Recordatorio ahora mañana 08:00: pagar la luz", MOTHER[0]],
            "set_reminder",
            {"text": "llamar a mi mamá", "when": "mañana a las 10"},
        ),
    ],
)
async def test_what_was_added_is_known_in_what_follows(
    abilities: ToolCatalog, spoken: list[str], tool: str, arguments: dict[str, str]
) -> None:
    assert await calls(abilities, "es", *SET["es"], *spoken) == [(tool, arguments)]


async def test_the_hour_that_was_picked_is_known_in_what_follows(abilities: ToolCatalog) -> None:
    asked = say("es", "Do you mean {first} or {second}? I set nothing yet.", first="03:00", second="15:00")
    told = ["recuérdame mañana a las 3 ir al mercado", asked, "de la tarde", "✓ Recordatorio: ir al mercado"]
    made = await calls(abilities, "es", *told, "no, a las 16:00")
    assert made == [("change_reminder", {"reminder": "ir al mercado", "when": "a las 16:00"})]


async def test_what_a_reminder_lacked_is_known_in_what_follows(abilities: ToolCatalog) -> None:
    asked = ["recuérdame pagar la luz", "¿Para qué fecha u hora?", "mañana a las 9", SET["es"][1]]
    made = await calls(abilities, "es", *asked, MOTHER[0])
    assert made == [("set_reminder", {"text": "llamar a mi mamá", "when": "mañana a las 10"})]


@pytest.mark.parametrize(
    ("language", "said", "when"),
    [
        ("es", "no, a las 8", "a las 8"),
        ("es", "perdón, a las 8", "a las 8"),
        ("es", "a las 8", "a las 8"),
        ("pt", "não, às 8", "às 8"),
        ("en", "no, at 8", "at 8"),
        ("en", "sorry, friday", "friday"),
        ("en", "actually make it 7pm", "7pm"),
        ("en", "no wait, in 3 hours", "in 3 hours"),
        ("pt", "na vdd as 19h", "as 19h"),
        ("es", "perdón, mejor que sea el martes", "el martes"),
    ],
)
async def test_a_moment_alone_after_a_receipt_corrects_it(
    abilities: ToolCatalog, language: str, said: str, when: str
) -> None:
    ((tool, arguments),) = await calls(abilities, language, *SET[language], said)
    assert (tool, arguments["when"]) == ("change_reminder", when)


@pytest.mark.parametrize(
    ("spoken", "tools"),
    [
        ([*SET["es"], "y a las 10?"], []),
        ([*SET["es"], "y cuánto es 9 por 8"], ["calculate"]),
        ([*SET["es"], "y anota que debo 500 a Juan"], ["save_note"]),
        ([SET["es"][0], "¿Quieres decir 09:00 o 21:00?", MOTHER[0]], []),
        (["anota comprar pan", "✓ Nota guardada: comprar pan", MOTHER[0]], []),
        (["anota comprar pan", "✓ Nota guardada: comprar pan", "no, a las 8"], []),
    ],
)
async def test_what_asks_for_something_else_or_follows_no_reminder_sets_none(
    abilities: ToolCatalog, spoken: list[str], tools: list[str]
) -> None:
    assert [name for name, _ in await calls(abilities, "es", *spoken)] == tools


@pytest.mark.parametrize(
    ("said", "recent"),
    [
        ("no, 3", ("recuérdame pagar la luz en 2 días",)),
        ("y a las 11 ir al banco y hablar con el gerente del local", (SET["es"][0], MOTHER[0], "gracias")),
    ],
)
async def test_what_goes_on_with_a_reminder_is_about_reminders(
    abilities: ToolCatalog, said: str, recent: tuple[str, ...]
) -> None:
    model = OfflineModel(lambda: abilities.index, abilities.phrases, now=lambda: NOW)
    who = person("es")
    categories = tuple(abilities.categories(who))
    request = ModelRequest("classify", [], said=said, person=who, categories=categories, recent=recent)
    assert json.loads((await model.complete(request)).text)["categories"][0] == "reminders"
