"""People that are added on the page, and why the page cannot have its way."""

import re
import secrets
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

from app.messages import JSON
from app.people import SimulatedPerson
from app.phones import canonical, country, digits

MOST_PEOPLE: Final = 50
_USERNAME = re.compile(r"[a-z0-9._]{3,35}")

REASONS: Final = {  # in English; static/reasons.js has them in the page's other languages
    "name": "A name has 1 to 40 characters.",
    "no_address": "A person has a phone number, a username or both.",
    "phone": "A phone number has 8 to 15 digits, the country code first.",
    "username": "A username has 3 to 35 small letters, digits, dots and underscores.",
    "phone_taken": "Somebody here has that number.",
    "username_taken": "Somebody here has that username.",
    "full": "There are {most} people already.",
    "file": "A file of this type or size cannot be sent: photos up to 5 MB, WebP up to 500 KB.",
}


class Objection(ValueError):
    """Input of the page that cannot be accepted; `reason` is one of REASONS, `values` fill it."""

    def __init__(self, reason: str, **values: str | int) -> None:
        super().__init__(REASONS[reason].format(**values))
        self.reason = reason
        self.values = values

    def as_json(self) -> JSON:
        return {"error": str(self), "reason": self.reason, "values": self.values}


def new_person(
    name: str, phone: str, username: str, language: str, others: Collection[SimulatedPerson]
) -> SimulatedPerson:
    """Return a person beside `others`, with a phone, a username or both. Raise Objection."""
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
    if len(others) >= MOST_PEOPLE:
        raise Objection("full", most=MOST_PEOPLE)
    user_id = f"{country(number) or 'US'}.{secrets.randbelow(9 * 10**13) + 10**13}"
    return SimulatedPerson(_id_for(name, others), name, number, user_id, username, language)


def find_people(people: Iterable[SimulatedPerson], names: Collection[str]) -> list[SimulatedPerson]:
    """Return the people who have one of these canonical numbers or user ids."""
    return [one for one in people if not {canonical(one.phone), one.user_id}.isdisjoint(names)]


def _id_for(name: str, others: Collection[SimulatedPerson]) -> str:
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    wanted = re.sub(r"[^a-z0-9]+", "-", folded).strip("-") or "person"
    taken = {one.id for one in others}
    return wanted if wanted not in taken else f"{wanted}-{secrets.token_hex(3)}"
