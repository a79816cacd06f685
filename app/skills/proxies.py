"""A call's context in a worker: some of it travels as data, the person's rows are asked for."""

import asyncio
import inspect
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, NoReturn, Protocol

from app.messages import JSON
from app.people import Person
from app.skills.frames import Answer, Ask
from app.tools.context import PersonStore, Services, ToolContext

ANSWER_SECONDS = 30.0
_STORE = frozenset({"store.get", "store.put", "store.list", "store.delete"})
_ABSENT = object()


class Asker(Protocol):
    """Asks the server for one call."""

    def __call__(self, method: str, *args: JSON) -> "Future[Any]": ...


def travelling(context: ToolContext) -> dict[str, JSON]:
    """What of a context goes to a worker."""
    return {
        "person": None if context.person is None else asdict(context.person),
        "conversation": context.conversation,
        "settings": dict(context.settings),
        "idempotency_key": context.idempotency_key,
        "channel": context.channel,
    }


async def answer(ask: Ask, store: PersonStore | None) -> Answer:
    """What an ask comes to in the server, by the store of the call it belongs to."""
    try:
        return Answer(ask.id, await _value(ask, store))
    except Exception as error:  # raised again in the worker, where the tool's function called
        return Answer(ask.id, error=f"{ask.method}: {str(error)[:1000] or type(error).__name__}")


async def _value(ask: Ask, store: PersonStore | None) -> JSON:
    if store is None or ask.method not in _STORE:
        raise ValueError("it is not there for this call")
    if ask.method == "store.get":  # a list, since what is kept may be null
        (key,) = ask.args
        found = await _awaited(store.get(key, _ABSENT))
        return [] if found is _ABSENT else [found]
    return await _awaited(getattr(store, ask.method.removeprefix("store."))(*ask.args))


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def context_of(given: Mapping[str, JSON], ask: Asker, *, is_async: bool) -> ToolContext:
    """What the server handed over with a call, as the tool's function sees it."""
    person = given["person"]
    return ToolContext(
        person=Person(**person) if person is not None else None,
        conversation=given["conversation"],
        store=AsyncRows(ask) if is_async else Rows(ask),
        http=Absent("context.http is not there for this skill; use an HTTP client of its own"),
        settings=given["settings"],
        idempotency_key=given["idempotency_key"],
        channel=given["channel"],
        services=NoServices(),
    )


class Rows:
    """The person's rows of this skill, for `def` tools."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def get(self, key: str, default: JSON = None) -> JSON:
        found = self._answer("get", key)
        return found[0] if found else default

    def put(self, key: str, value: JSON) -> None:
        self._answer("put", key, value)

    def list(self, prefix: str = "", limit: int = 1000) -> JSON:
        return self._answer("list", prefix, limit)

    def delete(self, key: str) -> JSON:
        return self._answer("delete", key)

    def _answer(self, method: str, *args: JSON) -> Any:
        return self._ask(f"store.{method}", *args).result(ANSWER_SECONDS)


class AsyncRows:
    """The same for `async def` tools."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    async def get(self, key: str, default: JSON = None) -> JSON:
        found = await self._answer("get", key)
        return found[0] if found else default

    async def put(self, key: str, value: JSON) -> None:
        await self._answer("put", key, value)

    async def list(self, prefix: str = "", limit: int = 1000) -> JSON:
        return await self._answer("list", prefix, limit)

    async def delete(self, key: str) -> JSON:
        return await self._answer("delete", key)

    async def _answer(self, method: str, *args: JSON) -> Any:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asyncio.wrap_future(self._ask(f"store.{method}", *args))


class Absent:
    """Stands where the context has nothing; says so to whoever uses it."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._sentence)


class NoServices(Services):
    """Services are for the skills of the release."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"context.services.{name}: only skills of the release have services")

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"{name}: only skills of the release have services")
