"""The files of servers: the `mcpServers` mapping, and for each server the secrets that it alone is given."""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter

from app.errors import RecadoError
from app.mcp.definitions import NAME_RULE, is_server_name
from app.messages import JSON
from app.security import locked, write_private
from app.settings import is_own
from app.skills.folder import read_regular
from app.tools.plain import sendable

log = logging.getLogger(__name__)

LARGEST = 1024 * 1024
LONGEST_SECRET = 16 * 1024

_VARIABLE = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_KEYS = ("mcpServers", "servers")


class MappingError(RecadoError):
    """A file that cannot be used; the text names it, the place in it and what to do."""


def read_mapping(path: Path) -> Mapping[str, JSON]:
    """Return the entries of a file by name, as they are written; none without a file. Raises MappingError."""
    return _read(path)[1]


def add_server(path: Path, name: str, entry: Mapping[str, JSON]) -> None:
    """Write an entry, in place of the one of that name. Raises MappingError."""
    with _changing(path) as servers:
        servers[name] = dict(entry)


def remove_server(path: Path, name: str) -> None:
    """Take an entry out if it is there. Raises MappingError."""
    if name in read_mapping(path):
        with _changing(path) as servers:
            servers.pop(name, None)


def edit_server(path: Path, name: str, **fields: JSON) -> None:
    """Set these fields of an entry, and take out those that are None. Raises MappingError."""
    with _changing(path) as servers:
        entry = servers.get(name)
        if not isinstance(entry, dict):
            raise MappingError(f"{path} has no server {name}")
        entry.update(fields)
        for field in [field for field, value in fields.items() if value is None]:
            del entry[field]


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, JSON]]:
    """Hand out the servers of a file and write them afterwards. Raises MappingError."""
    with _writing(path, MappingError):
        whole, servers = _read(path)
        yield servers
        text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
        write_private(Path(os.path.realpath(path)), text)  # a link to it stays a link


@contextmanager
def _writing(path: Path, fault: type[RecadoError]) -> Iterator[None]:
    """Hold the lock of a file that is written; raise a `fault` if it cannot be."""
    try:
        with locked(path):
            yield
    except OSError as error:
        raise fault(
            f"{path} cannot be written: {error.strerror or error}; run this as the user of the server"
        ) from error


def _read(path: Path) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Return a whole file, and the servers in it."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        content = b"{}"
    except OSError as error:
        raise MappingError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > LARGEST:
        raise MappingError(f"{path} has more than {LARGEST // 1024**2} MiB, too much for a list of servers")
    try:
        whole = sendable(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise MappingError(f"{path} is not JSON: {error}") from None
    if not isinstance(whole, dict):
        raise MappingError(f'{path} is no JSON object; write {{"mcpServers": {{…}}}}')
    key = next((key for key in _KEYS if key in whole), "")
    if not key and whole:
        raise MappingError(f'{path} has no "mcpServers"; write {{"mcpServers": {{NAME: {{…}}}}}}')
    servers = whole.setdefault(key or _KEYS[0], {})
    if not isinstance(servers, dict):
        raise MappingError(f'"{key}" in {path} is no object; write {{"mcpServers": {{NAME: {{…}}}}}}')
    return whole, servers


_SECRETS = TypeAdapter(dict[str, str])


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
        path = self._path(server)
        with _writing(path, SecretError):
            kept = {**self._read(server), name: value}
            self.folder.chmod(0o700)
            write_private(path, json.dumps(kept))

    def forget(self, server: str) -> None:
        """Remove all secrets of a server."""
        path = self._path(server)
        if path.exists():
            with _writing(path, SecretError):
                path.unlink(missing_ok=True)

    def _read(self, server: str) -> dict[str, str]:
        path = self._path(server)
        try:
            return _SECRETS.validate_json(read_regular(path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SecretError(f"{path} cannot be read: {error.strerror or error}") from error
        except ValueError:  # its text would show the content
            raise SecretError(f"{path} is no object of texts; remove it and give the secrets again") from None

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
