"""The sandbox of installed code: bubblewrap's namespaces, and the limits of `confine`."""

import json
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from app.processes.confine import FOLDER, MACHINES, MEGABYTE, PASSED
from app.settings import Settings

_APP = Path(__file__).absolute().parents[1]
_CONFINE = Path(__file__).absolute().with_name("confine.py")
_ESCAPES = Path(__file__).absolute().with_name("sandbox_probe.py")
_TRIAL_SECONDS = 2
_TRIED_FILES = 50
_NOBODY = "65534"
_TMP = "/tmp"  # noqa: S108 (the one inside)
_TMP_BYTES = 64 * MEGABYTE
# Not /usr as a whole: what people put into /usr/src and /usr/local/etc is theirs.
_SYSTEM = (
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/share"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"),
)
_LINKED = ("/bin", "/lib", "/lib32", "/lib64")
_RED_HATS = ("/etc/pki/ca-trust", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs")  # keys lie beside them
_FOR_THE_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs", *_RED_HATS)
# Where memory runs out, what runs in the sandbox ends before the server; inside, /proc cannot be written.
_ENDS_FIRST = """
import os, sys
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
except OSError:
    pass
os.execv(sys.argv[1], sys.argv[1:])
"""
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": _TMP,
    "TMPDIR": _TMP,
    "LANG": "C.UTF-8",
    # Each thread of the C library reserves 64 MB otherwise, which the limit of memory counts.
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True, slots=True)
class Grants:
    """The rights that an owner allowed beyond the code's own folder; none by default.

    `network` is the whole network of the machine, its services included: no name of a host is checked.
    `programs`: to start other programs. The folders are there under their own paths.
    """

    network: bool = False
    programs: bool = False
    folders_read: tuple[Path, ...] = ()
    folders_write: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A server to run; `folder` is shown read-only, `home` can be written and is where it starts."""

    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    folder: str = ""
    home: str = ""
    grants: Grants = field(default_factory=Grants)


class Sandbox:
    """Puts command lines into a sandbox, after a trial of it."""

    def __init__(self, settings: Settings) -> None:
        self.off = settings.sandbox == "off"
        self._workspace = settings.workspace_dir.resolve()
        places = [settings.data_dir, settings.mcp_config_path, Path(".env")]
        if isinstance(settings.database, Path):
            places.append(settings.database)
        self._private = tuple(place.resolve() for place in places)
        self._own = tuple(place.resolve() for place in settings.own_places)
        self._fault: str | None = None  # None before a trial
        self._trying = threading.Lock()

    def probe(self) -> str:
        """Try the sandbox once, for up to 2 s; return why it does not work here, "" where it does.

        A trial that ran out of time is repeated at the next call.
        """
        if self.off:
            return "it is turned off by SANDBOX=off"
        with self._trying:
            if self._fault is None:
                try:
                    self._fault = self._try()
                except subprocess.TimeoutExpired:
                    return f"a trial of bubblewrap took over {_TRIAL_SECONDS} s"
            return self._fault

    def refusal(self) -> str:
        """Say why installed code must not run here; "" where it may. Blocks as `probe` does."""
        return "" if self.off else self.probe()

    def command(self, folder: Path, grants: Grants = Grants()) -> list[str]:
        """Return what stands before a command line to run it in `folder`, seeing little else.

        Open file descriptors are kept. Killing the first process ends all. Empty where the operator turned
        the sandbox off. Raises ValueError for a folder that would open private files of the operator.
        """
        if self.off:
            return []
        own = folder.absolute()
        self._check_own(own)
        environment = [word for item in _environment().items() for word in ("--setenv", *item)]
        return self._prefix(grants, (_APP, own), ["--clearenv", *environment, "--chdir", str(own)])

    def server_command(self, program: Program) -> tuple[list[str], dict[str, str]]:
        """Return the command line that runs a server in the sandbox, and its whole environment.

        Secrets are in the environment, never in the command line. Start it from the thread of the event loop:
        it ends with the thread that started it. Where the operator turned the sandbox off it is the plain
        command, to be started in `home`, else in `folder`. Makes `home`. Blocks as `probe` does. Raises
        ValueError with the reason where the server must not run.
        """
        if refusal := self.refusal():
            raise ValueError(f"a server from elsewhere runs in the sandbox alone, and {refusal}")
        folder, home = (Path(place).absolute() if place else None for place in (program.folder, program.home))
        for place in (folder, home):
            if place:
                self._check_own(place)
        if home:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = {**_environment(), "HOME": str(home or _TMP), **dict(program.env)}
        command = shutil.which(program.command) or program.command
        if self.off:
            ours = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": tempfile.gettempdir()}
            return [command, *program.args], environment | ours
        places = [_CONFINE, *([folder] if folder else [])]
        shown = [*places, *_unseen(command, places)]
        written = ["--bind", str(home), str(home)] if home else []
        options = [*written, "--chdir", str(home or folder or _TMP)]
        prefix = self._prefix(program.grants, shown, options, "server")
        return [*prefix, command, *program.args], _passed(environment)

    def script_command(
        self, start: Path, shown: Iterable[Path], grants: Grants
    ) -> tuple[list[str], dict[str, str]]:
        """Return what stands before a script's command line to run it in `start`, and its whole environment.

        `shown` folders can be read; `start` is among the granted ones. Raises ValueError for a folder that
        would open private files of the operator.
        """
        places = [place.absolute() for place in shown]
        for place in places:
            self._check_own(place)
        prefix = self._prefix(grants, (_CONFINE, *places), ["--chdir", str(start.absolute())], "server")
        return prefix, _passed(_environment())

    def _prefix(
        self, grants: Grants, shown: Iterable[Path], options: Iterable[str], *rights: str
    ) -> list[str]:
        """Return bubblewrap with what the grants allow and the `shown` places, and `confine` inside it."""
        bubblewrap = shutil.which("bwrap") or "/usr/bin/bwrap"
        first = [sys.executable, "-I", "-S", "-c", _ENDS_FIRST]
        granted = [name for name in ("network", "programs") if getattr(grants, name)]
        granted += [self._checked(one) for one in (*grants.folders_read, *grants.folders_write)]
        own = [sys.executable, "-I", "-S", str(_CONFINE), *granted, *rights, "--"]
        namespaces = ["--unshare-all", "--unshare-user", *(["--share-net"] if grants.network else [])]
        # As process 1, because bubblewrap's own would show the environment that it was started with in /proc.
        namespaces += ["--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        namespaces += ["--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox"]
        bound = [word for path in map(str, shown) for word in ("--ro-bind", path, path)]
        mounts = [*_mounts(grants), *self._hidden(grants), *bound]
        return [*first, bubblewrap, *namespaces, *mounts, *options, "--remount-ro", "/", "--", *own]

    def _check_own(self, folder: Path) -> None:
        if opened := [str(place) for place in self._private if place.is_relative_to(folder.resolve())]:
            raise ValueError(f"{folder} holds {opened[0]}, which is not for code from elsewhere")

    def _hidden(self, grants: Grants) -> Iterator[str]:
        """Hide the members' files in the workspace, which no owner can grant."""
        for granted in (*grants.folders_read, *grants.folders_write):
            people = self._workspace / "people"
            if self._workspace.is_relative_to(real := granted.resolve()) and self._workspace.is_dir():
                people.mkdir(exist_ok=True)
                place = str(granted.absolute() / people.relative_to(real))
                yield from ("--tmpfs", place, "--remount-ro", place)

    def _checked(self, granted: Path) -> str:
        """Return the folder as `confine` checks it once it is mounted, since its path may change."""
        real, identity = _opened(granted)
        if granted.absolute().is_relative_to(self._workspace) and not real.is_relative_to(self._workspace):
            raise ValueError(f"{granted} is a link out of the workspace")  # another server may have made it
        ours = (*self._own, Path(sys.prefix))
        for place in (*self._private, *ours):
            if place.is_relative_to(real):
                raise ValueError(f"{real} holds {place}, which is not for code from elsewhere")
        in_workspace = real.is_relative_to(self._workspace)
        for place in ours:
            is_around = place != self._workspace and self._workspace.is_relative_to(place)
            if real.is_relative_to(place) and not (is_around and in_workspace):
                raise ValueError(f"{real} lies in {place}, of which only {self._workspace} can be granted")
        return f"{FOLDER}{identity}:{granted.absolute()}"

    def _try(self) -> str:
        if sys.platform != "linux":
            return "bubblewrap exists on Linux alone"
        if platform.machine() not in MACHINES:
            known = " and ".join(MACHINES)
            return f"the filter of system calls is made for {known}, not {platform.machine()}"
        if shutil.which("bwrap") is None:
            return "bubblewrap (the program bwrap) is not installed"
        shown = [Path(root).resolve() for root in (*_seen(), str(_APP))]
        for place in self._private:
            if any(place.is_relative_to(root) for root in shown):
                return f"{place} lies among the programs that the sandbox shows: move it"
        return self._attempt_escapes()

    def _attempt_escapes(self) -> str:
        mark = secrets.token_hex(16)
        with (
            tempfile.TemporaryDirectory(prefix="recado-sandbox-") as outside,
            socket.create_server(("127.0.0.1", 0)) as network,
            socket.socket(socket.AF_UNIX) as local,
        ):
            local.bind(f"\0{mark}")
            local.listen()
            secret = Path(outside, "secret")
            secret.write_text(mark)
            folder = Path(outside, "folder")
            folder.mkdir()
            trial = [sys.executable, "-I", "-S", str(_ESCAPES), mark, str(network.getsockname()[1])]
            done = subprocess.run(  # noqa: S603 (our own trial)
                [*self.command(folder), *trial, str(secret), *self._private_files()],
                env={"MARK": mark},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
            )
        if done.returncode:
            last = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
            return f"bubblewrap does not work here: {last}"
        reached = json.loads(done.stdout)
        return f"a trial reached {', '.join(reached)}" if reached else ""

    def _private_files(self) -> Iterator[str]:
        for place in self._private:
            files = place.iterdir() if place.is_dir() else [place]
            yield from (str(file) for file in islice(files, _TRIED_FILES) if file.is_file())


def _environment() -> dict[str, str]:
    return _ENVIRONMENT | ({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {})


def _opened(folder: Path) -> tuple[Path, str]:
    """Return the real path of a folder and its identity, both of one opened folder."""
    try:
        handle = os.open(folder, getattr(os, "O_PATH", os.O_RDONLY))
    except OSError:  # bubblewrap says so
        return folder.resolve(), "0:0"
    try:
        found = os.fstat(handle)
        place = Path(f"/proc/self/fd/{handle}")
        real = place.readlink() if place.is_symlink() else folder.resolve()  # there is no sandbox without it
        return real, f"{found.st_dev}:{found.st_ino}"
    finally:
        os.close(handle)


def _passed(environment: Mapping[str, str]) -> dict[str, str]:
    return {f"{PASSED}{name}": text for name, text in environment.items()}


def _mounts(grants: Grants) -> Iterator[str]:
    """Yield the mounts, a later one above earlier ones; writable ones are limited in size, or granted."""
    yield from ("--size", str(_TMP_BYTES), "--tmpfs", _TMP)  # first: the interpreter may lie in it
    for name in _LINKED:
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        else:
            yield from ("--ro-bind-try", name, name)
    for path in (*_seen(), *(_FOR_THE_NETWORK if grants.network else ())):
        yield from ("--ro-bind-try", path, path)
    # Read-only, because files of /proc/sys belong to user 0, whom a server that runs as root still is inside.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    # Whoever maps it has memory that no limit counts; what is bound in its place cannot be opened.
    yield from ("--ro-bind", "/dev/null", "/dev/zero", "--remount-ro", "/dev")
    for path in grants.folders_read:
        yield from ("--ro-bind", str(path.resolve()), str(path.absolute()))
    for path in grants.folders_write:
        yield from ("--bind", str(path.resolve()), str(path.absolute()))


def _seen() -> tuple[str, ...]:
    """Return what every program sees: the system, and parts of Python's prefixes, which may be a home."""
    prefixes = {sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1])}
    parts = ("bin", "lib", "lib64", "pyvenv.cfg")
    return (*_SYSTEM, *(os.path.join(prefix, part) for prefix in sorted(prefixes) for part in parts))


def _unseen(command: str, places: Iterable[Path]) -> Iterator[Path]:
    """Yield a program outside of those paths, as in a home folder, and the target of its links."""
    seen = [*map(Path, _seen()), *places]
    for path in dict.fromkeys((Path(command), Path(command).resolve())):
        if os.path.isabs(command) and not any(path.is_relative_to(one) for one in seen):
            yield path
