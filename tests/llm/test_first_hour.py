"""A newcomer's first messages in three languages, through the webhook of a server without a model."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import Dialog
from tests.world import Town

# the tools that are called for each message of first_hour.jsonl
TOOLS = {
    "es": """
        current_time / current_time / days_between / weekday_of / calculate / convert_units / convert_money
        save_note / list_notes / - / add_to_list / check_off / show_list / set_reminder / change_reminder
        set_reminder / list_reminders / cancel_reminder / remember / recall / get_weather / get_weather
        set_time_zone+set_usual_place / recall+search_notes
    """,
    "pt": """
        - / current_time / current_time / days_between / calculate / calculate / convert_units / save_note
        list_notes / add_to_list / check_off / set_reminder / change_reminder / set_reminder / list_reminders
        cancel_reminder / remember
    """,
    "en": """
        current_time / current_time / days_between / calculate / calculate / save_note / list_notes
        add_to_list / check_off / show_list / set_reminder / set_reminder / list_reminders / remember
        set_time_zone+set_usual_place / get_weather
    """,
}
# words that the answers to some of these messages hold
ANSWERS = {
    "y en madrid?": "En Madrid",
    "cuanto es el 16% de 4890": "782.4",
    "cuantas libras son 80 kg": "176.3698 lb",
    "si el dolar esta a 18.45 cuanto son 250 usd": "4,612.5",
    "borra la segunda": "No cambié nada",
    "ya compré los huevos": "Falta: leche, tortillas",
    "mejor a las 10": "10:00: llamar al dentista",
    "cancela el de la basura": "No encontré",
    "q sabes de mi": "1. soy alérgico a las nueces",
    "oi, td bem?": "Olá",
    "e em lisboa?": "Em Lisboa",
    "divide por 4": "937.875",
    "na vdd é às 9": "09:00: pagar o aluguel",
    "cancela o das plantas": "Lembrete cancelado: regar as plantas",
    "split that by 3": "4.225",
    "whats left on the list": "Grocery (2 left)",
}


NO_ORDERS = """
cancelaram a reunião do banco
antes eu tinha uma lista de fornecedor, apaguei ano passado
ella borró la nota de la placa
minha mãe tirou o leite da lista
don't remind me tomorrow at 5pm to pay rent
não precisa me lembrar amanhã às 9 de pagar a luz
cancelé el recordatorio del banco, ¿verdad?
guardé la receta en el cajón
Lembro que minha avó fazia pão de queijo todo domingo
I remember the smell of my grandma's kitchen
borré la nota 1
quité el queso de la lista
não apaga a lista de compras
¿ya agregaste el pan a la lista?
cuando vivía en Lima anotaba todo
tengo que comprar pan?
no sé si borrar la nota
quem colocou leite na lista?
ainda não comprei o pão
minha mãe colocou ovos na lista dela
should i buy bread
salvo que llueva, voy
remember when you sent me that wrong reminder
add the one before that to the list
apaga tudo da lista menos a luva
amanhã eu não vou trabalhar então nem precisa acordar
olvídate de lo que te dije jaja es broma
cancela nao
I would cancel the bank one if I could
remind me every day at 2pm to take meds except sundays
agrega atún a la lista... ah no, ya hay atún en la casa
nota: preguntar por la beca, no, mejor nada, olvidate
me lembra de pagar o gas amanha as 9, ou melhor, as 10
recuerdame pagar la luz mañana a las 9, perdon, a las 10
lista del super: ya no la uso pero guardala
cancela el del banco? nah
add 24 cupcakes to party - sorry make that 36
add wine and beer, minus the beer
remember the door code is 9911, actually don't
remind me every tuesday at 7pm to train until the end of november
lista de compras esvazie
remind me at 7
borra ese recordatorio
Lembra-me disso na véspera às 20h
recuerdame por que te instale jaja
me llamo el jefe a las 3
Change the note to Wednesday
my name is on the list
Não era para esquecer a Graça, atenção
put it back on the list
acrescenta ovos e papel higiénico na lista das compras hoje na lista
inclui banana na listinha
add call the bank to the todo list
põe na lista de tarefas limpar a garagem
agregame dos panes más
borrá los dos
tira os dois
acrescenta ao lembrete que é longe
write it down on the list
el martes pasado fui al dentista y no me recordaste nada
me lembra assim que eu acordar
soy alérgica a los camarones, acuerdate
anota en la nota del wifi que es 123
add to my note that it is blue
i need to buy a house one day
""".strip().splitlines()


class Person:
    """A person who writes a message at a time, and sees what it led to."""

    def __init__(self, town: Town) -> None:
        self._server, self._graph, self._name = town.server, town.graph, town.newcomer()

    def says(self, text: str) -> tuple[str, str]:
        """Return the tools that were called, joined by "+", and the answer."""
        count = len(self._graph.sends(self._name)) + 1
        self._graph.say(self._name, text)
        answer = self._graph.reply(self._name, count)
        rows = self._server.rows(
            "SELECT payload FROM journal WHERE kind = 'intent' AND turn_id ="
            " (SELECT turn_id FROM messages WHERE direction = 'in' AND text = ? ORDER BY id DESC LIMIT 1)",
            text,
        )
        return "+".join(sorted(json.loads(row["payload"])["tool"] for row in rows)), answer


def messages(samples: Path, name: str) -> list[tuple[str, str]]:
    lines = (samples / "user" / name).read_text("utf-8").splitlines()
    return [(row["lang"], row["text"]) for row in map(json.loads, lines)]


@pytest.mark.slow
def test_the_first_hour_is_understood(offline_town: Town, samples: Path) -> None:
    said = messages(samples, "first_hour.jsonl")

    def live(person: Person, language: str) -> None:
        tools = [one.strip() for one in TOOLS[language].replace("\n", " / ").split("/") if one.strip()]
        texts = [text for spoken, text in said if spoken == language]
        for text, wanted in zip(texts, tools, strict=True):
            called, answer = person.says(text)
            assert called == wanted.strip("-"), (text, answer)
            assert ANSWERS.get(text, "") in answer

    with ThreadPoolExecutor() as threads:
        lives = [threads.submit(live, Person(offline_town), language) for language in TOOLS]
        for one in lives:
            one.result()


@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_questions_negations_memories_and_wishes_change_nothing(
    abilities: ToolCatalog, samples: Path, each: int
) -> None:
    dialog = Dialog(abilities, "es")
    for text in (
        "agrega leche y pan a la lista",
        "guarda una nota: la placa es ABC123",
        "recuérdame mañana a las 9 llamar al banco",
        "recuerda que soy vegetariano",
    ):
        assert (await dialog.says(text))[0]
    for text in [*(text for _, text in messages(samples, "changes_nothing.jsonl")), *NO_ORDERS][::each]:
        called, _ = await dialog.says(text)
        assert {tool for tool, _ in called} <= abilities.read_only(), (text, called)


def test_an_undo_is_of_the_last_action_and_positions_are_those_shown_last(offline_town: Town) -> None:
    person = Person(offline_town)
    for text in ("anota que el doctor se llama Ruiz", "anota que el taller abre a las 8", "mis notas"):
        person.says(text)
    assert "taller" in person.says("borra la segunda")[1]
    assert "taller" in person.says("deshacer")[1]
    assert person.says("agrega leche, pan y huevos a la lista")[0] == "add_to_list"
    person.says("qué hay en la lista")
    assert "pan" in person.says("ya compré el segundo")[1]
    person.says("recuérdame mañana a las 9 llamar al banco")
    assert "llamar al banco" in person.says("deshacer")[1]
    for text in ("quita el pan de la lista", "recuérdame mañana a las 9 la junta", "qué hora es"):
        person.says(text)
    assert person.says("no, a las 7 pm")[0] == ""  # of what was said just before


def test_each_order_of_a_message_is_followed(offline_town: Town) -> None:
    person = Person(offline_town)
    many = "remind me tomorrow at 5pm to call mom, add bread to the list and note that it rains"
    for said, called in (
        (many, "add_to_list+save_note+set_reminder"),
        ("recuérdeme mañana a las 10 la cita", "set_reminder"),  # to somebody called usted
        *((said, "") for said in ("traduce: I love you", "acabou a luz aqui")),
    ):
        assert person.says(said)[0] == called
