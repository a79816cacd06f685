import copy
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.channels.whatsapp import parse_webhook
from app.channels.whatsapp.payloads import decode, read_webhook
from app.messages import AliasChange, Attachment, GraphError, Inbound, Sender, Status, Webhook

PHONE, USER = "5215512345678", "MX.1349120865530274"
CONTACT = {"profile": {"name": "Ana", "username": "@ana"}, "wa_id": PHONE, "user_id": USER}


def body(*values: Any, field: Any = "messages") -> Any:
    changes = [{"field": field, "value": value} for value in values]
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}]}


def message(kind: str = "text", block: Any = None, **more: Any) -> dict[str, Any]:
    item = {"from": PHONE, "id": "wamid.A", "timestamp": "1750000000", "type": kind, **more}
    if block is not None:
        item[kind] = block
    return item


def say(text: str, **more: Any) -> dict[str, Any]:
    return message("text", {"body": text}, **more)


def read(*items: Any, contacts: Any = (CONTACT,), **more: Any) -> Webhook:
    return read_webhook(body({"contacts": list(contacts), "messages": list(items), **more}))


def one(item: Any, **more: Any) -> Inbound:
    found = read(item, **more)
    assert not found.unreadable
    assert len(found.messages) == 1
    return found.messages[0]


def test_a_text_message_with_everything_beside_it() -> None:
    context = {"from": "1555", "id": "wamid.Q", "forwarded": True}
    assert one(say("hola", context=context, group_id="G1")) == Inbound(
        id="wamid.A",
        sender=Sender(phone=PHONE, user_id=USER, name="Ana"),
        kind="text",
        at=1750000000.0,
        text="hola",
        quoted="wamid.Q",
        group="G1",
        forwarded=True,
    )


MEDIA = {"id": "77", "mime_type": "audio/ogg", "sha256": "abc"}
FORM = {"name": "flow", "body": "Sent", "response_json": '{"rating":"4"}'}
KINDS: list[tuple[str, Any, dict[str, Any]]] = [
    ("text", {"body": ""}, {"text": ""}),
    (
        "image",
        MEDIA | {"caption": "mira"},
        {"text": "mira", "attachment": Attachment("77", "audio/ogg", "", "abc")},
    ),
    ("audio", MEDIA | {"voice": True}, {"attachment": Attachment("77", "audio/ogg", "", "abc", voice=True)}),
    ("sticker", MEDIA | {"animated": True}, {"attachment": Attachment("77", "audio/ogg", "", "abc")}),
    ("video", {"caption": "sin id"}, {"text": "sin id", "attachment": None}),
    ("location", {"latitude": 1.5, "longitude": -2}, {"details": {"latitude": 1.5, "longitude": -2}}),
    ("contacts", [{"name": {}}], {"details": {"contacts": [{"name": {}}]}}),
    ("reaction", {"message_id": "wamid.R", "emoji": "👍"}, {"text": "👍", "quoted": "wamid.R"}),
    (
        "interactive",
        {"type": "list_reply", "list_reply": {"id": "r", "title": "Uno", "description": "d"}},
        {"text": "Uno", "button": "r"},
    ),
    (
        "interactive",
        {"type": "nfm_reply", "nfm_reply": FORM},
        {"text": "Sent", "details": {"type": "nfm_reply", "response": '{"rating":"4"}'}},
    ),
    (
        "interactive",
        {"type": "call_permission_reply", "call_permission_reply": {"response": "accept"}},
        {"text": ""},
    ),
    ("button", {"text": "Baja", "payload": "STOP"}, {"text": "Baja", "button": "STOP"}),
    ("order", {"catalog_id": "1", "text": "dos", "product_items": []}, {"text": "dos"}),
    (
        "edit",
        {"original_message_id": "wamid.O", "message": {"type": "text", "text": {"body": "nuevo"}}},
        {"text": "nuevo", "quoted": "wamid.O", "details": {"type": "text"}},
    ),
    (
        "edit",
        {
            "original_message_id": "wamid.O",
            "message": {"type": "image", "image": {"id": "5", "caption": "pie"}},
        },
        {"text": "pie", "quoted": "wamid.O", "attachment": Attachment("5")},
    ),
    ("revoke", {"original_message_id": "wamid.O"}, {"quoted": "wamid.O"}),
    ("system", {"type": "customer_identity_changed", "body": "changed"}, {"text": "changed", "change": None}),
    ("request_welcome", None, {"text": ""}),
    ("hologram", {"depth": 3}, {"text": ""}),
]


def test_every_kind_is_read() -> None:
    for kind, block, expected in KINDS:
        found = one(message(kind, block))
        assert found.kind == kind
        assert {name: getattr(found, name) for name in expected} == expected


def test_the_advertisement_that_a_message_came_from_is_kept() -> None:
    assert one(say("hi", referral={"source_id": "9"})).details == {"referral": {"source_id": "9"}}


def test_a_broken_text_is_unsupported_so_that_it_gets_an_answer() -> None:
    for block in [None, 5, [], "text", {"body": None}, {"body": ["x"]}]:
        assert one(message("text", block)).kind == "unsupported"


NUMBER_ONLY = {"profile": {"name": "Ana"}, "wa_id": PHONE}
ID_ONLY = {"profile": {"name": "Ana"}, "user_id": USER}
OTHER = {"profile": {"name": "Beto"}, "wa_id": "549111", "user_id": "AR.2"}
NOBODY = {"from": None}
BY_ID = {"from": None, "from_user_id": USER}
SENDERS: list[tuple[str, dict[str, Any], list[Any], Sender, bool]] = [
    ("number matched by value", {}, [OTHER, CONTACT], Sender(PHONE, USER, "Ana"), True),
    ("id matched by value", BY_ID, [OTHER, CONTACT], Sender(PHONE, USER, "Ana"), True),
    ("id only", BY_ID, [OTHER, ID_ONLY], Sender("", USER, "Ana"), False),
    ("id without contacts", BY_ID, [], Sender("", USER), False),
    ("both in the message", {"from_user_id": USER}, [], Sender(PHONE, USER), True),
    ("another's contact at its place", {}, [OTHER], Sender(PHONE), False),
    ("a contact that contradicts", {"from_user_id": "MX.9"}, [CONTACT], Sender(PHONE, "MX.9"), True),
    (
        "two contacts that contradict each other",
        {},
        [CONTACT, CONTACT | {"user_id": "MX.9"}],
        Sender(PHONE),
        False,
    ),
    ("a lone contact for a lone sender", NOBODY, [CONTACT], Sender(PHONE, USER, "Ana"), True),
    ("a lone contact adds", {}, [ID_ONLY], Sender(PHONE, USER, "Ana"), True),
    ("broken contacts beside the right one", {}, [None, 5, NUMBER_ONLY], Sender(PHONE, name="Ana"), False),
    ("an id of another form", {"from_user_id": "MX-13"}, [], Sender(PHONE), False),
    (
        "a parent id alone",
        {"from": None, "from_parent_user_id": "US.ENT.1"},
        [],
        Sender("", "US.ENT.1"),
        False,
    ),
    ("a number as a number", {"from": 549111}, [OTHER], Sender("549111", "AR.2", "Beto"), True),
    ("a number with its plus", {"from": "+549111"}, [], Sender("549111"), False),
]


def test_the_sender_is_matched_by_value() -> None:
    for change, contacts, sender, paired in [row[1:] for row in SENDERS]:
        found = read(say("hola") | change, contacts=contacts)
        assert [item.sender for item in found.messages] == [sender]
        assert found.pairs == ([sender] if paired else [])


def test_a_lone_contact_does_not_speak_for_two_senders() -> None:
    found = read(say("a"), say("b", id="wamid.B") | {"from": "549111"}, contacts=[ID_ONLY])
    assert [item.sender for item in found.messages] == [Sender(PHONE), Sender("549111")]
    assert found.pairs == []


def system(**block: Any) -> dict[str, Any]:
    return message("system", {"body": "changed", **block})


NEW = "MX.99"
CHANGES: list[tuple[dict[str, Any], Sender, Sender]] = [
    (system(type="user_changed_number", wa_id="52999"), Sender(PHONE), Sender("52999")),
    (
        system(type="user_changed_number", wa_id="52999", user_id=NEW, previous_user_id=USER),
        Sender(PHONE, USER),
        Sender("52999", NEW),
    ),
    (
        system(type="user_changed_user_id", user_id=NEW, previous_user_id=USER) | {"from": None},
        Sender("", USER),
        Sender("", NEW),
    ),
    (
        system(type="user_changed_user_id", user_id=NEW) | {"from": None, "from_user_id": USER},
        Sender("", USER),
        Sender("", NEW),
    ),
    (
        system(type="user_changed_user_id", user_id=NEW, previous_user_id=USER),
        Sender(PHONE, USER),
        Sender("", NEW),
    ),
]


def test_changed_numbers_and_ids_are_told() -> None:
    for item, previous, current in CHANGES:
        found = read(item, contacts=[])
        change = AliasChange(previous, current)
        assert found.changes == [change]
        assert [(item.kind, item.change) for item in found.messages] == [("system", change)]
        assert found.pairs == []


def test_the_field_user_id_update_is_a_change() -> None:
    for value in [
        {"user_id": {"previous": USER, "current": NEW}},
        {"user_id_update": {"user_id": {"previous": USER, "current": NEW}}},
        {"user_id_update": [None, {"user_id": {"previous": USER, "current": NEW}}]},
    ]:
        found = read_webhook(body(value, field="user_id_update"))
        assert found.changes == [AliasChange(Sender("", USER), Sender("", NEW))]


def status(**more: Any) -> dict[str, Any]:
    return {"id": "wamid.S", "status": "sent", "timestamp": "1750000000", **more}


def test_statuses_are_read() -> None:
    error = {"code": 131047, "title": "Re-engagement message", "error_data": {"details": "24 hours"}}
    items = [
        status(recipient_id=PHONE, recipient_user_id=USER, biz_opaque_callback_data="out-1"),
        status(status="failed", errors=[error, None, {"code": "100", "message": "bad"}, {"code": []}]),
        status(
            status="read",
            recipient_type="group",
            recipient_id="Y2FwaV9n",
            recipient_participant_id=PHONE,
            recipient_participant_user_id=USER,
        ),
    ]
    assert read_webhook(body({"statuses": items})).statuses == [
        Status("wamid.S", "sent", 1750000000.0, "out-1"),
        Status(
            "wamid.S",
            "failed",
            1750000000.0,
            errors=(
                GraphError(131047, "Re-engagement message", "24 hours"),
                GraphError(100, "bad", "bad"),
                GraphError(0),
            ),
        ),
        Status("wamid.S", "read", 1750000000.0),
    ]


def test_nothing_good_is_hidden_by_what_is_broken_beside_it() -> None:
    good = [say(str(number), id=f"wamid.{number}") for number in range(4)]
    broken: list[Any] = [
        None,
        5,
        [],
        "x",
        say("no id", id=None),
        say("", id="x" * 513),
        {"id": "wamid.N", "type": "text"},
    ]
    for fault in broken:
        found = read(*good[:2], fault, *good[2:], contacts=[CONTACT, "broken"], statuses=[status(), None, {}])
        assert [item.text for item in found.messages] == ["0", "1", "2", "3"], fault
        assert len(found.statuses) == 1
        assert len(found.unreadable) == 3


def test_several_entries_and_changes() -> None:
    value = {"messages": [say("a"), say("b")], "statuses": [status()]}
    whole = body(value, value) | {"extra": 1}
    whole["entry"] = [None, *whole["entry"], {}, {"changes": [7, {"field": "messages"}]}, *whole["entry"]]
    found = read_webhook(whole)
    assert (len(found.messages), len(found.statuses), len(found.unreadable)) == (8, 4, 4)
    kinds = [type(item) for item in parse_webhook(whole)]
    assert kinds == [Inbound] * 8 + [Status] * 4


def test_other_fields_are_notices_and_unknown_ones_unreadable() -> None:
    assert read_webhook(body({"event": "X"}, field="account_update")) == Webhook()
    assert read_webhook(body({"messages": [say("old")]}, field="history")).messages == []
    assert read_webhook(body({"user_actions": [1]})).unreadable == []
    assert len(read_webhook(body({"surprise": 1})).unreadable) == 1
    for field in ("brand_new", 5, None, {"a": 1}):
        found = read_webhook(body({"messages": [say("a")]}, field=field))
        assert (len(found.unreadable), found.messages) == (1, [])


def test_a_body_that_is_none_is_unreadable() -> None:
    for broken in [None, [], {}, 5, "x", True, {"entry": None}, {"entry": []}, {"entry": [None]}]:
        found = read_webhook(broken)
        assert len(found.unreadable) == 1
        assert parse_webhook(broken) == []


def test_timestamps_in_seconds_or_milliseconds() -> None:
    for stamp, at in [
        ("1750000000", 1750000000.0),
        ("1750000000123", 1750000000.123),
        (1750000000.5, 1750000000.5),
        ("soon", 0.0),
        ("nan", 0.0),
        (-5, 0.0),
        ([10**5000], 0.0),
        (10**300, 0.0),
        (None, 0.0),
    ]:
        assert one(say("hola", timestamp=stamp)).at == at


def test_sizes_are_bounded_and_every_string_can_be_stored() -> None:
    deep: Any = "end"
    for _ in range(500):
        deep = [deep]
    item = say("a\x00b\ud800" + "x" * 200_000, referral={"deep": deep, "n\x00": 10**30, "nan": float("nan")})
    found = one(item, contacts=[{"wa_id": PHONE, "profile": {"name": "A\x00na\udfff" + "n" * 900}}])
    assert found.text.startswith("abx")
    assert len(found.text) == 100_000
    assert found.details["referral"]["n"] == str(10**30)
    assert found.sender.name.startswith("Anan")
    assert len(found.sender.name) == 256
    orjson.dumps(found.details)


def test_json_text_is_taken_too() -> None:
    text = json.dumps(body({"messages": [say("hóla \ud800 \ud83d\ude00")]}))
    for form in (text, text.encode()):
        assert [item.text for item in parse_webhook(form)] == ["hóla  😀"]  # type: ignore[union-attr]
    for broken in ("", "{", b"\xff\xfe\x00", "[" * 100_000, b"[" * 100_000, "\ud800"):
        assert parse_webhook(broken) == []
    with pytest.raises(ValueError, match=r"deeply|recursion|Expecting"):
        decode(b"[" * 100_000)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
GOOD = body(
    {
        "contacts": [CONTACT, OTHER],
        "messages": [message(kind, block, id=f"wamid.{n}") for n, (kind, block, _) in enumerate(KINDS)]
        + [item for item, _, _ in CHANGES],
        "statuses": [status(recipient_id=PHONE, errors=[{"code": 1, "error_data": {"details": "x"}}])],
    }
)


@given(JSON_VALUES)
@settings(max_examples=100, deadline=None)
def test_no_json_value_raises(value: Any) -> None:
    for form in (
        value,
        body(value),
        body({"messages": value, "contacts": value}),
        body({"statuses": [value]}),
    ):
        storable(read_webhook(form))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_no_mutation_of_a_good_body_raises(data: st.DataObject) -> None:
    mutant = copy.deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        places = list(_places(mutant))
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        holder[key] = data.draw(JSON_VALUES)
    storable(read_webhook(mutant))


def storable(found: Webhook) -> None:
    orjson.dumps([found.messages, found.statuses, found.changes, found.pairs, found.unreadable])


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


SAMPLES = Path(os.environ.get("RECADO_SAMPLES", "")) / "whatsapp"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="RECADO_SAMPLES names no folder with samples of WhatsApp")
def test_every_message_and_status_of_the_samples_is_found() -> None:
    bodies = [json.loads(path.read_bytes()) for path in sorted(SAMPLES.rglob("*.json"))]
    found = [read_webhook(whole) for whole in bodies if "entry" in whole]
    assert not any(one.unreadable for one in found)
    assert sum(len(one.messages) for one in found) >= 40
    assert sum(len(one.statuses) for one in found) >= 5
