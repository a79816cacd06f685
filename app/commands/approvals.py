"""`recado approvals`: open questions, listed and answered through the running server."""

from app.commands.running import RunningServer, find_server
from app.commands.tables import moment
from app.errors import RecadoError
from app.settings import Settings
from app.text import visible


def open_approvals(settings: Settings) -> str:
    """Return every open question with its whole card. Raise RecadoError if no server runs."""
    waiting = _server(settings).ask("approvals")
    if not waiting:
        return "No question waits for an answer."
    return "\n\n".join(
        f"{one['id']}  {moment(one['at'])}  asked: {visible(one['asked'])}"
        f"  answers: {', '.join(one['choices'])}\n{one['card']}"
        for one in waiting
    )


def answer(settings: Settings, approval: str, choice: str) -> str:
    """Answer a question in place of the person who was asked. Raise RecadoError if it is not open."""
    _server(settings).ask("approvals/answer", {"id": approval, "choice": choice})
    return f"{approval}: {choice}"


def _server(settings: Settings) -> RunningServer:
    server = find_server(settings.data_dir)
    if server is None:
        raise RecadoError("no server runs on this data folder, so nothing could go on; start: recado serve")
    return server
