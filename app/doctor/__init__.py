"""`recado doctor`: check every part, one line each, and change nothing.

It takes no lock on the database and writes nothing that stays, so it is safe beside a running server.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import command_settings, group, show_findings
from app.cli.settings import secrets_of
from app.doctor import abilities, data, model, whatsapp
from app.errors import ConfigurationError
from app.i18n import lazy
from app.ops import Finding, fail
from app.settings import Settings

commands = group()

Check = Callable[[Settings], Iterator[Finding]]


@commands.command()
def doctor(
    url: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Also try the webhook at this public address.")
    ] = "",
) -> None:
    """Check the set-up, and say the cure.

    A line for each part; status 1 if something is broken. Safe while the server runs.
    """
    try:
        findings = examine(command_settings("ERROR"), address=url)
    except ConfigurationError as error:
        faults = (fault.partition("; ") for fault in str(error).splitlines())
        findings = iter([fail("configuration", fact, cure) for fact, _, cure in faults])
        findings = chain(findings, data.check_names(Path(".env")))
    show_findings(findings)


CHECKS: dict[str, Check] = {
    "configuration": data.check_configuration,
    "data folder": data.check_folder,
    "database": data.check_database,
    "server": abilities.check_server,
    "model": model.check_model,
    "voice notes": model.check_voice,
    "WhatsApp": whatsapp.check_whatsapp,
    "people": data.check_people,
    "skills": abilities.check_skills,
    "sandbox": abilities.check_sandbox,
    "MCP servers": abilities.check_servers,
    "alerts": data.check_alerts,
}


def examine(settings: Settings, parts: Collection[str] = (), address: str = "") -> Iterator[Finding]:
    """Yield every finding about these parts, or about all if none is given, as soon as it is known.

    Never raise for what is examined, never show a secret. `address` is a public address whose webhook is
    tried besides the one that Meta knows.
    """
    secrets = sorted((secret for secret in secrets_of(settings) if len(secret) >= 4), key=len, reverse=True)
    checks = CHECKS | {"WhatsApp": partial(whatsapp.check_whatsapp, address=address)}
    for part in parts or checks:
        for finding in _guarded(part, checks[part], settings):
            yield replace(finding, fact=_without(secrets, finding.fact), cure=_without(secrets, finding.cure))


def _guarded(part: str, check: Check, settings: Settings) -> Iterator[Finding]:
    """Yield one check's findings; a check that raises becomes a finding itself."""
    try:
        yield from check(settings)
    except Exception as error:
        fact = lazy("could not be checked: {kind}: {error}", kind=type(error).__name__, error=error)
        yield fail(part, fact, lazy("this is a fault of Recado's own: please report the line"))


def _without(secrets: Sequence[str], text: str) -> str:
    """Return a text in which a server's answer repeats no key; a lazy one without any stays lazy."""
    for secret in secrets:
        text = text.replace(secret, "***") if secret in text else text
    return text
