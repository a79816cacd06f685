"""Broken set-ups as an operator meets them: `recado doctor` names each fault in one line with its cure."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.settings import take_settings
from tests.doctor.broken import BROKEN, no_webhook_subscribed
from tests.doctor.house import CLOSED, House, found, kept_environment
from tests.forks import run_recado
from tests.standins import meta
from tests.standins.answers import AnsweringServer
from tests.standins.chat import CHAT, able, window
from tests.world import Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(
        tmp_path_factory.mktemp("server"), **meta.CREDENTIALS, OWNER_PHONE_NUMBERS="+52 55 5010 0001"
    )
    server.env["WHATSAPP_API_URL"] = CLOSED
    yield server.start()
    server.stop()


@pytest.fixture
def house(tmp_path: Path, server: Server) -> Iterator[House]:
    graph, model = AnsweringServer(), AnsweringServer()
    graph.answers = meta.account(f"{server.url}/webhook")
    model.answers = {CHAT: able, "/api/ps": window(16384)}
    variables = {
        "WHATSAPP_API_URL": f"{graph.url}/v25.0",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "LLM_MODEL": "small",
    }
    yield House(tmp_path, graph, model, server, variables)
    graph.stop()
    model.stop()


def test_a_sound_set_up_has_no_fault(house: House) -> None:
    done = run_recado(["doctor"], house.folder, house.environment)
    lines = done.stdout.splitlines()
    # Whether the sandbox works is the machine's.
    assert [line for line in lines if not line.startswith(("OK", "WARN sandbox"))] == []
    assert done.stderr == ""
    assert done.returncode == 0
    for told in (
        r"WhatsApp number: connected to \+52 55 1234 5678 \(Recado\)",
        "WhatsApp token: valid and permanent, of the app Errands",
        f"WhatsApp app: app {meta.APP} is subscribed to the WhatsApp account {meta.ACCOUNT}",
        "WhatsApp webhook: .*/webhook is reached, and the handshake succeeds",
        r"model: small answers and calls tools",
        "context window: 16384 tokens",
        "server: runs at",
    ):
        assert any(re.match(f"OK   {told}", line) for line in lines), told


@pytest.mark.parametrize(("break_it", "fact", "cure"), BROKEN, ids=[row[1] for row in BROKEN])
def test_a_broken_set_up_gets_its_cure(
    break_it: Callable[[House], None], fact: str, cure: str, house: House
) -> None:
    break_it(house)
    with kept_environment(house.folder, house.environment):
        part = fact.partition(" ")[2].strip().partition(":")[0]
        lines = list(map(str, found(take_settings(), part)))
    told = [one for one in lines if one.startswith(fact)]
    assert len(told) == 1, "\n".join(lines)
    assert cure in told[0].partition(" -> ")[2]


def test_an_address_can_be_tried_before_meta_has_it(house: House) -> None:
    no_webhook_subscribed(house)
    status, lines = house.doctor("--url", house.server.url)
    assert status == 1
    assert (
        f"OK   WhatsApp webhook: {house.server.url}/webhook is reached, and the handshake succeeds" in lines
    )
    _, lines = house.doctor("--url", "errands.example")
    assert any(line.startswith("FAIL WhatsApp webhook: errands.example") for line in lines)
