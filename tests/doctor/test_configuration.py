"""The configuration, the skills, a public address."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.doctor import examine
from app.settings import Settings
from tests.doctor.house import found


def test_an_empty_folder_is_sound_and_stays_empty(settings: Callable[..., Settings], tmp_path: Path) -> None:
    findings = list(examine(settings()))
    assert [finding for finding in findings if finding.level == "FAIL"] == []
    assert {"configuration", "time zone", "data folder", "database", "server", "model", "WhatsApp"} <= {
        finding.part for finding in findings
    }
    assert list(tmp_path.iterdir()) == []


def test_what_the_operator_has_mistyped_is_named(settings, tmp_path):
    (tmp_path / ".env").write_text("OPENAI_URL=http://x\nOPENAI_API_BASE=http://x\nOWNER_PHONE_NUMBERS=12\n")
    chosen = settings(skills_dir=tmp_path / "nowhere", simulator="off")
    told = {str(finding) for finding in examine(chosen) if finding.level != "OK"}
    for level, part, fact, cure in (
        ("WARN", "configuration", "OPENAI_URL is set, which nothing reads", "OPENAI_BASE_URL?"),
        ("WARN", "configuration", "OPENAI_API_BASE is set", "OPENAI_BASE_URL?"),
        ("WARN", "WhatsApp", "nobody can write", "SIMULATOR"),
        ("FAIL", "people", "OWNER_PHONE_NUMBERS has 12", "+52 55"),
        ("FAIL", "skills", "nowhere is no folder", "SKILLS_DIR"),
    ):
        assert any(one.startswith(f"{level:<5}{part}:") and fact in one and cure in one for one in told), fact


def test_a_token_that_can_be_guessed_is_refused(settings: Callable[..., Settings]) -> None:
    with pytest.raises(ValueError, match=r"at least 16 characters.*openssl rand -hex 32"):
        settings(admin_token="1234")


def test_what_others_can_read_is_named(settings: Callable[..., Settings], tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("OPENAI_API_KEY=sk-of-the-test\n")
    env.chmod(0o644)
    told = [str(finding) for finding in found(settings(), "configuration")]
    assert any("may read the secrets" in one and f"chmod go-rwx {env}" in one for one in told)

    env.chmod(0o600)
    (only,) = found(settings(admin_token="4" * 32), "configuration")
    assert only.level == "OK"
    env.write_text("OPENAI_API_KEY=\nLOG_LEVEL=INFO\n")
    env.chmod(0o644)
    (only,) = found(settings(), "configuration")
    assert only.level == "OK"


def test_what_a_public_address_should_not_let_through_is_named(settings, server):
    server.answers = {"/simulator": (200, "a page"), "/metrics": (401, {})}
    public = server.url.replace("127.0.0.1", "127.1")
    told = [one for one in examine(settings(), address=public) if one.part == "public address"]
    assert [(one.level, one.fact) for one in told] == [("FAIL", f"anybody reaches {public}/simulator")]
