"""Reading the doctor's report in a test."""

from app.doctor import examine
from app.ops import Finding
from app.settings import Settings
from tests.standins.meta import SECRET, TOKEN

_CHECKS = {
    "time zone": "configuration",
    "workspace": "data folder",
    "context window": "model",
    "classifier": "model",
    "alert": "alerts",
    "public address": "WhatsApp",
}


def found(settings: Settings, part: str) -> list[Finding]:
    """The findings about one part; none of its check may show a secret or break its line."""
    name = "WhatsApp" if part.startswith("WhatsApp") else _CHECKS.get(part, part)
    findings = list(examine(settings, [name]))
    assert not any(secret in str(finding) for finding in findings for secret in (SECRET, TOKEN))
    assert all(str(finding).isprintable() for finding in findings)
    return [finding for finding in findings if finding.part == part]
