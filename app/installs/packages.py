"""Packages of npm and PyPI: installed with a lock, without running anything of theirs, and what starts them.

npm leaves out install scripts, and every dependency that is no package of the registry: preparing such a one
runs code even so. pip takes wheels alone, and may start no program (pip_alone.py).
"""

import asyncio
import importlib.util
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import distributions
from pathlib import Path

from app.errors import RecadoError
from app.installs.entries import FORMS, Package
from app.installs.pipeline import InstallCode, InstallError
from app.messages import JSON
from app.processes.host import Command, HostedProcess
from app.settings import is_own
from app.skills.installed import remove_tree
from app.skills.scripts import READY, Script, packages_folder
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible
from app.tools.paths import entries

OLDER_SDK = "mcp<2"  # many servers ask for any version of the SDK, and die under the second
HEAP_MB = 768  # of JavaScript: below the sandbox's limit, so that node says what is wrong

_PIP_ALONE = Path(__file__).absolute().with_name("pip_alone.py")
_SCRIPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_FILES = 60_000  # of a package with what it needs
MAX_BYTES = 400 * MEGABYTE
LOOK_SECONDS = 1.0  # how often the free space is checked
_LAST_LINES, _LONGEST = 6, 600
_PASSED = re.compile("|".join(FORMS["passed"]), re.IGNORECASE)
_CODES: dict[InstallCode, re.Pattern[str]] = {
    code: re.compile("|".join(patterns)) for code, patterns in FORMS["errors"].items()
}
_PASSWORD = re.compile(r"://[^/\s@]+@")
_NOISE = re.compile("|".join(FORMS["noise"]), re.IGNORECASE)
INSTALL_SECONDS = 180.0


@asynccontextmanager
async def installing() -> AsyncIterator[asyncio.Timeout]:
    """Give an install INSTALL_SECONDS, and turn what goes wrong in it into `InstallError`."""
    try:
        async with asyncio.timeout(INSTALL_SECONDS) as limit:
            yield limit
    except InstallError:
        raise
    except TimeoutError as error:
        raise InstallError("TOO_SLOW", f"it took more than {INSTALL_SECONDS:.0f} s") from error
    except (OSError, ValueError, LookupError, TypeError, RecadoError) as error:  # lock, report, disk
        raise InstallError("FAILED", f"{type(error).__name__}: {error}") from error


def require_programs(kind: str) -> None:
    """Raise `InstallError` if this machine lacks what installs or starts packages of that kind."""
    needed = {"node": shutil.which("node"), "npm": shutil.which("npm")} if kind == "npm" else {"pip": _pip()}
    for program, place in needed.items():
        if place is None:
            why = f"{program} is not installed on the machine of this assistant"
            raise InstallError("NO_INSTALLER", why, program)


async def install_package(package: Package, folder: Path, downloads: "Downloads") -> tuple[str, ...]:
    """Install a package and its dependencies into `folder`, and return what starts it.

    One of PyPI gets the older SDK where its requirements allow that. Raises `InstallError`.
    """
    if package.kind != "npm":
        wanted = [f"{package.identifier}=={package.version}"]
        await install_requirements(wanted, folder, downloads, preferred=OLDER_SDK)
        return _pypi_program(package, folder)
    described = {"private": True, "dependencies": {package.identifier: package.version}}
    (folder / "package.json").write_text(json.dumps(described), encoding="utf-8")
    npm = shutil.which("npm") or "npm"
    await downloads.run([npm, "install", *FORMS["npm_flags"], "--prefix", str(folder)])
    lock = json.loads((folder / "package-lock.json").read_bytes())
    for path, one in lock["packages"].items():  # each from a registry with a hash, or inside one that is
        is_hashed = one.get("inBundle") or one.get("integrity")
        is_fetched = one.get("resolved", "https:").startswith("http")
        if path and (one.get("link") or not is_hashed or not is_fetched):
            raise InstallError("NOT_INSTALLABLE", f"{path} is no package of the registry")
    return _npm_program(package, folder)


async def install_requirements(
    wanted: Sequence[str], folder: Path, downloads: "Downloads", preferred: str = ""
) -> None:
    """Make an environment in `folder` with wheels of these requirements, and the lock of them.

    The versions are as `preferred`, a requirement, where they can be. Raises `InstallError`.
    """
    await downloads.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)])
    with_pip = folder / "pip"
    with_pip.mkdir()
    (with_pip / "pip").symlink_to(_pip() or "")
    pip = [f"{folder}/bin/python", "-I", str(_PIP_ALONE), str(with_pip), "install", *FORMS["pip_flags"]]
    lock, report = folder / "requirements.lock", folder / "report.json"
    constraints = folder / "constraints.txt"
    try:
        resolve = [*pip, "--dry-run", "--report", str(report), "--constraint", str(constraints)]
        constraints.write_text(preferred, encoding="utf-8")
        try:
            await downloads.run([*resolve, "--", *wanted])
        except InstallError as error:
            if not preferred or error.code not in ("NOT_FOUND", "FAILED"):
                raise
            constraints.write_text("", encoding="utf-8")
            await downloads.run([*resolve, "--", *wanted])
        lock.write_text(_pip_lock(json.loads(report.read_bytes())), encoding="utf-8")
        report.unlink()
        constraints.unlink()
        await downloads.run([*pip, "--require-hashes", "--no-deps", "--requirement", str(lock)])
    finally:
        (with_pip / "pip").unlink()
        with_pip.rmdir()


def _npm_program(package: Package, folder: Path) -> tuple[str, ...]:
    """Return node and the file that `npx` would start. Raises `InstallError` if there is none."""
    home = folder / "node_modules" / package.identifier
    try:
        described = json.loads((home / "package.json").read_bytes())
        name, version, programs = described["name"], described["version"], described.get("bin")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_program("its package.json cannot be read") from error
    if (name, version) != (package.identifier, package.version):
        raise InstallError("CHANGED", f"what came calls itself {name} {version}, not what was approved")
    own_name = package.identifier.rpartition("/")[2]
    programs = programs if isinstance(programs, dict) else {own_name: programs}
    files = {str(file) for file in programs.values()}
    file = next(iter(files)) if len(files) == 1 else programs.get(own_name)  # as npx chooses
    program = (home / str(file)).resolve()
    if not file or not program.is_relative_to(home.resolve()) or not program.is_file():
        raise _no_program("it has no program, several of other names, or one that lies outside of it")
    return ("node", f"--max-old-space-size={HEAP_MB}", str(home / str(file)))


def _pypi_program(package: Package, folder: Path) -> tuple[str, ...]:
    """Return the environment's Python and the script that `uvx` would start. Raises `InstallError`."""
    place = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    found = {_normal(one.metadata["Name"]): one for one in distributions(path=[str(place)])}
    installed = found.get(_normal(package.identifier))
    if installed is None or installed.version != package.version:
        raise InstallError("CHANGED", "what came is not what was approved")
    scripts = {entry.name for entry in installed.entry_points if entry.group == "console_scripts"}
    plain = sorted(script for script in scripts if _SCRIPT.fullmatch(script))
    same = [script for script in plain if _normal(script) == _normal(package.identifier)]
    chosen = (same or plain)[:1] if same or len(plain) == 1 else []
    if not chosen or not (folder / "bin" / chosen[0]).is_file():
        raise _no_program("it has no program, or several of other names")
    return (f"{folder}/bin/python", str(folder / "bin" / chosen[0]))


class Downloads:
    """Runs npm and pip, which fill `folder`: with little of our environment, within limits, ended whole.

    `scratch` is a folder for what they need meanwhile; `disk` keeps its least free space.
    """

    def __init__(self, folder: Path, scratch: Path, disk: Disk, cache: Path) -> None:
        self._folder = folder
        self._scratch = scratch
        self._disk = disk
        # What the operator set up for npm and pip (addresses, certificates, caches) and nothing else.
        kept = {name: text for name, text in os.environ.items() if _PASSED.fullmatch(name)}
        self._environment = {"npm_config_cache": str(cache / "npm")}
        self._environment |= {name: text for name, text in kept.items() if not is_own(name)}
        self._environment |= {"TMPDIR": str(scratch), "CI": "1"}

    async def run(self, command: Sequence[str]) -> None:
        """Run a program; a cancel ends it whole. Raises `InstallError` if it fails or needs too much."""
        process = await HostedProcess.start(Command(command, self._environment, self._scratch))
        try:
            while process.status is None:
                await asyncio.to_thread(self._check_room)
                await process.wait(LOOK_SECONDS)
        finally:
            await process.end()
        if process.status:
            raise _error(str(process.printed))
        await asyncio.to_thread(self._check_room)

    def _check_room(self) -> None:
        free = self._disk.free()
        if free < self._disk.least:
            raise InstallError(
                "NO_SPACE",
                f"only {free // MEGABYTE} MB are free on the disk, and FREE_SPACE_MB says that "
                f"{self._disk.least // MEGABYTE} stay free",
            )
        for folder in (self._folder, self._scratch):
            with suppress(FileNotFoundError):  # it is being worked on
                _check_size(folder)


def _check_size(folder: Path) -> None:
    size = 0
    files = (one for one in entries(folder, recursive=True) if not one.is_dir(follow_symlinks=False))
    for number, file in enumerate(files, 1):
        size += file.stat(follow_symlinks=False).st_size
        if number > MAX_FILES or size > MAX_BYTES:
            most = f"{MAX_BYTES // MEGABYTE} MiB in {MAX_FILES} files"
            raise InstallError("TOO_LARGE", f"with what it needs the package has more than {most}")


def packages_wanted(scripts: Sequence[Script], data_dir: Path) -> list[tuple[str, ...]]:
    """Return the sets of packages that scripts name and that are not installed yet. Blocks."""
    named = dict.fromkeys(script.packages for script in scripts if script.packages)
    return [one for one in named if not (packages_folder(data_dir, one) / READY).exists()]


async def install_script_packages(packages: Sequence[str], data_dir: Path, disk: Disk) -> None:
    """Install packages into their folder in DATA_DIR/skill-packages. Raises `InstallError`.

    What a kill leaves is no environment: it lacks the file READY.
    """
    require_programs("pypi")
    folder = packages_folder(data_dir, packages)
    await asyncio.to_thread(_clear, folder)
    scratch = folder.with_name(f".staging-{secrets.token_hex(4)}")
    downloads = Downloads(folder, scratch, disk, folder.parent.with_name(".cache"))
    scratch.mkdir(mode=0o700)
    try:
        async with installing():
            await install_requirements(packages, folder, downloads)
            (folder / READY).touch()
    finally:
        await asyncio.to_thread(_clear, scratch)


def _pip_lock(report: JSON) -> str:
    """Write a line for each package with the hash of its wheel, from pip's report.

    https://pip.pypa.io/en/stable/reference/installation-report/
    """
    lines = []
    for one in report["install"]:
        described, came = one["metadata"], one["download_info"]
        sha256 = (came.get("archive_info") or {}).get("hashes", {}).get("sha256")
        if not sha256 or one.get("is_direct") or not came["url"].partition("#")[0].endswith(".whl"):
            raise InstallError("NOT_INSTALLABLE", f"{described['name']} is no wheel of the package index")
        lines.append(f"{described['name']}=={described['version']} --hash=sha256:{sha256}\n")
    return "".join(sorted(lines))


def _pip() -> Path | None:
    """Return the folder of the pip beside this server."""
    found = importlib.util.find_spec("pip")
    return Path(found.origin).parent if found and found.origin else None


def _normal(name: str) -> str:
    """Write a name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _no_program(why: str) -> InstallError:
    return InstallError("NOT_INSTALLABLE", f"nothing of the package can be started: {why}")


def _error(said: str) -> InstallError:
    """Make an error of what npm or pip said last, without the passwords of addresses."""
    lines = [line for line in said.splitlines() if line.strip() and not _NOISE.search(line)]
    text = _PASSWORD.sub("://…@", visible(" · ".join(lines[-_LAST_LINES:])))[-_LONGEST:]
    code: InstallCode = next((code for code, pattern in _CODES.items() if pattern.search(said)), "FAILED")
    return InstallError(code, text or "it ended without a word")


def _clear(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        remove_tree(folder)
