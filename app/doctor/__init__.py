"""`recado doctor`: check every part, one line each, and change nothing.

It takes no lock on the database and writes nothing that stays, so it is safe beside a running server.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from app.doctor.finding import FAIL, OK, WARN, Finding, Level, line
from app.settings import Settings

__all__ = ["FAIL", "OK", "WARN", "Finding", "Level", "examine", "line"]

Check = Callable[[Settings], Iterator[Finding]]


def examine(settings: Settings, address: str = "") -> Iterator[Finding]:
    """Yield every finding as soon as it is known; never raise for what is examined, never show a secret.

    `address` is a public address whose webhook is tried besides the one that Meta knows.
    """
    from app.doctor import abilities, machine, media, model, people, records, whatsapp

    checks: dict[str, Check] = {
        "configuration": machine.check_configuration,
        "data folder": machine.check_folder,
        "database": records.check_database,
        "server": abilities.check_server,
        "model": model.check_model,
        "voice notes": media.check_voice,
        "pictures": media.check_pictures,
        "WhatsApp": partial(whatsapp.check_whatsapp, address=address),
        "people": people.check_people,
        "skills": abilities.check_skills,
        "sandbox": abilities.check_sandbox,
        "MCP servers": abilities.check_servers,
        "alerts": records.check_alerts,
    }
    for part, check in checks.items():
        yield from _without_secrets(_guarded(part, check, settings), settings)


def _guarded(part: str, check: Check, settings: Settings) -> Iterator[Finding]:
    """Yield one check's findings; a check that raises becomes a finding itself."""
    try:
        yield from check(settings)
    except Exception as error:
        fact = f"could not be checked: {type(error).__name__}: {error}"
        yield Finding(FAIL, part, fact, "this is a fault of Recado's own: please report the line")


def _without_secrets(findings: Iterator[Finding], settings: Settings) -> Iterator[Finding]:
    """Remove our secrets from a finding: a server's answer may repeat a key."""
    from app.cli.settings import secrets_of

    secrets = sorted((secret for secret in secrets_of(settings) if len(secret) >= 4), key=len, reverse=True)
    for finding in findings:
        fact, cure = finding.fact, finding.cure
        for secret in secrets:
            fact, cure = fact.replace(secret, "***"), cure.replace(secret, "***")
        yield replace(finding, fact=fact, cure=cure)
