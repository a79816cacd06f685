"""Why a skill was not fetched, installed or removed, as the person in the chat reads it."""

from app.errors import RecadoError
from app.http.errors import FetchError
from app.i18n import say
from app.installs.quarantine import QuarantineError
from app.installs.skill_installer import UnknownSkill
from app.skills.installed import InstallError
from app.text import visible
from app.tools import ToolResult
from app.tools.fetching import fetch_code

_HINT = "tell the person, and do not try another address on your own"


def refusal(language: str, error: RecadoError) -> ToolResult:
    """A failed result whose message is a sentence for the person."""
    hint = ""
    if isinstance(error, FetchError | QuarantineError):
        hint = say(language, "If you have another address, send it to me.")
    return ToolResult.failure(_code(error), _sentence(language, error), hint)


def not_asked(language: str, command: str) -> ToolResult:
    """Where there are no cards: at the terminal without a server."""
    said = say(language, "I cannot ask you about it here. In a shell: {command}", command=command)
    return ToolResult.failure("DENIED", said)


def not_written_by_them(language: str, address: str) -> ToolResult:
    """For an address that somebody else, or the model, brought into the conversation."""
    said = say(
        language,
        "I fetch skills only from addresses that you write to me yourself. Send me this one if you want it: "
        "{address}",
        address=visible(address),
    )
    return ToolResult.failure("BAD_REQUEST", said, _HINT)


def _code(error: RecadoError) -> str:
    if isinstance(error, FetchError):
        return fetch_code(error)
    if isinstance(error, UnknownSkill):
        return "SKILL_NOT_FOUND"
    return "NOT_A_SKILL" if isinstance(error, QuarantineError) else "UNAVAILABLE"


def _sentence(language: str, error: RecadoError) -> str:
    if isinstance(error, FetchError):
        return _not_fetched(language, error)
    reason = visible(str(error))
    if isinstance(error, UnknownSkill):
        return say(language, "No skill of that name was installed from an address.")
    if isinstance(error, InstallError):
        return say(language, "I could not do it: {reason}", reason=reason)
    return say(language, "I cannot install what is there: {reason}", reason=reason)


def _not_fetched(language: str, error: FetchError) -> str:
    if error.code == "BAD_ADDRESS":
        return say(language, "I fetch skills from https addresses only, and this is none that I may ask.")
    if error.code == "NO_SUCH_HOST":
        return say(language, "There is no site of that name, or I have no connection.")
    if error.code == "NOT_PUBLIC":
        return say(language, "That address is not on the public internet, so I fetch nothing from it.")
    if error.code == "TOO_LARGE":
        return say(language, "What is there is too large for a skill.")
    if error.code == "TIMED_OUT":
        return say(language, "The site took too long to answer.")
    return say(language, "I could not fetch it: {reason}", reason=visible(str(error)))
