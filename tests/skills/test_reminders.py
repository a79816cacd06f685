"""Reminders through the chat, by words as people write them; the test moves the server's clock."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.chaos.machine import dial, injected
from tests.skills.tables import table
from tests.world import Graph, Server, wait_for, world

MINUTE = 60.0
ZONE = ZoneInfo("America/New_York")


class Chat:
    """People who talk to one server, whose clock goes forward when the test says so."""

    def __init__(self, server: Server, graph: Graph, jump: Callable[[float], None]) -> None:
        self.server, self.graph, self._jump = server, graph, jump
        self._ahead = 0.0
        self._read: dict[str, int] = {}

    def ask(self, person: str, text: str, **more: Any) -> str:
        self.graph.say(person, text, **more)
        return self.next(person)

    def receipt(self, person: str, text: str, **more: Any) -> str:
        """Return the first line of the answer, without the zone that only a person's first receipt names."""
        return (
            self.ask(person, text, **more)
            .split("\n")[0]
            .replace(", hora de Nueva York", "")
            .replace(", horário de Nova York", "")
            .replace(", New York time", "")
        )

    def next(self, person: str) -> str:
        """The person's next message from us."""
        self._read[person] = self._read.get(person, 0) + 1
        return self.graph.reply(person, self._read[person])

    def last_wamid(self, person: str) -> str:
        return str(self.graph.sends(person)[self._read[person] - 1]["wamid"])

    def later(self, minutes: float) -> None:
        self._ahead += minutes * MINUTE
        self._jump(self._ahead)

    def due(self, person: str) -> list[datetime]:
        rows = self.server.rows(
            "SELECT s.due_at FROM schedules s JOIN aliases a ON a.person_id = s.person_id"
            " WHERE a.kind = 'phone' AND a.value LIKE ? AND s.active = 1 ORDER BY s.number",
            f"%{1212555_0000 + int(person[1:])}",
        )
        return [datetime.fromtimestamp(row["due_at"], ZONE) for row in rows]


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    folder = tmp_path_factory.mktemp("reminders")
    pieces = world(folder, crowd=21, SWEEP_SECONDS="0.3", TIMEZONE="America/Santiago")
    server, graph = next(pieces)
    clock = folder / "clock"
    jump = dial(clock)
    server.env |= injected(CLOCK=clock)
    server.start()
    try:
        yield Chat(server, graph, jump)
    finally:
        pieces.close()


SAID = table("reminders", "said")


@pytest.mark.parametrize(("person", "said", "receipt"), SAID, ids=[said for _, said, _ in SAID])
def test_a_reminder_is_set_by_words_and_the_receipt_says_when(chat: Chat, person, said, receipt) -> None:
    answer = chat.receipt(person, said)
    wanted = re.escape(receipt).replace(r"\{moment\}", r"[^)]*\d\d:\d\d")
    assert re.fullmatch(wanted, answer)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("recuérdame cenar mañana a las 3", "¿mañana 03:00 o mañana 15:00?"),
        ("recuérdame saltar cada 5 minutos", "cada 15 minutos"),
        ("recuérdame votar el 3 de enero de 2020", "ya pasó"),
        ("recuérdame lo mismo mañana", "Falta de qué es el recordatorio"),
        ("recuérdame cada mes pagar la renta", "No entiendo para cuándo"),
    ],
)
def test_what_cannot_be_set_is_explained_and_nothing_is_set(chat: Chat, said, told) -> None:
    assert told in chat.ask("p4", said)
    assert chat.due("p4") == []


def test_a_time_that_is_missing_is_asked_for_and_the_answer_sets_it(chat: Chat) -> None:
    assert chat.ask("p5", "recuérdame regar las plantas") == "¿Para qué fecha u hora?"
    assert chat.receipt("p5", "mañana a las 15:00") == "✓ Recordatorio mañana 15:00: regar las plantas"


def test_it_is_told_without_a_model_and_again_later_when_asked(chat: Chat) -> None:
    chat.ask("p6", "recuérdame apagar el horno en 20 minutos")
    turns = len(chat.server.rows("SELECT 1 FROM turns"))
    chat.later(20.5)
    assert chat.next("p6") == "⏰ Recordatorio: apagar el horno"
    assert len(chat.server.rows("SELECT 1 FROM turns")) == turns
    assert re.fullmatch(r"✓ Otra vez \w+ \d\d:\d\d: apagar el horno", chat.ask("p6", "en 10 minutos más"))
    chat.later(10.5)
    assert chat.next("p6") == "⏰ Recordatorio: apagar el horno"
    assert chat.due("p6") == []
    chat.ask("p6", "recuérdame llamar a Ana mañana a las 9")
    assert "¿Cuál?" in chat.ask("p6", "pospón el recordatorio 10 minutos"), "one was set since"


def test_the_one_that_is_quoted_is_told_again_and_a_repeated_one_goes_on(chat: Chat) -> None:
    chat.ask("p7", "me lembra de tomar água a cada duas horas")
    chat.later(120.5)
    assert chat.next("p7") == "⏰ Lembrete: tomar água"
    first = chat.last_wamid("p7")
    chat.ask("p7", "me lembra de abrir a janela em 5 minutos")
    chat.later(5.5)
    assert chat.next("p7") == "⏰ Lembrete: abrir a janela"
    assert chat.ask("p7", "adia 20 minutos", quoted=first).endswith("tomar água")
    assert len(chat.due("p7")) == 2  # the next of the repeated one, and this one more time


def test_what_answers_an_older_message_changes_nothing_newer(chat: Chat) -> None:
    chat.ask("p19", "coloca bolo na lista da festa")
    party = chat.last_wamid("p19")
    assert chat.ask("p19", "coloca tinta na lista da obra") == "✓ Na lista Obra: tinta"
    chat.ask("p19", "me lembra amanhã às 9 de ligar pra Ana")
    for said in ("comprei tudo", "adiciona vela", "cancela", "muda pra 10h", "desfaz"):
        assert "✓" not in chat.ask("p19", said, quoted=party), said
    assert "09:00: ligar pra Ana" in chat.ask("p19", "meus lembretes")
    assert chat.ask("p19", "o que tem na lista da obra").endswith("1. tinta")
    assert chat.ask("p19", "coloca pincel na lista da obra") == "✓ Na lista Obra: pincel"
    chat.ask("p19", "apaga a lista da obra")
    assert "✓" not in chat.ask("p19", "desfaz"), "it was asked since"


def test_reminders_are_listed_changed_and_cancelled_by_number_and_words(chat: Chat) -> None:
    chat.ask("p8", "remind me to call Bob tomorrow at 9")
    chat.ask("p8", "remind me to buy milk tomorrow at 10")
    assert chat.ask("p8", "my reminders") == (
        "Your reminders (2 of 2):\n#1 · tomorrow 09:00: call Bob\n#2 · tomorrow 10:00: buy milk"
    )
    assert (
        chat.receipt("p8", "move reminder 1 to tomorrow at 11am") == "✓ Reminder now tomorrow 11:00: call Bob"
    )
    assert chat.ask("p8", "cancel the reminder milk").startswith("✓ Reminder cancelled: buy milk. Undo: “")
    assert "Which one" not in chat.ask("p8", "cancel reminder 1")
    assert chat.ask("p8", "my reminders") == "You have no reminders."


def test_nobody_sees_or_touches_the_reminders_of_another(chat: Chat) -> None:
    chat.ask("p9", "recuérdame el dentista mañana a las 11")
    assert chat.ask("p10", "mis recordatorios") == "No tienes recordatorios."
    assert "No tienes recordatorios" in chat.ask("p10", "cancela el recordatorio 1")
    assert "dentista" in chat.ask("p9", "cancela los recordatorios del lunes")  # names what there is
    assert len(chat.due("p9")) == 1


def test_a_text_of_others_is_quoted_when_it_is_told(chat: Chat) -> None:
    theirs = chat.graph.say("p11", "la puerta queda abierta", forwarded=True)
    chat.next("p11")
    chat.ask("p11", "/nueva")
    receipt = chat.ask("p11", "recuérdame cerrar la puerta en 20 minutos", quoted=theirs)
    assert "«cerrar la puerta»" in receipt
    chat.later(20.5)
    assert chat.next("p11") == "⏰ Recordatorio: «cerrar la puerta» (puede contener palabras de otros)"


def test_nothing_of_others_is_in_a_quoted_answer_or_reminder_of_ones_own(chat: Chat) -> None:
    own = chat.graph.say("p18", "recuérdame cerrar la puerta en 20 minutos")
    chat.next("p18")
    chat.later(20.5)
    assert chat.next("p18") == "⏰ Recordatorio: cerrar la puerta"
    for quoted, text in [(chat.last_wamid("p18"), "regar"), (own, "nadar")]:
        chat.ask("p18", f"recuérdame {text} en 20 minutos", quoted=quoted)
        chat.later(20.5)
        assert chat.next("p18") == f"⏰ Recordatorio: {text}"


@pytest.mark.slow
def test_the_alarm_rings_before_the_sweep_would_look(make_world: Callable[..., tuple[Server, Graph]]) -> None:
    server, graph = make_world(SWEEP_SECONDS="3600", TIMEZONE="America/Santiago")
    graph.say("p0", "hola")
    graph.reply("p0")
    moment = server.rows("SELECT max(at) AS at FROM messages")[0]["at"] + 6
    iso = datetime.fromtimestamp(moment, ZONE).isoformat(timespec="seconds")
    graph.say("p0", f"recuérdame respirar {iso}")
    graph.reply("p0", 2)
    assert graph.reply("p0", 3) == "⏰ Recordatorio: respirar"
    wait_for(lambda: not server.rows("SELECT 1 FROM schedules WHERE active = 1"), "its end")
