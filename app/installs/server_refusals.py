"""Why a server was not found, installed or changed, as the person in the chat reads it."""

from app.errors import RecadoError
from app.i18n import say
from app.installs.registry_entries import Reason
from app.installs.registry_reasons import reason_said
from app.installs.server_errors import InstallCode, InstallError
from app.installs.skill_cards import quoted
from app.text import visible
from app.tools import ToolResult

_LONGEST_NAME = 100


def refusal(language: str, error: RecadoError) -> ToolResult:
    """A failed result whose message is a sentence for the person; what programs said in it is theirs."""
    if not isinstance(error, InstallError):
        said = say(language, "I could not do it: {reason}", reason=quoted(str(error)))
        return ToolResult.failure("UNAVAILABLE", said, outside=True)
    reason = _install_reasons(language)[error.code]
    said = say(language, "I could not do it: {reason}", reason=f"{reason} ({quoted(str(error))})")
    return ToolResult.failure(error.code, said, outside=True)


def not_found(language: str, name: str) -> ToolResult:
    """Nothing of the registry is called so; that commands and addresses count for nothing is said too."""
    said = say(language, "I found no server like {name} in the registry.", name=quoted(name[:_LONGEST_NAME]))
    hint = say(
        language,
        "Its entries are in English: try an English word for what it does, or its exact name there. I never "
        "take a command or an address of a server from a chat: for those there is recado mcp add in a shell.",
    )
    return ToolResult.failure("SERVER_NOT_FOUND", said, hint)


def unknown_here(language: str, name: str, known: str) -> ToolResult:
    """No server here is called so; `known` lists those that there are."""
    if known:
        named = quoted(name[:_LONGEST_NAME])
        said = say(language, "There is no server {name} here. There are: {known}", name=named, known=known)
    else:
        said = say(language, "There are no MCP servers here yet.")
    return ToolResult.failure("SERVER_NOT_FOUND", said)


def not_installed(language: str, name: str) -> ToolResult:
    """It stands in the operator's own file, or came with a skill."""
    said = say(
        language,
        "The server {name} was not installed from a chat: it stands in your own file or belongs to a skill. "
        "In a shell: {command}",
        name=quoted(name),
        command=f"recado mcp remove {visible(name)}",
    )
    return ToolResult.failure("UNAVAILABLE", said)


def nothing_installed(language: str) -> ToolResult:
    """There is no install that could be undone."""
    said = say(language, "No MCP server was installed here lately, so there is nothing to undo.")
    return ToolResult.failure("SERVER_NOT_FOUND", said)


def nothing_held_back(language: str, name: str) -> ToolResult:
    """There is no tool of that server to be approved."""
    said = say(language, "Nothing of {name} waits to be approved.", name=quoted(name))
    return ToolResult.failure("UNAVAILABLE", said)


def changed_meanwhile(language: str) -> ToolResult:
    """What was shown is not what there is any more."""
    said = say(
        language, "It changed after you were asked, so I did nothing. Ask me again to see it as it is now."
    )
    return ToolResult.failure("CHANGED", said)


def not_installable(language: str, name: str, reason: Reason) -> ToolResult:
    """It was found, and cannot be installed here."""
    said = say(
        language,
        "{name} cannot be installed here: {reason}",
        name=quoted(name),
        reason=reason_said(language, reason),
    )
    return ToolResult.failure("NOT_INSTALLABLE", said, outside=True)


def _install_reasons(language: str) -> dict[InstallCode, str]:
    return {
        "NOT_FOUND": say(language, "the package is not there"),
        "AWAY": say(language, "the package registry cannot be reached"),
        "NO_PROGRAM": say(language, "the package holds nothing that I could start"),
        "TOO_LARGE": say(language, "it is too large"),
        "NO_SPACE": say(language, "my disk is nearly full"),
        "TOO_SLOW": say(language, "it took too long"),
        "CHANGED": say(language, "it is not what you were shown"),
        "NOT_INSTALLABLE": say(language, "it needs what I do not install"),
        "NO_SANDBOX": say(language, "programs of others run only in a sandbox, and there is none here"),
        "NO_NODE": say(language, "Node.js is not installed on this machine"),
        "NO_PIP": say(language, "pip is not installed on this machine"),
        "NEEDS_VALUE": say(language, "it needs a value that nobody gave"),
        "BAD_VALUE": say(language, "a value does not fit"),
        "SECRET_ARGUMENT": say(language, "it wants a secret on its command line, where others could read it"),
        "UNKNOWN": say(language, "there is no such server"),
        "FAILED": say(language, "the package could not be installed"),
    }
