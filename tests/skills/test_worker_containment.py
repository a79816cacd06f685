"""Whatever a tool does in its worker or says in its place: its call ends, and the others go on."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.skills.folders import House, gone
from tests.skills.worker_code import CRASHES, HANGING, OTHER
from tests.world import until

pytestmark = pytest.mark.slow


async def test_one_that_hangs_is_cut_and_the_others_arrive_whole(house: House) -> None:
    folder = house.drop("hanging", HANGING)
    await house.call("waits", for_what=".")  # a worker is warm
    three = asyncio.gather(*(house.call(name, for_what="go") for name in ("waits", "waits_too", "waits")))
    house.limit("hangs", 1.5)
    cut = await house.call("hangs")
    assert (cut.code, cut.meta["outcome"]) == ("TIMEOUT", "unknown")
    worker, keeper, child = map(int, (folder / "pids").read_text().split())
    fresh = asyncio.ensure_future(house.call("waits", for_what="go"))
    (folder / "go").touch()
    results = [*await three, await fresh]
    assert [(result.ok, len(result.data["text"])) for result in results] == [(True, 100_000)] * 4
    assert worker not in {result.data["pid"] for result in results}
    await until(gone([worker, keeper, child]), "the worker to be killed with all it started")


DIES = (None, "OUTCOME_UNKNOWN")


CRASHED: dict[str, tuple[Any, str, str]] = {
    "exits": (None, "INTERNAL", "SystemExit: 3"),
    "segfaults": (*DIES, "SIGSEGV"),
    "prints": ("fine", "ok", ""),
    "reads": ("''", "ok", ""),
    "cyclic": (None, "INTERNAL", "Circular reference"),
    "odd": ({"odd": {"<Odd that cannot be written: ValueError>": 2**70}}, "ok", ""),
    "closes": (*DIES, "exited with status 1"),
    "scribbles": (*DIES, "connection"),
    "threads": ("left", "ok", ""),
    "terminates": ("still here", "ok", ""),
    "stops_all": (*DIES, "SIGKILL"),
}


async def test_whatever_a_tool_does_comes_to_a_result(house: House) -> None:
    house.drop("crashes", CRASHES)
    house.drop("good", OTHER)
    for name, (data, code, said) in CRASHED.items():
        result = await house.call(name)
        assert (result.code, result.data) == (code, data), (name, result)
        assert said in (result.error.message if result.error else "")
        assert (result.meta.get("outcome") == "unknown") == (code == "OUTCOME_UNKNOWN")
        assert (await house.call("other")).data == "here"
        assert (await house.call("precise", n=2**70)).data == 2**170, f"the skill does not work after {name}"


async def test_a_copy_of_the_worker_never_answers_in_its_name_and_ends_with_it(house: House) -> None:
    house.drop("crashes", CRASHES)
    assert (await house.call("forks_and_waits")).data == "the worker"
    left = (await house.call("forks")).data
    assert (await house.call("precise")).data == 2**100
    await house.workers.close()
    await until(gone([left]), "the forked process to end")


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
