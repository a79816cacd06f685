"""A sound set-up beside a running server, the doctor's visit to it, and its findings."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from typer.testing import CliRunner

from app.cli import app
from app.doctor import examine
from app.ops import Finding
from app.settings import Settings
from tests.standins import meta
from tests.standins.answers import AnsweringServer
from tests.world import Server

CLOSED = "http://127.0.0.1:1"


@dataclass
class House:
    """A sound set-up beside a running server; a test breaks one thing in it."""

    folder: Path
    graph: AnsweringServer
    model: AnsweringServer
    server: Server
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**self.server.env, **self.variables}

    def doctor(self, *arguments: str) -> tuple[int, list[str]]:
        """The exit status and the lines of the command, in this process: its start costs two seconds."""
        with kept_environment(self.folder, self.environment):
            done = CliRunner().invoke(app, ["doctor", *arguments])
        assert isinstance(done.exception, SystemExit | None)
        assert meta.TOKEN not in done.output
        assert meta.SECRET not in done.output
        return done.exit_code, done.stdout.splitlines()


@contextmanager
def kept_environment(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """A process of its own as far as the command can see; what it configures is undone."""
    logs, environment, place = structlog.get_config(), dict(os.environ), Path.cwd()
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)
        root.setLevel(level)
        root.handlers[:] = handlers
        structlog.configure(**logs)


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
    assert not any(secret in str(finding) for finding in findings for secret in (meta.SECRET, meta.TOKEN))
    assert all(str(finding).isprintable() for finding in findings)
    return [finding for finding in findings if finding.part == part]
