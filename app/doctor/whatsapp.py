"""Check of the WhatsApp credentials."""

import re
from collections.abc import Iterator

from app.doctor.account import Account
from app.doctor.finding import FAIL, OK, WARN, Finding
from app.doctor.graph import GraphAPI
from app.doctor.webhook import check_handshake, webhook_address
from app.settings import Settings

_PLACES = {
    "WHATSAPP_ACCESS_TOKEN": "Business settings > Users > System users > Generate token",
    "WHATSAPP_PHONE_NUMBER_ID": "developers.facebook.com > your app > WhatsApp > API Setup",
    "WHATSAPP_VERIFY_TOKEN": "a word of your own choice; the same one goes into Meta's webhook form",
    "WHATSAPP_APP_SECRET": "developers.facebook.com > your app > App settings > Basic > App secret",
}
_META = "https://graph.facebook.com/"
_APP_SECRET = re.compile(r"[0-9a-f]{32}")


def check_whatsapp(settings: Settings, address: str = "") -> Iterator[Finding]:
    """Report missing or impossible credentials; with all four ask Meta and try the handshake.

    `address` is a public address to try as well, before Meta's form has it.
    """
    if settings.uses_simulator and settings.simulator == "off":
        fact = "not connected, and the simulator is off: nobody can write, except with recado chat"
        cure = "leave SIMULATOR out to use the simulator, or connect WhatsApp: docs/whatsapp.md"
        yield Finding(WARN, "WhatsApp", fact, cure)
        return
    if settings.uses_simulator:
        yield Finding(
            OK, "WhatsApp", "not connected: the simulator is in use", "to connect it: docs/whatsapp.md"
        )
        return
    for name in settings.missing_credentials:
        yield Finding(FAIL, "WhatsApp", f"{name} is missing: /webhook answers 401", _PLACES[name])
    yield from _malformed(settings)
    verify_token = settings.whatsapp_verify_token.get_secret_value()
    if address and verify_token:
        yield check_handshake(webhook_address(address), verify_token)
    if not settings.missing_credentials:
        with GraphAPI(settings.whatsapp_api_url) as graph:
            yield from Account(settings, graph).findings()


def _malformed(settings: Settings) -> Iterator[Finding]:
    given = settings.whatsapp_credentials
    for name in ("WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET"):
        if re.search(r"[^!-~]|['\"]", given[name]):
            fact = f"{name} has a space, a quotation mark or a special character in it"
            yield Finding(FAIL, "WhatsApp", fact, "copy it again, the value alone, without the word Bearer")
    number = given["WHATSAPP_PHONE_NUMBER_ID"]
    if number and not _is_id(number, settings):
        fact = f"WHATSAPP_PHONE_NUMBER_ID={number} is no id, which has digits only"
        cure = f"not the number itself, but the id below it: {_PLACES['WHATSAPP_PHONE_NUMBER_ID']}"
        yield Finding(FAIL, "WhatsApp", fact, cure)
    secret = given["WHATSAPP_APP_SECRET"]
    if secret and not _APP_SECRET.fullmatch(secret):
        fact = "WHATSAPP_APP_SECRET is no app secret, which has 32 characters 0-9 a-f"
        yield Finding(WARN, "WhatsApp", fact, _PLACES["WHATSAPP_APP_SECRET"])


def _is_id(number: str, settings: Settings) -> bool:
    """Return True if a text can be a number's id: Meta's are digits, a stand-in's any word."""
    if settings.whatsapp_api_url.startswith(_META):
        return number.isdecimal()
    return re.fullmatch(r"\w[\w.-]*", number, re.ASCII) is not None
