"""`recado doctor`: every part looked at once, a line each, nothing changed.

It never takes the database's lock and writes nothing that stays, so it is safe beside a running server.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from app.doctor.finding import FAIL, OK, WARN, Finding, Level, line
from app.settings import Settings

__all__ = ["FAIL", "OK", "WARN", "Finding", "Level", "examine", "line"]

Check = Callable[[Settings], Iterator[Finding]]


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding, as soon as it is known; no secret is in any. Never raises for what it examines."""
    from app.doctor import machine, model, people, records, server, skills, whatsapp

    checks: tuple[Check, ...] = (
        machine.check_configuration,
        machine.check_folder,
        records.check_database,
        server.check_server,
        model.check_model,
        whatsapp.check_whatsapp,
        people.check_people,
        skills.check_skills,
        skills.check_mcp,
        records.check_alerts,
    )
    for check in checks:
        yield from _without_secrets(_guarded(check, settings), settings)


def _guarded(check: Check, settings: Settings) -> Iterator[Finding]:
    """One check's findings; a check that breaks is a finding itself and does not stop the others."""
    try:
        yield from check(settings)
    except Exception as error:
        part = check.__name__.removeprefix("check_")
        yield Finding(FAIL, part, f"could not be checked: {type(error).__name__}: {error}")


def _without_secrets(findings: Iterator[Finding], settings: Settings) -> Iterator[Finding]:
    """What servers answer may repeat a key."""
    from app.commands.configuration import secrets_of

    secrets = sorted((secret for secret in secrets_of(settings) if len(secret) >= 4), key=len, reverse=True)
    for finding in findings:
        fact, cure = finding.fact, finding.cure
        for secret in secrets:
            fact, cure = fact.replace(secret, "***"), cure.replace(secret, "***")
        yield replace(finding, fact=fact, cure=cure)
