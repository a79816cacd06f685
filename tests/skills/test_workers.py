"""Tools of folders that are not shipped: each in a worker process of its own, whatever its code does."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.people import Person
from app.skills.runner import IDLE_WORKERS
from app.store.skill_data import VALUE_BYTES
from app.tools import ToolContext
from tests.skills.folders import House, alive, gone
from tests.skills.tools import Rows

ANA = Person("p1", "simulator", "Ana", language="es", timezone="America/Mexico_City", country="MX")

OTHER = 'def other() -> str:\n    """Answers."""\n    return "here"\n'


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    yield made
    await made.workers.close()


async def until(what: Any, reason: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"waited in vain: {reason}"
        await asyncio.sleep(0.01)


TYPED = '''
from __future__ import annotations
import datetime
import os
from typing import Literal

import beside

asked = 0

Size = Literal["small", "large"]

def plan(day: datetime.date, size: Size = "small", tags: list[str] | None = None) -> dict:
    """Plans a day.

    Args:
        day: which one.
    """
    return {"weekday": day.isoweekday(), "size": size, "tags": tags, "said": beside.SAID}

async def count() -> dict:
    """Counts its calls."""
    global asked
    asked += 1
    return {"asked": asked, "pid": os.getpid()}

def surroundings() -> dict:
    """Where it runs."""
    return {"cwd": os.getcwd(), "names": sorted(os.environ), "home": os.listdir(os.environ["HOME"])}
'''


async def test_a_dropped_folders_tools_run_with_their_types_in_a_process_of_its_own(house: House) -> None:
    house.drop("planner", TYPED, beside="SAID = 'hello'\n", calls_per_minute="count:600 90")
    schema = house.loader.tools()[0].input_schema
    assert schema["properties"]["size"] == {"type": "string", "enum": ["small", "large"], "default": "small"}
    assert schema["required"] == ["day"]
    rates = {tool.name: tool.calls_per_minute for tool in house.loader.tools()}
    assert rates == {"plan": 90, "count": 600, "surroundings": 90}
    result = await house.call("plan", day="2026-11-21", tags=["a"])
    assert result.data == {"weekday": 6, "size": "small", "tags": ["a"], "said": "hello"}
    wrong = await house.call("plan", day="yesterday")
    assert wrong.code == "BAD_REQUEST"
    assert "day" in wrong.error.message
    first, second = (await house.call("count")).data, (await house.call("count")).data
    assert (first["asked"], second["asked"]) == (1, 2), "the worker was not kept warm"
    assert first["pid"] == second["pid"] != os.getpid()


async def test_a_worker_knows_nothing_of_the_servers_environment(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_SERVER", "x")
    folder = house.drop("planner", TYPED.replace("import beside", "class beside: SAID = ''"))
    found = (await house.call("surroundings")).data
    assert found["cwd"] == str(folder)
    assert set(found["names"]) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR"}
    assert found["home"] == []


CONTEXT = '''
def note(text: str, context=None) -> dict:
    """Notes a text."""
    before = context.store.get("last", "nothing")
    context.store.put("last", text)
    context.store.put("gone", None)
    return {"before": before, "after": context.store.get("last"), "null": context.store.get("gone", "x"),
            "list": context.store.list("l"),
            "deleted": [context.store.delete("last"), context.store.delete("z")],
            "person": context.person.name, "zone": context.person.timezone, "city": context.settings["CITY"],
            "key": context.idempotency_key, "channel": context.channel, "where": context.conversation}

async def anote(text: str, context=None) -> dict:
    """Notes a text, later."""
    await context.store.put("last", text)
    return {"after": await context.store.get("last"), "list": await context.store.list(),
            "deleted": await context.store.delete("last"), "none": await context.store.get("none", 5)}

def much(size: int, context=None) -> str:
    """Puts much."""
    context.store.put("much", "x" * size)

def service(name: str, context=None) -> str:
    """Uses what is not there."""
    return getattr(getattr(context, name), "search")
'''


def a_context(store: Any = None) -> ToolContext:
    return ToolContext(
        person=ANA,
        conversation="c1",
        store=store,
        settings={"CITY": "Lima"},
        idempotency_key="k",
        channel="w",
    )


async def test_the_context_of_a_call_travels(house: House) -> None:
    house.drop("noter", CONTEXT)
    rows = Rows()
    assert (await house.call("note", a_context(rows), text="milk")).data == {
        "before": "nothing",
        "after": "milk",
        "null": None,
        "list": {"last": "milk"},
        "deleted": [True, False],
        "person": "Ana",
        "zone": "America/Mexico_City",
        "city": "Lima",
        "key": "k",
        "channel": "w",
        "where": "c1",
    }
    later = await house.call("anote", a_context(rows), text="bread")
    assert later.data == {
        "after": "bread",
        "list": {"gone": None, "last": "bread"},
        "deleted": True,
        "none": 5,
    }
    assert rows.rows == {"gone": None}


async def test_what_the_context_does_not_have_is_said(house: House) -> None:
    house.drop("noter", CONTEXT)
    for name, said in (("services", "only skills of the release"), ("http", "an HTTP client of its own")):
        result = await house.call("service", a_context(), name=name)
        assert result.code == "INTERNAL"
        assert said in result.error.message
    result = await house.call("much", a_context(Rows()), size=2 * VALUE_BYTES * 8)
    assert "KiB go between a tool and the server" in result.error.message
    assert "store.put: it is not there" in (await house.call("much", a_context(), size=1)).error.message


SLEEPERS = '''
import asyncio, os, time
from pathlib import Path

def _rendezvous(number: int) -> bool:
    Path(f"began-{number}").touch()
    return all(Path(f"began-{other}").exists() for other in range(5))

def sleeps(number: int) -> int:
    """Ends once five have begun."""
    while not _rendezvous(number):
        time.sleep(0.01)
    return number

async def sleeps_too(number: int) -> int:
    """Ends once five have begun."""
    while not _rendezvous(number):
        await asyncio.sleep(0.01)
    return number
'''


async def test_five_calls_of_a_round_run_at_once(house: House) -> None:
    house.drop("sleepers", SLEEPERS)
    calls = [house.call("sleeps" if n % 2 else "sleeps_too", number=n) for n in range(5)]
    assert [result.data for result in await asyncio.gather(*calls)] == [0, 1, 2, 3, 4]


HANGING = '''
import asyncio, os, subprocess, time
from pathlib import Path

def hangs() -> str:
    """Hangs, with what it started."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("pids").write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
    while True:
        time.sleep(600)

def waits(for_what: str) -> dict:
    """Waits for a file."""
    while not Path(for_what).exists():
        time.sleep(0.01)
    return {"pid": os.getpid(), "text": "x" * 100_000}

async def waits_too(for_what: str) -> dict:
    """Waits for a file."""
    while not Path(for_what).exists():
        await asyncio.sleep(0.01)
    return {"pid": os.getpid(), "text": "x" * 100_000}
'''


async def test_one_that_hangs_is_cut_and_the_other_four_arrive_whole(house: House) -> None:
    folder = house.drop("hanging", HANGING)
    await house.call("waits", for_what=".")  # the worker is warm
    four = asyncio.gather(
        *(house.call(name, for_what="go") for name in ("waits", "waits_too", "waits", "waits_too"))
    )
    hanging = house.loader.tools()[0].replace(timeout=1.5)
    house._registry.register(hanging, allow_override=True)
    cut = await house.call("hangs")
    assert (cut.code, cut.meta["outcome"]) == ("TIMEOUT", "unknown")
    worker, keeper, child = map(int, (folder / "pids").read_text().split())
    assert alive(worker), "killed while others were still at work"
    fresh = asyncio.ensure_future(house.call("waits", for_what="go"))
    (folder / "go").touch()
    results = await four
    assert [(result.ok, result.data["pid"], len(result.data["text"])) for result in results] == [
        (True, worker, 100_000)
    ] * 4
    assert (await fresh).data["pid"] != worker, "a call went to a worker that is to end"
    await until(gone([worker, keeper, child]), "the worker to be killed with all it started")


CRASHES = '''
import ctypes, os, signal, socket, sys, threading, time, subprocess

def raises() -> str:
    """Raises."""
    raise ValueError("no luck with ana@example.com in /home/ana/secret.txt")

def exits() -> str:
    """Exits."""
    sys.exit(3)

async def exits_too() -> str:
    """Exits on the loop."""
    sys.exit(3)

def leaves() -> str:
    """Leaves."""
    os._exit(7)

def segfaults() -> str:
    """Crashes."""
    print("nearly there", file=sys.stderr)
    ctypes.string_at(0)

def prints() -> str:
    """Prints garbage."""
    for fd in (1, 2):
        os.write(fd, bytes(range(256)) * 2000)
    return "fine"

def reads() -> str:
    """Reads the standard input."""
    return repr(sys.stdin.read())

def huge() -> str:
    """Too much."""
    return "x" * 10**8

def cyclic() -> list:
    """Holds itself."""
    value = []
    value.append(value)
    return value

def odd() -> object:
    """No JSON."""
    class Odd:
        def __str__(self):
            raise ValueError("never")
    return {"odd": {Odd(): 2 ** 70}}

def precise() -> int:
    """A long number."""
    return 2 ** 100

def closes() -> str:
    """Closes every file."""
    os.closerange(0, 1000)
    return "closed"

def scribbles() -> str:
    """Writes to whatever is open."""
    for fd in range(3, 50):
        try:
            os.write(fd, b"\\xff" * 1000)
        except OSError:
            pass
    time.sleep(600)

def forks() -> int:
    """Leaves a process behind, which comes back from this function too."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        return os.getpid()
    return pid

def threads() -> str:
    """Leaves a thread behind."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "left"

def pools() -> list:
    """Uses processes of its own."""
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [-1, -2])

def terminates() -> str:
    """What a service manager does to every process of the server."""
    for pid in (os.getppid(), os.getpid()):
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.05)
    return "still here"

def stops_all() -> str:
    """Kills the process above it."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
'''

DIES = (None, "OUTCOME_UNKNOWN")


@pytest.mark.parametrize(
    ("name", "data", "code", "said"),
    [
        ("raises", None, "INTERNAL", "ValueError: no luck with …@… in secret.txt"),
        ("exits", None, "INTERNAL", "SystemExit: 3"),
        ("exits_too", None, "INTERNAL", "SystemExit: 3"),
        ("leaves", *DIES, "exited with status 7"),
        ("segfaults", *DIES, "SIGSEGV"),
        ("prints", "fine", "ok", ""),
        ("reads", "''", "ok", ""),
        ("huge", None, "OUTPUT_TOO_LARGE", "1048576 bytes"),
        ("cyclic", None, "INTERNAL", "holds itself"),
        ("odd", {"odd": {"<Odd that cannot be written: ValueError>": 2**70}}, "ok", ""),
        ("precise", 2**100, "ok", ""),
        ("closes", *DIES, "exited with status 1"),
        ("scribbles", *DIES, "connection"),
        ("threads", "left", "ok", ""),
        ("pools", [1, 2], "ok", ""),
        ("terminates", "still here", "ok", ""),
        ("stops_all", *DIES, "SIGKILL"),
    ],
)
async def test_whatever_a_tool_does_comes_to_a_result(
    house: House, name: str, data: Any, code: str, said: str
) -> None:
    house.drop("crashes", CRASHES)
    house.drop("good", OTHER)
    assert (await house.call("other")).data == "here"
    result = await house.call(name)
    assert (result.code, result.data) == (code, data), result
    assert said in (result.error.message if result.error else "")
    assert (result.meta.get("outcome") == "unknown") == (code == "OUTCOME_UNKNOWN")
    assert (await house.call("other")).data == "here"
    assert (await house.call("precise")).data == 2**100, "the skill does not work any more"


async def test_a_process_left_behind_ends_with_the_worker(house: House) -> None:
    house.drop("crashes", CRASHES)
    left = (await house.call("forks")).data
    assert (await house.call("precise")).data == 2**100, "the copy answered in the worker's name"
    await house.workers.close()
    await until(gone([left]), "the forked process to end")


async def test_an_idempotent_call_that_was_cut_off_may_be_made_again(house: House) -> None:
    house.drop("crashes", CRASHES, idempotent_tools="leaves")
    result = await house.call("leaves")
    assert (result.code, result.meta, result.error.hint) == ("OUTCOME_UNKNOWN", {}, "it may be called again")


async def test_three_deaths_in_a_row_set_a_skill_aside_until_its_folder_changes(house: House) -> None:
    house.drop("crashes", CRASHES)
    for name in ("leaves", "leaves", "precise", "leaves", "leaves"):
        await house.call(name)
    house.look()
    assert house.loader.skill("crashes").available, "a call that ended well in between does not count"
    await house.call("leaves")
    refused = await house.call("precise")
    assert refused.code == "UNAVAILABLE"
    assert "3 failures in a row" in refused.error.message
    house.look()
    skill = house.loader.skill("crashes")
    assert not skill.available
    assert "exited with status 7" in skill.reason
    assert house.loader.tools() == ()
    assert house.told == [("crashes", skill.reason)]
    house.drop("crashes", CRASHES + "\n")
    assert (await house.call("precise")).data == 2**100
    await until(lambda: house.told[1:] == [("crashes", "")], "the news that it is tried again")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no luck')\n", "line 1: ValueError: no luck"),
        ("import os\nos._exit(4)\n", "exited with status 4"),
        (
            "from importlib import import_module\nimport_module('not_here_at_all')\n",
            "needs the package not_here_at_all",
        ),
    ],
)
async def test_code_that_does_not_start_is_named_and_its_tool_not_run(
    house: House, code: str, said: str
) -> None:
    house.drop("broken", code + OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert said in result.error.message


WHICH = '''
import os
import beside

def which() -> list:
    """Who runs it."""
    return [os.getpid(), beside.WORD]
'''


async def test_a_changed_folder_runs_its_new_code_and_the_old_worker_ends(house: House) -> None:
    folder = house.drop("changing", WHICH, beside="WORD = 1\n")
    first, word = (await house.call("which")).data
    assert word == 1
    (folder / "scripts" / "beside.py").write_text("WORD = 22\n", "utf-8")
    house.look()
    second, word = (await house.call("which")).data
    assert (word, second != first) == (22, True)
    await until(gone([first]), "the old worker to end")
    (folder / "SKILL.md").unlink()
    house.look()
    await until(gone([second]), "the removed skill's worker to end")


async def test_an_idle_worker_ends_and_the_next_call_starts_another(tmp_path: Path) -> None:
    house = House(tmp_path, idle_seconds=0.05)
    house.drop("good", OTHER + 'import os\ndef pid() -> int:\n    """Who."""\n    return os.getpid()\n')
    first = (await house.call("pid")).data
    await until(gone([first]), "the idle worker to end")
    assert (await house.call("pid")).data != first
    await house.workers.close()


async def test_of_the_idle_workers_those_used_last_are_kept(house: House) -> None:
    for n in range(IDLE_WORKERS + 1):
        house.drop(
            f"skill-{n}", f'import os\ndef pid_{n}() -> int:\n    """Who."""\n    return os.getpid()\n'
        )
    pids = [(await house.call(f"pid_{n}")).data for n in range(IDLE_WORKERS + 1)]
    await until(gone(pids[:1]), "the one used longest ago to end")
    assert all(map(alive, pids[1:]))


async def test_without_workers_the_tools_are_known_and_do_not_run(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.loader = type(house.loader)(tmp_path, tmp_path / "none")
    house.drop("good", OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert "only in the server" in result.error.message


async def test_a_launcher_stands_before_the_workers_command(tmp_path: Path) -> None:
    house = House(tmp_path, launcher=lambda folder: ("env", f"LAUNCHED_FOR={folder.name}"))
    code = 'import os\ndef seen() -> str:\n    """What."""\n    return os.environ["LAUNCHED_FOR"]\n'
    house.drop("good", code)
    assert (await house.call("seen")).data == "good"
    await house.workers.close()


async def test_calls_in_flight_end_when_the_workers_are_closed(house: House) -> None:
    folder = house.drop("hanging", HANGING)
    call = asyncio.ensure_future(house.call("hangs"))
    await until(lambda: (folder / "pids").exists() and (folder / "pids").read_text(), "the call to run")
    await house.workers.close()
    assert (await call).code == "OUTCOME_UNKNOWN"
    assert gone([int(pid) for pid in (folder / "pids").read_text().split()])()
    assert (await house.call("waits", for_what="pids")).code == "UNAVAILABLE"


def test_only_files_that_are_there_are_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    async def use() -> None:
        house = House(tmp_path)
        house.drop("crashes", CRASHES)
        for name in ("precise", "leaves", "precise", "scribbles", "precise"):
            await house.call(name)
        await house.workers.close()

    asyncio.run(use())
    assert len(os.listdir("/proc/self/fd")) <= before
