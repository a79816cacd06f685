"""The secrets of each server, in a file of its own that this account alone reads."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import RecadoError
from app.mcp.mapping_file import locked
from app.mcp.pins import NAME_RULE, is_server_name
from app.messages import JSON
from app.security import write_private
from app.settings import is_own
from app.skills.folder import read_regular

log = logging.getLogger(__name__)

MAX_SECRETS = 64
LONGEST_SECRET = 16 * 1024

_VARIABLE = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


class SecretError(RecadoError):
    """A secret that cannot be kept or read; the text never holds its value."""


class Secrets:
    """DATA_DIR/secrets/<server>: names and values. They resolve for that server and for no other."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "secrets"

    def get(self, server: str) -> dict[str, str]:
        """Return its secrets by name; none, and a line in the log, if the file cannot be read."""
        try:
            return self._read(server)
        except SecretError as error:
            log.warning("%s", error)
            return {}

    def put(self, server: str, name: str, value: str) -> None:
        """Keep a secret, in place of one of that name. Raises SecretError for what cannot be one."""
        _check(name, value)
        with self._writing(server) as path:
            kept = {**self._read(server), name: value}
            if len(kept) > MAX_SECRETS:
                raise SecretError(f"{server} has {MAX_SECRETS} secrets already")
            self._write(path, kept)

    def forget(self, server: str, name: str = "") -> bool:
        """Remove one secret, or all of a server; return False if there was none."""
        if not self._path(server).exists():
            return False
        with self._writing(server) as path:
            kept = self._read(server) if name else {}
            found = not name or kept.pop(name, None) is not None
            if kept:
                self._write(path, kept)
            else:
                path.unlink(missing_ok=True)
        return found

    def _read(self, server: str) -> dict[str, str]:
        path = self._path(server)
        try:
            found: JSON = json.loads(read_regular(path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SecretError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError):  # its text would show the content
            raise SecretError(f"{path} is not JSON; remove it and give the secrets again") from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise SecretError(f"{path} is no object of texts; remove it and give the secrets again")
        return found

    @contextmanager
    def _writing(self, server: str) -> Iterator[Path]:
        path = self._path(server)
        try:
            with locked(path):
                yield path
        except OSError as error:
            raise SecretError(
                f"{path} cannot be written: {error.strerror}; run this as the user of the server"
            ) from error

    def _write(self, path: Path, kept: dict[str, str]) -> None:
        self.folder.chmod(0o700)
        write_private(path, json.dumps(kept))

    def _path(self, server: str) -> Path:
        if not is_server_name(server):
            raise SecretError(f"{server[:60]!r} is no server's name: {NAME_RULE}")
        return self.folder / server


def _check(name: str, value: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise SecretError(f"{name[:80]!r} is no variable's name: letters, digits and _, not a digit first")
    if is_own(name):
        raise SecretError(
            f"{name} is a setting of this assistant, which no server is given: write "
            f"${{SERVER_{name.upper()}}} in the server's entry and give that one"
        )
    if not value:
        raise SecretError(f"the value of {name} is empty")
    if len(value) > LONGEST_SECRET or "\0" in value:
        raise SecretError(f"the value of {name} has at most {LONGEST_SECRET} characters, none of them NUL")
