"""Workers that end or never begin: what their calls come to, and when a skill is set aside."""

import asyncio
from pathlib import Path

import pytest

from app.skills.workers import CALLS_AT_ONCE
from tests.skills.folders import House, gone
from tests.skills.worker_code import CRASHES, OTHER
from tests.world import until


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


LINGERS = """
import os, time
from pathlib import Path
Path("being-written").write_text(f"{os.getpid()} {os.getppid()}")
Path("being-written").rename("pids")
while not Path("go").exists():
    time.sleep(0.01)
"""


async def test_a_call_that_runs_out_of_time_while_its_worker_starts_did_not_run(house: House) -> None:
    folder = house.drop("slow", LINGERS + OTHER)
    house.limit("other", 0.5)
    result = await house.call("other")
    assert (result.code, result.meta) == ("UNAVAILABLE", {})
    assert result.error.message == "other did not run: it is still starting"
    await until((folder / "pids").exists, "the code to run")
    pids = (folder / "pids").read_text()
    (folder / "go").touch()
    house.look()
    assert (await house.call("other")).data == "here"
    assert (folder / "pids").read_text() == pids, "it was started a second time"


async def test_a_worker_that_never_comes_to_its_start_is_killed(tmp_path: Path) -> None:
    house = House(tmp_path, start_seconds=3.0)
    folder = house.drop("slow", LINGERS + OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert "did not come to its end within 3 s" in result.error.message
    await until(gone([int(pid) for pid in (folder / "pids").read_text().split()]), "the process to end")
    await house.workers.close()


CROWDED = '''
import asyncio
from pathlib import Path

async def waits(number: int) -> int:
    """Waits for a file."""
    Path(f"began-{number}").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return number

def late() -> str:
    """Comes when all places are taken."""
    Path("late").touch()
    return "here"
'''


async def test_a_call_that_waited_for_a_place_in_vain_was_never_sent(house: House) -> None:
    folder = house.drop("crowded", CROWDED)
    crowd = asyncio.gather(*(house.call("waits", number=n) for n in range(CALLS_AT_ONCE)))
    await until(lambda: len(list(folder.glob("began-*"))) == CALLS_AT_ONCE, "all places to be taken")
    house.limit("late", 0.3)
    result = await house.call("late")
    assert (result.code, result.meta) == ("UNAVAILABLE", {})
    assert result.error.message == f"late did not run: {CALLS_AT_ONCE} other calls of its skill are running"
    (folder / "go").touch()
    assert [one.data for one in await crowd] == list(range(CALLS_AT_ONCE))
    assert not (folder / "late").exists()
    assert (await house.call("late")).data == "here"
