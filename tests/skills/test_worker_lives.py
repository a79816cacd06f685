"""How long workers live: until their folder changes, nobody calls, or the server stops."""

import asyncio
from pathlib import Path

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
