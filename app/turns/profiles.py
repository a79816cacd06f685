"""What is known of a person beyond their messages: country, time zone and language, found out once."""

from collections.abc import Callable, Sequence
from sqlite3 import Connection, Row

from app.i18n import LANGUAGES, detect_language
from app.people import Person
from app.phones import country, timezone_of
from app.store import people
from app.store.ownership import AccessRules

LANGUAGE_CHARACTERS = 500


class Profiles:
    """Makes the `Person` of a turn from its rows, and fills in what a first message left open."""

    def __init__(self, doors: Callable[[str], AccessRules | None], default_timezone: str) -> None:
        self._doors = doors
        self._default_timezone = default_timezone

    def known(self, conn: Connection, row: Row, names: Sequence[str], said: str = "") -> Person:
        """The person of a row with these aliases, as prompts and tools see them.

        Their language: that of what they said just now, else of what they said before, else their country's.
        Their time zone: what they said, else their country's where it has one, else the machine's.
        """
        land = row["country"] or _country(names)
        spoken = detect_language(said[:LANGUAGE_CHARACTERS]) or row["language"] or language_of(land)
        if (land, spoken) != (row["country"], row["language"]):
            people.settle(conn, row["id"], spoken, land)
        known = people.person_of(row, self._doors(row["realm"]), names)
        return Person(
            id=known.id,
            realm=known.realm,
            name=known.name,
            role=known.role,
            language=spoken,
            timezone=self.zone(row["timezone"], land),
            country=land,
        )

    def zone(self, said: str, land: str) -> str:
        """The zone that counts: what the person `said`, else that of their number's country, else ours."""
        return said or timezone_of(land) or self._default_timezone


def language_of(country_code: str) -> str:
    """The language of ours that is most likely in a country."""
    from babel.core import get_global

    likely = str(get_global("likely_subtags").get(f"und_{country_code}", "en")).split("_")[0]
    return likely if likely in LANGUAGES else "en"


def local_timezone() -> str:
    """The machine's zone as an IANA name."""
    from tzlocal import get_localzone_name

    return get_localzone_name() or "UTC"


def _country(names: Sequence[str]) -> str:
    """From a phone, or from a business-scoped id, which starts with its country ("MX.123")."""
    for name in names:
        found = country(name) if name.isdigit() else name[:2]
        if found:
            return found
    return ""
