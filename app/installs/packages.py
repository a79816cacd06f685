"""Packages of npm and PyPI: installed with a lock, without running anything of theirs, and what starts them.

npm leaves out install scripts, and every dependency that is no package of the registry: preparing such a one
runs code even so. pip takes wheels alone, and may start no program (pip_alone.py).
"""

import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from app.installs.downloading import Downloads
from app.installs.registry_entries import Package
from app.installs.server_errors import InstallError
from app.messages import JSON

LOCKS = {"npm": "package-lock.json", "pypi": "requirements.lock"}
"""Where the versions and hashes of all that was installed stand."""
OLDER_SDK = "mcp<2"
HEAP_MB = 768
"""Of JavaScript: below the sandbox's limit, so that node says what is wrong."""

_PIP_ALONE = Path(__file__).absolute().with_name("pip_alone.py")
_NO_GIT = "/nonexistent/git"
_NPM_FLAGS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--no-bin-links", "--omit=dev"),
    *("--loglevel=error", f"--git={_NO_GIT}"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
    *(f"--allow-{kind}=none" for kind in ("git", "remote", "file", "directory")),
)
_PIP_FLAGS = ("--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--ignore-installed")
_REPORT = "report.json"
_SCRIPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FIRST_LINE = 200


def missing(kind: str) -> str:
    """What is not there to install or start a package of that kind; "" where all is."""
    if kind == "npm":
        return next((program for program in ("node", "npm") if shutil.which(program) is None), "")
    return "" if importlib.util.find_spec("pip") else "pip"


async def install_npm(package: Package, folder: Path, downloads: Downloads) -> None:
    """The package and what it needs into `folder`; by the lock, where there is one. Raises InstallError."""
    lock = folder / LOCKS["npm"]
    wanted = {"private": True, "dependencies": {package.identifier: package.version}}
    (folder / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    verb = "ci" if lock.exists() else "install"
    await downloads.run([shutil.which("npm") or "npm", verb, *_NPM_FLAGS, "--prefix", str(folder)])
    _check_npm_lock(json.loads(lock.read_bytes()))


async def install_pypi(package: Package, folder: Path, downloads: Downloads, *also: str) -> None:
    """An environment in `folder` with the package and what it needs; by the lock, where there is one.

    `also` are requirements beside its own. Raises InstallError.
    """
    await downloads.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)])
    with_pip = folder / "pip"
    with_pip.mkdir()
    (with_pip / "pip").symlink_to(_pip())
    pip = [str(_python(folder)), "-I", str(_PIP_ALONE), str(with_pip), "install", *_PIP_FLAGS]
    lock = folder / LOCKS["pypi"]
    try:
        if not lock.exists():
            report = folder / _REPORT
            wanted = [f"{package.identifier}=={package.version}", *also]
            await downloads.run([*pip, "--dry-run", "--report", str(report), "--", *wanted])
            lock.write_text(_pip_lock(json.loads(report.read_bytes()), package), encoding="utf-8")
            report.unlink()
        await downloads.run([*pip, "--require-hashes", "--no-deps", "--requirement", str(lock)])
    finally:
        (with_pip / "pip").unlink()
        with_pip.rmdir()


def npm_program(package: Package, folder: Path) -> tuple[str, ...]:
    """node and the file that `npx` would start. Raises InstallError where there is none."""
    home = folder / "node_modules" / package.identifier
    try:
        described = json.loads((home / "package.json").read_bytes())
        name, version, programs = described["name"], described["version"], described.get("bin")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_program("its package.json cannot be read") from error
    if (name, version) != (package.identifier, package.version):
        raise InstallError("CHANGED", f"what came calls itself {name} {version}, not what was approved")
    file = _chosen_file(programs, package.identifier.rpartition("/")[2])
    program = (home / file).resolve()
    if not program.is_relative_to(home.resolve()) or not program.is_file():
        raise _no_program("its program lies outside of it or is not there")
    with program.open("rb") as opened:
        first = opened.read(_FIRST_LINE).partition(b"\n")[0]
    if first.startswith(b"\x7fELF") or (first.startswith(b"#!") and b"node" not in first):
        raise _no_program("its program is not one for node")
    return ("node", f"--max-old-space-size={HEAP_MB}", str(home / file))


def pypi_program(package: Package, folder: Path) -> tuple[str, ...]:
    """The environment's Python and the script that `uvx` would start. Raises InstallError."""
    installed = _installed(folder).get(_normal(package.identifier))
    if installed is None or installed.version != package.version:
        raise InstallError("CHANGED", "what came is not what was approved")
    scripts = {entry.name for entry in installed.entry_points if entry.group == "console_scripts"}
    plain = sorted(script for script in scripts if _SCRIPT.fullmatch(script))
    same = [script for script in plain if _normal(script) == _normal(package.identifier)]
    chosen = (same or plain)[:1] if same or len(plain) == 1 else []
    if not chosen or not (folder / "bin" / chosen[0]).is_file():
        raise _no_program(
            f"it has {len(plain)} programs, and none of its own name" if plain else "it has no program"
        )
    return (str(_python(folder)), str(folder / "bin" / chosen[0]))


def has_new_sdk(folder: Path) -> bool:
    """Whether the MCP SDK that came with a Python package is of version 2 or later."""
    sdk = _installed(folder).get("mcp")
    return sdk is not None and int(sdk.version.partition(".")[0]) >= 2


def _chosen_file(programs: JSON, own: str) -> str:
    """The one program, or the one of the package's own name, as npx chooses."""
    if isinstance(programs, str):
        return programs
    if not isinstance(programs, dict) or not programs:
        raise _no_program("it has no program")
    files = {str(file) for file in programs.values()}
    file = next(iter(files)) if len(files) == 1 else programs.get(own)
    if not isinstance(file, str):
        raise _no_program(f"it has {len(files)} programs, and none of its own name")
    return file


def _check_npm_lock(lock: JSON) -> None:
    """Raises InstallError unless each package came from a registry with a hash, or inside of one that did."""
    for path, one in lock["packages"].items():
        is_hashed = one.get("inBundle") or one.get("integrity")
        if path and (
            one.get("link") or not is_hashed or not one.get("resolved", "https:").startswith("http")
        ):
            raise InstallError("NOT_INSTALLABLE", f"{path} is no package of the registry")


def _pip_lock(report: JSON, package: Package) -> str:
    """A line for each package with the hash of its wheel, from pip's report.

    https://pip.pypa.io/en/stable/reference/installation-report/
    """
    lines, hashes = [], []
    for one in report["install"]:
        described, came = one["metadata"], one["download_info"]
        sha256 = (came.get("archive_info") or {}).get("hashes", {}).get("sha256")
        if not sha256 or one.get("is_direct") or not came["url"].partition("#")[0].endswith(".whl"):
            raise InstallError("NOT_INSTALLABLE", f"{described['name']} is no wheel of the package index")
        lines.append(f"{described['name']}=={described['version']} --hash=sha256:{sha256}\n")
        hashes.append(sha256)
    if package.sha256 and package.sha256 not in hashes:
        raise InstallError("CHANGED", "what the package index has is not the file that the entry names")
    return "".join(sorted(lines))


def _installed(folder: Path) -> Mapping[str, Distribution]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    place = folder / "lib" / version / "site-packages"
    return {_normal(one.metadata["Name"]): one for one in distributions(path=[str(place)])}


def _pip() -> Path:
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise InstallError("NO_PIP", "pip is not installed beside this server")
    return Path(found.origin).parent


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _normal(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _no_program(why: str) -> InstallError:
    return InstallError("NO_PROGRAM", f"nothing of the package can be started: {why}")
