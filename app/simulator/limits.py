"""Limits of the Graph API: the form of a message, and how many may be sent in a time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from app.messages import JSON
from app.simulator.faults import Refusal

NUMBER_PER_SECOND: Final = 80
PAIR_BURST: Final = 45
PAIR_SECONDS: Final = 6.0

_INVALID, _MISSING, _BAD_VALUE = 100, 131008, 131009  # Meta's codes


def check_message(body: JSON) -> str:
    """Return the type of a message whose form the Graph API accepts, or raise Refusal.

    The recipient, the 24-hour window and media ids are not looked at.
    """
    try:
        kind: Kind = _Message.model_validate(body).type
    except ValidationError as error:
        fault = error.errors()[0]
        raise Refusal(_INVALID, f"Param {_place(fault)}: {fault['msg']}.") from None
    if body.get(kind) is None:
        raise Refusal(_MISSING, f"Required parameter is missing: {kind}")
    try:
        _Block.model_validate({kind: body[kind]})
    except ValidationError as error:
        fault = error.errors()[0]
        is_missing = fault["type"] in ("missing", "model_type", "list_type")
        code = _MISSING if is_missing else _INVALID if kind == "text" else _BAD_VALUE
        raise Refusal(code, f"{_place(fault)}: {fault['msg']}.") from None
    return kind


class SendRates:
    """Token buckets for Meta's two rate limits: of the whole number, and of one person."""

    def __init__(self) -> None:
        self._number = _Bucket(NUMBER_PER_SECOND, NUMBER_PER_SECOND)
        self._pairs: dict[str, _Bucket] = {}

    def take(self, person: str) -> None:
        """Count one send to a person. Raise Refusal 130429 or 131056 over a limit."""
        pair = self._pairs.setdefault(person, _Bucket(PAIR_BURST, 1 / PAIR_SECONDS))
        if not pair.has_token():
            raise Refusal(131056, "Too many messages to this person in a short time; wait and try again.")
        if not self._number.has_token():
            raise Refusal(130429, "Cloud API message throughput has been reached.")
        pair.tokens -= 1
        self._number.tokens -= 1


def _words(most: int) -> Any:
    return Field(min_length=1, max_length=most, pattern=r"\S")


_ANY_WORDS: Any = Field(min_length=1, pattern=r"\S")


class _Context(BaseModel):
    message_id: str = _ANY_WORDS


Kind = Literal[
    "text",
    "image",
    "video",
    "document",
    "sticker",
    "audio",
    "interactive",
    "location",
    "contacts",
    "reaction",
    "template",
]


class _Message(BaseModel):
    messaging_product: Literal["whatsapp"]
    to: str | None = None
    recipient: str | None = None
    recipient_type: Literal["individual"] = "individual"
    context: _Context | None = None
    biz_opaque_callback_data: str = Field("", max_length=512)
    type: Kind = "text"

    @model_validator(mode="after")
    def _has_recipient(self) -> "_Message":
        if not (self.to or "").strip() and not (self.recipient or "").strip():
            raise ValueError("the parameter to is required")
        return self


class _Text(BaseModel):
    body: str = _words(4096)


class _Media(BaseModel):
    id: str = ""
    link: str = ""
    caption: str = Field("", max_length=1024)

    @model_validator(mode="after")
    def _has_one_source(self) -> "_Media":
        if bool(self.id.strip()) == bool(self.link.strip()):
            raise Refusal(_INVALID, "Exactly one of id and link is required.")
        if self.link and not self.link.startswith(("https://", "http://")):
            raise Refusal(_INVALID, "Param link must be an http or https address.")
        return self


class _Audio(_Media):
    @model_validator(mode="after")
    def _has_no_caption(self) -> "_Audio":
        if "caption" in self.model_fields_set:
            raise Refusal(_INVALID, "Unexpected key 'caption' on param 'audio'.")
        return self


class _Reply(BaseModel):
    id: str = _words(256)
    title: str = _words(20)


class _Button(BaseModel):
    type: Literal["reply"]
    reply: _Reply


class _Row(BaseModel):
    id: str = _words(200)
    title: str = _words(24)
    description: str = Field("", max_length=72)


class _Section(BaseModel):
    title: str = Field("", max_length=24)
    rows: list[_Row] = Field(min_length=1, max_length=10)


class _Buttons(BaseModel):
    buttons: list[_Button] = Field(min_length=1, max_length=3)

    @model_validator(mode="after")
    def _are_distinct(self) -> "_Buttons":
        _require_distinct("button id", [one.reply.id for one in self.buttons])
        _require_distinct("button title", [one.reply.title for one in self.buttons])
        return self


class _Rows(BaseModel):
    button: str = _words(20)
    sections: list[_Section] = Field(min_length=1, max_length=10)

    @model_validator(mode="after")
    def _are_distinct(self) -> "_Rows":
        rows = [row for section in self.sections for row in section.rows]
        if len(rows) > 10:
            raise ValueError("total row count exceeds max allowed count: 10")
        if len(self.sections) > 1 and not all(section.title.strip() for section in self.sections):
            raise ValueError("each of several sections needs a title")
        _require_distinct("row id", [row.id for row in rows])
        return self


class _Body(BaseModel):
    text: str = _words(1024)


class _Footer(BaseModel):
    text: str = _words(60)


class _Header(BaseModel):
    type: str = ""
    text: str | None = Field(None, max_length=60)

    @model_validator(mode="after")
    def _has_text(self) -> "_Header":
        if self.type == "text" and not (self.text or "").strip():
            raise ValueError("a header of type text needs a text")
        return self


class _Interactive(BaseModel):
    type: str
    body: _Body
    header: _Header | None = None
    footer: _Footer | None = None


class _ButtonMessage(_Interactive):
    type: Literal["button"]
    action: _Buttons


class _ListMessage(_Interactive):
    type: Literal["list"]
    action: _Rows


class _SendLocation(BaseModel):
    name: Literal["send_location"]


class _LocationRequest(_Interactive):
    type: Literal["location_request_message"]
    action: _SendLocation


class _LinkParameters(BaseModel):
    display_text: str = _words(20)
    url: str = Field(pattern=r"^https?://")


class _OpenLink(BaseModel):
    name: Literal["cta_url"]
    parameters: _LinkParameters


class _LinkMessage(_Interactive):
    type: Literal["cta_url"]
    action: _OpenLink


class _Location(BaseModel):
    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)


class _Name(BaseModel):
    formatted_name: str = _ANY_WORDS


class _Contact(BaseModel):
    name: _Name


class _Reaction(BaseModel):
    message_id: str = _ANY_WORDS
    emoji: str = ""


class _Language(BaseModel):
    code: str = _ANY_WORDS


class _Template(BaseModel):
    name: str = _ANY_WORDS
    language: _Language


class _Block(BaseModel):
    """The one part of a message that its type names."""

    text: _Text | None = None
    image: _Media | None = None
    video: _Media | None = None
    document: _Media | None = None
    sticker: _Media | None = None
    audio: _Audio | None = None
    interactive: _ButtonMessage | _ListMessage | _LocationRequest | _LinkMessage | None = Field(
        None, discriminator="type"
    )
    location: _Location | None = None
    contacts: list[_Contact] | None = Field(None, min_length=1, max_length=257)
    reaction: _Reaction | None = None
    template: _Template | None = None


@dataclass(slots=True)
class _Bucket:
    size: float
    per_second: float
    tokens: float = field(init=False)
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.tokens = self.size

    def has_token(self) -> bool:
        now = time.monotonic()
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        return self.tokens >= 1


def _require_distinct(what: str, values: Sequence[str]) -> None:
    if len(set(values)) < len(values):
        raise ValueError(f"{what} must be unique within a message")


def _place(fault: Any) -> str:
    return ".".join(map(str, fault["loc"])) or "body"
