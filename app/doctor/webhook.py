"""Check of the webhook's handshake at its public address, made as Meta makes it."""

import secrets
from urllib.parse import urlsplit

from app.doctor.beginning import ANSWER_SECONDS, read_beginning
from app.doctor.finding import FAIL, OK, Finding

MOST_READ = 4096

_PART = "WhatsApp webhook"
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_STARTED = (
    "start the server, and the tunnel or proxy in front of it; a quick tunnel's address changes at each start"
)


def webhook_address(given: str) -> str:
    """Complete an address as an operator writes it: without a path it means `/webhook`."""
    bare = given.rstrip("/")
    return given if "/" in bare.partition("://")[2] else f"{bare}/webhook"


def check_handshake(address: str, verify_token: str) -> Finding:
    """Send Meta's GET with a challenge; follow no redirect and read little of the answer."""
    import httpx2

    fault = _fault_of(address)
    if fault:
        return Finding(
            FAIL,
            _PART,
            f"{address or 'the address'} {fault}",
            "give Meta's form https://YOUR-ADDRESS/webhook",
        )
    challenge = secrets.token_hex(8)
    asked = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
    try:
        with (
            httpx2.Client(timeout=ANSWER_SECONDS, trust_env=False) as http,
            http.stream("GET", address, params=asked, headers={"User-Agent": "recado-doctor"}) as response,
        ):
            said = read_beginning(response.iter_bytes(), MOST_READ)
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        return Finding(FAIL, _PART, f"{address} cannot be reached: {error or type(error).__name__}", _STARTED)
    if response.status_code == 200 and said.strip() == challenge.encode():
        return Finding(OK, _PART, f"{address} is reached, and the handshake succeeds")
    fact, cure = _fault_and_cure(response.status_code, said)
    return Finding(FAIL, _PART, f"{address} {fact}", cure)


def _fault_of(address: str) -> str:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return "is no address"
    if not host or parts.scheme not in ("http", "https"):
        return "is no address"
    if parts.scheme == "http" and host not in _LOCAL:
        return "is not https: Meta takes no other"
    return ""


def _fault_and_cure(status: int, said: bytes) -> tuple[str, str]:
    if status == 403:
        return (
            "refuses the handshake (403): another verify token is set there",
            "write the same WHATSAPP_VERIFY_TOKEN in .env and in Meta's form, and restart the server",
        )
    if status in (404, 405):
        return f"has no webhook ({status})", "the address in Meta's form has to end in /webhook"
    if 300 <= status < 400:
        return f"redirects ({status}): Meta does not follow", "give Meta's form the address it redirects to"
    if status in (502, 503, 504, 530):
        return f"answers {status}: the tunnel or proxy is there, the server behind it is not", _STARTED
    if status == 200:
        return (
            "answers, but not with the challenge: it is not this server, or a page of the tunnel's own",
            "see where the tunnel or proxy leads: it must pass /webhook on to this server as it is",
        )
    return f"answers {status} instead of the challenge", "see the log of the tunnel or proxy"
