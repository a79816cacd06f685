"""Servers of the registry: planned, and after a yes installed into a folder of their own.

DATA_DIR/mcp/<name>/ holds the package in a folder of its own, the record of what was approved, and the
server's data. After a kill an install or a removal can be done again; `tidy` removes what was half done.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.errors import RecadoError
from app.i18n import lazy
from app.installs.entries import Entry, Package
from app.installs.errors import InstallError
from app.installs.packages import INSTALL_SECONDS, Downloads, install_package, require_programs
from app.installs.pipeline import Approval, InstallPipeline
from app.installs.plans import Plan, make_plan, read_plan, short_name
from app.installs.quarantine import keep_plan, kept_plan
from app.mcp import approved
from app.mcp.approved import (
    InstalledServer,
    PackageTreeError,
    digest,
    entry_of,
    home_of,
    read_record,
    records,
)
from app.mcp.configuration import Secrets, add_server, read_mapping, remove_server
from app.mcp.definitions import NAME_RULE, is_server_name
from app.processes.sandbox import Sandbox
from app.routing.tool_catalog import ToolCatalog
from app.security import write_private
from app.settings import Settings
from app.skills.installed import remove_tree
from app.skills.loader import SkillLoader
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible

log = logging.getLogger(__name__)

_SCRATCH = ".staging-"


class ServerInstaller(InstallPipeline[Plan, InstalledServer]):
    """Installs servers of the registry; none gets the name of one of the `skills`."""

    def __init__(
        self, settings: Settings, sandbox: Sandbox, skills: ToolCatalog | SkillLoader | None = None
    ) -> None:
        super().__init__(settings.data_dir)
        self._config = settings.mcp_config_path
        self._workspace = settings.workspace_dir
        self._disk = Disk(settings.data_dir, settings.free_space_mb * MEGABYTE)
        self._sandbox = sandbox
        self._skills = skills
        self._files = threading.Lock()

    async def propose(
        self,
        entry: Entry,
        name: str = "",
        values: Mapping[str, str] | None = None,
        folder: str = "",
        network: bool | None = None,
    ) -> Plan:
        """Plan an install and keep the plan, so that a yes can come later; see `make_plan`.

        A server that is installed already keeps its name.
        """
        return await asyncio.to_thread(self._plan, entry, name, values or {}, folder, network)

    def load(self, subject: str) -> Plan:
        try:
            plan = read_plan(kept_plan(self.data_dir, subject))
        except ValueError as error:
            raise InstallError("CHANGED", "what was looked at cannot be read; ask again") from error
        if plan.subject != subject:
            raise InstallError("CHANGED", "what was looked at has been changed; ask again")
        return plan

    def installed(self, name: str) -> InstalledServer:
        record = read_record(self.data_dir, name)
        if record is None:
            raise InstallError(
                "UNKNOWN", lazy("no server named {name} was installed from the registry", name=name)
            )
        return record

    def removal_subject(self, record: InstalledServer) -> str:
        return f"{record.name}/{record.installed_at}"

    def tidy(self) -> None:
        """Remove what a kill left half done. Blocks; called at the start, before any server runs."""
        for home in sorted((self.data_dir / "mcp").glob("*")):
            if home.name.startswith("."):
                _remove_rest(home)  # its removal was interrupted
            elif home.is_dir() and is_server_name(home.name):
                self._tidy_one(home)

    def _plan(
        self, entry: Entry, name: str, values: Mapping[str, str], folder: str, network: bool | None
    ) -> Plan:
        before = next((one for one in records(self.data_dir) if one.registry_id == entry.name), None)
        name = before.name if before is not None else self._free_name(entry, name)
        plan = make_plan(
            entry,
            name,
            home=home_of(self.data_dir, name) / approved.HOME,
            workspace=self._workspace.resolve(),
            values=values,
            folder=folder or (self._folder_before(before) if before is not None else ""),
            network=network,
            replaces=before.subject if before else "",
            edited=self._is_edited(name, before),
        )
        self._check_possible(plan)
        keep_plan(self.data_dir, plan.subject, plan.text)
        return plan

    def _folder_before(self, record: InstalledServer) -> str:
        workspace = self._workspace.resolve()
        inside = (one for one in record.grants.folders_write if one.is_relative_to(workspace))
        return next((str(one.relative_to(workspace)) for one in inside), "")

    def _free_name(self, entry: Entry, name: str) -> str:
        """Return the name that was asked for, or a short one. Raise `InstallError` if it cannot be used."""
        skills = self._skills.skill_names if self._skills is not None else ()
        taken = {*read_mapping(self._config), *skills}
        if name in taken:
            raise InstallError("BAD_VALUE", f"there is a server or a skill {name} already: choose another")
        if name and not is_server_name(name):
            raise InstallError("BAD_VALUE", f"{visible(name)[:60]} is no name for a server: {NAME_RULE}")
        left_secrets = {path.name for path in Secrets(self.data_dir).folder.glob("*")}
        return name or short_name(entry, taken | left_secrets)

    def _check_possible(self, plan: Plan) -> None:
        if not plan.kind:
            return
        require_programs(plan.kind)
        if refusal := self._sandbox.refusal():
            raise InstallError("NO_SANDBOX", f"code of others runs in the sandbox alone, and {refusal}")

    def _find_committed(self, approval: Approval) -> InstalledServer | None:
        record = next((one for one in records(self.data_dir) if one.subject == approval.subject), None)
        return record if record and record.name in read_mapping(self._config) else None

    async def _commit(self, candidate: Plan, approval: Approval) -> InstalledServer:
        home, token = home_of(self.data_dir, candidate.name), secrets.token_hex(4)
        folder, scratch = home / f"package-{token}", home / f"{_SCRATCH}{token}"
        try:
            async with asyncio.timeout(INSTALL_SECONDS):
                await asyncio.to_thread(_make_folders, home, folder, scratch, *candidate.grants.folders_write)
                program: tuple[str, ...] = ()
                if candidate.kind:
                    await asyncio.to_thread(self._check_possible, candidate)
                    downloads = Downloads(folder, scratch, self._disk, self.data_dir.absolute() / ".cache")
                    package = Package(candidate.kind, candidate.identifier, candidate.version)
                    program = await install_package(package, folder, downloads)
                record = await asyncio.to_thread(_record, candidate, approval, folder, program)
            return await asyncio.shield(asyncio.to_thread(self._keep, record, candidate))
        except InstallError:
            raise
        except TimeoutError as error:
            raise InstallError("TOO_SLOW", f"it took more than {INSTALL_SECONDS:.0f} s") from error
        except (OSError, ValueError, LookupError, TypeError, RecadoError) as error:  # lock, report, disk
            raise InstallError("FAILED", f"{type(error).__name__}: {error}") from error
        finally:
            await asyncio.shield(asyncio.to_thread(self._tidy_one, home))

    def _keep(self, record: InstalledServer, plan: Plan) -> InstalledServer:
        """Write the record, from which moment it is installed, and return it."""
        home = home_of(self.data_dir, record.name)
        with self._files:
            before = read_record(self.data_dir, record.name)
            is_edited = self._is_edited(record.name, before)
            replaced = (plan.replaces, plan.subject)  # itself after a kill
            if (before.subject if before else "") not in replaced or (is_edited and not plan.edited):
                raise InstallError("CHANGED", f"{record.name} was changed meanwhile; ask again")
            if before is None:
                (home / "pins.json").unlink(missing_ok=True)
            elif plan.replaces:
                record = replace(record, updated_from=before.version)
            write_private(home / approved.RECORD, approved.to_json(record))
            add_server(self._config, record.name, entry_of(record))
        return record

    def _remove(self, record: InstalledServer) -> None:
        with self._files:
            remove_server(self._config, record.name)
            Secrets(self.data_dir).forget(record.name)
            home = home_of(self.data_dir, record.name)
            (home / approved.RECORD).unlink(missing_ok=True)
            _remove_rest(home)

    def _is_edited(self, name: str, record: InstalledServer | None) -> bool:
        """Tell whether the operator edited its entry; raise `FileError` if the file cannot be read."""
        entry = read_mapping(self._config).get(name)
        return record is not None and entry is not None and not approved.agrees(record, entry)

    def _tidy_one(self, home: Path) -> None:
        try:
            with self._files:
                record = read_record(self.data_dir, home.name)
                for place in (*home.glob("package-*"), *home.glob(f"{_SCRATCH}*"), *home.glob(".package-*")):
                    if record is None or place.name != Path(record.folder).name:
                        remove_tree(place)
                if not any(home.iterdir()):
                    home.rmdir()
        except (OSError, RecadoError) as error:  # the others are tidied, and the app starts
            log.warning("%s is half installed or half removed: %s", home, error)


def _remove_rest(home: Path) -> None:
    """Remove what is left of a server; what it writes while it ends stays until the next start."""
    try:
        remove_tree(home)
    except OSError as error:
        log.warning("something of a removed server stays: %s", error)


def _make_folders(*folders: Path) -> None:
    """Make its own folders, and those of the workspace that it may write where the person named new ones."""
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _record(plan: Plan, approval: Approval, folder: Path, program: tuple[str, ...]) -> InstalledServer:
    try:
        sha256 = digest(folder) if program else ""
    except PackageTreeError as error:
        raise InstallError("NOT_INSTALLABLE", str(error)) from error
    return InstalledServer(
        name=plan.name,
        registry_id=plan.registry_id,
        version=plan.version,
        subject=plan.subject,
        approved_by=approval.approved_by,
        trusted=approval.trusted,
        installed_at=time.time(),
        folder=str(folder) if program else "",
        sha256=sha256,
        command=program[0] if program else "",
        args=(*program[1:], *plan.args),
        env=plan.env,
        url=plan.url,
        headers=plan.headers,
        grants=plan.grants,
        audience=plan.audience,
        description=plan.description,
    )
