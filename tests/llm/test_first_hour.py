"""A newcomer's first messages in three languages, through the webhook of a server without a model."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import Dialog
from tests.world import Graph, Server

# the tools that are called for each message of first_hour.jsonl
TOOLS = {
    "es": """
        current_time / current_time / days_between / weekday_of / calculate / convert_units / convert_money
        save_note / list_notes / - / add_to_list / check_off / show_list / set_reminder / change_reminder
        set_reminder / list_reminders / cancel_reminder / remember / recall / get_weather / get_weather
        set_time_zone+set_usual_place / search_notes
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
    "borra la segunda": "La lista de arriba tiene 1",
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
antes borraba todo los lunes
antes eu tinha uma lista de fornecedor, apaguei ano passado
cancelaron la cita del banco
mi jefe canceló la junta con el banco
ella borró la nota de la placa
o banco cancelou meu cartão
minha mãe tirou o leite da lista
Sam already took the milk off the list
don't remind me of anything tomorrow
don't remind me tomorrow at 5pm to pay rent
I don't want you to remind me tomorrow at 8 about rent
não precisa me lembrar amanhã às 9 de pagar a luz
tirei nota 3 na prova
cancelei o lembrete do boleto
cancelé el recordatorio del banco, ¿verdad?
anoté el teléfono del doctor en un papel
guardé la receta en el cajón
anotei tudo no caderno
recordé que mañana a las 9 tengo junta
Lembro que minha avó fazia pão de queijo todo domingo
Lembrei que deixei o gás ligado!
I remember the smell of my grandma's kitchen
acabei de comprar leite
adicionei pão à lista
borré la nota 1
I deleted my note about the landlord by accident
quité el queso de la lista
vacié la lista del súper, ¿no?
não apaga a lista de compras, hein
não apaga a lista de compras
apunté todo en mi cuaderno
¿ya agregaste el pan a la lista?
¿puedes decirme si compré leche?
¿cuándo anoté la placa?
cuando vivía en Lima anotaba todo
si compro leche te aviso
tengo que comprar pan?
mi hermano compró leche
nunca borres la nota de la placa
no sé si borrar la nota
me dijeron que cancelara la cita del banco
quem colocou leite na lista?
quando eu anotei a placa?
se eu comprar leite te aviso
ainda não comprei o pão
você apagou meu lembrete?
minha mãe colocou ovos na lista dela
who added milk to the list?
never forget that i am vegetarian?
should i buy bread
if i buy milk i will tell you
salvo que llueva, voy
forget my plate? can you do that
take off the milk, no wait, leave it
remember when you sent me that wrong reminder
add everything I took off to the list
add the one before that to the list
delete the list when I tell you
vacía la lista del súper cuando yo te diga
apaga tudo da lista menos a luva
coloca arroz na lista, ah deixa pra lá
amanhã eu não vou trabalhar então nem precisa acordar
e se eu apagar sem querer?
devuélveme la nota de la placa si la borro
olvídate de lo que te dije jaja es broma
cancelar o das 7h, será? nem sei
cancela nao
they changed the plate to XYZ
put bread on the list if I haven't already
I would cancel the bank one if I could
delete the note about... oh what was it
remind me every day at 2pm to take meds except sundays
cancelaría el recordatorio del banco si pudiera
quita la leche, ya tenía una en casa
agrega atún a la lista... ah no, ya hay atún en la casa
poe arroz na lista, bom, nao
nota: preguntar por la beca, no, mejor nada, olvidate
apunte que le debo doscientos pesos a la comadre, no apunte nada mejor ya se los pague
recordame llamar a la abuela el sabado a las 11, no mejor a las 12
me lembra de pagar o gas amanha as 9, ou melhor, as 10
recuerdame ir al doctor el viernes no el sabado a las 11
recuerdame pagar la luz mañana a las 9, perdon, a las 10
q me vas a recordar
nao preciso mais de leite ou preciso? sei la
lista del super: ya no la uso pero guardala
poe arroz na lista do mercado, se bem que arroz ja tem
cancela el del banco? nah
ya tengo leche creo
remind me in 20 mins to take the lasagne out, actually its already burnt so dont bother
add 24 cupcakes to party - sorry make that 36
add cheese, hmm no, yoghurt to the list
add wine and beer, minus the beer
oh and beer, just joking
and bananas if they're cheap
remember the door code is 9911, actually don't
note this down: call the bank. on second thoughts don't
remind me every tuesday at 7pm to train until the end of november
remind me every monday at 18:00 to train, only this month
é claro que eu quero guardar
lista de compras esvazie
lista do mercado: nao to usando mas guarda
remind me at 7
and that's it for today
pode apagar esse lembrete
borra ese recordatorio
minha cidade nao é linda
Lembra-me disso na véspera às 20h
to em Salvador de ferias
vê se não esquece
recuerdame por que te instale jaja
vivo en la casa de mi vieja por ahora
me llamo el jefe a las 3
remind me not to call ana tomorrow at 5pm
i live in fear of my landlord lol
Change the note to Wednesday
can you remind me what time the match is tomorrow
my name is on the list
write that down for me
borra ABC123 de la nota
Não era para esquecer a Graça, atenção
like remind me at 6pm that day
put it back on the list
my brother bought milk
i haven't bought the bread yet
acrescenta ovos e papel higiénico na lista das compras hoje na lista
adiciona ovo à minha
inclui banana na listinha
put milk back on the shopping list
add cheese instead of milk to the list
add call the bank to the todo list
put call the bank on my tasks
põe na lista de tarefas limpar a garagem
agregame otra vez los fideos
agregá de nuevo los fideos dale
agregame dos panes más
falta café em casa
borrá los dos
borra las tres
delete both
tira os dois
acrescenta à nota que o portão é azul
acrescenta ao lembrete que é longe
adiciona isso na nota
anotá también el nombre en esa nota
write it down on the list
apunta en pendientes: renovar la tarjeta
el martes pasado fui al dentista y no me recordaste nada
me chama daqui meia hora
me chama amanhã às 7
me lembra assim que eu acordar
mañana tengo que ir al banco, recuérdame
soy alérgica a los camarones, acuerdate
olvidalo, ya no voy a ir al banco
o pedreiro não lembra disso
anota en la nota del wifi que es 123
agrega a la nota 1 que es azul
add to my note that it is blue
need to get some sleep
i need to get my car fixed
i need to buy a house one day
""".strip().splitlines()


class Person:
    """A person who writes a message at a time, and sees what it led to."""

    def __init__(self, world: tuple[Server, Graph], name: str) -> None:
        self._server, self._graph = world
        self._name = name

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


def test_the_first_hour_is_understood(make_world: Any, samples: Path) -> None:
    world = make_world()
    said = messages(samples, "first_hour.jsonl")

    def live(person: Person, language: str) -> None:
        tools = [one.strip() for one in TOOLS[language].replace("\n", " / ").split("/") if one.strip()]
        texts = [text for spoken, text in said if spoken == language]
        for text, wanted in zip(texts, tools, strict=True):
            called, answer = person.says(text)
            assert called == wanted.strip("-"), (text, answer)
            assert ANSWERS.get(text, "") in answer

    with ThreadPoolExecutor() as threads:
        lives = [threads.submit(live, Person(world, f"p{at}"), language) for at, language in enumerate(TOOLS)]
        for one in lives:
            one.result()


@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.slow)])
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


def test_an_undo_is_of_the_last_action_and_positions_are_those_shown_last(make_world: Any) -> None:
    person = Person(make_world(), "p0")
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


def test_each_order_of_a_message_is_followed(make_world: Any) -> None:
    person = Person(make_world(), "p0")
    assert person.says("remind me tomorrow at 5pm to call mom, add bread to the list and note that it rains")[
        0
    ] == ("add_to_list+save_note+set_reminder")
    assert person.says("recuérdame el lunes a las 9am la junta, pon pan en la lista y cuánto es 20 por 5")[
        0
    ] == ("add_to_list+calculate+set_reminder")
    assert "1. torta" in person.says("ábrame un proyecto pa la fiesta: torta, bombas, piñata")[1]
    assert person.says("recuérdeme mañana a las 10 la cita")[0] == "set_reminder"  # to somebody called usted
    assert person.says("agréguele panela a la lista")[0] == "add_to_list"
    for told in ("traduce: I love you", "acabou a luz aqui", "hazme un gráfico de mis gastos"):
        assert person.says(told)[0] == ""
