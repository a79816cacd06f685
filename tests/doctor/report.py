"""Reading the doctor's report in a test."""

from app.doctor import Finding, examine, line
from app.settings import Settings
from tests.standins.meta import SECRET, TOKEN


def found(settings: Settings, part: str) -> list[Finding]:
    """The findings about one part; none of all of them may show a secret or break its line."""
    findings = list(examine(settings))
    assert not any(secret in line(finding) for finding in findings for secret in (SECRET, TOKEN))
    assert all(line(finding).isprintable() for finding in findings)
    return [finding for finding in findings if finding.part == part]
