"""Confirmation of tool calls: the policy, and the question at the terminal."""

import asyncio
import inspect
import os
import sys
from collections.abc import Awaitable, Callable

from app.errors import RecadoError
from app.messages import JSON
from app.text import escape_text, visible
from app.tools.tool import Tool

MODES = ("yolo", "confirm-sensitive", "confirm-all")

Ask = Callable[[str, dict[str, JSON]], "bool | Awaitable[bool]"]
"""Puts one call to a person: its name and arguments; true means run it."""

_ANSWERS = {
    **dict.fromkeys(("y", "yes", "s", "si", "sí", "sim"), "y"),
    **dict.fromkeys(("n", "no", "não", "nao"), "n"),
    **dict.fromkeys(("a", "abort"), "a"),
}


class NoTTYError(RecadoError):
    """Raised when nobody can be asked: there is no terminal and no other way."""


class TurnAborted(RecadoError):
    """The person at the terminal ended the whole turn; the command line ends with status 130."""


class ConfirmationPolicy:
    """Says which tools need a yes, and asks for it: through `ask`, else at the terminal."""

    def __init__(self, mode: str, ask: Ask | None = None) -> None:
        if mode not in MODES:
            raise ValueError(f"confirmation mode: expected one of {', '.join(MODES)}, got {mode!r}")
        self.mode = mode
        self._ask = ask
        self._one_at_a_time = asyncio.Lock()

    def should_confirm(self, tool: Tool) -> bool:
        """Return True if this tool needs a yes; a harmless one never does."""
        if tool.harmless or self.mode == "yolo":
            return False
        return self.mode == "confirm-all" or tool.sensitive

    async def request_confirmation(self, name: str, args: dict[str, JSON], note: str = "") -> bool:
        """Return the person's answer to one call; `note` stands under it at the terminal.

        Raises NoTTYError where nobody can be asked, TurnAborted when the person ends the turn.
        """
        if self._ask is not None:
            answer = self._ask(name, args)
            return bool(await answer if inspect.isawaitable(answer) else answer)
        if not _has_terminal():
            raise NoTTYError(
                f"{name} needs a yes and there is no terminal to ask at; "
                "run in a terminal, or set CONFIRMATION_MODE=yolo if every tool may run unasked"
            )
        async with self._one_at_a_time:
            return await _ask_at_terminal(name, args, note)


def call_in_words(name: str, args: dict[str, JSON]) -> str:
    """Write a call on a few lines, each value whole on one of them and nothing in it invisible."""
    return "\n".join([visible(name), *(f"  {_shown(key)}: {_shown(value)}" for key, value in args.items())])


def _shown(value: JSON) -> str:
    return escape_text(value if isinstance(value, str) else str(value))


def _has_terminal() -> bool:
    try:
        return bool(sys.stdin and sys.stdin.isatty())
    except ValueError:  # it was closed
        return False


async def _ask_at_terminal(name: str, args: dict[str, JSON], note: str) -> bool:
    _say("\n".join(filter(None, ("", call_in_words(name, args), visible(note), ""))) + "\n")
    while True:
        _say("Run it? [y/n/a] ")
        line = await _read_line()
        if not line:
            _say("\n")
            return False
        answer = _ANSWERS.get(line.strip().lower())
        if answer == "a":
            raise TurnAborted(f"the turn was ended at the question about {name}")
        if answer:
            return answer == "y"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


async def _read_line() -> str:
    """Read one line of the terminal without holding the loop; "" at the end of input."""
    loop = asyncio.get_running_loop()
    ready, descriptor = asyncio.Event(), sys.stdin.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace")
    except OSError:  # the terminal went away
        return ""
