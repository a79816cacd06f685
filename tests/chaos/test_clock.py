"""A clock that jumps while something is due: nothing is stuck, nothing comes twice."""

import pytest

from tests.chaos.machine import dial, injected
from tests.chaos.wire import Fault, Wire, answer
from tests.standins.model import echo
from tests.world import open_work, wait_for

pytestmark = pytest.mark.slow

DAY = 86_400.0
TOO_MANY = Fault(False, answer(429, b'{"error": {"code": 130429}}', "Retry-After: 10"))
NO_TOKEN = Fault(False, answer(401, b'{"error": {"code": 190, "message": "expired"}}'))


@pytest.fixture
def jumping(make_world, model):
    """A server whose clock the test sets; its sends go through a wire."""
    server, graph = make_world(
        start=False,
        model=model(echo),
        crowd=6,
        SWEEP_SECONDS="0.5",
        SEND_RECONCILE_SECONDS="5",
        RATE_LIMIT_MAX="1",
        RATE_LIMIT_WINDOW="10",
        BURST_QUIET_SECONDS="1",
    )
    wire = Wire(graph.port, marked=b"biz_opaque_callback_data")
    server.env["WHATSAPP_API_URL"] = f"http://127.0.0.1:{wire.port}/v25.0"
    clock = server.folder / "clock"
    jump = dial(clock)
    server.env |= injected(CLOCK=clock)
    server.start()
    yield server, graph, wire, jump
    wire.stop()


@pytest.mark.parametrize("dead", [False, True], ids=["running", "dead meanwhile"])
@pytest.mark.parametrize("seconds", [DAY, -DAY], ids=["a day ahead", "a day back"])
def test_whatever_waits_when_the_clock_jumps_comes_once_and_soon(jumping, seconds, dead):
    server, graph, wire, jump = jumping

    def meets(person: str, fault: Fault, code: int, state: str) -> None:
        """What is sent to a person meets a fault, and waits."""
        wire.faults = [fault]
        graph.say(person, "hello")
        wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE code = ? AND state = ?", code, state), state)

    graph.say("p0", "first")
    graph.reply("p0")
    meets("p1", TOO_MANY, 130429, "sending")
    if seconds < 0:  # a day later by our clock, what the operator did not mend is given up
        meets("p2", NO_TOKEN, 190, "held")
        graph.faults(hold_statuses=True)
        meets("p3", Fault(True), 0, "unknown")
    graph.say("p0", "over the rate")
    graph.say("p4", "hello")
    wait_for(lambda: len(server.rows("SELECT 1 FROM inbox")) == (6 if seconds < 0 else 4), "the last message")
    if dead:
        server.kill()
    jump(seconds)
    if dead:
        server.start()
    graph.faults(hold_statuses=False)
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "everything to end", 40)

    answers = {p: [t for t in graph.texts(p) if t.startswith("you said")] for p in ("p1", "p2", "p3", "p4")}
    met = ("p1", "p2", "p3", "p4") if seconds < 0 else ("p1", "p4")
    assert answers == {p: ["you said: hello"] if p in met else [] for p in answers}
    assert [t for t in graph.texts("p0") if t.startswith("you said")] == [
        "you said: first",
        "you said: over the rate",
    ]
    assert server.rows("SELECT 1 FROM turns WHERE outcome <> 'answered'") == []
    assert server.rows("SELECT 1 FROM outbox WHERE state <> 'sent'") == []
