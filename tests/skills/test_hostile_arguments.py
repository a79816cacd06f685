"""Every tool of the skills that keep and count, with arguments that somebody chose to hurt: each call ends
soon, and with a result."""

import asyncio
import inspect
import random
import typing
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.http.address import FetchError
from app.schedule.alarm import Reminders
from app.schedule.service import ScheduleService
from app.store.database import Database
from app.tools import ToolContext, ToolResult
from app.tools.files import Files
from app.tools.result import Refused
from app.tools.tool import Services
from app.turns.profiles import Profiles
from tests.limits import limited
from tests.schedule.test_reminders import Sender
from tests.skills.tools import Rows, context, functions
from tests.store.rows import Everybody

pytestmark = pytest.mark.slow

SKILLS = [
    *("calculator", "datetime", "files", "lists", "memory", "notes", "projects", "reminders", "weather"),
    "web",
]
LONGEST = 32_000
CALLS = 15
SEED = 20261122
PEOPLE = [
    ("es", "MX", "America/Mexico_City"),
    ("pt", "BR", "America/Sao_Paulo"),
    ("en", "US", "America/New_York"),
    ("en", "", "UTC"),
]
REPEATED = [
    *(" ", ", ", " a", " y", "1 ", "1+1", "9,", "(", "2^", "9!", "½", "../", "/", "*a", "[", "e\u0301", "ß"),
    *(
        *("\u202e", "\n", "\0", "{0}", "%s", "<a ", "://", "12:", "3 y ", "lunes ", "a las ", "cada "),
        *("✓ ", "日本"),
    ),
]
WHOLE = [
    *("", "0", "-1", "last", "9" * 4400, "1e999", "nan", "²", "٣", "9^9^9", "99999999!", "(1/3)^1999", "\0"),
    *("0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00", "2026-02-30", "31/12/9999", "9999-12-31"),
    *("in 99999 years", "hace 99999 días", "navidad 9999", "pascua 0001", "diciembre 9999", "year 1900"),
    *("Factory", "localtime", "utc+99", "Etc/GMT+12", "europe/../../etc/passwd", "C:\\x", "é" * 200, "."),
    *("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=MONTHLY;BYDAY=1MO,9MO", "FREQ=DAILY;BYHOUR=9;BYSETPOS=2"),
    *("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=-1", "FREQ=DAILY;BYMONTH=1;BYMONTHDAY=1", "cron 0 9 * 2 mon#5"),
    *("every 9999 years", "31 de febrero", "a las 99:99", "http://[", "http://127.0.0.1/", "{x.__class__}"),
]
NUMBERS = [0, 1, -1, 2, 2500, -2500, 10**6, 2**63 - 1, -(2**63), 2**64 - 1]


@dataclass(frozen=True)
class House:
    """What the tools reach: rows of each skill, files, reminders; and no internet."""

    services: Services
    rows: dict[str, Rows]

    def context(self, skill: str, number: int) -> ToolContext:
        person = context(*PEOPLE[number % len(PEOPLE)], store=self.rows[skill])
        more = {"idempotency_key": f"call {number}", "channel": "simulator", "conversation": "c1"}
        settings = {"SEARCH_URL": "https://search.example"}
        return replace(person, services=self.services, http=_Away(), settings=settings, **more)


class _Away:
    def get(self, *_: object, **__: object) -> None:
        raise FetchError("NO_CONNECTION", "there is no network")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = Database(tmp_path / "recado.db")
    await database.open()
    await database.tx(
        lambda conn: conn.execute("INSERT INTO people (id, realm, created_at) VALUES ('p1', 'simulator', 0)")
    )
    reminders = Reminders(
        database,
        ("simulator",),
        template=None,
        access=Everybody(),
        sender=Sender(),
        look_again=asyncio.Event(),
    )
    services = Services(
        schedule=ScheduleService(database, reminders),
        zones=Profiles(Everybody(), "UTC", database),
        files=Files(tmp_path / "files", allow_delete=True, quota=10**6),
    )
    rows = {skill: Rows() for skill in SKILLS}
    for number in range(200):
        rows["notes"].put(f"note:{number:020d}", {"text": f"1 {number} " + "y nada más " * 50, "created": 0})
    yield House(services, rows)
    await database.close()


def argument(kind: Any, chosen: random.Random) -> Any:
    """A value of that type that nobody sends who means well."""
    if typing.get_origin(kind) is typing.Literal:
        return chosen.choice(typing.get_args(kind))
    if kinds := typing.get_args(kind):
        return argument(chosen.choice(kinds), chosen)
    if kind is str:
        return _text(chosen)
    values = {int: NUMBERS, bool: [True, False], date: [date.min, date.max], type(None): [None]}
    return chosen.choice(values[kind])


def _text(chosen: random.Random) -> str:
    if chosen.random() < 0.4:
        return chosen.choice(WHOLE)
    long = chosen.choice(REPEATED) * LONGEST
    return f"{chosen.choice('x1 ')}{long[: chosen.choice((99, 300, 2000, LONGEST))]}{chosen.choice('x1!')}"


async def called(tool: Callable[..., Any], args: dict[str, Any], given: ToolContext) -> dict[str, Any]:
    with limited():
        try:
            result = tool(**args, context=given)
            if inspect.isawaitable(result):
                result = await asyncio.wait_for(result, 60)
        except Refused as refused:
            result = refused.result
    if isinstance(result, ToolResult):
        return orjson.loads(result.to_json())
    return orjson.loads(orjson.dumps(result))


@pytest.mark.parametrize("skill", SKILLS)
async def test_whatever_the_arguments_a_call_ends_soon_and_with_a_result(house: House, skill: str) -> None:
    chosen = random.Random(SEED)
    for name, tool in functions(skill).items():
        parameters = dict(inspect.signature(tool, eval_str=True).parameters)
        del parameters["context"]
        texts = [name for name, one in parameters.items() if one.annotation is str]
        for number in range(CALLS + len(WHOLE) * bool(texts)):
            args = {
                key: argument(one.annotation, chosen)
                for key, one in parameters.items()
                if one.default is one.empty or chosen.random() < 0.6
            }
            if number >= CALLS:
                args[chosen.choice(texts)] = WHOLE[number - CALLS]
            told = await called(tool, args, house.context(skill, number))
            assert isinstance(told, dict), (name, args)
