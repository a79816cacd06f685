"""The protocol's conformance suite: installed once, run against us, and read.

What it asks of more than a host of tools stands in not_ours.yml. Authorization is left out of the client's
scenarios: it is not there yet.
"""

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conformance.proxy import TokenProxy
from tests.world import ROOT, Server

PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")
"""The suite needs a newer Node than many machines have."""
REVISIONS = ("2025-11-25", "2026-07-28")
HOME = ROOT / "build" / "conformance"
HERE = Path(__file__).parent
TOKEN = "the-token-of-the-suite"
INSTALL_SECONDS = 300
RUN_SECONDS = 300

Leg = Literal["server", "client"]
Verdict = Literal["passes", "in part", "not ours", "FAILS"]
"""In part: but for checks that not_ours.yml names."""


class NotHere(Exception):
    """The suite cannot be installed on this machine."""


@dataclass(frozen=True)
class Outcome:
    """Of one scenario: its checks by status, and what is wrong with them, "" where all is as expected.

    `not_ours` is why none of it is asked of a host of tools.
    """

    scenario: str
    statuses: Counter[str]
    fault: str
    not_ours: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.fault:
            return "FAILS"
        if self.not_ours:
            return "not ours"
        return "in part" if self.statuses["FAILURE"] + self.statuses["WARNING"] else "passes"


def install() -> None:
    """Puts the suite into build/conformance, where it is not there yet. Raises NotHere."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (HOME / "installed").is_file() and (HOME / "installed").read_text() == " ".join(PACKAGES):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise NotHere("there is no npm")
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(HOME), *PACKAGES]
        try:
            done = subprocess.run(
                command, cwd=HOME, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NotHere(f"npm took more than {INSTALL_SECONDS} s") from error
        if done.returncode:
            raise NotHere(f"npm could not install the suite: {done.stderr[-500:]}")
        (HOME / "installed").write_text(" ".join(PACKAGES))


def required(leg: Leg, revision: str) -> list[str]:
    """The scenarios that conformance to a revision requires, without authorization."""
    sets = HOME / "node_modules/@modelcontextprotocol/conformance/requirements"
    listed = yaml.safe_load((sets / f"{revision}.yaml").read_text())[leg]
    return [scenario for scenario in listed if not scenario.startswith("auth/")]


def left_out(leg: Leg) -> dict[str, str]:
    """The scenarios of the suite that are not run, with the reason."""
    program = HOME / "node_modules" / ".bin" / "conformance"
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    told = subprocess.run([program, "list"], env=environment, capture_output=True, text=True, timeout=60)
    _, _, rest = told.stdout.partition(f"{leg.capitalize()} scenarios")
    lines = rest.partition("\n\n")[0].splitlines()
    run = {scenario for revision in REVISIONS for scenario in required(leg, revision)}
    found = {}
    for line in lines:
        scenario, _, revisions = line.strip().removeprefix("- ").partition(" ")
        if not line.startswith("  - ") or scenario in run:
            continue
        if scenario.startswith("auth/"):
            found[scenario] = "signing in to a server is not supported yet"
        elif "extension" in revisions:
            found[scenario] = "an extension of the protocol that is not here"
        else:
            found[scenario] = f"no requirement of {' or '.join(REVISIONS)}"
    return found


def server_outcomes(url: str, revision: str, results: Path) -> list[Outcome]:
    """What the suite finds of the server behind an address, scenario by scenario."""
    _run("server", "--url", url, "--requirements", revision, "--output-dir", str(results))
    return [
        _outcome("server", scenario, results, f"server-{scenario}-20*")
        for scenario in required("server", revision)
    ]


def client_outcomes(revision: str, results: Path) -> Iterator[Outcome]:
    """What it finds of our manager, one scenario after the other."""
    command = f"{sys.executable} -m tests.conformance.client"
    for scenario in required("client", revision):
        chosen = ("--scenario", scenario, "--spec-version", revision)
        _run("client", "--command", command, *chosen, "--output-dir", str(results))
        yield _outcome("client", scenario, results, f"{scenario}-20*")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Our server with the tools that the suite calls; gives the address of its /mcp, which wants no token.

    Those that return files are a shipped skill's, which run in process: so it is a release of its own.
    """
    release = folder / "release"
    for part in ("app", "skills"):
        shutil.copytree(ROOT / part, release / part)
    shutil.copytree(HERE / "shipped", release / "skills", dirs_exist_ok=True)
    with (release / "skills" / "bundled.txt").open("a") as bundled:
        bundled.writelines(f"{skill.name}\n" for skill in (HERE / "shipped").iterdir())
    shutil.copytree(HERE / "dropped", folder / "skills")
    env = {"ADMIN_TOKEN": TOKEN, "SKILLS_DIR": str(folder / "skills"), "PYTHONPATH": str(release)}
    server = Server(folder, **env).start()
    proxy = TokenProxy(server.url, TOKEN)
    try:
        asyncio.run(_start_worker(f"{proxy.url}/mcp"))
        yield f"{proxy.url}/mcp"
    finally:
        proxy.stop()
        server.stop()


async def _start_worker(url: str) -> None:
    """Calls a dropped tool once: its process starts in more than the half second that the suite waits."""
    async with Client(streamable_http_client(url)) as client:
        await client.call_tool("test_simple_text", {})


def _run(*arguments: str) -> None:
    """Its exit status says less than what it writes down."""
    programs = HOME / "node_modules" / ".bin"
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }
    subprocess.run(
        [programs / "conformance", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def _outcome(leg: Leg, scenario: str, results: Path, folder: str) -> Outcome:
    written = next(results.glob(f"{folder}/checks.json"), None)
    if written is None:
        return Outcome(scenario, Counter(), "it did not run")
    checks = json.loads(written.read_text())
    bad = {
        one["id"]: one.get("errorMessage", "") for one in checks if one["status"] in ("FAILURE", "WARNING")
    }
    excuses = not_ours(leg)
    statuses = Counter(one["status"] for one in checks)
    return Outcome(scenario, statuses, _fault(excuses, scenario, bad), excuses.get(scenario, ""))


def _fault(excuses: dict[str, str], scenario: str, failing: dict[str, str]) -> str:
    if scenario in excuses:
        return "" if failing else "it passes: take it out of not_ours.yml"
    excused = {entry.partition(":")[2] for entry in excuses if entry.startswith(f"{scenario}:")}
    faults = [f"{check}: {message}" for check, message in failing.items() if check not in excused]
    faults += [f"{check} passes: take it out of not_ours.yml" for check in excused - failing.keys()]
    return "; ".join(faults)


@cache
def not_ours(leg: Leg) -> dict[str, str]:
    """What is not asked of a host of tools, as scenario or scenario:check, with the reason."""
    listed = yaml.safe_load((HERE / "not_ours.yml").read_text())[leg]
    return {entry: reason for reason, entries in listed.items() for entry in entries}
