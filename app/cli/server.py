"""`recado serve` and `token`, and how a command reaches a running server."""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.database import make_data_folder, open_database
from app.cli.output import command_settings, configure_logs, group, show
from app.cli.settings import model_line, zone_hint
from app.errors import RecadoError
from app.messages import JSON
from app.security import AdminToken
from app.settings import Role, Settings
from app.store.database import Connection, Location

commands = group()

ANSWER_SECONDS = 15.0
FIND_SECONDS = 5.0


class ServerGone(RecadoError):
    """Raised when our server no longer listens at the address."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A client of the administrator's API, with the token of server.json."""

    pid: int
    url: str
    token: str

    def ask(
        self, action: str, body: dict[str, JSON] | None = None, *, seconds: float = ANSWER_SECONDS
    ) -> JSON:
        """Return an action's result. Raise ServerGone, or RecadoError for its error and for a time-out."""
        import httpx2

        try:
            # No environment: a proxy of the operator's must not see what goes to this machine.
            headers = {"Authorization": f"Bearer {self.token}"}
            with httpx2.Client(headers=headers, timeout=seconds, trust_env=False) as http:
                response = http.post(f"{self.url}/admin/{action}", json=body or {})
        except httpx2.TimeoutException as error:
            raise RecadoError(
                f"the server (process {self.pid}) gave no answer within {seconds:g} s; restart it"
            ) from error
        except httpx2.TransportError as error:
            raise ServerGone(f"the server at {self.url} is gone: {error}") from error
        try:
            answer = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            answer = None
        status = response.status_code
        if status in (401, 404) or not isinstance(answer, dict) or not answer.keys() & {"result", "error"}:
            raise ServerGone(f"another program listens there now (it answered {status})")
        if "error" in answer:
            raise RecadoError(str(answer["error"]))
        return answer.get("result")


def find_server(data_dir: Path) -> RunningServer | None:
    """Return the server that runs on this data folder, or None. Raise RecadoError if it does not answer."""
    try:
        record = orjson.loads((data_dir / "server.json").read_bytes())
        server = RunningServer(int(record["pid"]), str(record["url"]), str(record["token"]))
        os.kill(server.pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    try:
        server.ask("health", seconds=FIND_SECONDS)
    except ServerGone:
        return None  # its process id went to another program
    return server


def ask_or_write(
    settings: Settings, action: str, body: dict[str, JSON], write: Callable[[Connection], Any]
) -> JSON:
    """Return the server's answer once it did something; without a server do it in the database."""

    async def in_database() -> JSON:
        async with open_database(settings.database) as database:
            return await database.tx(write)

    server = find_server(settings.data_dir)
    return server.ask(action, body) if server is not None else asyncio.run(in_database())


@commands.command()
def simulator() -> None:
    """Print the link that opens the phone simulator of the running server."""
    server = find_server(command_settings().data_dir)
    if server is None:
        raise RecadoError("no server runs on this data folder; start it with `make run` or `recado serve`")
    show(server.ask("simulator")["link"])


@commands.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen at, in place of HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port, in place of PORT.")] = None,
    role: Annotated[
        Role | None, typer.Option(help="Part of the work, in place of ROLE: see docs/scaling.md.")
    ] = None,
) -> None:
    """Run the server."""
    settings = command_settings("INFO", host=host, port=port, role=role)
    hints = [model_line(settings), zone_hint(settings)]
    check_address(settings.host, settings.port)
    asyncio.run(check_database(settings.database, shared=settings.role != "all"))
    make_data_folder(settings.data_dir)
    for hint in filter(None, hints):
        show(hint, err=True)
    from app.doctor import examine
    from app.main import create_app
    from app.server import serve

    make_app = partial(create_app, examine=examine)
    raise typer.Exit(serve(settings, make_app, partial(configure_logs, usual_level="INFO")))


def check_address(host: str, port: int) -> None:
    """Raise RecadoError if the address cannot be listened at."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise RecadoError(
            f"cannot listen at {host} port {port}: {error.strerror}; stop what listens there, or choose "
            "another address with --host and --port or HOST and PORT"
        ) from error


async def check_database(location: Location, *, shared: bool = False) -> None:
    """Open the database and close it again. Raise StoreError as `open_database` does."""
    async with open_database(location, shared=shared):
        pass


@commands.command()
def token(
    renew: Annotated[bool, typer.Option("--renew", help="Put a new token in place of the old one.")] = False,
) -> None:
    """Show or renew the console's token."""
    settings = command_settings()
    server = find_server(settings.data_dir)
    if server is not None:
        show(server.ask("token/renew" if renew else "token")["token"])
        return
    kept = AdminToken(settings.data_dir, settings.admin_token.get_secret_value())
    try:
        show(kept.renew() if renew else kept.value())
    except OSError as error:
        raise RecadoError(
            f"the token in {settings.data_dir} cannot be read or written: {error.strerror}; "
            "run this as the user that runs the server"
        ) from error
