"""A model that is away, cut off or talks without end: an honest answer in the person's language."""

from collections.abc import Iterator

import pytest

from tests.chaos.machine import MEMORY, resident
from tests.chaos.wire import Fault, Wire, answer
from tests.standins.model import ModelServer, echo
from tests.world import Graph, Server, open_work, wait_for, world

pytestmark = pytest.mark.slow

WHOLE = b'{"choices": [{"message": {"content": "hello"}}]}'
HONEST = "I cannot reach my language model right now"
FAULTS = {
    "cut": Fault(False),
    "cut after it was asked": Fault(True),
    "an answer cut short": Fault(True, answer(200, WHOLE)[:-10]),
    "no HTTP at all": Fault(False, b"\x00\xff\x00 what?\r\n\r\n"),
    "a page": Fault(False, answer(200, b"<html>Sign in to the hotel's network</html>")),
    "an empty body": Fault(False, answer(200, b"")),
    "a redirect": Fault(False, answer(302, b"", "Location: http://127.0.0.1:1/")),
    "half a character": Fault(False, answer(200, WHOLE.replace(b"hello", b"\xf0\x9f"))),
    "500": Fault(False, answer(500, b"Internal Server Error")),
    "429 for an hour": Fault(False, answer(429, b"{}", "Retry-After: 3600")),
    "silence": Fault(False, seconds=60),
    "brackets": Fault(False, answer(200, b"[" * 1_000_000)),
    "twenty megabytes": Fault(False, answer(200, WHOLE.replace(b"hello", b"x" * 20_000_000))),
    "a hundred megabytes": Fault(False, answer(200, WHOLE.replace(b"hello", b"x" * 100_000_000))),
}
PORTUGUESE, SPANISH, ONCE = (f"p{len(FAULTS) + n}" for n in range(3))


@pytest.fixture(scope="module")
def hermit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph, Wire]]:
    """One server whose model is at the other end of a wire."""
    model = ModelServer(echo)
    wire = Wire(model.port)
    options = {"OPENAI_BASE_URL": f"http://127.0.0.1:{wire.port}/v1", "LLM_MODEL": "stand-in"}
    options |= {"LLM_TIMEOUT": "2", "CLASSIFIER_TIMEOUT": "1"}
    for server, graph in world(tmp_path_factory.mktemp("hermit"), crowd=len(FAULTS) + 3, **options):
        server.start()
        yield server, graph, wire
    wire.stop()
    model.stop()


def test_whatever_the_model_does_each_person_is_told_once_and_answered_when_it_is_well(hermit):
    server, graph, wire = hermit
    people = {name: f"p{n}" for n, name in enumerate(FAULTS)}
    before = resident(server)
    wire.always = {f"from-{people[name]}-".encode(): fault for name, fault in FAULTS.items()}
    wire.always |= {language.encode(): FAULTS["cut"] for language in ("Madrid", "almoço")}
    graph.inbound(*({"person": p, "type": "text", "text": f"from-{p}-"} for p in people.values()))
    graph.say(SPANISH, "¿qué tiempo hace mañana en Madrid?")
    graph.say(PORTUGUESE, "você pode me ajudar com o almoço de amanhã?")
    told = {name: graph.reply(person, seconds=60) for name, person in people.items()}
    assert "modelo de lenguaje" in graph.reply(SPANISH, seconds=60)
    assert "modelo de linguagem" in graph.reply(PORTUGUESE, seconds=60)
    wait_for(lambda: not open_work(server), "the end")
    assert {name: text for name, text in told.items() if HONEST not in text} == {}
    assert server.http.get("/health").json()["status"] == "degraded"
    assert server.rows("SELECT 1 FROM alerts WHERE code = 'model' AND mended_at IS NULL")
    assert resident(server) - before < MEMORY

    wire.always = {}
    graph.inbound(*({"person": p, "type": "text", "text": "again"} for p in people.values()))
    wait_for(lambda: len(server.rows("SELECT 1 FROM turns")) == 2 * len(people) + 2, "the second turns")
    wait_for(lambda: not open_work(server), "their end")
    later = {name: graph.texts(person)[1:] for name, person in people.items()}
    assert later == {name: ["you said: again"] for name in FAULTS}
    assert server.http.get("/health").json() == {"status": "ok"}


def test_a_model_that_stumbles_twice_is_asked_again_and_nobody_notices(hermit):
    server, graph, wire = hermit
    wire.faults = [FAULTS["cut"], FAULTS["500"]]
    graph.say(ONCE, "hello")
    assert graph.reply(ONCE) == "you said: hello"
    wait_for(lambda: not open_work(server), "the end")
    assert server.http.get("/health").json() == {"status": "ok"}
