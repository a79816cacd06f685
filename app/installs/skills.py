"""Skills from an https address: fetched, examined, and after a yes moved byte for byte to their place."""

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.http.address import Address, FetchError
from app.http.transport import Transport
from app.i18n import lazy
from app.installs.cards import SkillCard, examine
from app.installs.packages import install_script_packages, packages_wanted
from app.installs.pipeline import (
    MAX_PACKED,
    Approval,
    InstallError,
    InstallPipeline,
    Quarantined,
    QuarantineError,
    discard,
    keep,
    kept,
    unpack,
)
from app.mcp.configuration import forget_unused_secrets
from app.routing.phrase_book import FILE
from app.security import write_private
from app.settings import Settings
from app.skills.installed import RECORD, Installed, TreeError, current, read_record, remove_tree, write_tree
from app.skills.manifest import is_standard_name
from app.skills.skill import RELEASE_SKILLS, bundled_names
from app.store.disk_space import MEGABYTE, Disk

FETCH_SECONDS = 30.0

_GITHUB = re.compile(
    r"https://(?:www\.)?github\.com/(?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?"
    r"(?:/(?:tree|blob)/(?P<ref>[^/?]+)(?P<path>/[^?]*)?)?/?(?:\?.*)?"
)
_ADDRESS = re.compile(
    r"(?<![@A-Za-z0-9./-])(?:https?://)?[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/[^\s<>\"]*)?", re.IGNORECASE
)
_AROUND = ".,;:!?)]}'\"*_~`»”’"


class SkillInstaller(InstallPipeline[SkillCard, Installed]):
    """Installs skills; the names of folders in SKILLS_DIR and of bundled skills are never taken.

    What is asked for is an https address; behind a `#` it may name the folder in an archive.
    """

    def __init__(self, settings: Settings, transport: Transport, release: Path = RELEASE_SKILLS) -> None:
        super().__init__(settings.data_dir)
        self._disk = Disk(settings.data_dir, settings.free_space_mb * MEGABYTE)
        self._transport = transport
        self._skills_dir = settings.skills_dir
        self._release = release

    async def propose(self, request: str) -> SkillCard:
        """Fetch the skill at an address into the quarantine.

        Raises `FetchError`, `QuarantineError` for what no card can show, and `InstallError` for a taken name.
        """
        source, fetched_from, folder = _places(request)
        fetched = await self._transport.fetch(fetched_from, limit_bytes=MAX_PACKED, seconds=FETCH_SECONDS)
        if fetched.status != 200:
            raise FetchError("BAD_STATUS", f"the site answers with status {fetched.status}")
        asked, came = Address.parse(fetched_from), Address.parse(fetched.url)
        sent_on = "" if asked.origin == came.origin else urlsplit(came.url).netloc
        return await asyncio.to_thread(self._keep, fetched.body, source, folder, sent_on)

    def load(self, subject: str) -> SkillCard:
        card = examine(self.data_dir, subject.partition("/")[0])
        before = self._current(card.name)
        if before is None:
            return card
        place = (before.source, before.sent_on)
        came_from = tuple(filter(None, place)) if place != (card.source, card.sent_on) else ()
        return dataclasses.replace(card, came_from=came_from, replaces=before.sha256)

    def installed(self, name: str) -> Installed:
        found = self._current(name)
        if found is None:
            why = lazy("no skill named {name} was installed from an address", name=name)
            raise InstallError("UNKNOWN", why)
        return found

    def removal_subject(self, record: Installed) -> str:
        return record.sha256

    def _find_committed(self, approval: Approval) -> Installed | None:
        sha256, name, _ = approval.subject.split("/")
        asked = (sha256, _places(approval.address)[0], approval.trusted)
        before = self._current(name)
        if before is None or (before.sha256, before.source, before.trusted) != asked:
            return None
        try:
            before.check()
        except TreeError:  # it was changed on the disk: written anew it is refused
            return None
        return before

    async def _commit(self, candidate: SkillCard, approval: Approval) -> Installed:
        wanted = await asyncio.to_thread(packages_wanted, candidate.scripts, self.data_dir)
        for packages in wanted:
            await install_script_packages(packages, self.data_dir, self._disk)
        return await asyncio.to_thread(self._install, candidate, approval)

    def _install(self, candidate: SkillCard, approval: Approval) -> Installed:
        sha256, name, replaces = approval.subject.split("/")
        tree = kept(self.data_dir, sha256)
        if (tree.source, tree.name) != (_places(approval.address)[0], name):
            raise QuarantineError("what was looked at came from another address or had another name")
        if candidate.replaces not in (replaces, sha256):
            raise InstallError("UNAVAILABLE", f"{name} was changed meanwhile; ask again")
        self._check_free(name)
        installed = write_skill(self.data_dir, tree, candidate, approval)
        forget_unused_secrets(self.data_dir)
        return installed

    def _remove(self, record: Installed) -> None:
        remove_skill(self.data_dir, record.name)

    def _keep(self, data: bytes, source: str, folder: str, sent_on: str) -> SkillCard:
        tree = unpack(data, source, folder, sent_on)
        self._check_free(tree.name)
        try:
            keep(self.data_dir, tree)
        except (OSError, TreeError) as error:
            raise InstallError("UNAVAILABLE", f"{tree.name} could not be kept: {error}") from error
        try:
            return self.load(tree.sha256)
        except QuarantineError:
            discard(self.data_dir, tree.sha256)
            raise

    def _current(self, name: str) -> Installed | None:
        return next((one for one in current(self.data_dir) if one.name == name), None)

    def _check_free(self, name: str) -> None:
        own = self._skills_dir.iterdir() if self._skills_dir.is_dir() else ()
        if name in bundled_names(self._release) | {folder.name for folder in own}:
            fault = f"there is a skill {name} that came another way; it is not replaced"
            raise InstallError("UNAVAILABLE", fault)


def write_skill(data_dir: Path, tree: Quarantined, card: SkillCard, approval: Approval) -> Installed:
    """Write the tree to DATA_DIR/skills/<name>/<sha256>/ and make it the current version of that name.

    `card` is the one of these bytes. A crash leaves the version before or this one, whole. Raises
    `InstallError`.
    """
    installed = Installed(
        name=tree.name,
        folder=_home(data_dir, tree.name) / tree.sha256,
        sha256=tree.sha256,
        source=tree.source,
        installed_at=time.time(),
        approved_by=approval.approved_by,
        trusted=approval.trusted,
        audience=card.audience,
        hosts=card.hosts,
        sent_on=tree.sent_on,
    )
    try:
        write_tree(tree.files, installed.folder)
        record = {**dataclasses.asdict(installed), "folder": installed.folder.name}
        write_private(installed.folder.parent / RECORD, json.dumps(record))
    except (OSError, TreeError) as error:
        raise InstallError("UNAVAILABLE", f"{tree.name} could not be written: {error}") from error
    return installed


def remove_skill(data_dir: Path, name: str) -> bool:
    """Remove a skill with all versions and its servers' secrets; return False if there is none."""
    home = _home(data_dir, name)
    try:
        (home / RECORD).unlink()
    except FileNotFoundError:
        return False
    remove_tree(home)
    forget_unused_secrets(data_dir)
    return True


def tidy_skills(data_dir: Path) -> None:
    """Remove versions that no record names: at the start, when no call can be running in one."""
    for home in (data_dir / "skills").glob("*"):
        if not home.is_dir() or (home / "SKILL.md").exists():  # the operator's, if SKILLS_DIR is this folder
            continue
        if not (home / RECORD).exists():
            remove_tree(home)
        elif installed := read_record(home / RECORD):
            for path in home.glob("*"):
                if path.name in (RECORD, FILE, installed.sha256):
                    continue
                if path.is_dir():
                    remove_tree(path)
                else:  # a kill left it
                    path.unlink()


def is_written_in(address: str, texts: Iterable[str]) -> bool:
    """Tell whether one of the texts holds this very address, with or without its https://.

    The folder behind a `#` chooses what is fetched: it must stand there too.
    """
    wanted = _normal(address)
    for match in (match for text in texts for match in _ADDRESS.finditer(text)):
        found = match[0] if "://" in match[0] else f"https://{match[0]}"
        if wanted is not None and wanted in (_normal(found), _normal(found.rstrip(_AROUND))):
            return True
    return False


def _home(data_dir: Path, name: str) -> Path:
    if not is_standard_name(name):
        raise InstallError(
            "UNAVAILABLE", f"{name!r} is no skill's name: lowercase letters, digits and single hyphens"
        )
    return data_dir / "skills" / name


def _normal(address: str) -> tuple[str, str] | None:
    """Return an address and the folder behind its `#` in the one way to write them; None if it is none."""
    try:
        return Address.parse(address).url, address.partition("#")[2].rstrip(_AROUND)
    except FetchError:
        return None


def _places(address: str) -> tuple[str, str, str]:
    """Return the normalised address with its folder, the address to fetch, and the folder wanted there.

    A page of GitHub stands for the archive of its repository. Raises `FetchError` for what is not https.
    """
    parsed = Address.parse(address)
    if parsed.scheme != "https":
        raise FetchError("BAD_ADDRESS", "skills are fetched from https addresses only")
    folder = unquote(urlsplit(address).fragment).strip("/")
    source = f"{parsed.url}#{folder}" if folder else parsed.url
    page = _GITHUB.fullmatch(parsed.url)
    if page is None:
        return source, parsed.url, folder
    path = unquote(page["path"] or "").strip("/").removesuffix("SKILL.md").strip("/")
    archive = f"https://codeload.github.com/{page['repository']}/zip/{page['ref'] or 'HEAD'}"
    return source, archive, folder or path
