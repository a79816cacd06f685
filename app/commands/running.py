"""Requests to the server that runs on this data folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import RecadoError
from app.messages import JSON

if TYPE_CHECKING:
    from app.server import Running

ANSWER_SECONDS = 15.0
FIND_SECONDS = 5.0


class ServerGone(RecadoError):
    """Raised when our server no longer listens at the address."""


class RunningServer:
    """A client of the administrator's API, with the token of server.json."""

    def __init__(self, running: "Running") -> None:
        self.pid = running.pid
        self.url = running.url
        self.headers = {"Authorization": f"Bearer {running.token}"}

    def ask(
        self, action: str, body: dict[str, JSON] | None = None, *, seconds: float = ANSWER_SECONDS
    ) -> JSON:
        """Return the result of an action.

        Raise ServerGone if our server is gone, RecadoError with its error or if it does not answer in time.
        """
        import httpx2

        try:
            # No environment: a proxy of the operator's must not see what goes to this machine.
            with httpx2.Client(headers=self.headers, timeout=seconds, trust_env=False) as http:
                response = http.post(self.address(action), json=body or {})
        except httpx2.TimeoutException as error:
            raise RecadoError(
                f"the server (process {self.pid}) gave no answer within {seconds:g} s; restart it"
            ) from error
        except httpx2.TransportError as error:
            raise ServerGone(f"the server at {self.url} is gone: {error}") from error
        return read_answer(response.status_code, response.content)

    def address(self, action: str) -> str:
        return f"{self.url}/admin/{action}"


def find_server(data_dir: Path) -> RunningServer | None:
    """Return the server that runs on this data folder, None if none does.

    Raise RecadoError if one runs that does not answer.
    """
    if not (data_dir / "server.json").exists():  # the module that reads it brings the whole web server
        return None
    from app.server import read_running

    running = read_running(data_dir)
    if running is None:
        return None
    server = RunningServer(running)
    try:
        server.ask("health", seconds=FIND_SECONDS)
    except ServerGone:
        return None  # its process id went to another program
    return server


def read_answer(status: int, content: bytes) -> JSON:
    """Return the result of an answer. Raise ServerGone for another program's, RecadoError for an error."""
    import orjson

    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None
    if status in (401, 404) or not isinstance(answer, dict) or not answer.keys() & {"result", "error"}:
        raise ServerGone(f"another program listens there now (it answered {status})")
    if "error" in answer:
        raise RecadoError(str(answer["error"]))
    return answer.get("result")
