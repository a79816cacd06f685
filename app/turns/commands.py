"""The words that are orders to the assistant itself, in three languages."""

from typing import Literal

from app.language import say

Command = Literal["help", "stop", "new"]

_COMMANDS: dict[str, Command] = {
    **dict.fromkeys(("/help", "/ayuda", "/ajuda", "/?"), "help"),
    **dict.fromkeys(("/stop", "/parar", "/para", "/pare", "/detener", "/alto", "/cancelar"), "stop"),
    **dict.fromkeys(("/new", "/nuevo", "/nueva", "/novo", "/nova"), "new"),
}


_WRITTEN_IN = {
    **dict.fromkeys(("/ayuda", "/detener", "/alto", "/nuevo", "/nueva"), "es"),
    **dict.fromkeys(("/ajuda", "/pare", "/novo", "/nova"), "pt"),
}


def language_of_command(text: str) -> str:
    """The language that a command's word belongs to, "" where it is used in several."""
    return _WRITTEN_IN.get(text.strip().casefold(), "")


def read_command(text: str) -> Command | None:
    """The command that a message is, None where it is something else."""
    return _COMMANDS.get(text.strip().casefold())


def stopped_text(language: str) -> str:
    return say(language, "Stopped. Tell me when you need something else.")


def new_text(language: str) -> str:
    return say(
        language, "Let's start afresh: I no longer look at what we said before. Your notes and data stay."
    )


def help_text(language: str, abilities: list[str], offline: bool) -> str:
    """What the assistant can do and the commands it knows."""
    lines = [say(language, "I am your assistant. Write to me in your own words.")]
    if abilities:
        lines += ["", say(language, "Now I can help with:"), *(f"- {ability}" for ability in abilities)]
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
            say(
                language,
                "I run on the built-in offline model: I understand simple requests only. "
                "The owner can connect a real model with OPENAI_BASE_URL and LLM_MODEL.",
            ),
        ]
    return "\n".join(lines)
