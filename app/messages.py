"""Messages in and out as plain data, and the protocol of a channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

LONGEST_TOLD = 4_000  # characters of data that a later prompt shows
RECEIPT_MARK = "✓"  # begins the `summary` of a result whose call changed something

JSON = Any  # any JSON value; the one place where `Any` is allowed to travel


def mapping(value: JSON) -> dict[str, JSON]:
    """Return an object of JSON, {} for anything else."""
    return value if isinstance(value, dict) else {}


def array(value: JSON) -> list[JSON]:
    """Return an array of JSON, [] for anything else."""
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Facts of a call's result for the messages that may follow it."""

    about: str = ""  # the text, name or number of what was changed ("delete it")
    undo: str = ""  # the sentence that undoes it
    numbers: tuple[str, ...] = ()  # of the lines that were listed ("the second one")
    choices: tuple[str, ...] = ()  # exact names of which the person is asked for one
    hours: tuple[str, ...] = ()  # two hours ("05:00") of which the person is asked for one
    within: str = ""  # the list that it was about, by the name that the person sees


def seconds_in(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, None if it names none."""
    try:
        seconds = float(header) if header else -1.0
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender that a webhook names. At least one of `phone` (digits) and `user_id` is set."""

    phone: str = ""
    user_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; its bytes stay at Meta until they are fetched by `media_id`."""

    media_id: str
    mime_type: str = ""
    filename: str = ""
    sha256: str = ""
    voice: bool = False


@dataclass(frozen=True, slots=True)
class AliasChange:
    """A number or business-scoped id that became another one, from a signed webhook."""

    previous: Sender
    current: Sender


@dataclass(frozen=True, slots=True)
class Inbound:
    """One inbound message."""

    id: str  # the wamid
    sender: Sender
    kind: str  # Meta's type: "text", "image", "location", "reaction", "interactive", "unsupported", …
    at: float = 0.0  # Unix seconds as the sender's platform stamped them
    text: str = ""  # what the person wrote or pressed (a caption for media)
    quoted: str = ""
    group: str = ""
    button: str = ""
    forwarded: bool = False
    attachment: Attachment | None = None
    change: AliasChange | None = None
    details: Mapping[str, JSON] = field(default_factory=dict)  # the rest of the kind's own block
    standby: bool = False  # another handler of the number answers it


@dataclass(frozen=True, slots=True)
class Echo:
    """A message that the business sent by other means than ours: from its phone, by another handler."""

    id: str
    to: Sender
    kind: str
    at: float = 0.0
    text: str = ""
    outbox_id: str = ""  # names a row of ours if it is our own message after all


@dataclass(frozen=True, slots=True)
class ThreadControl:
    """A change of who answers a person: `ours` if that is us, else another handler of the number."""

    person: Sender
    ours: bool


@dataclass(frozen=True, slots=True)
class GraphError:
    """An error as Meta writes it; `code` is 0 if there was none."""

    code: int
    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Pricing:
    """The category that Meta bills a message in ("service", "utility", …); kinds but "regular" are free."""

    category: str
    kind: str


@dataclass(frozen=True, slots=True)
class Status:
    """A status of a message that we sent: sent, delivered, read, failed, played or deleted."""

    id: str
    status: str
    at: float = 0.0
    outbox_id: str = ""
    errors: tuple[GraphError, ...] = ()
    pricing: Pricing | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a body that could not be understood; it is kept as a dead letter."""

    reason: str
    part: JSON


@dataclass(frozen=True, slots=True)
class Webhook:
    """The parts of one body, each list in the body's order."""

    messages: list[Inbound] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    changes: list[AliasChange] = field(default_factory=list)  # ids that became others
    pairs: list[Sender] = field(default_factory=list)  # whose phone and user id were seen together
    echoes: list[Echo] = field(default_factory=list)  # what the business wrote by other means
    controls: list[ThreadControl] = field(default_factory=list)  # changes of who answers
    unreadable: list[Unreadable] = field(default_factory=list)


# In front of a button's id: whoever presses it says what follows.
SAYS = "say:"


@dataclass(frozen=True, slots=True)
class Button:
    """A reply button (title up to 20 characters) or a row of a list (24); ids up to 200 (Meta's limits)."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Link:
    """A button that opens an https address; its title has at most 20 characters."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Template:
    """A message that Meta approved, by name and language."""

    name: str
    language: str = ""
    parameters: tuple[str, ...] = ()  # take its places in their order
    is_filled: bool = False  # else the text takes its one place


MediaKind = Literal["image", "audio", "video", "document"]


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file that we keep and send: `path` below DATA_DIR/media, its true type, the name a person sees."""

    path: str
    mime_type: str
    name: str
    kind: MediaKind
    size: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send: text already rendered for its channel, perhaps with buttons or in a template."""

    text: str
    buttons: tuple[Button, ...] = ()
    rows: tuple[Button, ...] = ()  # of a list
    label: str = ""  # of the button that opens the list
    asks_location: bool = False  # shows a button that sends where the person is
    quoted: str = ""
    template: Template | None = None
    file: MediaFile | None = None  # the text stands for it where only text can be shown
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """An address: a phone (as digits) or a business-scoped id, or a group."""

    phone: str = ""
    user_id: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The channel took the message and named it."""

    message_id: str
    phone: str = ""  # the form of the number that worked, if it was another one than asked for


@dataclass(frozen=True, slots=True)
class Refused:
    """The channel said no, and nothing was sent."""

    # "hold": the operator must mend something; "template": the window of 24 hours is closed
    then: Literal["retry", "hold", "template", "give_up"]
    code: int = 0
    detail: str = ""
    retry_after: float | None = None  # seconds; None: our own back-off
    may_have_arrived: bool = False  # after a fault of the server (5xx)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Bytes left and no answer came: it may have been sent."""

    detail: str = ""


class FetchFailed(Exception):
    """A file that somebody sent cannot be had now; `again`: another try may succeed."""

    def __init__(self, reason: Literal["away", "gone", "too_large"], *, again: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again


SendResult = Accepted | Refused | Unknown


class Channel(Protocol):
    """A way by which messages come and go."""

    name: str

    def render(self, markdown: str) -> list[Outgoing]:
        """Return Markdown as messages of this channel, split at its limits."""

    def ask(self, text: str, question: str, buttons: Sequence[Button]) -> list[Outgoing]:
        """Return a question whose text is plain, without formatting; the last message has the buttons.

        `question` is not said again where the text begins with it. Text that does not fit beside the buttons
        goes whole in messages before.
        """

    def choose(self, question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
        """Return a question with options as plain text; their titles may have any length."""

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        """Send one message; never raise for what the other side does."""

    async def fetch(self, media_id: str, target: Path, limit: int) -> None:
        """Write a file that came with a message into `target`, at most `limit` bytes. Raises FetchFailed."""

    async def typing(self, message_id: str) -> None:
        """Mark a message as read and show that an answer is being written; never raise."""


class Wakeable(Protocol):
    """Receives hints that something waits in the outbox."""

    def wake(self, person: str) -> None: ...


def in_own_words(kind: str, payload: Mapping[str, JSON]) -> bool:
    """Return whether a message's text is surely the person's own.

    It is not if it was forwarded, is a button's title or a caption (which often came with the file), or was
    written by an advertisement for them to send; nor if it is an option that they chose.
    """
    details = payload.get("details") or {}
    if payload.get("forwarded") or payload.get("button") or payload.get("chosen") or "referral" in details:
        return False
    if (payload.get("attachment") or {}).get("voice"):
        return True  # their own voice, as a transcript
    if kind == "scheduled":
        return not details.get("taint")
    return kind == "text" or (kind == "edit" and details.get("type") == "text")


def retold(kind: str, text: str, payload: Mapping[str, JSON]) -> str:
    """Return a message as the prompts of later turns show it, with the data of a place or a contact."""
    if text and payload.get("forwarded"):
        return f"[Forwarded, somebody else's words: {_data(text)}]"
    details, path = payload.get("details"), (payload.get("attachment") or {}).get("path")
    if path:
        return f"[{kind}, kept as {_data(path)}] {text}".rstrip()
    if text and kind == "scheduled":
        return f"[Nobody wrote; a {(details or {}).get('schedule')} of theirs ran:] {text}"
    if text:
        return text
    return f"[{kind}: {_data(details)}]" if details and kind in ("location", "contacts") else f"[{kind}]"


def _data(value: JSON) -> str:
    data = orjson.dumps(value, default=str).decode()
    return data if len(data) <= LONGEST_TOLD else f"{data[:LONGEST_TOLD]}…"
