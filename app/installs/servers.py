"""Servers of the registry: planned, and after a yes installed into a folder of their own.

A plan is made of a registry entry and of values for its named variables; no other word of a command can be
supplied. Its `subject` is the hash of all of it, which an owner's yes is for.

DATA_DIR/mcp/<name>/ holds the package in a folder of its own, the record of what was approved, and the
server's data. After a kill an install or a removal can be done again; `tidy` removes what was half done.
"""

import asyncio
import logging
import re
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from app.errors import RecadoError
from app.i18n import lazy
from app.installs.entries import Entry, Package, Reason, Remote, Variable
from app.installs.packages import Downloads, install_package, installing, require_programs
from app.installs.pipeline import Approval, InstallError, InstallPipeline, keep_plan, kept_plan
from app.mcp import approved
from app.mcp.approved import InstalledServer
from app.mcp.configuration import Secrets, add_server, read_mapping, remove_server
from app.mcp.definitions import NAME_RULE, is_server_name
from app.processes.sandbox import Grants, Sandbox
from app.routing.tool_catalog import ToolCatalog
from app.security import write_private
from app.settings import Settings
from app.skills.findings import find
from app.skills.installed import remove_tree
from app.skills.loader import SkillLoader
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible
from app.tools.paths import PathTraversalError, validate_path

log = logging.getLogger(__name__)

_LONGEST_VALUE = 2000
_NAME_LENGTH = 32
_COMMON = frozenset({"mcp", "server", "servers", "model", "context", "protocol", "the", "for", "official"})
# Words of package names whose servers are of no use without starting other programs.
_RUNS_PROGRAMS = frozenset({"git", "shell", "terminal", "ffmpeg"})
_FOLDER = re.compile(r"dir|folder|root|workspace|repo|vault|project|allowed", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?", re.ASCII)
_KEPT = re.compile(r"memory|stor(?:e|age)|data|db|sqlite|cache", re.IGNORECASE)
_SCRATCH = ".staging-"


def make_plan(
    entry: Entry,
    name: str,
    *,
    home: Path,
    workspace: Path,
    values: Mapping[str, str],
    folder: str = "",
    network: bool | None = None,
    replaces: str = "",
    edited: bool = False,
) -> InstalledServer:
    """Plan the server `name` with its folder `home`; `values` are by the keys of its variables.

    `folder`, in the workspace, is for the variable that needs one and has no value; "." is all of it.
    It gets the network as `network` says; if that is None, unless its publisher says that it needs none.
    Raises `InstallError` if it cannot be installed, or needs a value that was not given.
    """
    choice = entry.choice
    if choice is None:
        reason = entry.reason or Reason("OTHER_KIND")
        raise InstallError(reason.code, f"{entry.name} cannot be installed", reason.detail)
    for key, value in values.items():
        _check_value(entry.inputs.get(key), key, value)
    filler = _Filler(home, workspace, values, folder)
    texts = {"description": entry.description}
    texts |= {one.name: one.description for one in entry.inputs.values()}
    plan = InstalledServer(
        name=name,
        registry_id=entry.name,
        version=entry.version,
        description=entry.description,
        findings=find({place: text.encode() for place, text in texts.items() if text.strip()}),
        replaces=replaces,
        edited=edited,
    )
    if isinstance(choice, Remote):
        plan = replace(plan, url=choice.url, headers=tuple(filler.settings(choice.headers)))
    else:
        plan = replace(
            plan,
            version=choice.version,
            kind=choice.kind,
            identifier=choice.identifier,
            args=tuple(filler.arguments(choice)),
            env=tuple(filler.settings(choice.environment)),
        )
        grants = Grants(
            network=not entry.offline if network is None else network,
            programs=bool(_RUNS_PROGRAMS & set(_words(choice.identifier))),
            folders_write=tuple(sorted(filler.granted)),
        )
        plan = replace(plan, grants=grants)
    return replace(plan, audience="owners" if plan.secrets or plan.grants.folders_write else "members")


def short_name(entry: Entry, taken: Collection[str]) -> str:
    """Choose a name that is not taken: the words of its registry name beside "mcp" and "server"."""
    words = [word for word in _words(entry.own_name) if word not in _COMMON]
    words = words or [word for word in _words(entry.namespace)[-1:] if word not in _COMMON]
    name = "-".join(words)[:_NAME_LENGTH].strip("-")
    name = name if is_server_name(name) else "server"
    lower = {one.lower() for one in taken}
    numbered = (f"{name}-{number}" for number in range(2, len(lower) + 3))
    return next(one for one in (name, *numbered) if one.lower() not in lower)


class _Filler:
    """Fills in given values, and collects the folders they grant."""

    def __init__(self, home: Path, workspace: Path, values: Mapping[str, str], folder: str) -> None:
        self._home = home
        self._workspace = workspace
        self._values = values
        self._folder = folder
        self.granted: set[Path] = set()

    def settings(self, variables: Iterable[Variable]) -> Iterator[tuple[str, str]]:
        """Yield the variables that have a value, or a reference that is filled in once one is given."""
        for variable in variables:
            value = variable.value or self._now(variable)
            if not value and (variable.secret or variable.required):
                value = f"${{{variable.key}}}" if variable.required else f"${{{variable.key}:-}}"
            if value:
                yield variable.name, value

    def arguments(self, package: Package) -> Iterator[str]:
        """Yield the arguments of the command. Raises `InstallError` for one that lacks its value."""
        for variable in package.arguments:
            value = variable.value or self._now(variable)
            if variable.required and not value:
                raise InstallError("NEEDS_VALUE", f"it needs a value for {variable.key}", variable.key)
            if variable.format == "boolean" and variable.flag:
                yield from [variable.flag] if value == "true" else []
            elif value:
                yield from (variable.flag, value) if variable.flag else (value,)

    def _now(self, variable: Variable) -> str:
        """Return the value that is known by now; "" for none, and for a secret."""
        if variable.secret:
            return ""
        given = self._values.get(variable.key, "")
        return self._path(variable, given) if variable.format == "filepath" else given or variable.default

    def _path(self, variable: Variable, given: str) -> str:
        """Return a path that it may write: in the workspace if a person named one, else in its own folder.

        Raises `InstallError` for a folder that it needs and that nobody named.
        """
        default = Path(variable.default)
        if not given:
            if variable.default and not default.is_absolute() and not {"..", "~"} & set(default.parts):
                return str(self._home / default)
            if not (variable.required and _FOLDER.search(variable.key)):
                is_kept = variable.required or _KEPT.search(variable.key)
                return str(self._home / variable.key.lower()) if is_kept else ""
            if not self._folder:
                raise InstallError("NEEDS_FOLDER", f"it needs a folder for {variable.key}")
        try:
            place = validate_path(given or self._folder, self._workspace)
        except PathTraversalError as error:
            raise InstallError("BAD_VALUE", f"{variable.key}: {error}", variable.key) from error
        is_file = place.suffix and not place.is_dir()
        self.granted.add(place.parent if is_file else place)
        return str(place)


def _check_value(variable: Variable | None, key: str, value: str) -> None:
    """Raise `InstallError` for a value that does not fit its variable, or could be more than a value."""
    fault = ""
    if variable is None:
        fault = f"it has no variable {visible(key)[:80]}"
    elif variable.secret:
        fault = f"{key} is a secret, which is given in the terminal or the console alone"
    elif not 0 < len(value) <= _LONGEST_VALUE or value != visible(value) or "${" in value:
        fault = f"{key} is a text of 1 to {_LONGEST_VALUE} characters, all of them visible"
    elif value.startswith("-") and not _NUMBER.fullmatch(value):
        fault = f"{key} does not begin with a hyphen: it would be read as an option"
    if fault:
        raise InstallError("BAD_VALUE", fault, key)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


class ServerInstaller(InstallPipeline[InstalledServer, InstalledServer]):
    """Installs servers of the registry; none gets the name of one of the `skills`."""

    def __init__(
        self, settings: Settings, sandbox: Sandbox, skills: ToolCatalog | SkillLoader | None = None
    ) -> None:
        super().__init__(settings.data_dir)
        self.config_path = settings.mcp_config_path
        self._workspace = settings.workspace_dir.resolve()
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
    ) -> InstalledServer:
        """Plan an install and keep the plan, so that a yes can come later; see `make_plan`.

        A server that is installed already keeps its name.
        """
        return await asyncio.to_thread(self._plan, entry, name, values or {}, folder, network)

    def load(self, subject: str) -> InstalledServer:
        return replace(approved.from_json(kept_plan(self.data_dir, subject)), subject=subject)

    def installed(self, name: str) -> InstalledServer:
        record = approved.read_record(self.data_dir, name)
        if record is None:
            why = lazy("no server named {name} was installed from the registry", name=name)
            raise InstallError("UNKNOWN", why)
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
    ) -> InstalledServer:
        before = next((one for one in approved.records(self.data_dir) if one.registry_id == entry.name), None)
        name = before.name if before is not None else self._free_name(entry, name)
        if before is not None and not folder:
            granted = (one for one in before.grants.folders_write if one.is_relative_to(self._workspace))
            folder = next((str(one.relative_to(self._workspace)) for one in granted), "")
        plan = make_plan(
            entry,
            name,
            home=approved.home_of(self.data_dir, name) / approved.HOME,
            workspace=self._workspace,
            values=values,
            folder=folder,
            network=network,
            replaces=before.subject if before else "",
            edited=self._is_edited(name, before),
        )
        self._check_possible(plan)
        return replace(plan, subject=keep_plan(self.data_dir, approved.to_json(plan)))

    def _free_name(self, entry: Entry, name: str) -> str:
        """Return the name that was asked for, or a short one. Raise `InstallError` if it cannot be used."""
        skills = self._skills.skill_names if self._skills is not None else ()
        taken = {*read_mapping(self.config_path), *skills}
        if name in taken:
            raise InstallError("BAD_VALUE", f"there is a server or a skill {name} already: choose another")
        if name and not is_server_name(name):
            raise InstallError("BAD_VALUE", f"{visible(name)[:60]} is no name for a server: {NAME_RULE}")
        left_secrets = {path.name for path in Secrets(self.data_dir).folder.glob("*")}
        return name or short_name(entry, taken | left_secrets)

    def _check_possible(self, plan: InstalledServer) -> None:
        if not plan.kind:
            return
        require_programs(plan.kind)
        if refusal := self._sandbox.refusal():
            raise InstallError("NO_SANDBOX", f"code of others runs in the sandbox alone, and {refusal}")

    def _find_committed(self, approval: Approval) -> InstalledServer | None:
        known = approved.records(self.data_dir)
        record = next((one for one in known if one.subject == approval.subject), None)
        return record if record and record.name in read_mapping(self.config_path) else None

    async def _commit(self, candidate: InstalledServer, approval: Approval) -> InstalledServer:
        home, token = approved.home_of(self.data_dir, candidate.name), secrets.token_hex(4)
        folder, scratch = home / f"package-{token}", home / f"{_SCRATCH}{token}"
        downloads = Downloads(folder, scratch, self._disk, self.data_dir.absolute() / ".cache")
        places = (home, folder, scratch, *candidate.grants.folders_write)  # the last may be new too
        program: tuple[str, ...] = ()
        try:
            async with installing() as limit:
                await asyncio.to_thread(_make_folders, *places)
                if candidate.kind:
                    await asyncio.to_thread(self._check_possible, candidate)
                    package = Package(candidate.kind, candidate.identifier, candidate.version)
                    program = await install_package(package, folder, downloads)
                record = await asyncio.to_thread(_record, candidate, approval, folder, program)
                limit.reschedule(None)  # from here on it is finished
                return await asyncio.shield(asyncio.to_thread(self._keep, record))
        finally:
            await asyncio.shield(asyncio.to_thread(self._tidy_one, home))

    def _keep(self, record: InstalledServer) -> InstalledServer:
        """Write the record, from which moment it is installed, and return it."""
        home = approved.home_of(self.data_dir, record.name)
        with self._files:
            before = approved.read_record(self.data_dir, record.name)
            is_edited = self._is_edited(record.name, before)
            replaced = (record.replaces, record.subject)  # itself after a kill
            if (before.subject if before else "") not in replaced or (is_edited and not record.edited):
                raise InstallError("CHANGED", f"{record.name} was changed meanwhile; ask again")
            if before is None:
                (home / "pins.json").unlink(missing_ok=True)
            elif record.replaces:
                record = replace(record, updated_from=before.version)
            write_private(home / approved.RECORD, approved.to_json(record))
            add_server(self.config_path, record.name, approved.entry_of(record))
        return record

    def _remove(self, record: InstalledServer) -> None:
        with self._files:
            remove_server(self.config_path, record.name)
            Secrets(self.data_dir).forget(record.name)
            home = approved.home_of(self.data_dir, record.name)
            (home / approved.RECORD).unlink(missing_ok=True)
            _remove_rest(home)

    def _is_edited(self, name: str, record: InstalledServer | None) -> bool:
        """Tell whether the operator edited its entry; raise `FileError` if the file cannot be read."""
        entry = read_mapping(self.config_path).get(name)
        return record is not None and entry is not None and not approved.agrees(record, entry)

    def _tidy_one(self, home: Path) -> None:
        try:
            with self._files:
                record = approved.read_record(self.data_dir, home.name)
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
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _record(
    plan: InstalledServer, approval: Approval, folder: Path, program: tuple[str, ...]
) -> InstalledServer:
    record = replace(
        plan, approved_by=approval.approved_by, trusted=approval.trusted, installed_at=time.time()
    )
    if not program:
        return record
    try:
        sha256 = approved.digest(folder)
    except ValueError as error:
        raise InstallError("NOT_INSTALLABLE", str(error)) from error
    args = (*program[1:], *plan.args)
    return replace(record, folder=str(folder), sha256=sha256, command=program[0], args=args)
