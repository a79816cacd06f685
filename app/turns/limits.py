"""Limits on guests, tokens and sent messages: who waits, who is told, who may still be written to.

Guests wait first. Of what may be sent, three small reserves are kept: for members, then for the owner, for
reminders and questions, then for the owner's alert that nothing is left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil

from app.errors import RecadoError
from app.i18n import lazy, said, say
from app.messages import Outgoing
from app.people import Person
from app.settings import Limit, Settings
from app.store import alerts, events, limits, outbox, people
from app.store.database import Connection
from app.store.limits import MILLION, REGULAR, Period, RateTable
from app.store.outbox import Draft, Origin, OutboxRow
from app.store.ownership import HasAccessRules
from app.store.statistics import day_of

GUESTS_TOKENS = 0.9  # share of the tokens that guests may use up
WARNED_AT = 0.8  # share of the monthly budget
PROMISED_SECONDS = 3.0  # until guests look again for tokens that running turns may leave
RESERVES = 50  # one reserve is this part of a limit, and at least two messages
FOR_OWNERS_ALERTS, FOR_OTHERS, FOR_MEMBERS, FOR_GUESTS = range(4)  # reserves that have to be left
_LAST_STOPPED: tuple[Origin, ...] = ("reminder", "question", "business", "alert")
_OF_GUESTS: tuple[Origin, ...] = ("question", "business", "alert")  # their reminders take no reserve
_BUT_GUESTS: tuple[Origin, ...] = ("assistant", *_LAST_STOPPED)  # what guests ask owners for waits
_ALERT = "limit:"


@dataclass(frozen=True, slots=True)
class _Bound:
    """A limit on what is sent: `most` and `used` in the same unit, of which the next message takes `next`."""

    what: str
    period: Period
    most: float
    used: float
    next: float = 1
    queued: int = 0  # messages before it that are not on their way yet

    @property
    def reserves_left(self) -> float:
        """Return how many reserves are left after the next message; below 0 it may not be sent."""
        left = self.most - self.used - self.next * (1 + self.queued)
        return left / max(self.most / RESERVES, 2 * self.next, 2)


class Limits:
    """Knows every limit of the settings, and what was used of it."""

    def __init__(self, settings: Settings, access: HasAccessRules, rates: RateTable, realm: str) -> None:
        self._settings = settings
        self._access = access
        self.rates = rates
        self._realm = realm
        self._budget = settings.monthly_message_budget
        if self._budget.currency not in ("", rates.currency):
            raise RecadoError(
                f"MONTHLY_MESSAGE_BUDGET is in {self._budget.currency} and the rates in {rates.currency}: "
                "give a budget in that currency, or put a rates.yaml of your own into DATA_DIR"
            )
        if self._budget.currency and not rates.rates:
            raise RecadoError(
                "MONTHLY_MESSAGE_BUDGET is money and rates.yaml holds no rate: write one into it"
            )
        self._bounds_sending = bool(self._budget.amount or settings.send_limit)

    def is_guest(self, conn: Connection, person: str) -> bool:
        return self._person(conn, person).is_guest

    def pause(self, conn: Connection, conversation: str, now: float) -> tuple[float | None, Sequence[str]]:
        """Return until when what waits in a conversation has to wait longer, and whose outbox got a notice.

        A turn that is open goes on. The person is told once in a period that they have to wait, owners only
        of what is used up.
        """
        if not (waiting := limits.waiting_kinds(conn, conversation, now)):
            return None, ()
        where = people.conversation_by_id(conn, conversation)
        person = self._person(conn, where.person_id)
        if person.is_owner:
            return None, ()
        needed, promised = 0, 0
        if self._settings.token_limit and person.is_guest:
            needed, promised = limits.tokens_needed(conn, conversation)
        found = self._reached(conn, person, now, needed)
        if found is None:
            if person.is_guest:
                alerts.close_alerts(conn, _ALERT, now)
            others_first = promised and self._reached(conn, person, now, needed, promised)
            return now + PROMISED_SECONDS if others_first else None, ()
        what, period = found
        ends, told = limits.period_ends(period, now), list[str]()
        limits.hold_back(conn, conversation, what, ends)
        is_task = waiting == {"scheduled"}  # or a watch
        if is_task or (what != "person" and self._reached(conn, person, now) == found):  # it is used up
            told = self._tell_owners(conn, what, period, now)
        if not is_task and what not in ("sent", "budget"):  # else nothing may be sent
            text = say(
                person.language,
                "I have answered as much as I may for now. I kept your message and answer it in {time}.",
                time=_duration(ends - now, person.language),
            )
            source = f"waits:{what}:{limits.period_name(period, now)}:{person.id}"
            outbox.put_reply(conn, where, source, Draft(text, (Outgoing(text),)), now)
            told.append(person.id)
        return ends, told

    def is_reached(self, conn: Connection, person: str, now: float) -> bool:
        """Return whether what a person wrote has to wait for a limit."""
        return self._reached(conn, self._person(conn, person), now) is not None

    def count_guest_turn(self, conn: Connection, turn: str, now: float, *, is_new: bool) -> bool:
        """Return whether a turn is a guest's; a new one of theirs is counted."""
        row = conn.execute("SELECT person_id FROM turns WHERE id = ?", (turn,)).fetchone()
        for_guest = self.is_guest(conn, row["person_id"])
        if for_guest and is_new:
            limits.add(conn, "guests", 1, now)
        return for_guest

    def sendable(self, conn: Connection, person: str, now: float) -> tuple[Origin, ...] | None:
        """Return the origins that may be sent to a person now; None for all."""
        if not self._bounds_sending:
            return None
        who = self._person(conn, person)
        left = self._tightest(conn, who, now).reserves_left
        needed = FOR_OTHERS if who.is_owner else FOR_GUESTS if who.is_guest else FOR_MEMBERS
        if left >= needed:
            return _BUT_GUESTS if who.is_owner and left < FOR_GUESTS else None
        if left >= FOR_OTHERS:
            return _OF_GUESTS if who.is_guest else _LAST_STOPPED
        return ("alert",) if who.is_owner and left >= FOR_OWNERS_ALERTS else ()

    def count_send(self, conn: Connection, row: OutboxRow, now: float) -> list[str]:
        """Count a message that goes on the wire; return the owners who are told that little is left."""
        if not self._bounds_sending or not (row.attempts == 1 or row.is_second_send):
            return []
        limits.add(conn, "sent", 1, now)
        person, is_template = self._person(conn, row.person_id), row.message.template is not None
        limits.add(conn, "cost", self._price(person, is_template=is_template, now=now), now)
        for bound in self._bounds(conn, now, 0):
            if bound.what == "budget" and bound.used >= bound.most * WARNED_AT:
                is_warning = bound.reserves_left >= FOR_GUESTS
                return self._tell_owners(conn, "budget", "month", now, is_warning=is_warning)
        return []

    def _reached(
        self, conn: Connection, person: Person, now: float, needed: int = 0, promised: int = 0
    ) -> tuple[str, Period] | None:
        """Return the limit that leaves no room for a turn of a person.

        It needs so many tokens beside those `promised` to other turns; the first of a period may run.
        """
        settings = self._settings
        used = {period: one + promised for period, one in limits.used(conn, "tokens", now).items()}
        amounts = {period: one and one + needed for period, one in used.items()}
        share = GUESTS_TOKENS if person.is_guest else 1.0
        if period := limits.reached(settings.token_limit, amounts, share):
            return "tokens", period
        most = limits.answers_allowed(conn, person.id, settings.guest_limit if person.is_guest else Limit())
        if most and (period := limits.reached(most, limits.answers_to(conn, person.id, now))):
            return "guest" if person.is_guest else "person", period
        if not person.is_guest:
            return None
        if settings.guests_limit and (
            period := limits.reached(settings.guests_limit, limits.used(conn, "guests", now))
        ):
            return "guests", period
        if self._bounds_sending:
            bound = self._tightest(conn, person, now)
            if replace(bound, queued=limits.count_queued(conn)).reserves_left < FOR_GUESTS:
                return bound.what, bound.period
        return None

    def take_tokens(self, conn: Connection, person: Person, tokens: int, now: float) -> bool:
        """Count what a recording costs; return False for a guest's that would use up what guests may."""
        if person.is_guest:
            amounts = {period: used + tokens for period, used in limits.used(conn, "tokens", now).items()}
            if limits.reached(self._settings.token_limit, amounts, GUESTS_TOKENS):
                return False
        limits.add(conn, "tokens", tokens, now)
        return True

    def _bounds(self, conn: Connection, now: float, price: int) -> list[_Bound]:
        """Return the limits on sending; the next message costs `price`."""
        counts, budget = limits.used(conn, "sent", now), self._budget
        bounds = [
            _Bound("sent", period, most, counts[period])
            for period in counts
            if (most := getattr(self._settings.send_limit, period))
        ]
        if budget.amount and budget.currency:
            cost = limits.used(conn, "cost", now)["month"]
            bounds.append(_Bound("budget", "month", float(budget.amount * MILLION), cost, price))
        elif budget.amount:
            bounds.append(_Bound("budget", "month", float(budget.amount), counts["month"]))
        return bounds

    def _tightest(self, conn: Connection, person: Person, now: float) -> _Bound:
        price = self._price(person, is_template=False, now=now)
        return min(self._bounds(conn, now, price), key=lambda bound: bound.reserves_left)

    def _price(self, person: Person, *, is_template: bool, now: float) -> int:
        """Return what a message counts in the budget, in millionths."""
        category = "utility" if is_template else "service"
        row = {"country": person.country, "category": category, "kind": REGULAR, "day": day_of(now)}
        return int(self.rates.price_in_budget(row) * MILLION)

    def _tell_owners(
        self, conn: Connection, what: str, period: Period, now: float, *, is_warning: bool = False
    ) -> list[str]:
        """Tell each owner once in a period that a limit is reached, or nearly."""
        name, left = limits.period_name(period, now), limits.period_ends(period, now) - now
        if not is_warning and what != "guest":
            fact = lazy("used up for {n} h more: {what}", n=ceil(left / 3600), what=_LABELS[what])
            alerts.raise_alert(conn, f"{_ALERT}{what}", fact, now)
        told = []
        for owner in people.owners(conn, self._access.access_rules(self._realm)):
            language = people.language(conn, owner)
            values = {"what": said(_LABELS[what], language), "time": _duration(left, language)}
            if is_warning:
                text = say(language, "80 % is used up of {what}; it has to last for {time}.", **values)
            else:
                text = say(language, "Used up: {what}. What guests write waits for {time}.", **values)
            chat = people.conversation(conn, owner, self._realm, "", now)
            source = f"{_ALERT}{what}:{name}:{'warning' if is_warning else 'reached'}:{owner}"
            if outbox.put_reply(conn, chat, source, Draft(text, (Outgoing(text),)), now, origin="alert"):
                told.append(owner)
        if told and not is_warning:
            events.emit(conn, "limit.reached", None, {"limit": what, "period": name}, now)
        return told

    def _person(self, conn: Connection, person: str) -> Person:
        known = people.by_id(conn, person)
        if known.row is None:  # erased meanwhile
            return Person(person, "whatsapp", role="guest")
        return people.person_of(known, self._access.access_rules(known.row["realm"]))


_LABELS: Mapping[str, str] = {
    "guest": lazy("the answers that one guest may have"),
    "guests": lazy("the answers that all guests may have"),
    "tokens": lazy("what the language model may read and write"),
    "sent": lazy("the messages that I may send"),
    "budget": lazy("the month's budget for messages"),
}


def _duration(seconds: float, language: str) -> str:
    from babel.dates import format_timedelta  # late: only somebody who waits needs it

    return str(format_timedelta(timedelta(seconds=seconds), locale=language))
