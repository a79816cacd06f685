"""The credentials in use: Meta's, or the simulator's own, random for each data folder."""

import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Credentials:
    """The four that a WhatsApp number has."""

    access_token: str
    phone_number_id: str
    app_secret: str
    verify_token: str

    def __repr__(self) -> str:
        return f"Credentials(phone_number_id={self.phone_number_id!r})"


def credentials_of(settings: Settings) -> Credentials:
    """The simulator's own, random for each data folder; Meta's as soon as one of those is set."""
    if settings.uses_simulator:
        return load_credentials(settings.data_dir)
    return Credentials(
        access_token=settings.whatsapp_access_token.get_secret_value(),
        phone_number_id=settings.whatsapp_phone_number_id,
        app_secret="" if settings.missing_credentials else settings.whatsapp_app_secret.get_secret_value(),
        verify_token=settings.whatsapp_verify_token.get_secret_value(),
    )


def load_credentials(data_dir: Path) -> Credentials:
    """Those in `data_dir/simulator.json` (0600), made at the first call; an unreadable file is replaced."""
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
    data_dir.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".simulator.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(asdict(made)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    # Two first starts at once: whichever file stayed counts for both.
    return _read(path) or made


def _read(path: Path) -> Credentials | None:
    try:
        kept = Credentials(**orjson.loads(path.read_bytes()))
    except (FileNotFoundError, orjson.JSONDecodeError, TypeError):
        return None
    values = (kept.access_token, kept.phone_number_id, kept.app_secret, kept.verify_token)
    if not all(isinstance(value, str) and value for value in values):
        return None
    path.chmod(0o600)
    return kept
