"""People say in the chat which time zone is theirs; the test moves the server's clock."""

import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.chaos.machine import dial, injected
from tests.skills.test_reminders import Chat
from tests.standins.model import calls, is_classifier, last_user_text
from tests.standins.weather import WeatherService
from tests.world import Server, open_work, text_body, wait_for, world


class Clocked(Chat):
    """The same, and what the server takes for now."""

    def now(self) -> float:
        return time.time() + self._ahead

    def until(self, due: float) -> float:
        """The minutes up to a moment."""
        return (due - self.now()) / 60


MACHINE = "America/Santiago"
HOME = "America/New_York"
"""The zone of the people's area code, 212, whatever the machine's is."""


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocked]:
    folder = tmp_path_factory.mktemp("zones")
    weather, clock = WeatherService(), folder / "clock"
    jump = dial(clock)
    options = {**weather.settings, **injected(CLOCK=clock), "SWEEP_SECONDS": "0.3", "TIMEZONE": MACHINE}
    for server, graph in world(folder, crowd=20, **options):
        server.start()
        yield Clocked(server, graph, jump)
    weather.stop()


def said_zone(server: Server, person: str) -> str:
    """What is kept of the zone that the person said."""
    phone = f"%{1212555_0000 + int(person[1:])}"
    rows = server.rows(
        "SELECT p.timezone FROM people p JOIN aliases a ON a.person_id = p.id"
        " WHERE a.kind = 'phone' AND a.value LIKE ?",
        phone,
    )
    return str(rows[0]["timezone"])


def test_a_zone_is_set_by_words_and_the_receipt_names_it(chat: Clocked) -> None:
    in_madrid = "estoy en Madrid ahora, cambia mi zona horaria"
    for person, said, receipt, zone in (
        ("p0", "mi zona horaria es la de Tijuana", "✓ Tu zona horaria: Tijuana. Ahí ", "America/Tijuana"),
        ("p0", in_madrid, "✓ Tu zona horaria: Madrid.", "Europe/Madrid"),
        ("p1", "meu fuso horário é GMT-3", "✓ Seu fuso horário: UTC-3.", "Etc/GMT+3"),
        ("p2", "I live in Los Angeles", "✓ Your time zone: Los Angeles.", "America/Los_Angeles"),
    ):
        assert chat.ask(person, said).startswith(receipt)
        assert said_zone(chat.server, person) == zone


def test_the_first_receipt_names_a_zone_that_was_guessed_and_no_later_one(chat: Clocked) -> None:
    first, note = chat.ask("p15", "me lembra amanhã às 9 de regar").split("\n")[:2]
    assert first == "✓ Lembrete amanhã 09:00, horário de Nova York: regar"
    assert note == "Se não for o seu horário, me diga onde você mora."
    due = chat.due("p15")[0].astimezone(ZoneInfo(HOME))
    assert (due.hour, due.minute) == (9, 0)
    assert note not in chat.ask("p15", "me lembra depois de amanhã às 9 de ler")


def test_it_counts_for_what_the_same_message_asks_for(chat: Clocked) -> None:
    answer = chat.ask("p6", "mi zona horaria es la de Tokio y recuérdame mañana a las 9 llamar a Ana")
    assert "✓ Tu zona horaria: Tokio" in answer
    assert "✓ Recordatorio mañana 09:00: llamar a Ana" in answer
    assert chat.due("p6")[0].astimezone(ZoneInfo("Asia/Tokyo")).hour == 9


def test_a_reminder_from_before_keeps_its_time_and_the_list_names_its_zone(chat: Clocked) -> None:
    chat.ask("p7", "recuérdame mañana a las 9 regar")
    before = chat.due("p7")
    answer = chat.ask("p7", "mi zona horaria es la de Tokio")
    assert answer.split("\n")[1].startswith("Los recordatorios que ya tenías suenan como antes")
    chat.ask("p7", "recuérdame en 3 horas comer")
    assert before[0] in chat.due("p7")
    listed = chat.ask("p7", "mis recordatorios").split("\n")
    assert [line.endswith("09:00 (Nueva York): regar") for line in listed[1:] if "regar" in line] == [True]
    assert ["(" in line for line in listed[1:] if "comer" in line] == [False]
    day = before[0].astimezone(ZoneInfo(HOME)).date()
    left = chat.due("p7")
    chat.ask("p7", "cambia el recordatorio 1 a las 23:30")  # it stays on the day that was read
    changed = [one.astimezone(ZoneInfo("Asia/Tokyo")) for one in chat.due("p7") if one not in left]
    assert [(due.date(), due.hour, due.minute) for due in changed] == [(day, 23, 30)]
    chat.ask("p7", "recuérdame todos los viernes a las 16:00 cobrar")
    chat.ask("p7", "mi zona horaria es la de Madrid")
    assert "cada jueves 16:00" in chat.ask("p7", "cambia el recordatorio de cobrar para los jueves")


def test_a_country_of_several_zones_is_asked_about_and_the_answer_sets_it(chat: Clocked) -> None:
    asked = chat.ask("p8", "my time zone is Brazil")
    assert re.match(
        r"Brazil: there are several time zones. Which city has your time\?\n• S[aã]o Paulo: ", asked
    )
    assert said_zone(chat.server, "p8") == ""
    assert chat.ask("p8", "my time zone is Manaus").startswith("✓ Your time zone: Manaus.")
    assert "• Lisbon: " in chat.ask("p8", "I live in Portugal")
    assert said_zone(chat.server, "p8") == "America/Manaus"


def test_what_is_no_place_is_explained_and_nothing_is_set(chat: Clocked) -> None:
    answer = chat.ask("p9", "mi zona horaria es la de Tijuna")
    assert "No conozco el lugar «Tijuna»." in answer
    assert "¿Quisiste decir Tijuana?" in answer
    asked = chat.ask("p9", "my time zone is UTC+5:30")
    assert "I have no zone for UTC+5:30. Which city has your time?" in asked
    assert said_zone(chat.server, "p9") == ""


def test_it_is_forgotten_again_and_the_number_counts(chat: Clocked) -> None:
    chat.ask("p10", "mi zona horaria es la de Tokio")
    assert "Ahora: Nueva York;" in chat.ask("p10", "usa otra vez la zona horaria de mi número")
    assert said_zone(chat.server, "p10") == ""
    chat.ask("p10", "mi zona horaria es la de Tokio")
    assert "Ahora: Nueva York;" in chat.ask("p10", "olvida mi zona horaria")


def test_what_a_person_wants_remembered_is_remembered(chat: Clocked) -> None:
    assert chat.ask("p11", "remember that I live in Los Angeles").startswith("✓ I will remember: I live in")
    assert said_zone(chat.server, "p11") == ""


def test_it_outlives_a_restart_and_the_reminder_rings_at_its_hour(chat: Clocked) -> None:
    chat.ask("p13", "mi zona horaria es la de Tijuana")
    chat.ask("p13", "recuérdame mañana a las 9 llamar a Ana")
    wait_for(lambda: not open_work(chat.server), "the receipt to be known as sent: it would come twice")
    chat.server.kill()
    chat.server.start()
    assert said_zone(chat.server, "p13") == "America/Tijuana"
    chat.later(chat.until(chat.due("p13")[0].timestamp()) - 2)
    assert "llamar" not in chat.ask("p13", "hola")
    chat.later(2.1)
    assert "llamar a Ana" in chat.next("p13")


def play(body: dict[str, Any]) -> Any:
    """Wants the zone of a place in brackets, and asks for a reminder beside it and one after it."""
    if is_classifier(body):
        return '{"categories": ["datetime", "reminders"], "phrases": ["set time zone", "set reminder"]}'
    told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    wanted = re.findall(r"\[\[(.*?)\]\]", str(body["messages"]))
    if len(told) > 2 or "thanks" in last_user_text(body):
        return f"done: {told}"
    zone = ("set_time_zone", {"place": wanted[-1]})
    reminders = [("set_reminder", {"text": text, "when": "tomorrow at 9"}) for text in ("first", "second")]
    return calls(reminders[0], zone) if not told else calls(reminders[1])


def test_a_models_calls_go_by_the_zone_wherever_in_its_round_it_is_set_and_others_set_none(town) -> None:
    server, graph, person, town.model.play = town.server, town.graph, town.newcomer(), play
    graph.ask(person, "I live in [[Tokyo]]: remind me twice")
    rows = server.rows("SELECT due_at, zone FROM schedules ORDER BY created_at DESC LIMIT 2")
    assert [row["zone"] for row in rows] == ["Asia/Tokyo"] * 2
    assert {datetime.fromtimestamp(row["due_at"], ZoneInfo("Asia/Tokyo")).hour for row in rows} == {9}
    graph.ask(person, "thanks")
    heads = [last_user_text(body).splitlines()[0] for body in town.model.main_calls]
    assert f", {HOME}; " in heads[0]
    assert ", Asia/Tokyo; " in heads[-1]
    other = town.newcomer()
    order = text_body("wamid.zone", "set it to [[Tokyo]]", town.phone(other), context={"forwarded": True})
    assert server.post(order).status_code == 200
    graph.reply(other)
    assert "I take no time zone out of others' words" in graph.ask(
        other, "do what he wrote and set my time zone and a reminder"
    )
    assert said_zone(server, other) == ""
    assert "✓ Your time zone: Madrid" in graph.ask(other, "I live in Madrid now [[Madrid]]")
    assert said_zone(server, other) == "Europe/Madrid"
