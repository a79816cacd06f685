"""The people whose phones the simulator plays. Their numbers are fictional and of valid length."""

import re
import secrets
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from app.phones import canonical, country, digits
from app.simulator.objections import Objection

LANGUAGES: Final = ("es", "pt", "en")
MOST: Final = 50
_USERNAME = re.compile(r"[a-z0-9._]{3,35}")


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """One phone of the simulator.

    `phone` is digits as WhatsApp delivers them, "" for a person with a username only; `user_id` is the
    business-scoped id that every webhook carries; `language` ("es", "pt", "en") is that of their page.
    """

    id: str
    name: str
    phone: str
    user_id: str
    username: str = ""
    language: str = "en"


def new_person(
    name: str, phone: str, username: str, language: str, others: Collection[SimulatedPerson]
) -> SimulatedPerson:
    """Somebody beside `others`, with a phone, a username or both. Raises ValueError with the reason."""
    name, number, username = " ".join(name.split()), digits(phone), username.strip().removeprefix("@")
    if not 1 <= len(name) <= 40:
        raise Objection("name")
    if not number and not username:
        raise Objection("no_address")
    if number and not 8 <= len(number) <= 15:
        raise Objection("phone")
    if username and not _USERNAME.fullmatch(username):
        raise Objection("username")
    if number and canonical(number) in {canonical(one.phone) for one in others}:
        raise Objection("phone_taken")
    if username and username in {one.username for one in others}:
        raise Objection("username_taken")
    if language not in LANGUAGES:
        raise ValueError(f"the language is one of {', '.join(LANGUAGES)}")
    if len(others) >= MOST:
        raise Objection("full", most=MOST)
    return SimulatedPerson(_id_for(name, others), name, number, _user_id(number), username, language)


def guest_for(person: SimulatedPerson, others: Collection[SimulatedPerson]) -> SimulatedPerson:
    """A stranger who plays a person: another number of the same country, another username."""
    numbers = {canonical(one.phone) for one in others}
    phone = person.phone
    while phone and canonical(phone) in numbers:
        phone = person.phone[:-4] + f"{secrets.randbelow(10_000):04}"
    username = f"{person.username[:24]}.{secrets.token_hex(4)}" if person.username else ""
    user_id = person.user_id.partition(".")[0] + "." + _random_digits()
    return replace(person, id=f"{person.id}-replay", phone=phone, username=username, user_id=user_id)


def named(people: Iterable[SimulatedPerson], names: Collection[str]) -> list[SimulatedPerson]:
    """Those who go by one of these canonical numbers or user ids."""
    return [one for one in people if not {canonical(one.phone), one.user_id}.isdisjoint(names)]


def _id_for(name: str, others: Collection[SimulatedPerson]) -> str:
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    wanted = re.sub(r"[^a-z0-9]+", "-", folded).strip("-") or "person"
    taken = {one.id for one in others}
    return wanted if wanted not in taken else f"{wanted}-{secrets.token_hex(3)}"


def _user_id(phone: str) -> str:
    return f"{country(phone) or 'US'}.{_random_digits()}"


def _random_digits() -> str:
    return str(secrets.randbelow(9 * 10**13) + 10**13)


PEOPLE = (
    SimulatedPerson("ana", "Ana", "5215550100001", "MX.10550100001", "", "es"),
    SimulatedPerson("bruno", "Bruno", "5511955501234", "BR.10955501234", "", "pt"),
    SimulatedPerson("chris", "Chris", "14155550123", "US.10155550123", "", "en"),
    SimulatedPerson("dani", "Dani", "", "AR.10000000004", "dani.escribe", "es"),
)
"""The first one owns the assistant while the simulator is in use."""
