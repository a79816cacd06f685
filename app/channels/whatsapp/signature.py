"""Proof that a webhook comes from Meta: the signature of a body and the handshake of an address."""

import hmac
from collections.abc import Mapping

_PREFIX = b"sha256="


def sign(body: bytes, secret: str) -> str:
    """Return the value of `X-Hub-Signature-256` for a body."""
    return _PREFIX.decode() + hmac.digest(_bytes(secret), body, "sha256").hex()


def verify_signature(body: bytes, header: str | None, secret: str) -> bool:
    """Return True if the header signs exactly these bytes; False without a secret. Never raises."""
    if not secret or not header:
        return False
    return hmac.compare_digest(_bytes(header), sign(body, secret).encode())


def verify_handshake(params: Mapping[str, str], token: str) -> str | None:
    """Return the challenge to echo if the query of `GET /webhook` has the right token, else None."""
    given = params.get("hub.verify_token") or ""
    if not token or params.get("hub.mode") != "subscribe":
        return None
    if not hmac.compare_digest(_bytes(given), _bytes(token)):
        return None
    return params.get("hub.challenge") or ""


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
