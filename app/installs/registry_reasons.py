"""Why something of the registry cannot be installed here, in a person's language."""

from app.i18n import say
from app.installs.registry_entries import Reason, ReasonCode
from app.installs.skill_cards import quoted


def reason_said(language: str, reason: Reason) -> str:
    """Why something of the registry cannot be installed; the word at fault is quoted."""
    said = _reasons(language)[reason.code]
    return f"{said} ({quoted(reason.detail)})" if reason.detail else said


def _reasons(language: str) -> dict[ReasonCode, str]:
    return {
        "DELETED": say(language, "it was taken out of the registry"),
        "DEPRECATED": say(language, "its publisher says that it should not be used any more"),
        "NO_PACKAGE": say(language, "its entry names nothing that could be installed"),
        "OCI_ONLY": say(language, "it comes only as a container image, and I run none"),
        "OTHER_KIND": say(language, "it comes in a form that I do not install"),
        "SSE_ONLY": say(language, "it speaks only the old SSE transport, which I do not use"),
        "NOT_STDIO": say(language, "its package opens a port, which I do not do"),
        "NOT_EXACT": say(language, "its entry names no exact version"),
        "BAD_IDENTIFIER": say(language, "its entry has no proper package name"),
        "OTHER_REGISTRY": say(language, "its package comes from another place than npm or PyPI"),
        "ODD_RUNTIME": say(
            language, "its entry asks for a special way to start it, which could run anything"
        ),
        "ODD_ARGUMENT": say(language, "its entry has an argument that I cannot read"),
        "ODD_VARIABLE": say(language, "its entry has a variable or header that I set for no server"),
        "BAD_ADDRESS": say(language, "its address is no https address of a named site"),
        "TOO_LARGE": say(language, "its entry is too large"),
    }
