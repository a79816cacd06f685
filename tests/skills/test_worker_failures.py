"""Workers that end or never begin: what their calls come to, and when a skill is set aside."""

from pathlib import Path

import pytest

from tests.skills.folders import House, gone
from tests.skills.worker_code import CRASHES, OTHER
from tests.world import until


async def test_three_deaths_in_a_row_set_a_skill_aside_until_its_folder_changes(house: House) -> None:
    house.drop("crashes", CRASHES)
    for _ in range(3):
        await house.call("leaves")
    refused = await house.call("precise")
    assert refused.code == "UNAVAILABLE"
    assert "3 failures in a row" in refused.error.message
    house.look()
    skill = house.loader.skill("crashes")
    assert not skill.available
    assert "exited with status 7" in skill.reason
    assert house.loader.tools == ()
    assert house.told == [("crashes", skill.reason)]
    house.drop("crashes", CRASHES + "\n")
    assert (await house.call("precise")).data == 2**100
    await until(lambda: house.told[1:] == [("crashes", "")], "the news that it is tried again")


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


async def test_a_worker_that_never_comes_to_its_start_is_killed(tmp_path: Path) -> None:
    house = House(tmp_path, start_seconds=3.0)
    folder = house.drop("slow", LINGERS + OTHER)
    result = await house.call("other")
    assert result.code == "UNAVAILABLE"
    assert "did not come to its end within 3 s" in result.error.message
    await until(gone([int(pid) for pid in (folder / "pids").read_text().split()]), "the process to end")
    await house.workers.close()
