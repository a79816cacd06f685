"""Check of the running server."""

import socket
from collections.abc import Iterator

from app.commands.running import find_server
from app.doctor.finding import FAIL, OK, WARN, Finding, Level
from app.errors import RecadoError
from app.settings import Settings


def check_server(settings: Settings) -> Iterator[Finding]:
    """Report the running server's own health; without one, check that its port is free."""
    try:
        server = find_server(settings.data_dir)
        state = server.ask("health") if server is not None else {}
    except RecadoError as error:
        yield Finding(FAIL, "server", str(error))
        return
    if server is None:
        yield _absent(settings)
        return
    where = f"runs at {server.url} (process {server.pid})"
    if state.get("status") == "ok":
        yield Finding(OK, "server", where)
        return
    level: Level = FAIL if state.get("status") == "down" else WARN
    yield Finding(level, "server", f"{where}, {state.get('status')}: {state.get('reason')}")


def _absent(settings: Settings) -> Finding:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104
    try:
        with socket.create_connection((host, settings.port), timeout=1):
            pass
    except OSError:
        return Finding(OK, "server", "is not running", "start it with: recado serve")
    fact = f"is not running, and something else listens at port {settings.port}"
    return Finding(WARN, "server", fact, "stop that, or choose another port with PORT")
