"""Work out and keep a person's country, time zone and language."""

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from app.i18n import LANGUAGES, detect_language
from app.people import Person
from app.phones import country, timezone_of
from app.store import people, schedules
from app.store.database import Connection, Database
from app.store.ownership import HasAccessRules
from app.store.people import KnownPerson
from app.tools import ToolContext


class Profiles:
    """Makes the `Person` of a turn from its rows, and keeps their time zone: `context.services.zones`."""

    def __init__(self, access: HasAccessRules, default_timezone: str, store: Database) -> None:
        self._access = access
        self._default_timezone = default_timezone
        self._store = store

    def known(self, conn: Connection, known: KnownPerson, said: str = "") -> Person:
        """Return a person as prompts and tools see them.

        The language is that of what they said just now, else of what they said before, else their country's.
        The time zone is what they said, else that of their number, else the machine's.
        """
        row, names = known.row, known.names
        land = row["country"] or _country(names)
        spoken = detect_language(said, row["language"]) or row["language"] or language_of(land)
        if (land, spoken) != (row["country"], row["language"]):
            people.settle(conn, row["id"], spoken, land)
        person = people.person_of(known, self._access.access_rules(row["realm"]))
        phone = next((name for name in names if name.isdigit()), "")
        home = timezone_of(land, phone) or self._default_timezone
        zone = row["timezone"] or home
        return replace(person, language=spoken, timezone=zone, home_timezone=home, country=land)

    async def renewed(self, person: Person) -> Person:
        """Return the person with the time zone that counts now."""
        row = await self._store.one("SELECT timezone FROM people WHERE id = ?", person.id)
        said = row["timezone"] if row is not None else ""
        return replace(person, timezone=said or person.home_timezone)

    async def set(self, zone: str, context: ToolContext) -> tuple[str, bool]:
        """Keep an IANA name, "" to go by the person's number again.

        Return the zone that counts now, and whether reminders stay in another one. Raises LookupError when
        there is no such person (any more).
        """
        if zone:
            ZoneInfo(zone)
        asks = context.person
        if asks is None:
            raise LookupError("a time zone belongs to a person, and there is none here")

        def write(conn: Connection) -> tuple[str, bool]:
            if not people.set_zone(conn, asks.id, zone):
                raise LookupError("this person was erased meanwhile")
            counts = zone or asks.home_timezone
            return counts, any(one.zone != counts for one in schedules.active(conn, asks.id))

        return await self._store.tx(write)

    async def misread(self, context: ToolContext) -> None:
        """Name the guessed zone again at the next reminder: where the person lives was not understood."""
        if (asks := context.person) is not None:
            await self._store.tx(lambda conn: people.repeat_zone_note(conn, asks.id))


def language_of(country_code: str) -> str:
    """Return the language of ours that is most likely in a country."""
    from babel.core import get_global

    likely = str(get_global("likely_subtags").get(f"und_{country_code}", "en")).split("_")[0]
    return likely if likely in LANGUAGES else "en"


def _country(names: Sequence[str]) -> str:
    """Read the country from a phone, or from a business-scoped id, which starts with it ("MX.123")."""
    return next(filter(None, (country(name) if name.isdigit() else name[:2] for name in names)), "")
