"""Choices: the person presses, numbers or writes an option; old ones say so; none approves anything."""

from app.channels.whatsapp.channel import WhatsAppChannel
from app.messages import Button
from app.store.media import MediaFolder
from tests.standins.model import caller, calls, last_user_text, routed
from tests.world import wait_for

THREE = ["Pizza", "Tacos al pastor", "Ensalada"]


def asking(options):
    """Plays a model that asks for one of the options when the person is hungry, and repeats what they say."""

    @routed("choices")
    def play(body):
        last = body["messages"][-1]
        if last["role"] == "user" and "hambre" in last_user_text(body):
            return calls(("ask_to_choose", {"question": "¿Qué quieres comer?", "options": options}))
        return f"eligió: {last_user_text(body).splitlines()[-1]}"

    return play


def asked(town, options):
    """A person who was asked; the interactive message that they see."""
    person = town.newcomer()
    town.model.play = asking(options)
    town.graph.say(person, "tengo hambre")
    wait_for(lambda: town.graph.sends(person), "the question")
    return person, town.graph.sends(person)[0]["body"]


def press(town, person, option, **more):
    town.graph.inbound({"person": person, "type": "button", "reply": option, **more})


def test_a_press_a_number_or_the_words_choose_and_the_model_reads_the_whole_option(town):
    for answer in ("2", "tacos al pastor", None):
        person, body = asked(town, THREE)
        buttons = [one["reply"] for one in body["interactive"]["action"]["buttons"]]
        assert [one["title"] for one in buttons] == THREE
        assert body["interactive"]["body"]["text"] == "¿Qué quieres comer?"
        if answer is None:
            press(town, person, buttons[1])
        else:
            town.graph.say(person, answer)
        assert town.graph.reply(person, 2) == "eligió: Tacos al pastor"


def test_a_press_on_an_old_choice_does_nothing_and_says_so(town):
    person, body = asked(town, THREE)
    buttons = [one["reply"] for one in body["interactive"]["action"]["buttons"]]
    press(town, person, buttons[0])
    town.graph.reply(person, 2)
    press(town, person, buttons[2])
    assert "Esa pregunta ya terminó" in town.graph.reply(person, 3)
    assert len(town.model.main_calls) == 2


def test_up_to_ten_options_are_a_list_and_more_are_numbered_lines(town):
    options = [f"Sucursal número {number} de la calle larga" for number in range(1, 9)]
    _, body = asked(town, options)
    rows = body["interactive"]["action"]["sections"][0]["rows"]
    assert len(rows) == 8
    assert max(len(row["title"]) for row in rows) <= 24
    assert "8. Sucursal número 8 de la calle larga" in body["interactive"]["body"]["text"]
    person, body = asked(town, [f"opción {number}" for number in range(1, 15)])
    assert "14. opción 14" in body["text"]["body"]
    assert town.graph.ask(person, "14") == "eligió: opción 14"


def test_a_location_is_asked_for_with_a_button(town):
    person = town.newcomer()
    town.model.play = caller(("ask_for_location", {"question": "¿Dónde estás?"}), to="choices")
    town.graph.say(person, "¿qué farmacia me queda cerca?")
    wait_for(lambda: town.graph.sends(person), "the question")
    assert town.graph.sends(person)[0]["body"]["interactive"] == {
        "type": "location_request_message",
        "body": {"text": "¿Dónde estás?"},
        "action": {"name": "send_location"},
    }


def test_titles_that_have_no_room_are_numbered(tmp_path):
    options = [Button("a", "Consulta de cardiología lunes"), Button("b", "Consulta de cardiología martes")]
    channel = WhatsAppChannel("https://graph.example/v25.0", "1", "token", MediaFolder(tmp_path))
    [message] = channel.choose("¿Cuál?", options, "Opciones")
    assert [one.title for one in message.buttons] == ["1. Consulta de card…", "2. Consulta de card…"]
    assert "Consulta de cardiología martes" in message.text


def test_a_link_is_a_button_that_says_where_it_leads(town):
    person = town.newcomer()
    address = {"text": "Aquí está el menú.", "title": "Ver el menú", "url": "https://roma.example/menu"}
    town.model.play = caller(("offer_link", address), to="choices")
    town.graph.say(person, "pásame el link del menú: https://roma.example/menu")
    wait_for(lambda: town.graph.sends(person), "the link")
    interactive = town.graph.sends(person)[0]["body"]["interactive"]
    assert interactive["body"]["text"] == "Aquí está el menú.\n\n(roma.example)"
    assert interactive["action"]["parameters"] == {"display_text": "Ver el menú", "url": address["url"]}


def test_a_choice_approves_nothing_and_its_option_is_not_in_the_persons_own_words(town):
    @routed("choices", "files")
    def play(body):
        said, last = last_user_text(body).splitlines()[-1], body["messages"][-1]
        if last["role"] == "user" and "archivo" in said:
            return calls(("write_file", {"path": "a.txt", "content": "hola"}))
        if last["role"] == "user" and "pizza" in said:
            return calls(("ask_to_choose", {"question": "¿Pido pizza?", "options": ["Sí", "No"]}))
        return f"eligió: {said}"

    server, graph, person, town.model.play = town.server, town.graph, town.newcomer(), play
    graph.say(person, "escribe el archivo")
    wait_for(lambda: graph.sends(person), "the card")
    graph.say(person, "quiero pizza")
    wait_for(lambda: len(graph.sends(person)) == 2, "the choice")
    assert graph.ask(person, "1") == "eligió: Sí"
    (question,) = server.rows("SELECT state FROM approvals ORDER BY created_at DESC LIMIT 1")
    assert question["state"] == "open"
    graph.say(person, "/stop")


def test_a_number_answers_only_what_was_asked_last(town):
    person, _ = asked(town, THREE)
    town.graph.ask(person, "mejor dime la hora")
    assert town.graph.ask(person, "2") == "eligió: 2"
