"""The Python packages that scripts of skills name: installed once, with hashes, for all that name them."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from app.installs.errors import InstallError
from app.installs.packages import Downloads, install_requirements, missing
from app.skills.file_tree import remove_tree
from app.skills.scripts import READY, Script, packages_folder
from app.store.disk_space import Disk

INSTALL_SECONDS = 180.0


def packages_wanted(scripts: Sequence[Script], data_dir: Path) -> list[tuple[str, ...]]:
    """Return the sets of packages that scripts name and that are not installed yet. Blocks."""
    named = dict.fromkeys(script.packages for script in scripts if script.packages)
    return [one for one in named if not (packages_folder(data_dir, one) / READY).exists()]


async def install_script_packages(packages: Sequence[str], data_dir: Path, disk: Disk) -> None:
    """Install packages into their folder in DATA_DIR/skill-packages. Raises `InstallError`.

    What a kill leaves is no environment: it lacks the file READY.
    """
    if program := missing("pypi"):
        raise InstallError("NO_PIP", f"{program} is not installed on the machine of this assistant")
    folder = packages_folder(data_dir, packages)
    await asyncio.to_thread(_clear, folder)
    staging = folder.with_name(f".staging-{secrets.token_hex(4)}")
    cache = folder.parent.with_name(".cache")
    staging.mkdir(mode=0o700)
    try:
        async with asyncio.timeout(INSTALL_SECONDS):
            await install_requirements(packages, folder, Downloads(staging, disk, cache))
        (folder / READY).touch()
    except TimeoutError as error:
        raise InstallError("TOO_SLOW", f"it took more than {INSTALL_SECONDS:.0f} s") from error
    except (OSError, ValueError, LookupError) as error:
        raise InstallError("FAILED", str(error)) from error
    finally:
        await asyncio.to_thread(_clear, staging)


def _clear(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        remove_tree(folder)
