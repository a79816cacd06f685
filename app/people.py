"""Whom we talk to: plain data, no input or output."""

from dataclasses import dataclass
from typing import Literal

Realm = Literal["whatsapp", "simulator", "terminal"]
"""Where an alias is valid. A simulator's person never becomes a WhatsApp person."""

Role = Literal["member", "owner"]


@dataclass(frozen=True, slots=True)
class Alias:
    """One way the outside names a person: a phone (digits only) or a WhatsApp business-scoped id."""

    kind: Literal["phone", "user_id"]
    value: str


@dataclass(frozen=True, slots=True)
class Person:
    """A person as prompts, tools and channels see them.

    `language` is "es", "pt" or "en"; `timezone` an IANA name; `country` an ISO 3166 code or "".
    """

    id: str
    realm: Realm
    name: str = ""
    role: Role = "member"
    language: str = "en"
    timezone: str = "UTC"
    country: str = ""

    @property
    def is_owner(self) -> bool:
        return self.role == "owner"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One person on one channel; `group` is a WhatsApp group id, empty for the person's own chat."""

    id: str
    person_id: str
    channel: str
    group: str = ""
