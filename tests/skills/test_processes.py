"""The processes of skills and the server's: they end together, and keep their secrets from one another."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.processes.host import Command, HostedProcess
from app.processes.sandbox import Sandbox
from tests.skills.folders import gone, write
from tests.standins.model import calls, is_classifier
from tests.world import ROOT, Server, open_work, wait_for

pytestmark = pytest.mark.slow

CODE = '''
import os, subprocess, time
from pathlib import Path

def begin(wait: bool = False) -> str:
    """Begins a long task."""
    began = [subprocess.Popen(["sleep", "600"], start_new_session=detached) for detached in (True, False)]
    pids = [os.getpid(), os.getppid(), *(process.pid for process in began)]
    Path("pids.new").write_text(" ".join(map(str, pids)))
    os.rename("pids.new", "pids")
    while wait:
        time.sleep(600)
    return "begun"
'''


def play(wait: bool) -> Callable[[dict[str, Any]], Any]:
    def answer(body: dict[str, Any]) -> Any:
        if is_classifier(body):
            return '{"categories": ["tasks"]}'
        if body["messages"][-1]["role"] == "tool":
            return "the tool said: " + str(body["messages"][-1]["content"])
        return calls(("begin", {"wait": wait}))

    return answer


@pytest.mark.parametrize(("end", "wait"), [(Server.stop, True), (Server.kill, False)])
def test_nothing_that_a_skill_began_outlives_the_server(
    tmp_path: Path, make_world: Any, model: Any, end: Callable[[Server], Any], wait: bool
) -> None:
    folder = write(tmp_path / "skills" / "tasks", CODE)
    server, graph = make_world(model=model(play(wait)), SKILLS_DIR=str(tmp_path / "skills"))
    graph.say("p0", "begin")
    wait_for((folder / "pids").exists, "the tool to begin")
    if not wait:
        assert "begun" in graph.reply("p0")
        wait_for(lambda: not open_work(server), "the end of the turn")
    end(server)
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    wait_for(gone(pids), "every process to be gone", 5)


def test_the_servers_memory_is_not_for_processes_of_its_user() -> None:
    code = (
        "import ctypes\nfrom app.errors import RecadoError\nfrom app.server import serve\n"
        "from app.settings import Settings\n"
        "def make_app(settings):\n"
        "    raise RecadoError(f'dumpable: {ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)}')\n"
        "serve(Settings(), make_app)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "dumpable: 0" in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel's own limit holds every account but root's")
async def test_what_starts_threads_without_end_is_ended_for_a_root_server_too(
    sandboxed: Sandbox, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    code = (
        "import threading, time; threading.stack_size(65536)\n"
        "for _ in range(2000): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "time.sleep(600)"
    )
    args = [*sandboxed.command(folder), sys.executable, "-I", "-c", code]
    process = await HostedProcess.start(Command(args, {}, folder, confined=True))
    try:
        assert await process.wait(20)
        assert "more than 256 threads" in str(process.printed)
    finally:
        await process.end()
