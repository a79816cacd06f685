"""Check of who may talk, and who was turned away lately."""

import time
from collections.abc import Iterator, Sequence

from app.cli.output import moment
from app.cli.people import incomplete, listed_people, may_talk, owns, realm_of, without_answered
from app.doctor.finding import Finding, fail, ok, warn
from app.errors import StoreError
from app.i18n import lazy
from app.phones import canonical
from app.settings import Settings
from app.store.people import PersonLine

LATELY_SECONDS = 7 * 24 * 3600.0
MOST_SHOWN = 10


def check_people(settings: Settings) -> Iterator[Finding]:
    """Report owners, members, frozen people, and whom to let in with which command."""
    try:
        lines = listed_people(settings)
    except StoreError:  # the database has a line of its own
        return
    for variable in ("OWNER_PHONE_NUMBERS", "ALLOWED_PHONE_NUMBERS"):
        for number, cure in sorted(incomplete(settings, getattr(settings, variable.lower())).items()):
            fact = lazy(
                "{variable} has {number}, which is no phone number with its country code",
                variable=variable,
                number=number,
            )
            yield fail("people", fact, cure)
    yield _allowed([line for line in lines if line.realm == "whatsapp"], settings)
    for line in lines:
        if line.frozen:
            cure = lazy(
                "the names are another's now; to delete what is left: {recado} erase {id}", id=line.id
            )
            if line.names:
                cure = lazy("if it is the same person: {recado} people allow {name}", name=line.names[0])
            yield warn(
                "people", lazy("{name} is frozen: {reason}", name=_name(line), reason=line.frozen), cure
            )
    yield from _turned_away(lines, settings)


def _allowed(lines: Sequence[PersonLine], settings: Settings) -> Finding:
    if settings.uses_simulator and settings.simulator == "off":
        fact = lazy("nobody can write, except in the terminal")
        return warn("people", fact, lazy("see WhatsApp above"))
    if settings.uses_simulator:
        return ok("people", lazy("everybody in the simulator may talk; its first person is the owner"))
    owners = sum(owns(line, settings) for line in lines)
    others = sum(may_talk(line, settings) for line in lines) - owners
    if not owners:
        return warn(
            "people",
            lazy("nobody owns this assistant yet")
            if others
            else lazy("nobody may talk to it, and nobody owns it yet"),
            lazy(
                "send the code that Setup of the console shows from your WhatsApp, "
                "or set OWNER_PHONE_NUMBERS, or: {recado} people owner PHONE"
            ),
        )
    if not others:
        cure = lazy("let others in with ALLOWED_PHONE_NUMBERS or: {recado} people allow PHONE")
        return ok("people", lazy("only owners may talk ({n})", n=owners), cure)
    return ok("people", lazy("{owners} owners and {others} others may talk", owners=owners, others=others))


def _turned_away(lines: Sequence[PersonLine], settings: Settings) -> Iterator[Finding]:
    """Return those who may want in, without the blocked and those who have a line already."""
    settled = {name for line in lines if line.access == "blocked" or line.frozen for name in line.names}
    since = time.time() - LATELY_SECONDS
    found = [
        line
        for line in without_answered(lines, settings)
        if line.access == "turned away"
        and line.realm == realm_of(settings)
        and line.last_at >= since
        and settled.isdisjoint({line.names[0], canonical(line.names[0])})
    ]
    for line in found[:MOST_SHOWN]:
        fact = lazy(
            "{name} was turned away ({n} times, last {at})",
            name=_name(line),
            n=line.messages,
            at=moment(line.last_at),
        )
        yield warn("people", fact, lazy("to let them in: {recado} people allow {name}", name=line.names[0]))
    if len(found) > MOST_SHOWN:
        fact = lazy("{n} more were turned away", n=len(found) - MOST_SHOWN)
        yield warn("people", fact, lazy("see them all with: {recado} people list"))


def _name(line: PersonLine) -> str:
    number = ", ".join(line.names) or line.id
    return f"{number} ({line.name})" if line.name else number
