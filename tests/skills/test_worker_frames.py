"""Workers whose code speaks to the server in their place: whatever it says ends the worker at most."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from app.skills.folder import signature
from app.skills.frames import CALL_BYTES, LEAST_BYTES, MOST_BYTES
from app.tools import ToolContext
from tests.skills.folders import House
from tests.world import until

pytestmark = pytest.mark.slow

SPEAKS = '''
import json, os, socket, sys, threading, time

server = socket.socket(fileno=os.dup(int(sys.argv[1])))

def write(body: bytes) -> None:
    server.sendall(len(body).to_bytes(4, "big") + body)

def say(name: str, times: int = 1, **fields) -> None:
    """So often in one piece: what comes later is of a call that has ended."""
    body = json.dumps([name, fields]).encode()
    server.sendall((len(body).to_bytes(4, "big") + body) * times)

def frame(body: str) -> None:
    """Writes a frame."""
    write(body.encode())
    time.sleep(600)

def late(number: int, size: int) -> str:
    """Speaks of a call that nobody made."""
    for _ in range(number):
        say("Result", id=999, result={"ok": True, "data": "x" * size, "meta": {}})
    return "said"

def asks_much(times: int, context=None) -> int:
    """Asks for the same again and again."""
    return sum(len(context.store.get("k")) for _ in range(times))

def pid() -> int:
    """Who."""
    return os.getpid()
'''

NESTED = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "body",
    [
        '["Ready", {"fault": 7}]',
        '["Call", {"id": 1, "function": "f", "args": {}, "context": {}}]',
        '["Ask", {"id": NaN, "call": 1, "method": "store.get", "args": ["k"]}]',
        '["Ask", {"id": NESTED, "call": 1, "method": "store.get", "args": ["k"]}]',
        '["Ask", {"id": 1, "call": 1, "method": "store.get", "args": "k"}]',
        '[["Ask"], {}]',
        "no JSON",
    ],
)
async def test_what_is_no_message_ends_the_worker_and_counts(house: House, body: str) -> None:
    body = body.replace("NESTED", NESTED)
    folder = house.drop("speaks", SPEAKS)
    result = await house.call("frame", body=body)
    assert (result.code, result.meta["outcome"]) == ("OUTCOME_UNKNOWN", "unknown"), result
    assert "its code wrote to the server's connection" in result.error.message
    for _ in range(2):
        await house.call("frame", body=body)
    await until(lambda: house.told, "the skill to be set aside")
    assert house.told[0][0] == folder.name


@pytest.mark.parametrize("body", ['["Ready", {"fault": 7}]', '["Result", {"id": 1, "result": {}}]'])
async def test_a_worker_that_says_nonsense_at_its_start_is_set_aside_too(house: House, body: str) -> None:
    house.drop("speaks", f"{SPEAKS}\nwrite({body!r}.encode())\ntime.sleep(600)\n")
    for _ in range(3):
        result = await house.call("pid")
        assert "its code wrote to the server's connection" in result.error.message
    await until(lambda: house.told, "the skill to be set aside")


@pytest.mark.parametrize(
    ("number", "size"), [(MOST_BYTES // LEAST_BYTES + 1, 1), (MOST_BYTES // 10**6 + 1, 10**6)]
)
async def test_frames_of_no_call_are_bounded(house: House, number: int, size: int) -> None:
    house.drop("speaks", SPEAKS)
    assert (await house.call("late", number=3, size=size)).data == "said"
    result = await house.call("late", number=number, size=size)
    assert "more than 64 MiB for each call" in result.error.message


class Texts:
    """A store whose only value is long."""

    async def get(self, key: str, default: Any = None) -> str:
        return "x" * 1024**2


async def test_what_one_call_is_answered_is_bounded(house: House) -> None:
    house.drop("speaks", SPEAKS)
    most = CALL_BYTES // 1024**2
    context = ToolContext(store=Texts())  # type: ignore[arg-type]
    assert (await house.call("asks_much", context, times=most - 1)).data == (most - 1) * 1024**2
    result = await house.call("asks_much", context, times=most + 2)
    assert "more than 64 MiB for each call" in result.error.message
    assert (await house.call("asks_much", context, times=1)).ok


HOMES = '''
import os, signal, time

def deepens() -> str:
    """Makes a home nested deeper than any path may be long."""
    home = os.environ["HOME"]
    os.chdir(home)
    for _ in range(700):
        os.mkdir("folder")
        os.chdir("folder")
    os.chmod(".", 0)
    return home

def kills() -> None:
    """Kills its keeper, which would have removed its home."""
    open(os.path.join(os.environ["HOME"], "file"), "w").close()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)

def home() -> str:
    """Where."""
    return os.environ["HOME"]
'''


async def test_a_workers_home_goes_with_it_whatever_it_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = tmp_path / "temporary"
    homes.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(homes))
    house = House(tmp_path / "skills")
    house.drop("homes", HOMES)
    made = Path((await house.call("deepens")).data)
    assert made.parent == homes
    assert (await house.call("kills")).code == "OUTCOME_UNKNOWN"
    await until(lambda: not any(homes.iterdir()), "the home to be removed")
    await house.call("home")
    await house.workers.close()
    assert not any(homes.iterdir())


DEAF = '''
import os, signal, time

def takes(text: str) -> int:
    """Takes a text."""
    return len(text)

def stops() -> None:
    """Reads no more."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)

'''


async def test_of_what_a_worker_does_not_read_one_frame_waits(house: House) -> None:
    folder = house.drop("deaf", DEAF)
    version = signature(folder)
    assert (await house.call("takes", text="x")).data == 1
    (used,) = house.workers._versions.values()
    worker = used.worker
    assert worker is not None
    assert worker._writer is not None
    long = {"text": "x" * 4 * 1024**2}
    made = [("stops", {}), *[("takes", long)] * 10]
    texts = [
        asyncio.create_task(house.workers.call(folder, version, name, args, ToolContext()))
        for name, args in made
    ]
    for _ in range(100):
        await asyncio.sleep(0)
    assert worker._writer.transport.get_write_buffer_size() < 5 * 1024**2
    for task in texts:
        task.cancel()
    await asyncio.gather(*texts, return_exceptions=True)
