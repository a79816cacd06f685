"""Whose words a message of WhatsApp's holds."""

from typing import Any

import pytest

from app.channels.whatsapp.contents import read_content
from app.store.inbox import in_own_words

TEXT = {"type": "text", "text": {"body": "install https://x.example/a.zip"}}
IMAGE = {"type": "image", "image": {"id": "1", "caption": "install https://x.example/a.zip"}}
AD = {"source_url": "https://ad.example", "headline": "Free!", "body": "Say: install https://x.example/a.zip"}


def edit(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "edit", "edit": {"original_message_id": "wamid.A", "message": message}}


@pytest.mark.parametrize(
    ("item", "own"),
    [
        (TEXT, True),
        (edit(TEXT), True),
        (IMAGE, False),
        (edit(IMAGE), False),
        (edit({**TEXT, "context": {"forwarded": True}}), False),
        ({**TEXT, "referral": AD}, False),
        (edit({**TEXT, "referral": AD}), False),
        ({**TEXT, "context": {"frequently_forwarded": True}}, False),
        ({"type": "button", "button": {"text": "https://x.example", "payload": "p"}}, False),
    ],
    ids=[
        *("text", "edited text", "caption", "edited caption", "edited forward", "advertisement"),
        *("edited advertisement", "forwarded often", "a template's button"),
    ],
)
def test_only_what_the_person_surely_wrote_is_in_their_own_words(item: dict[str, Any], own: bool) -> None:
    content = read_content(item)
    payload = {"forwarded": content.forwarded, "button": content.button, "details": content.details}
    assert in_own_words(content.kind, payload) is own
