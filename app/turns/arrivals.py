"""What a message is before anybody thinks about it: a command, an answer to a question, or words."""

from app.messages import Inbound
from app.store.approvals import BUTTON
from app.store.inbox import Arrival
from app.turns.answers import read_answer
from app.turns.commands import read_command


def read_arrival(message: Inbound) -> Arrival:
    """A message as it is taken in."""
    if message.button.startswith(BUTTON):
        return Arrival(message, "answer")
    command = read_command(message.text) if message.kind == "text" else None
    answers = message.kind in ("text", "reaction") and read_answer(message.text) is not None
    return Arrival(message, command or "message", answers)
