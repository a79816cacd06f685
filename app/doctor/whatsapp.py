"""Check of the WhatsApp credentials, Meta's view of them, and the webhook's handshake."""

import re
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2

from app.channels.whatsapp.errors import parse_object
from app.channels.whatsapp.payloads import objects
from app.errors import RecadoError
from app.http.endpoint import url_fault
from app.i18n import lazy
from app.messages import JSON, array, mapping
from app.ops import Finding, fail, ok, warn
from app.settings import Settings

ANSWER_SECONDS = 10.0

_BUSY = frozenset({4, 17, 32, 613, 80007, 130429})
_REFUSED_TOKEN = frozenset({3, 10, 102, 190, *range(200, 300)})


class Answer:
    """An answer of the Graph API; `status` 0 means that none came, and `fault` says why.

    `code` is Meta's error code, -1 if there is none; `is_away`: another try may succeed; `rows` are the
    objects of the list under `data`.
    """

    def __init__(self, status: int, data: dict[str, JSON], fault: str = "") -> None:
        error = mapping(data.get("error"))
        self.status, self.data = status, data
        self.is_good = status == 200 and not error
        self.code = error["code"] if isinstance(error.get("code"), int) else -1
        self.said = fault or str(error.get("message") or f"answer {status}")[:300]
        self.is_away = status in (0, 429) or status >= 500 or self.code in _BUSY
        self.refuses_token = self.code in _REFUSED_TOKEN or (status == 401 and self.code == -1)
        self.rows = list(objects(data.get("data")))


_FOREVER = 32_503_680_000  # Unix seconds of the year 3000
SOON_SECONDS = 14 * 24 * 3600.0

_NUMBER, _TOKEN, _APP, _WEBHOOK = "WhatsApp number", "WhatsApp token", "WhatsApp app", "WhatsApp webhook"
_MESSAGING, _MANAGEMENT = "whatsapp_business_messaging", "whatsapp_business_management"
_PERMANENT = lazy(
    "make a permanent one (Business settings > Users > System users > Generate token, expiry Never, with "
    "whatsapp_business_messaging and whatsapp_business_management) and set WHATSAPP_ACCESS_TOKEN"
)
# Where each of WhatsApp's credentials is found.
_PLACES = {
    "WHATSAPP_ACCESS_TOKEN": "Business settings > Users > System users > Generate token",
    "WHATSAPP_PHONE_NUMBER_ID": "developers.facebook.com > your app > WhatsApp > API Setup",
    "WHATSAPP_VERIFY_TOKEN": lazy("a word of your own choice; the same one goes into Meta's webhook form"),
    "WHATSAPP_APP_SECRET": "developers.facebook.com > your app > App settings > Basic > App secret",
}
# For a webhook that is not reached.
_UNREACHED = lazy(
    "start the server, and the tunnel or proxy in front of it; a quick tunnel's address changes at each start"
)
_CONFIGURATION = "developers.facebook.com > your app > WhatsApp > Configuration > Webhook"


def check_whatsapp(settings: Settings, address: str = "") -> Iterator[Finding]:
    """Report missing or impossible credentials; with all four ask Meta and try the handshake.

    `address` is a public address to try as well, before Meta's form has it.
    """
    if settings.uses_simulator and settings.simulator == "off":
        fact = lazy("not connected, and the simulator is off: nobody can write, except with {recado} chat")
        cure = lazy("leave SIMULATOR out to use the simulator, or connect WhatsApp: docs/whatsapp.md")
        yield warn("WhatsApp", fact, cure)
        return
    base = address.rstrip("/").removesuffix("/webhook")
    if address:
        yield from _check_closed(base)
    if settings.uses_simulator:
        fact = lazy("not connected: the simulator is in use")
        yield ok("WhatsApp", fact, lazy("to connect it: docs/whatsapp.md"))
        return
    for name, given in settings.whatsapp_credentials.items():
        place = _PLACES[name]
        if not given:
            yield fail("WhatsApp", lazy("{name} is missing: /webhook answers 401", name=name), place)
        elif name != "WHATSAPP_VERIFY_TOKEN" and re.search(r"[^!-~]|['\"]", given):
            fact = lazy("{name} has a space, a quotation mark or a special character in it", name=name)
            cure = lazy("copy the value alone, without the word Bearer: {place}", place=place)
            yield fail("WhatsApp", fact, cure)
    verify_token = settings.whatsapp_verify_token.get_secret_value()
    if address and verify_token:
        yield _check_handshake(f"{base}/webhook", verify_token)
    if not settings.missing_credentials:
        yield from Account(settings).findings()


class Account:
    """One number, token and app at Meta."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.whatsapp_api_url
        self._number_id = settings.whatsapp_phone_number_id
        self._token = settings.whatsapp_access_token.get_secret_value()
        self._secret = settings.whatsapp_app_secret.get_secret_value()
        self._verify_token = settings.whatsapp_verify_token.get_secret_value()

    def findings(self) -> Iterator[Finding]:
        """Return all that these credentials can tell, most telling first."""
        number = self._number("display_phone_number,verified_name")
        yield self._connection(number)
        if number.is_away or number.refuses_token:
            return
        # Asked apart: one field that this version of the API does not know would spoil the whole answer.
        health = self._number("health_status").data.get("health_status")
        yield from _health(health)
        token = self._token_data()
        yield _token(token)
        if app := str(token.data.get("app_id") or ""):
            yield self._subscription(app, _account(health, token))
            yield from self._webhook(app, str(token.data.get("application") or app))

    def templates(self) -> list[dict[str, JSON]]:
        """Return Meta's list of templates. Raises RecadoError where it cannot be had."""
        health = self._number("health_status").data.get("health_status")
        account = _account(health, self._token_data())
        if not account:
            raise RecadoError("Meta does not tell the number's WhatsApp account")
        answer = self._get(f"{account}/message_templates", self._token, limit="200")
        if not answer.is_good:
            raise RecadoError(f"the templates of the account {account} cannot be seen: {answer.said}")
        return answer.rows

    def _get(self, path: str, token: str, **parameters: str) -> Answer:
        """Ask the Graph API; no fault raises. Redirects are not followed: the token goes nowhere else."""
        headers = {"Authorization": f"Bearer {token}"}
        url, seconds = f"{self._url}/{path}", ANSWER_SECONDS
        try:
            response = httpx2.get(url, params=parameters, headers=headers, timeout=seconds, trust_env=False)
        except (httpx2.InvalidURL, httpx2.HTTPError) as error:
            return Answer(0, {}, str(error) or type(error).__name__)
        return Answer(response.status_code, parse_object(response.content))

    def _number(self, fields: str) -> Answer:
        return self._get(self._number_id, self._token, fields=fields)

    def _connection(self, answer: Answer) -> Finding:
        said = {"url": self._url, "id": self._number_id, "status": answer.status, "reason": answer.said}
        if answer.is_away:
            fact = lazy("{url} cannot be reached or does not answer now: {reason}", **said)
            cure = lazy(
                "see that this machine reaches the internet, and try again in a few minutes; messages wait"
            )
            return warn(_NUMBER, fact, cure)
        if answer.refuses_token:
            return fail(_TOKEN, lazy("Meta refuses the access token: {reason}", **said), _PERMANENT)
        if answer.code == 100 or answer.status == 404:
            fact = lazy("WHATSAPP_PHONE_NUMBER_ID={id} is not known to this token: {reason}", **said)
            cure = lazy(
                "copy it from developers.facebook.com > your app > WhatsApp > API Setup, "
                "and assign the WhatsApp account to the system user"
            )
            return fail(_NUMBER, fact, cure)
        if not answer.is_good or "display_phone_number" not in answer.data:
            fact = lazy("{url} answered {status}: {reason}", **said)
            return fail(_NUMBER, fact, lazy("see that WHATSAPP_API_URL is the Graph API's address"))
        name, number = answer.data.get("verified_name") or "–", answer.data["display_phone_number"]
        return ok(_NUMBER, lazy("connected to {number} ({name})", number=number, name=name))

    def _token_data(self) -> Answer:
        """Return `data` of `debug_token`.

        Meta wants an app's or a developer's token there; if a system user's own is refused, the app's is
        made of its id and secret.
        """
        answer = self._get("debug_token", self._token, input_token=self._token)
        if not answer.is_good and (app := self._get("app", self._token, fields="id").data.get("id")):
            answer = self._get("debug_token", f"{app}|{self._secret}", input_token=self._token)
        data = answer.data.get("data")
        return Answer(answer.status, data) if answer.is_good and isinstance(data, dict) else answer

    def _subscription(self, app: str, account: str) -> Finding:
        cure: str = lazy(
            "give the token {scope}, and its system user the WhatsApp account", scope=_MANAGEMENT
        )
        answer = self._get(f"{account}/subscribed_apps", self._token)
        said = {"app": app, "account": account or "–", "reason": answer.said}
        if not answer.is_good:
            fact = lazy(
                "the subscriptions of the WhatsApp account {account} cannot be seen: {reason}", **said
            )
            return warn(_APP, fact, cure)
        subscribed = objects([row.get("whatsapp_business_api_data") for row in answer.rows])
        if app in {str(one.get("id")) for one in subscribed}:
            return ok(_APP, lazy("app {app} is subscribed to the WhatsApp account {account}", **said))
        cure = (
            f'curl -X POST -H "Authorization: Bearer $WHATSAPP_ACCESS_TOKEN" '
            f"{self._url}/{account}/subscribed_apps"
        )
        fact = lazy(
            "app {app} is not subscribed to the WhatsApp account {account}: no message arrives", **said
        )
        return fail(_APP, fact, cure)

    def _webhook(self, app: str, name: str) -> Iterator[Finding]:
        """Check the app secret and the subscription with the app's own token, and try the handshake."""
        answer = self._get(f"{app}/subscriptions", f"{app}|{self._secret}")
        rows = [row for row in answer.rows if row.get("object") == "whatsapp_business_account"]
        if not answer.is_good:
            yield _secret_finding(answer, name)
        elif not rows or "messages" not in _fields(rows[0]) or rows[0].get("active") is False:
            fact = lazy("app {name} sends no messages to a webhook", name=name)
            cure = lazy("set it, and subscribe the field messages, at {place}", place=_CONFIGURATION)
            yield fail(_WEBHOOK, fact, cure)
        elif address := str(rows[0].get("callback_url") or ""):
            yield _check_handshake(address, self._verify_token)


def _health(health: JSON) -> Iterator[Finding]:
    """Return Meta's first reason against sending; replies may pass all the same."""
    if not isinstance(health, dict) or health.get("can_send_message") in (None, "AVAILABLE"):
        return
    errors = [error for entity in objects(health.get("entities")) for error in objects(entity.get("errors"))]
    error = errors[0] if errors else {}
    reason = error.get("error_description") or error.get("error_code") or "–"
    cure = str(error.get("possible_solution") or "") or lazy("see WhatsApp Manager > Phone numbers")
    state = health["can_send_message"]
    fact = lazy("Meta says that sending is {state}: {reason}", state=state, reason=reason)
    yield warn(_NUMBER, fact, cure)


def _token(answer: Answer) -> Finding:
    data = answer.data
    if "is_valid" not in data:
        fact = lazy("Meta tells nothing about the token: {reason}", reason=answer.said)
        cure = lazy("nothing, as long as answers go out; a system user's token can be looked at")
        return warn(_TOKEN, fact, cure)
    if data["is_valid"] is not True:
        fact = lazy("the access token is not valid: {reason}", reason=answer.said)
        return fail(_TOKEN, fact, _PERMANENT)
    wanted = (_MESSAGING, _MANAGEMENT)
    scopes = data.get("scopes")
    if lacking := [scope for scope in wanted if isinstance(scopes, list) and scope not in scopes]:
        told = fail if _MESSAGING in lacking else warn
        return told(_TOKEN, lazy("the access token lacks {scope}", scope=", ".join(lacking)), _PERMANENT)
    expires = data.get("expires_at")
    if not isinstance(expires, int) or not 0 < expires < _FOREVER:
        app = data.get("application") or "–"
        return ok(_TOKEN, lazy("valid and permanent, of the app {app}", app=app))
    day = f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M} UTC"
    if expires - time.time() < SOON_SECONDS:
        return warn(_TOKEN, lazy("the access token expires on {day}", day=day), _PERMANENT)
    cure = lazy("a token without expiry spares the exchange")
    return ok(_TOKEN, lazy("valid until {day}", day=day), cure)


def _secret_finding(answer: Answer, name: str) -> Finding:
    said = {"name": name, "reason": answer.said}
    if answer.refuses_token or answer.code == 101 or "secret" in answer.said.lower():
        fact = lazy("WHATSAPP_APP_SECRET is not the secret of the token's app {name}: {reason}", **said)
        cure = lazy("copy it from developers.facebook.com > {name} > App settings > Basic", **said)
        return fail(_APP, fact, cure)
    fact = lazy("Meta does not tell the app's webhook: {reason}", **said)
    cure = lazy("try again in a few minutes, or look at {place}", place=_CONFIGURATION)
    return warn(_WEBHOOK, fact, cure)


def _account(health: JSON, token: Answer) -> str:
    """Return the WhatsApp account that holds the number, else the token's first; "" if Meta tells none."""
    for entity in objects(mapping(health).get("entities")):
        if entity.get("entity_type") == "WABA" and entity.get("id"):
            return str(entity["id"])
    scopes = objects(token.data.get("granular_scopes"))
    whatsapp = [one for one in scopes if str(one.get("scope")).startswith("whatsapp_business_")]
    return next((str(account) for one in whatsapp for account in array(one.get("target_ids"))), "")


def _fields(subscription: dict[str, JSON]) -> set[str]:
    """Return the names of the subscribed fields; newer API versions give objects with a version."""
    found = subscription.get("fields")
    fields = found if isinstance(found, list) else []
    return {str(one.get("name")) if isinstance(one, dict) else str(one) for one in fields}


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def _check_handshake(address: str, verify_token: str) -> Finding:
    """Send Meta's GET with a challenge; follow no redirect."""
    fault = url_fault(address)
    if not fault and address.startswith("http:") and urlsplit(address).hostname not in _LOCAL:
        fault = lazy("Meta takes https only")
    if fault:
        fact = lazy("{name}: {fault}", name=address, fault=fault)
        return fail(_WEBHOOK, fact, lazy("give Meta's form https://YOUR-ADDRESS/webhook"))
    challenge = secrets.token_hex(8)
    asked = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
    try:
        response = httpx2.get(address, params=asked, timeout=ANSWER_SECONDS, trust_env=False)
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        reason = str(error) or type(error).__name__
        fact = lazy("{address} cannot be reached: {reason}", address=address, reason=reason)
        return fail(_WEBHOOK, fact, _UNREACHED)
    if response.status_code == 200 and response.text.strip() == challenge:
        return ok(_WEBHOOK, lazy("{address} is reached, and the handshake succeeds", address=address))
    values = {"address": address, "status": response.status_code}
    if response.status_code == 403:
        fact = lazy("{address} refuses the handshake ({status}): another verify token is set there", **values)
        cure = lazy("write the same WHATSAPP_VERIFY_TOKEN in .env and in Meta's form, and restart the server")
        return fail(_WEBHOOK, fact, cure)
    fact = lazy("{address} does not answer with the challenge ({status})", **values)
    cure = lazy(
        "see that the server runs, that the address ends in /webhook, and that the tunnel or proxy passes it "
        "on to this server as it is"
    )
    return fail(_WEBHOOK, fact, cure)


def _check_closed(base: str) -> Iterator[Finding]:
    """Try what only this machine may reach through a public address."""
    if any(f"//{local}" in base for local in _LOCAL):
        return
    cure = lazy(
        "let the tunnel or proxy pass /webhook alone, with Host and X-Forwarded-For: docs/whatsapp.md"
    )
    for path in ("/simulator", "/metrics"):
        try:
            response = httpx2.get(base + path, timeout=ANSWER_SECONDS, trust_env=False)
        except (httpx2.InvalidURL, httpx2.HTTPError):
            continue  # the handshake's line tells why
        if response.status_code == 200:
            fact = lazy("anybody reaches {address}", address=base + path)
            yield fail("public address", fact, cure)
