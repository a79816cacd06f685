"""Waiting for a model to recover: within limits, and not for what will not pass."""

import time

import pytest

from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.llm.patience import Patience

REQUEST = ModelRequest("answer", [])


class Failing:
    """A model that raises the errors it was given, then answers."""

    def __init__(self, *errors: ModelError, forever: bool = False) -> None:
        self.failure = ""
        self.calls = 0
        self._errors = list(errors)
        self._forever = forever

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.calls += 1
        if self._forever:
            raise self._errors[0]
        if self._errors:
            raise self._errors.pop(0)
        return ModelAnswer("hola")


def passing(after: float | None = 0.01) -> ModelError:
    return ModelError("busy", "status", status=503, retry_after=after)


async def test_passing_faults_are_tried_again() -> None:
    model = Failing(passing(), passing())
    answer = await Patience(5).complete(model, REQUEST)
    assert (answer.text, model.calls) == ("hola", 3)


async def test_a_lasting_fault_is_not_tried_again() -> None:
    model = Failing(ModelError("wrong key", "status", status=401))
    with pytest.raises(ModelError, match="wrong key"):
        await Patience(5).complete(model, REQUEST)
    assert model.calls == 1


async def test_patience_ends_within_its_seconds() -> None:
    model = Failing(passing(0.1), forever=True)
    started = time.monotonic()
    with pytest.raises(ModelError):
        await Patience(0.35).complete(model, REQUEST)
    assert time.monotonic() - started < 1
    assert 2 <= model.calls <= 4


async def test_a_longer_wait_than_is_left_is_not_begun() -> None:
    model = Failing(passing(60), forever=True)
    started = time.monotonic()
    with pytest.raises(ModelError):
        await Patience(15).complete(model, REQUEST)
    assert (model.calls, time.monotonic() - started < 1) == (1, True)


async def test_what_the_server_asks_for_is_waited_for() -> None:
    started = time.monotonic()
    await Patience(5).complete(Failing(passing(0.2)), REQUEST)
    assert 0.2 <= time.monotonic() - started < 0.4


async def test_calls_of_a_turn_share_its_patience() -> None:
    patience = Patience(0.25)
    await patience.complete(Failing(passing(0.15)), REQUEST)
    model = Failing(passing(0.15))
    with pytest.raises(ModelError):
        await patience.complete(model, REQUEST)
    assert model.calls == 1


async def test_a_server_that_asks_for_no_wait_is_not_hammered() -> None:
    model = Failing(passing(0.0), forever=True)
    with pytest.raises(ModelError):
        await Patience(0.2).complete(model, REQUEST)
    assert model.calls < 10
