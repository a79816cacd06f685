"""Workers that never begin, and how long others live: until their folder changes, nobody calls, or a stop."""

import asyncio
from pathlib import Path

import pytest

from tests.skills.folders import House, gone
from tests.skills.worker_code import HANGING, OTHER
from tests.world import until

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


async def test_calls_in_flight_end_when_the_workers_are_closed(house: House) -> None:
    folder = house.drop("hanging", HANGING)
    call = asyncio.ensure_future(house.call("hangs"))
    await until(lambda: (folder / "pids").exists() and (folder / "pids").read_text(), "the call to run")
    await house.workers.close()
    assert (await call).code == "OUTCOME_UNKNOWN"
    assert gone([int(pid) for pid in (folder / "pids").read_text().split()])()
    assert (await house.call("waits", for_what="pids")).code == "UNAVAILABLE"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no luck')\n", "line 1: ValueError: no luck"),
        ("import os\nos._exit(4)\n", "exited with status 4"),
    ],
)
async def test_code_that_does_not_start_is_named_and_its_tool_not_run(
    house: House, code: str, said: str
) -> None:
    house.drop("broken", code + OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert said in result.error.message


LINGERS = """
import os, time
from pathlib import Path
Path("being-written").write_text(f"{os.getpid()} {os.getppid()}")
Path("being-written").rename("pids")
while not Path("go").exists():
    time.sleep(0.01)
"""


@pytest.mark.slow
async def test_a_worker_that_never_comes_to_its_start_is_killed(tmp_path: Path) -> None:
    house = House(tmp_path, start_seconds=3.0)
    folder = house.drop("slow", LINGERS + OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert "did not come to its end within 3 s" in result.error.message
    await until(gone([int(pid) for pid in (folder / "pids").read_text().split()]), "the process to end")
    await house.workers.close()
