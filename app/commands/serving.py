"""`recado serve`: start the server once it is known that it can start."""

import asyncio
import socket
import sys
from pathlib import Path

from app.commands.configuration import check_graph_address, model_line, zone_hint
from app.commands.records import make_data_folder, open_database
from app.errors import RecadoError
from app.settings import Settings


def start(settings: Settings) -> int:
    """Serve until a signal stops it; return the exit status.

    Raise RecadoError if the port, the database or the data folder cannot be used, ConfigurationError for a
    malformed address of the model or of WhatsApp.
    """
    from app.server import serve

    check_graph_address(settings)
    hints = [model_line(settings), zone_hint(settings)]
    check_address(settings.host, settings.port)
    asyncio.run(check_database(settings.database_path))
    make_data_folder(settings.data_dir)
    for hint in filter(None, hints):
        print(hint, file=sys.stderr, flush=True)  # noqa: T201
    return serve(settings)


def check_address(host: str, port: int) -> None:
    """Raise RecadoError if the address cannot be listened at."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise RecadoError(f"HOST={host!r} is no address of this machine: {error.strerror}") from error
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(address)
            except OSError as error:
                raise RecadoError(
                    f"cannot listen at {host} port {port}: {error.strerror}; "
                    "stop what listens there, or choose another with --port or PORT"
                ) from error


async def check_database(path: Path) -> None:
    """Open the database and close it again. Raise StoreError as `open_database` does."""
    await (await open_database(path)).close()
