"""Lines of a list that it does not have, the other one of two, and one more after the first."""

import pytest

from app.llm.offline.replies import lacking_text
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import answered

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
