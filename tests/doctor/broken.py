"""Set-ups with one fault each, and what `recado doctor` has to say of it."""

import sqlite3
import time
from collections.abc import Callable

from tests.doctor.house import CLOSED, House
from tests.standins import meta
from tests.standins.answers import Told
from tests.world import free_port

HOUR = 3600


def environment(**variables: str) -> Callable[[House], None]:
    return lambda house: house.variables.update(variables)


def at_meta(path: str, told: Told) -> Callable[[House], None]:
    return lambda house: house.graph.answers.update({f"/v25.0/{path}": told})


def no_webhook_subscribed(house: House) -> None:
    house.graph.answers[f"/v25.0/{meta.APP}/subscriptions"] = (200, {"data": []})


def webhook_elsewhere(path: str) -> Callable[[House], None]:
    def move(house: House) -> None:
        address = path if "://" in path else f"{house.server.url}{path}"
        house.graph.answers[f"/v25.0/{meta.APP}/subscriptions"] = meta.subscription(address)

    return move


def off_the_test_list(house: House) -> None:
    path = house.folder / "recado.db"
    source = sqlite3.connect(house.server.folder / "recado.db")
    copy = sqlite3.connect(path)
    source.backup(copy)
    copy.execute(
        "INSERT INTO alerts (code, text, first_at, last_at) VALUES ('undelivered:131030', ?, ?, ?)",
        ("WhatsApp could not deliver a message: 131030 not in allowed list", time.time(), time.time()),
    )
    copy.commit()
    source.close()
    copy.close()
    path.chmod(0o600)
    house.variables |= {"DATABASE_URL": f"sqlite:///{path}", "PORT": str(free_port())}


def broken_skill(house: House) -> None:
    skills = house.folder / "skills"
    (skills / "mine").mkdir(parents=True)
    (skills / "mine" / "SKILL.md").write_text("no frontmatter")
    house.variables["SKILLS_DIR"] = str(skills)


BLOCKED = {"can_send_message": "BLOCKED"}
UNPAID = {
    **{"entity_type": "WABA", "id": meta.ACCOUNT, **BLOCKED},
    "errors": [
        {
            "error_code": 141006,
            "error_description": "There is an error with the payment method.",
            "possible_solution": "Add a valid payment method.",
        }
    ],
}
BROKEN: list[tuple[Callable[[House], None], str, str]] = [
    # how it is broken, the line's beginning, its cure
    (
        environment(WHATSAPP_APP_SECRET=""),
        "FAIL WhatsApp: WHATSAPP_APP_SECRET is missing",
        "App settings > Basic",
    ),
    (
        environment(WHATSAPP_ACCESS_TOKEN=f"Bearer {meta.TOKEN}"),
        "FAIL WhatsApp: WHATSAPP_ACCESS_TOKEN has a space",
        "the value alone",
    ),
    (
        at_meta(meta.NUMBER, meta.error(401, 190, "Session has expired")),
        "FAIL WhatsApp token: Meta refuses the access token: Session has expired",
        "System users > Generate token",
    ),
    (
        at_meta("debug_token", meta.token(expires_at=int(time.time()) + 23 * HOUR)),
        "WARN WhatsApp token: the access token expires on 20",
        "System users > Generate token",
    ),
    (
        at_meta("debug_token", meta.token(scopes=["whatsapp_business_management"])),
        "FAIL WhatsApp token: the access token lacks whatsapp_business_messaging",
        "whatsapp_business_messaging",
    ),
    (
        at_meta(meta.NUMBER, meta.error(400, 100, "Unsupported get request", error_subcode=33)),
        f"FAIL WhatsApp number: WHATSAPP_PHONE_NUMBER_ID={meta.NUMBER} is not known",
        "assign the WhatsApp account to the system user",
    ),
    (
        at_meta(meta.NUMBER, meta.number(health_status={**BLOCKED, "entities": [UNPAID]})),
        "WARN WhatsApp number: Meta says that sending is BLOCKED: There is an error with the payment",
        "Add a valid payment method",
    ),
    (
        environment(WHATSAPP_APP_SECRET="f" * 32),
        "FAIL WhatsApp app: WHATSAPP_APP_SECRET is not the secret of the token's app Errands",
        "App settings > Basic",
    ),
    (
        at_meta(f"{meta.ACCOUNT}/subscribed_apps", meta.subscribers("1")),
        f"FAIL WhatsApp app: app {meta.APP} is not subscribed to the WhatsApp account {meta.ACCOUNT}",
        'curl -X POST -H "Authorization: Bearer $WHATSAPP_ACCESS_TOKEN" http://127.0.0.1',
    ),
    (
        at_meta(f"{meta.APP}/subscriptions", meta.subscription(CLOSED, "account_update")),
        "FAIL WhatsApp webhook: app Errands sends no messages to a webhook",
        "subscribe the field messages",
    ),
    (
        webhook_elsewhere(f"{CLOSED}/webhook"),
        f"FAIL WhatsApp webhook: {CLOSED}/webhook cannot be reached",
        "start the server, and the tunnel",
    ),
    (webhook_elsewhere("/hook"), "FAIL WhatsApp webhook: http://127.0.0.1", "the address ends in /webhook"),
    (
        webhook_elsewhere("http://recado.example/webhook"),
        "FAIL WhatsApp webhook: http://recado.example/webhook: Meta takes https only",
        "https://YOUR-ADDRESS/webhook",
    ),
    (
        environment(WHATSAPP_VERIFY_TOKEN="another-word"),
        "FAIL WhatsApp webhook: http://127.0.0.1",
        "the same WHATSAPP_VERIFY_TOKEN in .env and in Meta's form",
    ),
    (
        environment(WHATSAPP_API_URL=f"{CLOSED}/v25.0"),
        f"WARN WhatsApp number: {CLOSED}/v25.0 cannot be reached",
        "reaches the internet",
    ),
    (off_the_test_list, "WARN alert: WhatsApp could not deliver a message: 131030", "API Setup > To"),
    (broken_skill, "FAIL skills: mine", "recado skills check"),
]
