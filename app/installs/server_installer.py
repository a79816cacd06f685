"""Installing a server of the registry into a folder of its own, exactly as its plan says, and removing it.

DATA_DIR/mcp/<name>/ holds the package in a folder of its own, the record of what was approved, and the
server's data. A kill at any point leaves what was there before or the whole: `tidy` mends it at the start.
"""

import asyncio
import hashlib
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from app.errors import RecadoError
from app.installs.downloading import Downloads
from app.installs.packages import (
    LOCKS,
    OLDER_SDK,
    has_new_sdk,
    install_npm,
    install_pypi,
    missing,
    npm_program,
    pypi_program,
)
from app.installs.quarantine import discard
from app.installs.registry_entries import Entry
from app.installs.server_errors import InstallCode, InstallError
from app.installs.server_plan import Plan, make_plan, read_plan, short_name
from app.installs.trial import needs_older_sdk
from app.mcp import installed
from app.mcp.definitions import NAME_RULE, is_server_name
from app.mcp.installed import InstalledServer, entry_of, home_of, read, records
from app.mcp.mapping import add_server, read_file, remove_server
from app.mcp.package_tree import PackageTreeError, digest
from app.mcp.secrets import Secrets
from app.processes.sandbox import Sandbox
from app.security import write_private
from app.settings import Settings
from app.skills.file_tree import remove_tree
from app.skills.folder import read_regular
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible

log = logging.getLogger(__name__)

Stage = Literal["downloading", "trying", "older-sdk", "keeping"]

INSTALL_SECONDS = 180.0
_PLAN = "plan.json"
_STAGING = ".staging-"
_INSTALLING, _REMOVING = ".installing", ".removing"


class ServerInstaller:
    """Servers from the registry. `taken` gives the names that no server may have, such as those of skills."""

    def __init__(
        self, settings: Settings, sandbox: Sandbox, taken: Callable[[], Collection[str]] = lambda: ()
    ) -> None:
        self._data_dir = settings.data_dir
        self._config = settings.mcp_config_path
        self._workspace = settings.workspace_dir
        self._disk = Disk(settings.data_dir, settings.free_space_mb * MEGABYTE)
        self._sandbox = sandbox
        self._taken = taken
        self._working = asyncio.Lock()
        self._files = threading.Lock()

    async def plan(
        self,
        entry: Entry,
        name: str = "",
        *,
        values: dict[str, str] | None = None,
        network: bool | None = None,
    ) -> Plan:
        """What an install of this entry would do; kept for a day, so that a yes can come later.

        An entry that is installed already keeps its name. `values` are by the keys of its variables. Whether
        it is granted the network the entry says, where `network` does not. Raises InstallError.
        """
        return await asyncio.to_thread(self._plan, entry, name, values or {}, network)

    async def install(
        self,
        subject: str,
        *,
        approved_by: str,
        trusted: bool = False,
        on_stage: Callable[[Stage], None] = lambda stage: None,
    ) -> InstalledServer:
        """Installs what the plan of that subject says; once more is the same as once.

        `approved_by` is a person's id, or who else said yes. Raises InstallError; then nothing has changed.
        """
        async with self._working:
            if done := await asyncio.to_thread(self._done, subject):
                return done
            plan = await asyncio.to_thread(self.look, subject)
            home = home_of(self._data_dir, plan.name)
            staging = home / f"{_STAGING}{secrets.token_hex(4)}"
            try:
                async with asyncio.timeout(INSTALL_SECONDS):
                    await asyncio.to_thread(_begin, home, staging)
                    record = await self._fetch(plan, staging, on_stage) if plan.kind else _remote(plan)
                on_stage("keeping")
                record = replace(record, approved_by=approved_by, trusted=trusted, installed_at=time.time())
                record = await asyncio.shield(asyncio.to_thread(self._keep, record, staging))
            except InstallError:
                raise
            except TimeoutError as error:
                raise InstallError("TOO_SLOW", f"it took more than {INSTALL_SECONDS:.0f} s") from error
            except (OSError, ValueError, LookupError, TypeError, RecadoError) as error:  # lock, report, disk
                raise InstallError("FAILED", f"{type(error).__name__}: {error}") from error
            finally:
                await asyncio.shield(asyncio.to_thread(self._tidy_one, home))
            return record

    async def remove(self, name: str) -> None:
        """Removes a server that was installed, with its data, secrets and pins. Raises InstallError."""
        async with self._working:
            await asyncio.shield(asyncio.to_thread(self._remove, name))

    def look(self, subject: str) -> Plan:
        """The plan that was kept under this subject. Blocks. Raises InstallError where it is gone."""
        gone = "what was looked at is no longer there; ask again"
        if not re.fullmatch("[0-9a-f]{64}", subject):
            raise InstallError("CHANGED", gone)
        try:
            plan = read_plan((self._data_dir / "quarantine" / subject / _PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InstallError("CHANGED", gone) from error
        if plan.subject != subject:
            raise InstallError("CHANGED", gone)
        return plan

    def tidy(self) -> None:
        """Finishes or undoes what a kill interrupted. Blocks; at the start, before any server runs."""
        for home in sorted((self._data_dir / "mcp").glob("*")):
            if home.name.startswith("."):
                _remove_rest(home)  # its removal was interrupted
            elif home.is_dir() and is_server_name(home.name):
                self._tidy_one(home)

    def _plan(self, entry: Entry, name: str, values: dict[str, str], network: bool | None) -> Plan:
        before = next((one for one in records(self._data_dir) if one.registry_id == entry.name), None)
        name = before.name if before is not None else self._free_name(entry, name)
        plan = make_plan(
            entry,
            name,
            home=home_of(self._data_dir, name) / installed.HOME,
            workspace=self._workspace.resolve(),
            values=values,
            network=network,
            replaces=before.subject if before else "",
            edited=before is not None and self._is_edited(before),
        )
        self._check_possible(plan)
        place = self._data_dir / "quarantine" / plan.subject
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(place / _PLAN, plan.text)
        os.utime(place)  # what is looked at once more waits once more
        return plan

    def _free_name(self, entry: Entry, name: str) -> str:
        """The name that was asked for, or a short one. Raises InstallError for one that cannot be had."""
        taken = {*read_file(self._config).entries, *self._taken()}
        if name in taken:
            raise InstallError("BAD_VALUE", f"there is a server or a skill {name} already: choose another")
        if name and not is_server_name(name):
            raise InstallError("BAD_VALUE", f"{visible(name)[:60]} is no name for a server: {NAME_RULE}")
        left = {path.name for path in Secrets(self._data_dir).folder.glob("*")}  # by one that had the name
        return name or short_name(entry, taken | left)

    def _check_possible(self, plan: Plan) -> None:
        """Raises InstallError for what cannot be installed or run on this machine as it is now."""
        if not plan.kind:
            return
        if program := missing(plan.kind):
            code: InstallCode = "NO_NODE" if plan.kind == "npm" else "NO_PIP"
            raise InstallError(code, f"{program} is not installed on the machine of this assistant")
        if refusal := self._sandbox.refusal():
            raise InstallError("NO_SANDBOX", f"code from elsewhere runs in the sandbox alone, and {refusal}")

    def _done(self, subject: str) -> InstalledServer | None:
        return next((one for one in records(self._data_dir) if one.subject == subject), None)

    async def _fetch(self, plan: Plan, staging: Path, on_stage: Callable[[Stage], None]) -> InstalledServer:
        """The package in `staging`, and its record, which speaks of the folder where it will lie."""
        on_stage("downloading")
        await asyncio.to_thread(self._check_possible, plan)
        cache = self._data_dir.absolute() / ".cache"
        downloads = Downloads(staging, self._disk, os.environ, cache)
        package, folder = plan.package, staging / "package"
        if lock := await asyncio.to_thread(self._kept_lock, plan):
            (folder / LOCKS[plan.kind]).write_bytes(lock)
        if plan.kind == "npm":
            await install_npm(package, folder, downloads)
            return await asyncio.to_thread(_recorded, plan, staging, npm_program(package, folder))
        await install_pypi(package, folder, downloads)
        record = _record(plan, folder, pypi_program(package, folder))
        is_older = has_new_sdk(folder)
        if is_older:
            on_stage("trying")
            server = replace(installed.definition(record, {}), home=plan.home)
            is_older = await needs_older_sdk(self._sandbox, server)
        if is_older:
            on_stage("older-sdk")
            await asyncio.to_thread(remove_tree, folder)
            await install_pypi(package, folder, downloads, OLDER_SDK)
        whole = await asyncio.to_thread(_recorded, plan, staging, pypi_program(package, folder))
        return replace(whole, older_sdk=is_older)

    def _kept_lock(self, plan: Plan) -> bytes:
        """Of the same package in the same version, which comes again as it was; b"" where there is none."""
        before = read(self._data_dir, plan.name)
        if before is None or before.package != plan.package_words:
            return b""
        with suppress(OSError):
            lock = read_regular(Path(before.folder, LOCKS[plan.kind]))
            if hashlib.sha256(lock).hexdigest() == before.lock_sha256:
                return lock
        return b""

    def _keep(self, record: InstalledServer, staging: Path) -> InstalledServer:
        """The moment from which it is installed is the one in which the record is written, which it gives."""
        home = home_of(self._data_dir, record.name)
        with self._files:
            before, plan = read(self._data_dir, record.name), self.look(record.subject)
            is_edited = before is not None and self._is_edited(before)
            if (before.subject if before else "") != plan.replaces or (is_edited and not plan.edited):
                raise InstallError("CHANGED", f"{record.name} was changed meanwhile; ask again")
            if before is None:
                (home / "pins.json").unlink(missing_ok=True)
            else:
                record = replace(record, updated_from=before.version)
            if record.folder:
                (staging / "package").rename(record.folder)
            for folder in record.grants.folders_write:
                folder.mkdir(parents=True, exist_ok=True)
            write_private(home / _INSTALLING, record.subject)
            write_private(home / installed.RECORD, installed.text_of(record))
            try:
                add_server(self._config, record.name, entry_of(record))
            except RecadoError as error:
                if before is None:
                    (home / installed.RECORD).unlink()
                else:
                    write_private(home / installed.RECORD, installed.text_of(before))
                raise InstallError("FAILED", str(error)) from error
        discard(self._data_dir, record.subject)
        return record

    def _remove(self, name: str) -> None:
        record = read(self._data_dir, name)
        if record is None:
            raise InstallError("UNKNOWN", f"no server named {name} was installed from the registry")
        home = home_of(self._data_dir, name)
        with self._files:
            (home / _REMOVING).touch()
            self._finish_removal(home)

    def _is_written(self, record: InstalledServer) -> bool:
        return installed.agrees(record, read_file(self._config).entries.get(record.name))

    def _is_edited(self, record: InstalledServer) -> bool:
        return installed.is_edited(record, read_file(self._config).entries.get(record.name))

    def _finish_removal(self, home: Path) -> None:
        remove_server(self._config, home.name)
        Secrets(self._data_dir).forget(home.name)
        (home / installed.RECORD).unlink(missing_ok=True)
        _remove_rest(home)

    def _tidy_one(self, home: Path) -> None:
        try:
            with self._files:
                self._mend(home)
        except (OSError, RecadoError) as error:  # the others are tidied, and the app starts
            log.warning("%s is half installed or half removed: %s", home, error)

    def _mend(self, home: Path) -> None:
        if (home / _REMOVING).exists():
            self._finish_removal(home)
            return
        record = read(self._data_dir, home.name)
        installing = _text(home / _INSTALLING)
        if installing is not None and record is None:
            remove_tree(home)
            return
        if record and installing == record.subject and not self._is_written(record):
            add_server(self._config, record.name, entry_of(record))
        current = Path(record.folder).name if record else ""
        for place in (*home.glob("package-*"), *home.glob(f"{_STAGING}*"), *home.glob(".package-*")):
            if place.name != current:
                remove_tree(place)
        (home / _INSTALLING).unlink(missing_ok=True)


def _text(path: Path) -> str | None:
    """None where there is no such file."""
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


def _remove_rest(home: Path) -> None:
    """The server is gone by now; what it writes while it ends stays until the next start."""
    try:
        remove_tree(home)
    except OSError as error:
        log.warning("something of a removed server stays: %s", error)


def _begin(home: Path, staging: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / _INSTALLING).touch()
    (staging / "package").mkdir(parents=True)


def _recorded(plan: Plan, staging: Path, program: tuple[str, ...]) -> InstalledServer:
    """The record of a package in `staging`, for the place that it will have. Raises InstallError."""
    folder = staging / "package"
    try:
        sha256 = digest(folder)
    except PackageTreeError as error:
        raise InstallError("NOT_INSTALLABLE", str(error)) from error
    lock_sha256 = hashlib.sha256((folder / LOCKS[plan.kind]).read_bytes()).hexdigest()
    place = staging.with_name(staging.name.replace(_STAGING, "package-", 1))
    there = tuple(word.replace(str(folder), str(place), 1) for word in program)
    record = _record(plan, place, there)
    return replace(record, sha256=sha256, package=plan.package_words, lock_sha256=lock_sha256)


def _record(plan: Plan, folder: Path, program: tuple[str, ...]) -> InstalledServer:
    return replace(_remote(plan), folder=str(folder), command=program[0], args=(*program[1:], *plan.args))


def _remote(plan: Plan) -> InstalledServer:
    return InstalledServer(
        name=plan.name,
        registry_id=plan.registry_id,
        version=plan.version,
        subject=plan.subject,
        env=plan.env,
        url=plan.url,
        headers=plan.headers,
        grants=plan.grants,
        audience=plan.audience,
        description=plan.description,
    )
