"""Check of the WhatsApp credentials, Meta's view of them, and the webhook's handshake."""

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2

from app.doctor.finding import Finding, fail, ok, warn
from app.doctor.graph import ANSWER_SECONDS, Answer, GraphAPI
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings

CLOCK_SECONDS = 120.0
_FOREVER = 32_503_680_000
"""Unix seconds of the year 3000."""
SOON_SECONDS = 14 * 24 * 3600.0
DAY_SECONDS = 25 * 3600.0

_NUMBER, _TOKEN, _APP, _WEBHOOK = "WhatsApp number", "WhatsApp token", "WhatsApp app", "WhatsApp webhook"
_MESSAGING, _MANAGEMENT = "whatsapp_business_messaging", "whatsapp_business_management"
_PERMANENT = (
    "make a permanent one (Business settings > Users > System users > Generate token, expiry Never, with "
    f"{_MESSAGING} and {_MANAGEMENT}) and set WHATSAPP_ACCESS_TOKEN"
)
_CONFIGURATION = "developers.facebook.com > your app > WhatsApp > Configuration > Webhook"


class Account:
    """One number, token and app at Meta."""

    def __init__(self, settings: Settings, graph: GraphAPI) -> None:
        self._settings = settings
        self._graph = graph
        self._number_id = settings.whatsapp_phone_number_id
        self._token = settings.whatsapp_access_token.get_secret_value()
        self._secret = settings.whatsapp_app_secret.get_secret_value()

    def findings(self) -> Iterator[Finding]:
        """Return all that these credentials can tell, most telling first."""
        number = self._number("display_phone_number,verified_name,quality_rating")
        yield self._connection(number)
        if number.status == 0 or number.refuses_token or number.is_busy:
            return
        if abs(number.clock_ahead) > CLOCK_SECONDS:
            yield _clock(number.clock_ahead)
        # Asked apart: one field that this version of the API does not know would spoil the whole answer.
        health = self._number("health_status").data.get("health_status")
        yield from _health(health)
        token = self._token_data()
        yield _token(token)
        app = str(token.data.get("app_id") or "")
        if not app:
            address = self._callback()
            if address:
                yield self._handshake(address)
            return
        yield self._subscription_finding(app, _accounts(health, token.data))
        yield from self._webhook(app, str(token.data.get("application") or app))

    def templates(self) -> list[dict[str, JSON]]:
        """Return Meta's list of templates. Raises RecadoError where it cannot be had."""
        health = self._number("health_status").data.get("health_status")
        accounts = _accounts(health, self._token_data().data)
        found: list[dict[str, JSON]] = []
        for account in accounts:
            answer = self._graph.get(f"{account}/message_templates", self._token, {"limit": "200"})
            if not answer.is_good:
                raise RecadoError(f"the templates of the account {account} cannot be seen: {answer.said}")
            found += answer.rows()
        if not accounts:
            raise RecadoError("Meta does not tell the number's WhatsApp account")
        return found

    def _number(self, fields: str) -> Answer:
        return self._graph.get(self._number_id, self._token, {"fields": fields})

    def _connection(self, answer: Answer) -> Finding:
        url = self._graph.url
        if answer.is_address_wrong:
            cure = (
                "WHATSAPP_API_URL must look like https://graph.facebook.com/v25.0; leave it out for that one"
            )
            return fail(_NUMBER, f"the address {url} is wrong: {answer.said}", cure)
        if answer.status == 0:
            fact = f"{url} cannot be reached: {answer.said}"
            return warn(_NUMBER, fact, "see that this machine reaches the internet; messages wait")
        if answer.refuses_token:
            return fail(_TOKEN, f"the access token is expired or wrong: {answer.said}", _PERMANENT)
        if answer.lacks_permission:
            return fail(_TOKEN, f"the access token lacks a permission: {answer.said}", _PERMANENT)
        if answer.is_busy:
            fact = f"Meta does not answer now: {answer.said}"
            return warn(_NUMBER, fact, "try again in a few minutes")
        if answer.code == 100 or answer.status == 404:
            fact = f"WHATSAPP_PHONE_NUMBER_ID={self._number_id} is not known to this token: {answer.said}"
            cure = (
                "copy it from developers.facebook.com > your app > WhatsApp > API Setup, "
                "and assign the WhatsApp account to the system user"
            )
            return fail(_NUMBER, fact, cure)
        if not answer.is_good or "display_phone_number" not in answer.data:
            fact = f"{url} answered {answer.status}: {answer.said}"
            return fail(_NUMBER, fact, "see that WHATSAPP_API_URL is the Graph API's address")
        return _number_finding(answer.data)

    def _token_data(self) -> Answer:
        """Return `data` of `debug_token`.

        Meta wants an app's or a developer's token there; if a system user's own is refused, the app's is
        made of its id and secret.
        """
        asked = {"input_token": self._token}
        answer = self._graph.get("debug_token", self._token, asked)
        if not answer.is_good:
            app = self._graph.get("app", self._token, {"fields": "id"}).data.get("id")
            if app:
                answer = self._graph.get("debug_token", f"{app}|{self._secret}", asked)
        data = answer.data.get("data")
        if not answer.is_good or not isinstance(data, dict):
            return answer
        return Answer(answer.status, data)

    def _subscription_finding(self, app: str, accounts: Sequence[str]) -> Finding:
        cure = f"give the token {_MANAGEMENT}, and its system user the WhatsApp account"
        if not accounts:
            fact = "Meta does not tell the number's WhatsApp account: its subscription cannot be seen"
            return warn(_APP, fact, cure)
        for account in accounts:
            answer = self._graph.get(f"{account}/subscribed_apps", self._token)
            if answer.is_good and app in _subscribers(answer):
                return ok(_APP, f"app {app} is subscribed to the WhatsApp account {account}")
        if not answer.is_good:
            fact = f"the subscriptions of the WhatsApp account {accounts[-1]} cannot be seen: {answer.said}"
            return warn(_APP, fact, cure)
        cure = (
            f'subscribe it: curl -X POST -H "Authorization: Bearer $WHATSAPP_ACCESS_TOKEN" '
            f"{self._graph.url}/{accounts[-1]}/subscribed_apps"
        )
        fact = f"app {app} is not subscribed to the WhatsApp account {accounts[-1]}: no message arrives"
        return fail(_APP, fact, cure)

    def _webhook(self, app: str, name: str) -> Iterator[Finding]:
        """Check the app secret and the subscription with the app's own token."""
        answer = self._graph.get(f"{app}/subscriptions", f"{app}|{self._secret}")
        found = [row for row in answer.rows() if row.get("object") == "whatsapp_business_account"]
        address = self._callback()
        if not answer.is_good:
            yield _secret_finding(answer, name)
        elif not found:
            yield fail(_WEBHOOK, f"app {name} has no webhook", f"set it at {_CONFIGURATION}")
            return
        else:
            address = address or str(found[0].get("callback_url") or "")
            if "messages" not in _fields(found[0]) or found[0].get("active") is False:
                fact = f"app {name} does not send messages to its webhook"
                yield fail(_WEBHOOK, fact, f"subscribe the field messages at {_CONFIGURATION} fields")
        if address:
            yield self._handshake(address)

    def _callback(self) -> str:
        """Return the callback address: the number's own, else its account's, else the app's."""
        chosen = self._number("webhook_configuration").data.get("webhook_configuration")
        places = ("phone_number", "whatsapp_business_account", "application")
        if not isinstance(chosen, dict):
            return ""
        return next((str(chosen[place]) for place in places if chosen.get(place)), "")

    def _handshake(self, address: str) -> Finding:
        return check_handshake(address, self._settings.whatsapp_verify_token.get_secret_value())


def _number_finding(data: dict[str, JSON]) -> Finding:
    name = data.get("verified_name") or "no verified name"
    fact = f"connected to {data['display_phone_number']} ({name})"
    if name == "Test Number":
        note = "a test number reaches only the phones on its list (WhatsApp > API Setup > To)"
        return ok(_NUMBER, fact, note)
    if data.get("quality_rating") in ("RED", "YELLOW"):
        fact = f"{fact}, its quality is {data['quality_rating']}: people block or report it"
        return warn(
            _NUMBER, fact, "write to fewer people who did not ask; see WhatsApp Manager > Phone numbers"
        )
    return ok(_NUMBER, fact)


def _clock(ahead: float) -> Finding:
    fact = f"this machine's clock is {abs(ahead) / 60:.0f} minutes {'ahead' if ahead > 0 else 'behind'}"
    return warn("clock", fact, "let it be set from the network: timedatectl set-ntp true")


def _health(health: JSON) -> Iterator[Finding]:
    """Return Meta's reasons against sending; replies may pass all the same."""
    if not isinstance(health, dict) or health.get("can_send_message") in (None, "AVAILABLE"):
        return
    fact, cure = (
        f"Meta says that sending is {health['can_send_message']}",
        "see WhatsApp Manager > Phone numbers",
    )
    for entity in _entities(health):
        errors = entity.get("errors")
        for error in errors if isinstance(errors, list) else ():
            if isinstance(error, dict):
                fact = f"{fact}: {error.get('error_description') or error.get('error_code')}"
                yield warn(_NUMBER, fact, str(error.get("possible_solution") or cure))
                return
        info = entity.get("additional_info")
        if isinstance(info, list) and info:
            fact = f"{fact}: {info[0]}"
            break
    yield warn(_NUMBER, fact, cure)


def _token(answer: Answer) -> Finding:
    data = answer.data
    if "is_valid" not in data:
        fact = f"Meta tells nothing about the token: {answer.said}"
        return warn(
            _TOKEN, fact, "nothing, as long as answers go out; a system user's token can be looked at"
        )
    if data["is_valid"] is not True:
        return fail(_TOKEN, f"the access token is not valid: {answer.said}", _PERMANENT)
    scopes = data.get("scopes")
    if isinstance(scopes, list) and _MESSAGING not in scopes:
        return fail(_TOKEN, f"the access token lacks {_MESSAGING}: nothing can be sent", _PERMANENT)
    if isinstance(scopes, list) and _MANAGEMENT not in scopes:
        fact = f"the access token lacks {_MANAGEMENT}: its account cannot be looked at"
        return warn(_TOKEN, fact, _PERMANENT)
    expires = data.get("expires_at")
    if not isinstance(expires, int) or not 0 < expires < _FOREVER:
        return ok(_TOKEN, f"valid and permanent, of the app {data.get('application') or 'without a name'}")
    day = f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M} UTC"
    issued = data.get("issued_at")
    is_for_a_day = isinstance(issued, int) and expires - issued <= DAY_SECONDS
    if is_for_a_day or expires - time.time() < SOON_SECONDS:
        kind = "is a temporary one and " if is_for_a_day else ""
        return warn(_TOKEN, f"the access token {kind}expires on {day}", _PERMANENT)
    return ok(_TOKEN, f"valid until {day}", "a token without expiry spares the exchange")


def _secret_finding(answer: Answer, name: str) -> Finding:
    if answer.refuses_token or answer.code == 101 or "secret" in answer.said.lower():
        fact = f"WHATSAPP_APP_SECRET is not the secret of the token's app {name}: {answer.said}"
        return fail(_APP, fact, f"copy it from developers.facebook.com > {name} > App settings > Basic")
    fact = f"Meta does not tell the app's webhook: {answer.said}"
    return warn(_WEBHOOK, fact, f"try again in a few minutes, or look at {_CONFIGURATION}")


def _accounts(health: JSON, token: dict[str, JSON]) -> list[str]:
    """Return the WhatsApp accounts that may hold the number, from the first source that tells."""
    for entity in _entities(health):
        if entity.get("entity_type") == "WABA" and entity.get("id"):
            return [str(entity["id"])]
    scopes = token.get("granular_scopes")
    found: dict[str, None] = {}
    for scope in scopes if isinstance(scopes, list) else ():
        targets = scope.get("target_ids") if isinstance(scope, dict) else None
        if isinstance(targets, list) and str(scope.get("scope", "")).startswith("whatsapp_business_"):
            found.update(dict.fromkeys(map(str, targets)))
    return list(found)


def _entities(health: JSON) -> Iterator[dict[str, JSON]]:
    found = health.get("entities") if isinstance(health, dict) else None
    yield from (entity for entity in found if isinstance(entity, dict)) if isinstance(found, list) else ()


def _subscribers(answer: Answer) -> set[str]:
    apps = (row.get("whatsapp_business_api_data") for row in answer.rows())
    return {str(app.get("id")) for app in apps if isinstance(app, dict)}


def _fields(subscription: dict[str, JSON]) -> set[str]:
    """Return the names of the subscribed fields; newer API versions give objects with a version."""
    found = subscription.get("fields")
    fields = found if isinstance(found, list) else []
    return {str(one.get("name")) if isinstance(one, dict) else str(one) for one in fields}


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_STARTED = (
    "start the server, and the tunnel or proxy in front of it; a quick tunnel's address changes at each start"
)


def webhook_address(given: str) -> str:
    """Complete an address as an operator writes it: without a path it means `/webhook`."""
    bare = given.rstrip("/")
    return given if "/" in bare.partition("://")[2] else f"{bare}/webhook"


def check_handshake(address: str, verify_token: str) -> Finding:
    """Send Meta's GET with a challenge; follow no redirect."""
    fault = _fault_of(address)
    if fault:
        return fail(
            _WEBHOOK,
            f"{address or 'the address'} {fault}",
            "give Meta's form https://YOUR-ADDRESS/webhook",
        )
    challenge = secrets.token_hex(8)
    asked = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
    try:
        response = httpx2.get(address, params=asked, timeout=ANSWER_SECONDS, trust_env=False)
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        return fail(_WEBHOOK, f"{address} cannot be reached: {error or type(error).__name__}", _STARTED)
    if response.status_code == 200 and response.text.strip() == challenge:
        return ok(_WEBHOOK, f"{address} is reached, and the handshake succeeds")
    fact, cure = _fault_and_cure(response.status_code)
    return fail(_WEBHOOK, f"{address} {fact}", cure)


def check_closed(address: str) -> Iterator[Finding]:
    """Try what only this machine may reach through a public address."""
    base = address.rstrip("/").removesuffix("/webhook")
    if any(f"//{local}" in base for local in _LOCAL):
        return
    cure = "let the tunnel or proxy pass /webhook alone, with Host and X-Forwarded-For: docs/whatsapp.md"
    for path in ("/simulator", "/metrics"):
        try:
            response = httpx2.get(base + path, timeout=ANSWER_SECONDS, trust_env=False)
        except (httpx2.InvalidURL, httpx2.HTTPError):
            continue  # the handshake's line tells why
        if response.status_code == 200:
            yield fail("public address", f"anybody reaches {base}{path}", cure)


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


def _fault_and_cure(status: int) -> tuple[str, str]:
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
        yield warn("WhatsApp", fact, cure)
        return
    if address:
        yield from check_closed(address)
    if settings.uses_simulator:
        yield ok("WhatsApp", "not connected: the simulator is in use", "to connect it: docs/whatsapp.md")
        return
    for name in settings.missing_credentials:
        yield fail("WhatsApp", f"{name} is missing: /webhook answers 401", _PLACES[name])
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
            yield fail("WhatsApp", fact, "copy it again, the value alone, without the word Bearer")
    number = given["WHATSAPP_PHONE_NUMBER_ID"]
    if number and not _is_id(number, settings):
        fact = f"WHATSAPP_PHONE_NUMBER_ID={number} is no id, which has digits only"
        cure = f"not the number itself, but the id below it: {_PLACES['WHATSAPP_PHONE_NUMBER_ID']}"
        yield fail("WhatsApp", fact, cure)
    secret = given["WHATSAPP_APP_SECRET"]
    if secret and not _APP_SECRET.fullmatch(secret):
        fact = "WHATSAPP_APP_SECRET is no app secret, which has 32 characters 0-9 a-f"
        yield warn("WhatsApp", fact, _PLACES["WHATSAPP_APP_SECRET"])


def _is_id(number: str, settings: Settings) -> bool:
    """Return True if a text can be a number's id: Meta's are digits, a stand-in's any word."""
    if settings.whatsapp_api_url.startswith(_META):
        return number.isdecimal()
    return re.fullmatch(r"\w[\w.-]*", number, re.ASCII) is not None
