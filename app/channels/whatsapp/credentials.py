"""The WhatsApp credentials in use, Meta's or the simulator's own, and the proofs made with them."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from app.security import write_private
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Credentials:
    """The four credentials of a WhatsApp number."""

    access_token: str = field(repr=False)
    phone_number_id: str
    app_secret: str = field(repr=False)
    verify_token: str = field(repr=False)


def credentials_of(settings: Settings) -> Credentials:
    """Return the simulator's own credentials, or Meta's as soon as one of those is set."""
    if settings.uses_simulator:
        return load_credentials(settings.data_dir)
    return Credentials(
        access_token=settings.whatsapp_access_token.get_secret_value(),
        phone_number_id=settings.whatsapp_phone_number_id,
        app_secret="" if settings.missing_credentials else settings.whatsapp_app_secret.get_secret_value(),
        verify_token=settings.whatsapp_verify_token.get_secret_value(),
    )


def load_credentials(data_dir: Path) -> Credentials:
    """Return those in `data_dir/simulator.json`, made at the first call; replace an unreadable file."""
    path = data_dir / "simulator.json"
    known = _read(path)
    if known is not None:
        return known
    made = Credentials(
        access_token=secrets.token_urlsafe(32),
        phone_number_id=str(secrets.randbelow(9 * 10**14) + 10**14),
        app_secret=secrets.token_hex(32),
        verify_token=secrets.token_urlsafe(24),
    )
    write_private(path, orjson.dumps(asdict(made)).decode())
    return _read(path) or made  # of two first starts at once, the file that stayed counts for both


def _read(path: Path) -> Credentials | None:
    try:
        kept = TypeAdapter(Credentials).validate_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    path.chmod(0o600)
    return kept


def sign(body: bytes, secret: str) -> str:
    """Return the value of `X-Hub-Signature-256` for a body."""
    return "sha256=" + hmac.digest(_bytes(secret), body, "sha256").hex()


def verify_signature(body: bytes, header: str | None, secret: str) -> bool:
    """Return True if the header signs exactly these bytes; False without a secret. Never raises."""
    if not secret or not header:
        return False
    return hmac.compare_digest(_bytes(header), sign(body, secret).encode())


def verify_handshake(params: Mapping[str, str], token: str) -> str | None:
    """Return the challenge to echo if the query of `GET /webhook` has the right token, else None."""
    given = _bytes(params.get("hub.verify_token") or "")
    is_right = params.get("hub.mode") == "subscribe" and hmac.compare_digest(given, _bytes(token))
    return params.get("hub.challenge") or "" if token and is_right else None


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
