"""The skill `conversation` through the chat: a person's own past, found by words and days."""

import json
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from babel.dates import format_skeleton

from tests.standins.model import calls, is_classifier, last_user_text
from tests.world import open_work, text_body, wait_for

HOME = ZoneInfo("America/New_York")  # of the stand-in's people, by their numbers


def test_what_was_said_is_found_by_its_words_and_by_nobody_else(offline_town):
    graph, person, other = offline_town.graph, offline_town.newcomer(), offline_town.newcomer()
    graph.ask(person, "el plomero se llama Benjamín")
    answer = graph.ask(person, "qué te dije sobre el plomero?")
    assert "Benjamín" in answer
    assert format_skeleton("MMMEd", datetime.now(HOME), locale="es") in answer
    answer = graph.ask(other, "¿qué te dije sobre el plomero?")
    assert "Benjamín" not in answer
    assert "No encontré" in answer


def test_only_finished_turns_of_the_persons_own_chat_are_searched_and_text_of_others_stays_marked(town):
    later = (date.today() + timedelta(days=2)).isoformat()
    searches = ({"query": "diez manzanas"}, {"query": "diez", "since": later}, {"query": "", "until": later})

    def play(body):
        if is_classifier(body):
            return '{"categories": ["conversation"]}'
        if "busca" in last_user_text(body) and body["messages"][-1]["role"] == "user":
            return calls(*(("search_history", one) for one in searches))
        return "bien"

    def found(person):
        graph.ask(person, "busca diez manzanas")
        messages = town.model.main_calls[-1]["messages"]
        return [json.loads(one["content"]) for one in messages if one["role"] == "tool"][-3:]

    server, graph, person, other = town.server, town.graph, town.newcomer(), town.newcomer()
    town.model.play = play
    group = f"wamid.{person}.group"
    server.post(text_body(group, "diez manzanas del grupo", town.phone(person), group_id="G1"))
    wait_for(lambda: server.rows("SELECT 1 FROM messages WHERE wamid = ?", group), "the group")
    wait_for(lambda: not open_work(server), "its turn")
    for who, said in ((person, "Compré DIEZ manzanas"), (other, "diez peras")):
        graph.ask(who, said)
    fitting, none, newest = found(person)
    shown = [(one["by"], one["text"]) for one in fitting["data"]["messages"]]
    assert shown == [("person", "Compré DIEZ manzanas"), ("assistant", "bien")]
    assert "outside" not in fitting["meta"]
    assert none["data"]["count"] == 0
    assert [one["text"] for one in newest["data"]["messages"]] == ["bien", "Compré DIEZ manzanas"]
    graph.ask(person, "diez manzanas verdes", forwarded=True)
    fitting, *_ = found(person)
    shown = [(one["text"], one.get("forwarded")) for one in fitting["data"]["messages"]]
    assert ("diez manzanas verdes", True) in shown
    assert fitting["meta"]["outside"] is True
