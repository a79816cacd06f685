"""What the doctor makes of Meta's answers that the set-ups do not show: rare, vague or strange ones."""

import time

import pytest

from tests.doctor.house import found
from tests.standins import meta

pytestmark = pytest.mark.slow

DAY = 24 * 3600
DEBUG, NUMBER = "/v25.0/debug_token", f"/v25.0/{meta.NUMBER}"
SUBSCRIPTIONS = f"/v25.0/{meta.APP}/subscriptions"


@pytest.mark.parametrize(
    ("reply", "part", "level", "cure"),
    [
        ((404, "nothing here"), "WhatsApp number", "FAIL", "API Setup"),
        (meta.error(403, 200, "Permissions error"), "WhatsApp token", "FAIL", "whatsapp_business_messaging"),
        (meta.error(500, 1, "unknown"), "WhatsApp number", "WARN", "try again"),
        ((200, "<html>"), "WhatsApp number", "FAIL", "WHATSAPP_API_URL"),
    ],
)
def test_what_meta_says_about_our_number_gets_its_cure(reply, part, level, cure, connected, server):
    finding = found(connected({NUMBER: reply}), part)[0]
    assert finding.level == level
    assert cure in finding.cure
    assert server.asked[0].authorization == f"Bearer {meta.TOKEN}"


@pytest.mark.parametrize(
    ("changes", "level", "fact"),
    [
        ({"expires_at": int(time.time()) + 5 * DAY, "issued_at": 0}, "WARN", "the access token expires on"),
        ({"is_valid": False, "error": {"code": 190, "message": "logged out"}}, "FAIL", "logged out"),
        ({"scopes": ["whatsapp_business_messaging"]}, "WARN", "lacks whatsapp_business_management"),
        ({"scopes": "odd", "expires_at": None}, "OK", "permanent"),
    ],
)
def test_what_the_token_is_good_for_is_told(changes, level, fact, connected):
    (finding,) = found(connected({DEBUG: meta.token(**changes)}), "WhatsApp token")
    assert finding.level == level
    assert fact in finding.fact


def test_a_token_that_may_not_look_at_itself_is_looked_at_by_its_app(connected, server):
    own = f"Bearer {meta.APP}|{meta.SECRET}"
    refused = meta.error(400, 100, "You must provide an app access token")
    broken = {
        DEBUG: lambda asked: meta.token() if asked.authorization == own else refused,
        "/v25.0/app": (200, {"id": meta.APP}),
    }
    (finding,) = found(connected(broken), "WhatsApp token")
    assert finding.level == "OK"


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        ((200, "<html>Are you sure?</html>"), "does not answer with the challenge (200)"),
        ((502, "bad gateway"), "does not answer with the challenge (502)"),
        ((403, ""), "another verify token"),
        ((418, ""), "(418)"),
    ],
)
def test_what_the_webhooks_address_answers_gets_its_cure(reply, fact, connected):
    (finding,) = found(connected({"/webhook": reply}), "WhatsApp webhook")
    assert finding.level == "FAIL"
    assert fact in finding.fact
    assert finding.cure


@pytest.mark.parametrize(
    ("reply", "part", "level"),
    [
        (meta.error(400, 4, "too many calls"), "WhatsApp webhook", "WARN"),
        (meta.error(400, 1, "Error validating client secret."), "WhatsApp app", "FAIL"),
    ],
)
def test_only_a_secret_that_meta_refuses_is_called_wrong(reply, part, level, connected):
    (finding,) = found(connected({SUBSCRIPTIONS: reply}), part)[-1:]
    assert finding.level == level
