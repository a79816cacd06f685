"""What Meta tells of a sound account: its number, token, app and webhook, in the words of the Graph API.

The forms are those of its references for debug_token, health_status, subscribed_apps and subscriptions.
"""

import time
from typing import Any

from tests.standins.answers import Answer, Asked, Told

TOKEN = "EAAGm0PX4ZCpsBAKZCtokenOfTheOperator"
SECRET = "0123456789abcdef0123456789abcdef"
VERIFY = "a-word-of-our-own"
NUMBER, ACCOUNT, APP = "106540352242922", "102290129340398", "634974688087057"
CREDENTIALS = {
    "WHATSAPP_ACCESS_TOKEN": TOKEN,
    "WHATSAPP_PHONE_NUMBER_ID": NUMBER,
    "WHATSAPP_VERIFY_TOKEN": VERIFY,
    "WHATSAPP_APP_SECRET": SECRET,
}


def account(callback: str) -> dict[str, Told]:
    """The answers by path; a test breaks the one that it is about."""
    return {
        f"/v25.0/{NUMBER}": number(),
        "/v25.0/debug_token": token(),
        f"/v25.0/{ACCOUNT}/subscribed_apps": subscribers(APP),
        f"/v25.0/{APP}/subscriptions": subscription(callback),
    }


def number(**fields: Any) -> Told:
    """The number's node gives what is asked for; each field may be set."""
    entities = [
        {"entity_type": "PHONE_NUMBER", "id": NUMBER, "can_send_message": "AVAILABLE"},
        {"entity_type": "WABA", "id": ACCOUNT, "can_send_message": "AVAILABLE"},
    ]
    known = {
        "display_phone_number": "+52 55 1234 5678",
        "verified_name": "Recado",
        "quality_rating": "GREEN",
        "health_status": {"can_send_message": "AVAILABLE", "entities": entities},
        **fields,
    }

    def answer(asked: Asked) -> Answer:
        wanted = asked.query["fields"].split(",")
        return 200, {"id": NUMBER, **{field: known[field] for field in wanted if field in known}}

    return answer


def token(**changes: Any) -> Answer:
    """A system user's permanent token."""
    data = {
        "app_id": APP,
        "application": "Errands",
        "type": "SYSTEM_USER",
        "is_valid": True,
        "issued_at": int(time.time()),
        "expires_at": 0,
        "scopes": ["whatsapp_business_management", "whatsapp_business_messaging"],
        "granular_scopes": [{"scope": "whatsapp_business_messaging", "target_ids": [ACCOUNT]}],
        **changes,
    }
    return 200, {"data": data}


def subscribers(*apps: str) -> Answer:
    rows = [{"whatsapp_business_api_data": {"id": app, "name": "Errands", "link": "…"}} for app in apps]
    return 200, {"data": rows}


def subscription(callback: str, *fields: str) -> Told:
    """Given to the app's own token only."""
    names = [{"name": name, "version": "v25.0"} for name in fields or ("messages", "user_id_update")]
    row = {"object": "whatsapp_business_account", "callback_url": callback, "active": True, "fields": names}

    def answer(asked: Asked) -> Answer:
        if asked.authorization != f"Bearer {APP}|{SECRET}":
            return error(400, 190, "Invalid OAuth access token signature.")
        return 200, {"data": [row]}

    return answer


def error(status: int, code: int, message: str, **more: Any) -> Answer:
    return status, {"error": {"message": message, "type": "OAuthException", "code": code, **more}}
