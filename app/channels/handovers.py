"""Ask people of the business to answer, and tell owners and customers of it."""

import time
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from app.calendar.rules import OpeningHours
from app.channels.access import AccessPolicy, shown_address, shown_line, shown_name
from app.i18n import say
from app.messages import SAYS, Button, Outgoing, Wakeable
from app.people import Conversation, Person
from app.schedule.wording import local_text
from app.settings import Settings
from app.store import handovers, people
from app.store.database import Connection, Database
from app.store.outbox import Draft, count_since, put_reply

LONGEST_WHY = 200  # characters of a customer's reason, and of each of their lines, that owners are shown
MOST_TEXT = 900  # characters beside buttons
MOST_ASKS = 10  # that an owner is told of in an hour; the console shows all


@dataclass(frozen=True, slots=True)
class Asked:
    """`reached`: an owner was written to; `until`: when somebody is back, "" if they are there or unknown."""

    reached: bool
    until: str = ""


class Handovers:
    """The service behind the skill `handover`; the sweep calls `tell`."""

    def __init__(self, settings: Settings, store: Database, access: AccessPolicy, sender: Wakeable) -> None:
        self._settings = settings
        self._store = store
        self._access = access
        self._sender = sender
        self._zone = ZoneInfo(settings.default_timezone)

    async def ask(self, person: Person, conversation: str, why: str, key: str) -> Asked:
        """Ask the owners to answer a person; `key` names the call, which tells each owner once.

        An owner is told of at most `MOST_ASKS` in an hour.
        """
        now = time.time()
        until = now + self._settings.handover_minutes * 60

        def write(conn: Connection) -> list[str]:
            where = people.conversation_by_id(conn, conversation)
            chats = [chat for chat in self._chats(conn, now) if chat.person_id != person.id]
            if not chats or not handovers.ask(conn, where, until, now):
                return [chat.person_id for chat in chats]
            lines = handovers.last_lines(conn, where.id)
            for chat in chats:
                if count_since(conn, chat.person_id, "asked:", now - 3600) < MOST_ASKS:
                    language = people.language(conn, chat.person_id)
                    draft = _please_answer(language, conn, person.id, why, lines)
                    source = f"asked:{person.id}:{key}:{chat.person_id}"
                    put_reply(conn, chat, source, draft, now, origin="guest")
            return [chat.person_id for chat in chats]

        told = await self._store.tx(write)
        for owner in told:
            self._sender.wake(owner)
        return Asked(bool(told), self._opens(now, person.language))

    def tell(self, conn: Connection, now: float) -> None:
        """Tell owners whom a person answers now, and customers that nobody was there."""
        chats = self._chats(conn, now)
        for one in handovers.take_untold(conn, now):
            for chat in chats:
                draft = self._taken_over(people.language(conn, chat.person_id), conn, one.person_id)
                put_reply(conn, chat, f"handover:{one.id}:{now}:{chat.person_id}", draft, now)
        for one in handovers.take_unanswered(conn, now):
            language = people.language(conn, one.person_id)
            text = say(language, "Nobody could answer you yet. They will read this as soon as they can.")
            if when := self._opens(now, language):
                text = say(
                    language, "Nobody could answer you yet. Somebody will read this: {when}.", when=when
                )
            put_reply(conn, one, f"unanswered:{one.id}:{now}", Draft(text, (Outgoing(text),)), now)

    def _chats(self, conn: Connection, now: float) -> list[Conversation]:
        rules = self._access.access_rules(self._access.realm)
        owners = people.owners(conn, rules)
        return [people.conversation(conn, owner, self._access.realm, "", now) for owner in owners]

    def _opens(self, now: float, language: str) -> str:
        moment = datetime.fromtimestamp(now, self._zone)
        opens = OpeningHours.parse(self._settings.opening_hours).next_open(moment)
        return local_text(opens, moment.date(), language) if opens is not None and opens > moment else ""

    def _taken_over(self, language: str, conn: Connection, person: str) -> Draft:
        name, who = people.shown_as(conn, person)
        text = say(
            language,
            "{name} ({who}) is answered by a person now. I am silent there until {hours} hours after "
            "their last message, or until you give the conversation back to me.",
            name=shown_name(name),
            who=shown_address(who),
            hours=f"{self._settings.handover_hours:g}",
        )
        return Draft(text, (Outgoing(text, (_give_back(language, who),)),))


def _please_answer(
    language: str, conn: Connection, person: str, why: str, lines: list[tuple[bool, str]]
) -> Draft:
    name, who = people.shown_as(conn, person)
    text = say(
        language,
        "{name} ({who}) asks for a person: {why}",
        name=shown_name(name),
        who=shown_address(who),
        why=shown_line(why, LONGEST_WHY) or "?",
    )
    shown = [f"{'›' if is_theirs else '‹'} {shown_line(line, LONGEST_WHY)}" for is_theirs, line in lines]
    whole = "\n".join([text, "", *shown])[:MOST_TEXT]
    answer = Button(f"{SAYS}/human {who}", say(language, "I answer"))
    return Draft(whole, (Outgoing(whole, (answer, _give_back(language, who))),))


def _give_back(language: str, who: str) -> Button:
    return Button(f"{SAYS}/bot {who}", say(language, "You answer"))
