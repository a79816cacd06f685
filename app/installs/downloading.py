"""Running npm and pip: with little of our environment, in limits of time and room, and ended whole."""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from app.installs.server_errors import InstallCode, InstallError
from app.mcp.package_tree import PackageTreeError, check_room
from app.settings import is_own
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible

LOOK_SECONDS = 1.0
"""How often the room that is left is looked at."""
_LAST_LINES, _LONGEST = 6, 600


class Downloads:
    """Runs the programs of an install in `folder`; `disk` has to keep its least free space."""

    def __init__(self, folder: Path, disk: Disk, environment: Mapping[str, str], cache: Path) -> None:
        self._folder = folder
        self._disk = disk
        self._environment = _bare(environment, folder, cache)

    async def run(self, command: Sequence[str]) -> None:
        """Raises InstallError where it fails or needs too much room; whoever cancels it ends it whole."""
        said = self._folder / "said.txt"
        with said.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._folder,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            while True:
                await asyncio.to_thread(self._check_room)
                if await _ended(process):
                    break
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode:
            raise _error(said.read_text("utf-8", "replace"))
        await asyncio.to_thread(self._check_room)

    def _check_room(self) -> None:
        free = self._disk.free()
        if free < self._disk.least:
            raise InstallError(
                "NO_SPACE",
                f"only {free // MEGABYTE} MB are free on the disk, and FREE_SPACE_MB says that "
                f"{self._disk.least // MEGABYTE} stay free",
            )
        try:
            check_room(self._folder)
        except FileNotFoundError:  # it is being worked on
            return
        except PackageTreeError as error:
            raise InstallError("TOO_LARGE", str(error)) from error


async def _ended(process: asyncio.subprocess.Process) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), LOOK_SECONDS)
        return True
    return False


def _bare(environment: Mapping[str, str], folder: Path, cache: Path) -> dict[str, str]:
    """What the operator set up for npm and pip counts: addresses, certificates, caches. Nothing else does."""
    kept = {name: text for name, text in environment.items() if _THEIRS.fullmatch(name) and not is_own(name)}
    scratch = folder / "tmp"
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"npm_config_cache": str(cache / "npm"), **kept, "TMPDIR": str(scratch), "CI": "1"}


_THEIRS = re.compile(
    r"PATH|HOME|LANG|LC_ALL|XDG_CONFIG_HOME|XDG_CACHE_HOME|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)"
    r"|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|NPM_CONFIG_(?!IGNORE_SCRIPTS|GLOBAL|PREFIX|LOCATION|SCRIPT_SHELL)\w+"
    r"|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|(?:CLIENT_)?CERT|PROXY|CONFIG_FILE|FIND_LINKS|NO_INDEX"
    r"|CACHE_DIR|NO_CACHE_DIR|RETRIES|(?:DEFAULT_)?TIMEOUT)",
    re.IGNORECASE,
)

_KINDS: tuple[tuple[InstallCode, re.Pattern[str]], ...] = (
    ("NO_SPACE", re.compile(r"ENOSPC|No space left on device")),
    (
        "AWAY",
        re.compile(
            r"ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|NewConnectionError|NameResolutionError"
            r"|ConnectTimeoutError|ReadTimeoutError|Max retries exceeded|Could not fetch URL"
        ),
    ),
    ("NOT_FOUND", re.compile(r"\bE404\b|\bETARGET\b|No matching distribution found")),
)


def _error(said: str) -> InstallError:
    """What npm or pip said last, without the passwords of addresses."""
    lines = [line for line in said.splitlines() if line.strip() and not _NOISE.search(line)]
    text = _PASSWORD.sub("://…@", visible(" · ".join(lines[-_LAST_LINES:])))[-_LONGEST:]
    kinds: tuple[InstallCode, ...] = (*(code for code, pattern in _KINDS if pattern.search(said)), "FAILED")
    return InstallError(kinds[0], text or "it ended without a word")


_PASSWORD = re.compile(r"://[^/\s@]+@")
_NOISE = re.compile(
    r"A complete log of this run|npm warn|^WARNING: (?:Location|Retrying)|^\[notice\]", re.IGNORECASE
)
