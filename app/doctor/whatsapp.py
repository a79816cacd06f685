"""The WhatsApp credentials: which are missing, and what Meta says to the rest."""

from collections.abc import Iterator

from app.doctor.finding import FAIL, OK, WARN, Finding
from app.messages import JSON
from app.settings import Settings

ANSWER_SECONDS = 10.0

_PLACES = {
    "WHATSAPP_ACCESS_TOKEN": "Business settings > Users > System users > Generate token",
    "WHATSAPP_PHONE_NUMBER_ID": "developers.facebook.com > your app > WhatsApp > API Setup",
    "WHATSAPP_VERIFY_TOKEN": "a word of your own choice; the same one goes into Meta's webhook form",
    "WHATSAPP_APP_SECRET": "developers.facebook.com > your app > App settings > Basic > App secret",
}
_PERMANENT = (
    "make a permanent one (Business settings > Users > System users > Generate token, with "
    "whatsapp_business_messaging and whatsapp_business_management) and set WHATSAPP_ACCESS_TOKEN"
)
_LIMITED = frozenset({4, 17, 32, 613, 80007, 130429})


def check_whatsapp(settings: Settings) -> Iterator[Finding]:
    """Each missing credential and where it is found; with all four, one question to the Graph API."""
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
    if not settings.missing_credentials:
        yield _asked(settings)


def _asked(settings: Settings) -> Finding:
    import httpx2

    number = settings.whatsapp_phone_number_id
    try:
        response = httpx2.get(
            f"{settings.whatsapp_api_url}/{number}",
            params={"fields": "display_phone_number,verified_name"},
            headers={"Authorization": f"Bearer {settings.whatsapp_access_token.get_secret_value()}"},
            timeout=ANSWER_SECONDS,
            trust_env=False,
        )
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        cure = "WHATSAPP_API_URL must look like https://graph.facebook.com/v25.0; leave it out for that one"
        return Finding(FAIL, "WhatsApp", f"the address {settings.whatsapp_api_url} is wrong: {error}", cure)
    except httpx2.HTTPError as error:
        fact = f"{settings.whatsapp_api_url} cannot be reached: {error or type(error).__name__}"
        return Finding(WARN, "WhatsApp", fact, "see that this machine reaches the internet; messages wait")
    try:
        answer = response.json()
    except ValueError:
        answer = None
    return read_answer(response.status_code, answer, settings)


def read_answer(status: int, answer: JSON, settings: Settings) -> Finding:
    """What the Graph API's answer about our number means."""
    answer = answer if isinstance(answer, dict) else {}
    if status == 200 and "display_phone_number" in answer:
        name = answer.get("verified_name") or "no verified name"
        return Finding(OK, "WhatsApp", f"connected to {answer['display_phone_number']} ({name})")
    error = answer.get("error")
    error = error if isinstance(error, dict) else {}
    code = error.get("code")
    said = str(error.get("message") or f"answer {status}")[:300]
    if code == 190 or (status == 401 and code is None):
        return Finding(FAIL, "WhatsApp", f"the access token is expired or wrong: {said}", _PERMANENT)
    if code in (3, 10) or (isinstance(code, int) and 200 <= code <= 299):
        return Finding(FAIL, "WhatsApp", f"the access token lacks a permission: {said}", _PERMANENT)
    if code in _LIMITED or status == 429 or status >= 500:
        return Finding(WARN, "WhatsApp", f"Meta does not answer now: {said}", "try again in a few minutes")
    if code == 100 or status == 404:
        fact = f"WHATSAPP_PHONE_NUMBER_ID={settings.whatsapp_phone_number_id} is not known there: {said}"
        return Finding(FAIL, "WhatsApp", fact, f"copy it from {_PLACES['WHATSAPP_PHONE_NUMBER_ID']}")
    fact = f"{settings.whatsapp_api_url} answered {status}: {said}"
    return Finding(FAIL, "WhatsApp", fact, "see that WHATSAPP_API_URL is the Graph API's address")
