"""Several endpoints (`MODELS`): where one fails, the next one answers the same call."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import Response

from tests.standins.model import ModelServer, Play, is_classifier
from tests.world import free_port


def played(text: str) -> Play:
    return lambda body: "[]" if is_classifier(body) else text


def overloaded(body: dict[str, Any]) -> Response:
    return Response('{"error": {"message": "overloaded"}}', 503)


def listed(*endpoints: dict[str, Any]) -> str:
    return json.dumps(list(endpoints))


@pytest.mark.slow
def test_a_call_moves_on_once_and_comes_back_when_the_first_answers(
    make_world: Callable[..., Any], model: Callable[[Play], ModelServer]
) -> None:
    first, second = model(overloaded), model(played("from the second"))
    gone = {"base_url": f"http://127.0.0.1:{free_port()}/v1", "model": "gone"}
    server, graph = make_world(
        MODELS=listed(
            gone,
            {"base_url": first.url, "api_key": "sk-first", "model": "busy"},
            {"base_url": second.url, "model": "stand-in", "price": {"prompt": 10, "completion": 20}},
        )
    )
    graph.say("p0", "hello")
    assert graph.reply("p0").endswith("from the second")
    assert len(first.requests) == 1
    graph.say("p0", "and again")
    assert graph.reply("p0", 2) == "from the second"
    assert len(first.requests) == 1  # it is asked last for a while
    (turn,) = server.rows("SELECT id FROM turns ORDER BY created_at DESC LIMIT 1")
    traced = server.recado("trace", turn["id"])
    assert "stand-in" in traced
    assert "costs 0.001200" in traced
    assert "[system, " in traced
    metrics = server.http.get("/metrics").text
    assert 'recado_model_answers_total{model="stand-in"}' in metrics
    second.play = overloaded
    first.play = played("from the first")
    graph.say("p0", "once more")
    assert graph.reply("p0", 3) == "from the first"
    assert "sk-first" not in server.log


@pytest.mark.slow
def test_an_endpoint_whose_limit_or_budget_is_used_up_is_not_asked(
    make_world: Callable[..., Any], model: Callable[[Play], ModelServer]
) -> None:
    small, dear, last = model(played("small")), model(played("dear")), model(played("last"))
    price = {"prompt": 1_000_000, "completion": 0}
    server, graph = make_world(
        MODELS=listed(
            {"base_url": small.url, "model": "small", "limit": "10/month"},
            {"base_url": dear.url, "model": "dear", "price": price, "budget": 1},
            {"base_url": last.url, "model": "last", "limit": "300/month"},
        )
    )
    graph.say("p0", "hello")  # the classifier's call uses up the first, the answer's the second
    assert graph.reply("p0").endswith("dear")
    graph.say("p0", "again")
    assert graph.reply("p0", 2) == "last"
    assert (len(small.requests), len(dear.requests)) == (1, 1)
    used = json.loads(server.recado("usage", "--json"))["models"]
    assert [one["model"] for one in used] == ["dear", "last", "small"]
    assert used[0]["cost"] >= 1
    server.kill()
    server.start()
    for count in range(3, 6):
        graph.say("p0", f"and {count}")
        graph.reply("p0", count)
    assert (len(small.requests), len(dear.requests)) == (1, 1)
    assert server.http.get("/health").json()["status"] == "degraded"
    assert "the limits of all MODELS are used up" in server.log


def test_a_call_that_one_refuses_is_asked_of_the_next_and_no_key_is_kept(
    make_world: Callable[..., Any], model: Callable[[Play], ModelServer]
) -> None:
    told = '{"error": {"message": "the key sk-first is not known"}}'
    refusals = (Response(told, 400), Response(told, 200))
    first = model(lambda body: refusals[len(first.requests) % 2])
    second = model(played("from the second"))
    server, graph = make_world(
        MODELS=listed(
            {"base_url": first.url, "api_key": "sk-first", "model": "wrong"},
            {"base_url": second.url, "model": "stand-in"},
        )
    )
    graph.say("p0", "hello")
    assert graph.reply("p0").endswith("from the second")
    assert not any(b"sk-first" in path.read_bytes() for path in server.folder.rglob("*.jsonl"))


def test_an_endpoint_without_tools_gets_them_as_text(
    make_world: Callable[..., Any], model: Callable[[Play], ModelServer]
) -> None:
    plain = model(played('{"name": "current_time", "arguments": {}}'))
    _, graph = make_world(MODELS=listed({"base_url": plain.url, "model": "plain", "tools": False}))
    graph.say("p0", "what time is it?")
    graph.reply("p0")
    assert plain.main_calls
    assert not any("tools" in body for body in plain.main_calls)
    assert "current_time" in str(plain.main_calls[0]["messages"][0]["content"])


def test_what_is_wrong_with_the_list_is_said(make_world: Callable[..., Any]) -> None:
    key = {"api_key": "sk-hidden"}
    for given, told in (
        (listed(key), "MODELS, entry 1, model: Field required"),
        (listed(key | {"model": "x"}, {"model": "y"}), "MODELS, entry 2: it needs a base_url"),
        (listed(key | {"model": "x"})[:-1], "MODELS is no JSON"),
        (listed(key | {"model": "x", "limit": "many"}), "MODELS, entry 1, limit: 'many' is no limit; write"),
        (listed(key | {"model": "x", "budget": 5}), "MODELS, entry 1: its budget needs a price"),
    ):
        server, _ = make_world(start=False, MODELS=given)
        said = server.recado("trace", fails=True)
        assert told in said
        assert "sk-hidden" not in said
