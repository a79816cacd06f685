"""People and conversations: plain data."""

from dataclasses import dataclass, field
from typing import Any, Literal

# Where an alias is valid. A simulator's person never becomes a WhatsApp person.
Realm = Literal["whatsapp", "simulator", "terminal"]

# A guest is a stranger who is answered because `ACCESS` lets everyone write.
Role = Literal["guest", "member", "owner"]

Audience = Literal["everyone", "members", "owners"]
"""Those who may use a tool, a skill or a server: guests too, without guests, or owners only."""

TERMINAL_USER = "terminal"  # the user id of the one person at the console


@dataclass(frozen=True, slots=True)
class Alias:
    """A name of a person outside: a phone (digits only) or a WhatsApp business-scoped id.

    Messages go to its `address`: a phone in the national form in which it came.
    """

    kind: Literal["phone", "user_id"]
    value: str
    address: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Person:
    """A person as prompts, tools and channels see them."""

    id: str
    realm: Realm
    name: str = ""
    role: Role = "member"
    language: str = "en"  # or "es", "pt"
    timezone: str = "UTC"  # an IANA name: what they said, else that of their number
    home_timezone: str = "UTC"  # that of their number
    country: str = ""  # an ISO 3166 code

    @property
    def is_owner(self) -> bool:
        return self.role == "owner"

    @property
    def is_guest(self) -> bool:
        return self.role == "guest"


def may_use(person: Person | None, audience: Audience) -> bool:
    """Return whether a person is of an audience; None is nobody in particular, as good as a member."""
    if person is None:
        return audience != "owners"
    return person.is_owner or audience == "everyone" or (audience == "members" and not person.is_guest)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One person on one channel; `group` is a WhatsApp group id, empty for the person's own chat."""

    id: str
    person_id: str
    channel: str
    group: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns by which a row belongs to the conversation and its person."""
        return {"person_id": self.person_id, "conversation_id": self.id}


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """A phone of the simulator."""

    id: str
    name: str
    phone: str  # digits as WhatsApp delivers them, "" for a person with a username only
    user_id: str  # the business-scoped id that every webhook carries
    username: str = ""
    language: str = "en"  # of their page


# Their numbers are fictional. The first one owns the assistant while the simulator is in use.
SIMULATED_PEOPLE = (
    SimulatedPerson("ana", "Ana", "5215550100001", "MX.10550100001", "", "es"),
    SimulatedPerson("bruno", "Bruno", "5511955501234", "BR.10955501234", "", "pt"),
    SimulatedPerson("chris", "Chris", "14155550123", "US.10155550123", "", "en"),
    SimulatedPerson("dani", "Dani", "", "AR.10000000004", "dani.escribe", "es"),
)
