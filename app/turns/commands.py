"""The words that are orders to the assistant itself, in three languages."""

import re
from collections.abc import Sequence
from typing import Literal

from app.i18n import say

Command = Literal["help", "stop", "new"]

_COMMANDS: dict[str, Command] = {
    **dict.fromkeys(("/help", "/ayuda", "/ajuda", "/?"), "help"),
    **dict.fromkeys(("help", "ayuda", "ajuda", "menu", "menú"), "help"),
    **dict.fromkeys(("/stop", "/parar", "/para", "/pare", "/detener", "/alto", "/cancelar"), "stop"),
    **dict.fromkeys(("/new", "/nuevo", "/nueva", "/novo", "/nova"), "new"),
}
_WRITTEN_IN = {
    **dict.fromkeys(("/ayuda", "ayuda", "menú", "/detener", "/alto", "/nuevo", "/nueva"), "es"),
    **dict.fromkeys(("/ajuda", "ajuda", "/pare", "/novo", "/nova"), "pt"),
}
_LIKE_A_COMMAND = re.compile(r"/[^\W\d_]\w{0,30}")


def read_command(text: str) -> Command | None:
    """The command that a whole message is, None where it is something else; an unknown one asks for help."""
    word = _word(text)
    return _COMMANDS.get(word) or ("help" if _LIKE_A_COMMAND.fullmatch(word) else None)


def language_of_command(text: str) -> str:
    """The language that a command's word belongs to, "" where it is used in several."""
    return _WRITTEN_IN.get(_word(text), "")


def unknown_command(text: str) -> str:
    """The command as it was written where we do not know it, else ""."""
    return "" if _word(text) in _COMMANDS else text.strip()


def _word(text: str) -> str:
    return text.strip().strip("¡!.").casefold()


def stopped_text(language: str) -> str:
    return say(language, "Stopped. Tell me when you need something else.")


def new_text(language: str) -> str:
    return say(
        language, "Let's start afresh: I no longer look at what we said before. Your notes and data stay."
    )


def help_text(language: str, abilities: Sequence[str], *, unknown: str, offline: bool, is_owner: bool) -> str:
    """What the assistant can do and the commands it knows; `unknown` is one that it does not."""
    lines = [say(language, "I do not know {command}.", command=unknown), ""] if unknown else []
    lines.append(say(language, "I am your assistant. Write to me in your own words."))
    if abilities:
        lines += ["", say(language, "For example:"), *(f"- {ability}" for ability in abilities)]
    lines += [
        "",
        say(language, "Commands:"),
        say(language, "- /help: this list"),
        say(language, "- /stop: I stop what I am doing"),
        say(language, "- /new: a fresh conversation"),
    ]
    if offline:
        lines += [
            "",
            say(language, "I run on the built-in offline model: I understand simple requests only."),
        ]
    if offline and is_owner:
        lines.append(
            say(
                language,
                "To connect a real model (Ollama, for example), set OPENAI_BASE_URL and LLM_MODEL "
                "and restart.",
            )
        )
    return "\n".join(lines)
