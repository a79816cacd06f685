"""Read and answer the words that are orders to the assistant itself, in three languages."""

import re
from collections.abc import Sequence
from typing import Literal

from app.i18n import say
from app.turns.state import TurnContext

Command = Literal["help", "stop", "new"]

_COMMANDS: dict[str, Command] = {
    **dict.fromkeys(("/help", "/ayuda", "/ajuda", "/?"), "help"),
    **dict.fromkeys(("help", "ayuda", "ajuda", "menu", "menú"), "help"),
    **dict.fromkeys(("/stop", "/parar", "/para", "/pare", "/detener", "/alto", "/cancelar"), "stop"),
    **dict.fromkeys(("/new", "/nuevo", "/nueva", "/novo", "/nova"), "new"),
}
_LANGUAGES = {
    **dict.fromkeys(("/ayuda", "ayuda", "menú", "/detener", "/alto", "/nuevo", "/nueva"), "es"),
    **dict.fromkeys(("/ajuda", "ajuda", "/pare", "/novo", "/nova"), "pt"),
}
_LIKE_A_COMMAND = re.compile(r"/[^\W\d_]\w{0,30}")


def read_command(text: str) -> Command | None:
    """Return the command that a whole message is, else None; an unknown command asks for help."""
    word = _word(text)
    return _COMMANDS.get(word) or ("help" if _LIKE_A_COMMAND.fullmatch(word) else None)


async def command_answer(turn: TurnContext, command: str, written: str, *, offline: bool) -> str:
    """Answer a command in the language of its word, or in the person's where that word is used in several."""
    language = _LANGUAGES.get(_word(written), turn.person.language)
    if command == "new":
        return say(
            language,
            "Let's start afresh: I no longer look at what we said before. Your notes and data stay.",
        )
    if command == "stop":
        return say(language, "Stopped. Tell me when you need something else.")
    await turn.tools.refresh()
    abilities = turn.tools.summary(turn.person, language, offline=offline)
    unknown = "" if _word(written) in _COMMANDS else written.strip()
    return help_text(language, abilities, unknown=unknown, offline=offline, is_owner=turn.person.is_owner)


def help_text(language: str, abilities: Sequence[str], *, unknown: str, offline: bool, is_owner: bool) -> str:
    """List what the assistant can do and its commands; `unknown` is a command that it does not know."""
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


def _word(text: str) -> str:
    return text.strip().strip("¡!.").casefold()
