"""Access over HTTP: the administrator's token, and requests from this machine's own user."""

import asyncio
import errno
import fcntl
import hmac
import ipaddress
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import RecadoError

if TYPE_CHECKING:
    from starlette.requests import Request

_FORWARDED = re.compile(
    r"forwarded|x-(original-)?forwarded.*|x-original-host|x-envoy-.*|via|x-real-ip"
    r"|(x-|true-|x-cluster-|fastly-)?client-ip|cf-.*|fly-.*"
)
GUESS_SECONDS = 0.5
MOST_GUESSES = 10
LOCK_SECONDS = 10.0
_PORT = re.compile(r":[0-9]{0,5}\Z")


class AdminToken:
    """The token that opens /console, /mcp and /docs: configured, or made once and kept in a file."""

    def __init__(self, data_dir: Path, configured: str = "") -> None:
        self._path = data_dir / "admin_token"
        self._configured = configured
        self._guesses = asyncio.Lock()
        self._waiting = 0

    def value(self) -> str:
        """Return the token, which the first call makes. Raise OSError if its file cannot be written."""
        if self._configured:
            return self._configured
        try:
            return self._path.read_text("ascii").strip() or self.renew()
        except FileNotFoundError:
            return self.renew()

    def renew(self) -> str:
        """Replace the token by a new one and return it. Raise RecadoError if it is configured."""
        if self._configured:
            raise RecadoError("ADMIN_TOKEN is set in the environment: change it there and restart")
        token = secrets.token_urlsafe(32)
        write_private(self._path, token + "\n")
        return token

    async def opens(self, request: "Request", other: str = "") -> bool:
        """Return True if the request carries the token, or the `other` one, as a bearer, never in its URL."""
        return await self.accepts(bearer_of(request), other)

    async def accepts(self, given: str, other: str = "") -> bool:
        """Return True for the token or the `other` one. Wrong ones are answered in turn, two in a second.

        Where `MOST_GUESSES` wait, one more is refused at once: what waits holds a connection.
        """
        if same_token(given, other) or same_token(given, self.value()):
            return True
        if given and self._waiting < MOST_GUESSES:
            self._waiting += 1
            try:
                async with self._guesses:
                    await asyncio.sleep(GUESS_SECONDS)
            finally:
                self._waiting -= 1
        return False


def bearer_of(request: "Request") -> str:
    """Return the bearer token of a request, "" if it has none."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def same_token(given: str, expected: str) -> bool:
    """Compare two tokens in constant time; an empty one equals none."""
    return bool(given and expected) and hmac.compare_digest(given.encode(), expected.encode())


def is_local(request: "Request", *, published: bool = False) -> bool:
    """Return True if a request comes from this machine's own user.

    The peer is loopback (or, if `published`, came through a published container port), Host is a loopback
    name, and no proxy or tunnel forwarded the request.
    """
    if _is_forwarded(request):
        return False
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or not _is_loopback_name(hosts[0]):  # of two hosts a proxy may have checked the other
        return False
    return published or (request.client is not None and _is_loopback(request.client.host))


def is_from_a_page(request: "Request") -> bool:
    """Return True if a browser's page may have made a request that only programs make.

    Such a page is of another site, or gave this machine a name of its own (DNS rebinding). The Host of a
    proxy or of another machine may be anything.
    """
    origin = request.headers.get("origin")
    if origin is not None and not _is_loopback_name(origin.partition("://")[2]):
        return True
    if request.client is None or not _is_loopback(request.client.host):
        return False
    return not _is_forwarded(request) and not _is_loopback_name(request.headers.get("host", ""))


def page_headers(policy: str) -> dict[str, str]:
    """Return the headers of a page that loads nothing from elsewhere; `policy` are more of its directives."""
    own = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'"
    return {
        "Content-Security-Policy": f"{own}; frame-ancestors 'none'; {policy}",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read, whole or not at all; it survives a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder, so that a power cut leaves them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder that several programs change for a moment; make the folder around it.

    Blocks. Raises TimeoutError if another program holds it for more than ten seconds.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_SECONDS
    with open(lock, "wb"):
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError(errno.ETIMEDOUT, "another program holds its lock") from None
                time.sleep(0.02)
        yield


def _is_forwarded(request: "Request") -> bool:
    # some proxies write header names with underscores, as programs behind them read them
    return any(_FORWARDED.fullmatch(header.replace("_", "-")) for header in request.headers)


def _is_loopback_name(host: str) -> bool:
    name = _PORT.sub("", host).strip("[]").lower()
    return name == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
