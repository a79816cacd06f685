"""Reminders over days without a server, windows that closed, sends that failed and deaths in between."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.machine import dial, injected
from tests.chaos.storm import DEAF
from tests.world import Graph, Server, open_work, wait_for

pytestmark = pytest.mark.slow

HOUR, DAY = 3_600.0, 86_400.0
TOLD = "SELECT 1 FROM outbox WHERE source >= 'sched:' AND source < 'sched;'"
HELD = "SELECT 1 FROM schedules WHERE held_at IS NOT NULL"


@pytest.fixture
def clocked(make_world: Callable[..., tuple[Server, Graph]]) -> Callable[..., Any]:
    """Makes a server whose clock the test sets."""

    def make(**more: str) -> tuple[Server, Graph, Callable[[float], None]]:
        server, graph = make_world(
            start=False,
            graph={"retry_pause": 0.2},  # a status comes again before the server gives it up
            SWEEP_SECONDS="0.3",
            SEND_RECONCILE_SECONDS="2",
            TIMEZONE="America/Mexico_City",
            **more,
        )
        clock = server.folder / "clock"
        jump = dial(clock)
        server.env |= injected(CLOCK=clock)
        return server, graph, jump

    return make


def set_three(graph: Graph) -> None:
    for count, said in enumerate(
        (
            "recuérdame ir al banco en 2 horas",
            "recuérdame tomar agua cada dos horas",
            "recuérdame la pastilla todos los días a las 12:00",
        ),
        start=1,
    ):
        graph.say("p0", said)
        assert graph.reply("p0", count).startswith("✓")


def late(graph: Graph) -> list[str]:
    return [text for text in graph.texts("p0") if text.startswith("⏰")]


def test_after_three_days_without_a_server_each_is_told_once_and_late_when_the_person_writes(clocked) -> None:
    """And without a wake: the test of what was missed within the window has them."""
    server, graph, jump = clocked()
    server.start(launcher=DEAF)
    set_three(graph)
    assert server.stop() == 0
    jump(3 * DAY)
    server.start(launcher=DEAF)
    wait_for(lambda: len(server.rows(HELD)) == 3, "all three to wait for the person")
    assert late(graph) == []
    graph.say("p0", "hola")
    told = wait_for(lambda: len(found := late(graph)) == 3 and found, "all three")
    wait_for(lambda: not open_work(server), "the end")
    assert all(text.startswith("⏰ Con retraso, era para ") for text in told)
    about = {text.rsplit(": ", 1)[1] for text in told}
    assert about == {"ir al banco", "la pastilla", "tomar agua"}
    assert sorted(late(graph)) == sorted(told)
    assert len(server.rows("SELECT 1 FROM schedules WHERE active = 1 AND due_at > unixepoch()")) == 2


def test_within_the_window_what_was_missed_is_told_at_the_start(clocked) -> None:
    server, graph, jump = clocked()
    server.start()
    set_three(graph)
    server.kill()
    jump(5 * HOUR)
    server.start()
    wait_for(lambda: any("banco" in text for text in late(graph)), "the one-off")
    wait_for(
        lambda: any("Con retraso" in text and "agua" in text for text in late(graph)), "the repeated one"
    )


def test_a_template_reaches_who_has_not_written_for_a_day(clocked) -> None:
    server, graph, jump = clocked(WHATSAPP_REMINDER_TEMPLATE="aviso:es_MX")
    server.start()
    graph.say("p0", "recuérdame renovar el pasaporte en 30 horas")
    assert "24 horas" not in graph.reply("p0")
    graph.faults(clock_ahead=30 * HOUR)
    jump(30 * HOUR + 30)
    sent = wait_for(lambda: [one for one in graph.sends("p0") if one["body"]["type"] == "template"], "it")
    assert sent[0]["body"]["template"] == {
        "name": "aviso",
        "language": {"code": "es_MX"},
        "components": [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": "⏰ Recordatorio: renovar el pasaporte"}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("template", "hours", "fault"),
    [("", 1, {"clock_ahead": 2 * DAY}), ("aviso", 30, {"fail": [{"code": 132001}]})],
    ids=["Meta's clock is ahead", "the template is unknown"],
)
def test_what_meta_refuses_is_not_lost_and_told_at_the_next_message(clocked, template, hours, fault) -> None:
    server, graph, jump = clocked(WHATSAPP_REMINDER_TEMPLATE=template)
    server.start()
    graph.say("p0", f"recuérdame llamar a Ana en {hours} horas")
    graph.reply("p0")
    graph.faults(**fault)
    jump(hours * HOUR + 30)
    wait_for(lambda: server.rows(HELD), "it to be held")
    assert late(graph) == []
    graph.faults(clock_ahead=0)
    jump((hours + 1) * HOUR)
    graph.say("p0", "hola")
    assert wait_for(lambda: late(graph), "the reminder")[0].endswith("llamar a Ana")
    wait_for(lambda: not open_work(server), "the end")
    assert len(late(graph)) == 1


@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
def test_a_death_around_the_firing_neither_loses_nor_doubles_it(clocked, when) -> None:
    server, graph, jump = clocked()
    sound = dict(server.env)
    server.env = sound | injected(CLOCK=server.folder / "clock", **{f"DIE_{when}": TOLD})
    server.start()
    graph.say("p0", "recuérdame llamar a Ana en 20 minutos")
    graph.reply("p0")
    jump(20 * 60 + 1)
    assert server.process.wait(30) == -signal.SIGKILL
    assert late(graph) == []
    server.env = sound
    server.start()
    wait_for(lambda: late(graph), "the reminder")
    wait_for(lambda: not open_work(server), "the end")
    assert len(late(graph)) == 1


def test_a_death_while_it_is_sent_neither_loses_nor_doubles_it(clocked) -> None:
    server, graph, jump = clocked()
    server.start()
    graph.say("p0", "recuérdame llamar a Ana en 20 minutos")
    graph.reply("p0")
    graph.faults(drop_after_accept=1)
    jump(20 * 60 + 1)
    wait_for(lambda: late(graph), "it to be accepted")
    server.kill()
    server.start()
    wait_for(lambda: not open_work(server), "the end")
    assert len(late(graph)) == 1


def test_who_is_blocked_is_told_nothing(clocked) -> None:
    server, graph, jump = clocked()
    server.start()
    for person in ("p1", "p2"):
        graph.say(person, "recuérdame llamar a Ana en 20 minutos")
        graph.reply(person)
    server.recado("people", "block", "12125550001")
    jump(20 * 60 + 1)
    assert graph.reply("p2", 2).startswith("⏰")
    assert len(graph.texts("p1")) == 1
