"""What is not among the few tools of a call is searched, found and called within the same turn."""

import re
from typing import Any

from tests.console.test_pages import Browser
from tests.standins.model import caller, calls, is_classifier, last_user_text, results, routed
from tests.world import until, wait_for

SEARCH = ("search_tools", {"query": "save a note", "limit": 1})
SAVE = ("save_note", {"text": "buy milk"})


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


@routed("calculator")
def search_then_save(body: dict[str, Any]) -> Any:
    """Plays a model that was routed to the wrong tools, and mends that itself."""
    made = results(body)
    return calls([SEARCH, SAVE][len(made)]) if len(made) < 2 else "saved"


def test_a_tool_that_was_found_is_called_in_the_same_turn_and_offered_again_after_a_kill(make_world, model):
    silent = True

    async def play(body):
        if not is_classifier(body) and results(body):
            await until(lambda: not silent, "the server's end")
        return search_then_save(body)

    model_server = model(play)
    server, graph = make_world(model=model_server, MAX_TOOLS_PER_CALL="2")
    graph.say("p0", "hello there")
    wait_for(lambda: len(model_server.main_calls) == 2, "the call after the search")
    server.kill()
    silent = False
    server.start()
    assert graph.reply("p0") == "saved\n\n✓ Note saved: buy milk"
    first, before, again, last = model_server.main_calls
    assert sorted(names(first)) == ["calculate", "search_tools"]
    assert before["tools"] == again["tools"] == last["tools"]
    assert names(again) == ["search_tools", "save_note"]
    found, saved = results(last)
    assert [one["name"] for one in found["data"]["tools"]] == ["save_note"]
    assert saved["ok"]
    (row,) = server.rows("SELECT sum(calls) AS calls FROM tool_statistics WHERE tool = 'search_tools'")
    assert row["calls"] == 1


def test_where_one_tool_fits_it_is_what_the_message_needs(make_world, model):
    model_server = model(caller(("calculate", {"expression": "6*7"}), to="calculator", then="42"))
    _, graph = make_world(model=model_server, MAX_TOOLS_PER_CALL="1")
    assert graph.ask("p0", "calculate 6*7") == "42"
    assert names(model_server.main_calls[0]) == ["calculate"]
    assert results(model_server.main_calls[1])[0]["ok"]


def test_a_search_asks_nobody_and_runs_in_a_dry_run(make_world, model):
    model_server = model(search_then_save)
    _, graph = make_world(
        model=model_server, MAX_TOOLS_PER_CALL="2", CONFIRMATION_MODE="confirm-all", DRY_RUN="true"
    )
    assert graph.ask("p0", "hello there") == "saved"
    found, saved = results(model_server.main_calls[-1])
    assert found["data"]["tools"][0]["name"] == "save_note"
    assert saved["meta"]["dry_run"]


def test_the_offline_model_leads_to_the_help_for_what_there_is(offline_town):
    graph, person = offline_town.graph, offline_town.newcomer()
    assert graph.ask(person, "qué categorías hay") == "Escribe /ayuda para ver todo lo que puedo hacer."
    assert graph.ask(person, "busca una herramienta para borrar una nota").startswith("Encontré")


def test_figures_of_tools_are_shown_in_the_console_and_as_metrics(make_world, model):
    wanted = (
        ("calculate", {"expression": "6*7"}),
        ("calculate", {"bad": 1}),
        ("made_up_1", {}),
        ("made_up_2", {}),
    )
    server, graph = make_world(model=model(caller(*wanted, to="calculator")))
    assert graph.ask("p0", "how much is 6*7") == "done"

    today = re.sub(r"<[^>]+>", " ", Browser(server).page("/console"))
    assert re.search(r"calculate +BAD_REQUEST 1 +2 +50 % +0\.\d\d s", today)
    assert re.search(r"unknown +UNKNOWN_TOOL 2 +2 +0 % +–", today)
    metrics = server.http.get("/metrics").text
    assert 'recado_tool_calls_total{code="BAD_REQUEST",tool="calculate"} 1.0' in metrics
    assert 'recado_tool_calls_total{code="UNKNOWN_TOOL",tool="unknown"} 2.0' in metrics


def test_a_classifier_that_names_nothing_hides_no_tool_that_the_words_ask_for(town):
    town.model.play = routed()(lambda body: "ok")
    graph, person = town.graph, town.newcomer()
    said = "recuerda que soy alérgico a las nueces", "lembra que sou alérgica", "remember that I eat no meat"
    for text in said:
        graph.ask(person, text)
        assert {"remember", "forget"} <= set(names(town.model.main_calls[-1]))


def test_each_clause_brings_its_best_tool_though_the_classifier_names_one_ability(town):
    town.model.play = routed("lists")(lambda body: "ok")
    graph, person = town.graph, town.newcomer()
    graph.ask(person, "añade leche a la lista, borra la nota 2 y cuánto es 12 por 8")
    assert {"add_to_list", "delete_note", "calculate"} <= set(names(town.model.main_calls[-1]))


def test_the_history_shows_the_calls_behind_a_receipt(town):
    @routed("notes")
    def play(body):
        return "saved" if results(body) or "thanks" in last_user_text(body) else calls(SAVE)

    town.model.play = play
    graph, person = town.graph, town.newcomer()
    graph.ask(person, "note buy milk")
    graph.ask(person, "thanks")
    said = [one["content"] for one in town.model.main_calls[-1]["messages"] if one["role"] == "user"]
    assert said[0] == "note buy milk\n[You called: save_note(text: buy milk)]"
