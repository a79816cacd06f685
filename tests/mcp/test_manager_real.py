"""Servers from the package registries, as their authors publish them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.mcp.supervisor import Limits
from tests.mcp.house import House

pytestmark = pytest.mark.slow

INSTALL_SECONDS = 300
EVERYTHING = "@modelcontextprotocol/server-everything"


@pytest.fixture(scope="session")
def python_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The entry point of mcp-server-time."""
    folder = tmp_path_factory.mktemp("python-server")
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(folder / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", "mcp-server-time"],
    ):
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS, capture_output=True)
    return str(folder / "bin" / "mcp-server-time")


@pytest.fixture(scope="session")
def node_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The entry point of server-everything."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    folder = tmp_path_factory.mktemp("node-server")
    command = ["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), EVERYTHING]
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, capture_output=True)
    return str(folder / "node_modules" / EVERYTHING / "dist" / "index.js")


async def test_a_server_of_pypi_tells_the_time(house: House, python_server: str) -> None:
    state = await house.start("time", command=python_server, args=())
    assert state.phase == "ready", state.reason
    result = await house.call("mcp_time_get_current_time", timezone="Asia/Tokyo")
    assert result.data["timezone"] == "Asia/Tokyo"


async def test_a_server_of_npm_does_everything(tmp_path: Path, node_server: str) -> None:
    house = House(tmp_path, Limits(call=3.0))
    state = await house.start("all", command="node", args=(node_server, "stdio"))
    assert (state.phase, state.revision, state.dropped) == ("ready", "2025-11-25", ())
    assert (await house.call("mcp_all_echo", message="hola")).data == "Echo: hola"
    image = await house.call("mcp_all_get-tiny-image")
    assert [file.mime_type for file in image.attachments] == ["image/png"]
    weather = await house.call("mcp_all_get-structured-content", location="New York")
    assert set(weather.data) == {"temperature", "conditions", "humidity"}
    assert (await house.call("mcp_all_trigger-long-running-operation", duration=5, steps=5)).ok
    await house.servers.stop()


async def test_both_start_again_in_the_revision_that_they_spoke(
    tmp_path: Path, python_server: str, node_server: str
) -> None:
    spoken = []
    for _ in range(2):
        house = House(tmp_path)
        house.write("time", command=python_server, args=())
        house.write("all", command="node", args=(node_server, "stdio"))
        await house.servers.refresh()
        spoken.append([(await house.servers.settled(name, 30)).revision for name in ("time", "all")])
        await house.servers.stop()
    assert spoken[0] == spoken[1]
