from app.channels.whatsapp import verify_signature
from app.channels.whatsapp.credentials import sign, verify_handshake

BODY = '{"text":"¿qué?"}'.encode()
RIGHT = sign(BODY, "secret")


def test_the_signature_is_meta_s() -> None:
    assert sign(b"hello", "key") == "sha256=9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b"


def test_only_the_right_signature_counts() -> None:
    for body, header, secret, valid in [
        (BODY, RIGHT, "secret", True),
        (BODY + b" ", RIGHT, "secret", False),
        (BODY, RIGHT, "other", False),
        (BODY, RIGHT, "", False),
        (BODY, sign(BODY, ""), "", False),
        (BODY, None, "secret", False),
        (BODY, "", "secret", False),
        (BODY, RIGHT.removeprefix("sha256="), "secret", False),
        (BODY, "sha1=" + RIGHT[7:], "secret", False),
        (BODY, "sha256=ñandú", "secret", False),
        (BODY, "sha256=\ud800", "secret", False),
        (b"", sign(b"", "sécret"), "sécret", True),
    ]:
        assert verify_signature(body, header, secret) is valid


ASKED = {"hub.mode": "subscribe", "hub.verify_token": "tökèn", "hub.challenge": "1158201444"}


def test_the_challenge_is_given_for_the_token_only() -> None:
    for params, token, challenge in [
        (ASKED, "tökèn", "1158201444"),
        (ASKED, "token", None),
        (ASKED, "", None),
        (ASKED | {"hub.verify_token": ""}, "", None),
        (ASKED | {"hub.mode": "unsubscribe"}, "tökèn", None),
        ({}, "tökèn", None),
    ]:
        assert verify_handshake(params, token) == challenge
