"""The time zone that a person says is theirs: `context.services.zones`, and what a call must keep to."""

from collections.abc import Mapping
from dataclasses import replace
from sqlite3 import Connection
from zoneinfo import ZoneInfo

from app.i18n import say
from app.messages import JSON
from app.people import Person
from app.search.words import content, words
from app.store import people, schedules
from app.store.database import Database
from app.tools import ToolContext, ToolResult
from app.turns.approvals import Guard, Refused
from app.turns.profiles import Profiles
from app.turns.state import TurnContext

TOOL = "set_time_zone"


class Zones:
    """Keeps and forgets the zone of the person who asks."""

    def __init__(self, store: Database, profiles: Profiles) -> None:
        self._store = store
        self._profiles = profiles

    async def set(self, zone: str, context: ToolContext) -> tuple[str, bool]:
        """Keeps an IANA name, "" to go by the person's number again. Gives the zone that counts now, and
        whether reminders stay in another one. Raises LookupError where there is nobody (any more)."""
        if zone:
            ZoneInfo(zone)
        asks = context.person
        if asks is None:
            raise LookupError("a time zone belongs to a person, and there is none here")

        def write(conn: Connection) -> tuple[str, bool]:
            row = people.set_zone(conn, asks.id, zone)
            if row is None:
                raise LookupError("this person was erased meanwhile")
            counts = self._profiles.zone(zone, row["country"] or asks.country)
            return counts, any(one.zone != counts for one in schedules.active(conn, asks.id))

        return await self._store.tx(write)

    async def renewed(self, person: Person) -> Person:
        """The person with the zone that counts now."""
        row = await self._store.one("SELECT timezone FROM people WHERE id = ?", person.id)
        zone = self._profiles.zone(row["timezone"] if row is not None else "", person.country)
        return replace(person, timezone=zone)


def guards() -> dict[str, Guard]:
    """Where text of others is in the prompt, the zone is one that the person named."""
    return {TOOL: _named_by_person}


async def _named_by_person(arguments: Mapping[str, JSON], run: TurnContext) -> None:
    if not run.sources:
        return
    said = {word for text in run.own_words for word in words(text)}
    if said.isdisjoint(content(words(str(arguments["place"])))):
        raise Refused(
            ToolResult.failure(
                "DENIED",
                say(
                    run.person.language,
                    "I take no time zone out of others' words. Tell me yourself which is yours.",
                ),
                "pass the place in the person's own words; where they named none, ask them for it",
            )
        )
