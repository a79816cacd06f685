"""How many processor instructions a turn takes, counted by valgrind: other programs hardly change it.

`python -m bench.instructions` prints millions a turn, three counts of forty turns each; in the first the
server still warms up.
"""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

import uvloop

from bench.conversations import Talk
from bench.process import Measured, Release
from bench.seed import seed
from bench.standin import StandIn

TURNS = 40
COUNTS = 3
WARM_UP = 30
PEOPLE = 1_000
FILE = "instructions"
START_SECONDS = 300.0
"""Valgrind makes everything some fifty times slower."""


async def main() -> None:
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: apt-get install valgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "instructions"
        seed(data / "recado.db", range(PEOPLE), 1)
        async with StandIn().running() as world:
            server = Release(folder / "release").server(data, world.url, model=f"{world.url}/0/v1")
            server.launcher = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={data / FILE}"]
            server.start_seconds = START_SECONDS
            with server:
                await server.answers()
                await server.settled()
                people = cycle(range(PEOPLE))
                await Talk(server, world).turns(islice(people, 1))  # what it loads outlasts a connection
                await Talk(server, world).turns(islice(people, WARM_UP))
                for number in range(1, COUNTS + 1):
                    await _control(server, "--zero")
                    await Talk(server, world).turns(islice(people, TURNS))
                    await _control(server, "--dump")
                    print(f"{await _total(data / f'{FILE}.{number}') / TURNS / 1e6:.2f} M", flush=True)


async def _control(server: Measured, what: str) -> None:
    command = ["callgrind_control", what, str(server.pid)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)


async def _total(path: Path) -> int:
    """Of a count that is being written down."""
    async with asyncio.timeout(60):
        while True:
            written = path.read_text() if path.exists() else ""
            if total := re.search(r"^totals: (\d+)", written, re.MULTILINE):
                return int(total[1])
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    uvloop.run(main())
