"""Workers that end or never begin: what their calls come to, and when a skill is set aside."""

from pathlib import Path

import pytest

from tests.skills.folders import House, gone
from tests.skills.worker_code import OTHER
from tests.world import until


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
