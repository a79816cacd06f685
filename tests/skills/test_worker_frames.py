"""Workers whose code speaks to the server in their place: whatever it says ends the worker at most."""

import tempfile
from pathlib import Path

import pytest

from tests.skills.folders import House
from tests.world import until

pytestmark = pytest.mark.slow

SPEAKS = '''
import json, os, socket, sys, threading, time

server = socket.socket(fileno=os.dup(int(sys.argv[1])))

def write(body: bytes) -> None:
    server.sendall(len(body).to_bytes(4, "big") + body)

def frame(body: str) -> None:
    """Writes a frame."""
    write(body.encode())
    time.sleep(600)

def pid() -> int:
    """Who."""
    return os.getpid()
'''

NESTED = "[" * 900 + "]" * 900


NO_MESSAGES = [
    '["Ready", {"fault": 7}]',
    '["Ask", {"call": NaN, "method": "store.get", "args": ["k"]}]',
    f'["Ask", {{"call": {NESTED}, "method": "store.get", "args": ["k"]}}]',
    '["Result", {"call": 999, "result": {"ok": true, "data": 1, "meta": {}}}]',
    "no JSON",
]


async def test_what_is_no_message_ends_the_worker_and_counts(house: House) -> None:
    folder = house.drop("speaks", SPEAKS)
    for body in NO_MESSAGES:
        result = await house.call("frame", body=body)
        assert (result.code, result.meta["outcome"]) == ("OUTCOME_UNKNOWN", "unknown"), result
        assert "its code wrote to the server's connection" in result.error.message
        assert (await house.call("pid")).ok
    assert house.told == []
    for _ in range(3):
        await house.call("frame", body=body)
    await until(lambda: house.told, "the skill to be set aside")
    assert house.told[0][0] == folder.name


async def test_a_worker_that_says_nonsense_at_its_start_is_set_aside_too(house: House) -> None:
    house.drop("speaks", f"{SPEAKS}\nwrite(b'[\"Result\", {{}}]')\ntime.sleep(600)\n")
    for _ in range(3):
        result = await house.call("pid")
        assert "its code wrote to the server's connection" in result.error.message
    await until(lambda: house.told, "the skill to be set aside")


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
