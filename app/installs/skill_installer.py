"""Installing a skill from an address: fetched, looked at, and after a yes moved byte for byte."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.errors import RecadoError
from app.http.address import Address
from app.http.errors import FetchError
from app.http.transport import Transport
from app.installs.quarantine import (
    MAX_PACKED,
    Quarantined,
    QuarantineError,
    discard,
    keep,
    kept,
    unpack,
)
from app.installs.skill_cards import Card, Difference, difference
from app.installs.skill_examining import examine
from app.skills.file_tree import TreeError
from app.skills.installed import Installed, InstallError, check_free, current, install, remove
from app.skills.skill import RELEASE_SKILLS, bundled_names

FETCH_SECONDS = 30.0
_LONGEST = 1000
"""Characters that are kept of an address that a site sent us on to."""

_GITHUB = re.compile(
    r"https://(?:www\.)?github\.com/(?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?"
    r"(?:/(?:tree|blob)/(?P<ref>[^/?]+)(?P<path>/[^?]*)?)?/?(?:\?.*)?"
)
_ADDRESS = re.compile(
    r"(?<![@A-Za-z0-9./-])(?:https?://)?[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/[^\s<>\"]*)?", re.IGNORECASE
)
_AROUND = ".,;:!?)]}'\"*_~`»”’"


class UnknownSkill(RecadoError):
    """No skill of that name was installed from elsewhere."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A skill that was fetched and is kept apart; `change` where it would replace an earlier one, whose
    hash `replaces` is."""

    card: Card
    change: Difference | None = None
    replaces: str = ""

    @property
    def subject(self) -> str:
        """All that a yes is about: these bytes, under this name, in place of that version or of none."""
        return f"{self.card.sha256}/{self.card.name}/{self.replaces}"


class Installer:
    """Skills from elsewhere: DATA_DIR/quarantine while somebody is asked, DATA_DIR/skills afterwards.

    The names of the folders in `skills_dir` and of the release's skills are never taken.
    """

    def __init__(
        self, transport: Transport, data_dir: Path, skills_dir: Path, release: Path = RELEASE_SKILLS
    ) -> None:
        self._transport = transport
        self._data_dir = data_dir
        self._skills_dir = skills_dir
        self._release = release

    async def preview(self, address: str) -> Preview:
        """Fetches the skill at an https address and keeps it apart. Nothing of it runs.

        After a `#` the address may name the folder in an archive. Raises FetchError, QuarantineError (also
        for a skill that no card can show), and InstallError where its name is taken.
        """
        source, fetched_from, folder = _places(address)
        fetched = await self._transport.get(fetched_from, limit_bytes=MAX_PACKED, seconds=FETCH_SECONDS)
        if fetched.status != 200:
            raise FetchError("BAD_STATUS", f"the site answers with status {fetched.status}")
        sent_on = _sent_on(fetched_from, fetched.url)
        return await asyncio.to_thread(self._keep, fetched.body, source, folder, sent_on)

    async def install(
        self, subject: str, address: str, *, approved_by: str, trusted: bool = False
    ) -> Installed:
        """Installs exactly what was looked at; once more is the same as once.

        `subject` is the preview's; `approved_by` a person's id, or who else said yes. Raises QuarantineError
        where it is gone, came from another address or had another name, InstallError where it cannot be
        written or would replace another version than was shown.
        """
        return await asyncio.to_thread(self._install, subject, _places(address)[0], approved_by, trusted)

    async def remove(self, name: str, sha256: str) -> None:
        """Removes a skill that came from elsewhere, in this version of it.

        Raises UnknownSkill, and InstallError where it is another version by now.
        """
        if (await self.installed(name)).sha256 != sha256:
            raise InstallError(f"{name} was updated meanwhile; ask again")
        await asyncio.to_thread(remove, self._data_dir, name)

    async def installed(self, name: str) -> Installed:
        """The skill of that name that came from elsewhere. Raises UnknownSkill."""
        for one in await asyncio.to_thread(current, self._data_dir):
            if one.name == name:
                return one
        raise UnknownSkill(f"no skill named {name} was installed from an address")

    def look(self, subject: str) -> Preview:
        """What is kept of a preview. Blocks. Raises QuarantineError where it is gone."""
        return self._preview(kept(self._data_dir, subject.split("/")[0]))

    def _keep(self, data: bytes, source: str, folder: str, sent_on: str) -> Preview:
        tree = unpack(data, source, folder, sent_on)
        check_free(tree.name, self._reserved())
        preview = self._preview(tree)
        try:
            keep(self._data_dir, tree)
        except (OSError, TreeError) as error:
            raise InstallError(f"{tree.name} could not be kept: {error}") from error
        return preview

    def _preview(self, tree: Quarantined) -> Preview:
        made = examine(tree)
        before = self._current(tree.name)
        if before is None:
            return Preview(made)
        try:
            before.check()
            return Preview(made, difference(examine(before.tree()), made), before.sha256)
        except (TreeError, QuarantineError):  # it is no longer what was approved: all of it is new
            return Preview(made, replaces=before.sha256)

    def _current(self, name: str) -> Installed | None:
        return next((one for one in current(self._data_dir) if one.name == name), None)

    def _install(self, subject: str, source: str, approved_by: str, trusted: bool) -> Installed:
        sha256, name, replaces = subject.split("/")
        before = self._current(name)
        try:
            tree = kept(self._data_dir, sha256)
        except QuarantineError:
            asked = (sha256, source, trusted)
            if before is not None and (before.sha256, before.source, before.trusted) == asked:
                return before
            raise
        if tree.source != source:
            raise QuarantineError("what was looked at came from another address; fetch it again")
        if tree.name != name:
            raise QuarantineError("what was looked at had another name; fetch it again")
        if (before.sha256 if before is not None else "") not in (replaces, sha256):
            raise InstallError(f"{name} was changed meanwhile; ask again")
        installed = install(
            self._data_dir,
            tree,
            examine(tree),
            approved_by=approved_by,
            at=time.time(),
            trusted=trusted,
            reserved=self._reserved(),
        )
        discard(self._data_dir, sha256)
        return installed

    def _reserved(self) -> frozenset[str]:
        own = self._skills_dir.iterdir() if self._skills_dir.is_dir() else ()
        return bundled_names(self._release) | {folder.name for folder in own}


def is_written_in(address: str, texts: Iterable[str]) -> bool:
    """Whether somebody wrote this very address in these texts, with or without its https://.

    The folder behind a `#` chooses what is fetched: it must be theirs too.
    """
    try:
        wanted = Address.parse(address).url
    except FetchError:
        return False
    folder = address.partition("#")[2]
    return any(
        _is_address(found, wanted) and found.partition("#")[2].rstrip(_AROUND) == folder.rstrip(_AROUND)
        for text in texts
        for found in _written(text)
    )


def _written(text: str) -> Iterator[str]:
    for match in _ADDRESS.finditer(text):
        found = match[0] if "://" in match[0] else f"https://{match[0]}"
        yield found
        yield found.rstrip(_AROUND)


def _is_address(text: str, wanted: str) -> bool:
    try:
        return Address.parse(text).url == wanted
    except FetchError:
        return False


def _places(address: str) -> tuple[str, str, str]:
    """Address and folder in one spelling, the address that is fetched for it, and the folder wanted there.

    A page of GitHub stands for the archive of its repository. Raises FetchError for what is not https.
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


def _sent_on(asked: str, came: str) -> str:
    """The address that the bytes came from, where that is on another host than was asked; else "".

    Without its query: at release pages that is a key which holds for minutes.
    """
    first, last = Address.parse(asked), Address.parse(came)
    if (first.host, first.port) == (last.host, last.port):
        return ""
    plain, query, _ = last.url.partition("?")
    return f"{plain[:_LONGEST]}{'?…' if query else ''}"
