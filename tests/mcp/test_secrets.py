"""The secrets of servers: kept for each alone, for this account alone, and never shown."""

import os
from pathlib import Path

import pytest

from app.mcp.files import LONGEST_SECRET, MAX_SECRETS, SecretError, Secrets


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path / "data")


def test_a_secret_belongs_to_one_server(secrets: Secrets) -> None:
    secrets.put("github", "TOKEN", "first")
    secrets.put("github", "TOKEN", "second")
    secrets.put("github", "OTHER", "third")
    secrets.put("gitlab", "TOKEN", "another")
    assert Secrets(secrets.folder.parent).get("github") == {"TOKEN": "second", "OTHER": "third"}
    assert secrets.get("gitlab") == {"TOKEN": "another"}
    assert secrets.get("nobody") == {}


def test_only_this_account_can_read_them(secrets: Secrets) -> None:
    before = os.umask(0)
    try:
        secrets.put("github", "TOKEN", "value")
    finally:
        os.umask(before)
    assert secrets.folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in secrets.folder.iterdir()} == {0o600}


def test_secrets_are_forgotten_singly_and_together(secrets: Secrets) -> None:
    assert not secrets.forget("github")
    for name in ("A", "B", "C"):
        secrets.put("github", name, "value")
    assert secrets.forget("github", "A")
    assert not secrets.forget("github", "A")
    assert set(secrets.get("github")) == {"B", "C"}
    assert secrets.forget("github")
    assert not (secrets.folder / "github").exists()


@pytest.mark.parametrize("name", ["", "1A", "A B", "A-B", "A=B", "Ñ", "A" * 65, "OPENAI_API_KEY", "data_dir"])
def test_invalid_and_reserved_names_are_refused(secrets: Secrets, name: str) -> None:
    with pytest.raises(SecretError) as refused:
        secrets.put("github", name, "s3cret-value")
    assert "s3cret-value" not in str(refused.value)


@pytest.mark.parametrize("server", ["", ".", "..", "../admin_token", "a/b", "-x", ".hidden", "a" * 42])
def test_no_server_name_leads_out_of_the_folder(secrets: Secrets, server: str) -> None:
    with pytest.raises(SecretError):
        secrets.put(server, "TOKEN", "value")
    with pytest.raises(SecretError):
        secrets.forget(server)
    assert secrets.get(server) == {}
    assert not secrets.folder.exists()


@pytest.mark.parametrize("value", ["", "x" * (LONGEST_SECRET + 1), "with\0nul"])
def test_invalid_values_are_refused(secrets: Secrets, value: str) -> None:
    with pytest.raises(SecretError):
        secrets.put("github", "TOKEN", value)


def test_the_number_of_secrets_is_limited(secrets: Secrets) -> None:
    for number in range(MAX_SECRETS):
        secrets.put("github", f"S{number}", "value")
    with pytest.raises(SecretError, match="already"):
        secrets.put("github", "ONE_MORE", "value")
    secrets.put("github", "S0", "changed")


@pytest.mark.parametrize("content", ["{", '["TOKEN"]', '{"TOKEN": 1}', "[" * 100_000, "\udc80"])
def test_an_unreadable_secrets_file_is_named_but_not_shown(
    secrets: Secrets, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    secrets.folder.mkdir(parents=True)
    (secrets.folder / "github").write_bytes(f'{content} "hunter2"'.encode(errors="surrogateescape"))
    assert secrets.get("github") == {}
    assert "github" in caplog.text
    with pytest.raises(SecretError, match="remove it") as refused:
        secrets.put("github", "TOKEN", "value")
    assert "hunter2" not in f"{caplog.text}{refused.value}"
    assert secrets.forget("github")
