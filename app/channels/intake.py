"""What a message that was taken in sets going; and lines that are typed in rather than sent."""

import time
from dataclasses import replace
from sqlite3 import Connection

from app.channels.access import AccessPolicy
from app.channels.sender import Sender
from app.channels.terminal import typed
from app.channels.whatsapp.webhook import Received, log_received
from app.ops.metrics import Metrics
from app.schedule.alarm import Reminders
from app.store import approvals, inbox
from app.store.database import Database
from app.store.inbox import IntakeResult
from app.turns.inbound import classify_inbound
from app.turns.scheduler import TurnScheduler


class Intake:
    """`wakes=False`: nobody is woken, and the sweep finds what the rows say."""

    def __init__(
        self,
        store: Database,
        entrances: AccessPolicy,
        metrics: Metrics,
        carrier: TurnScheduler,
        sender: Sender,
        reminders: Reminders,
        *,
        wakes: bool,
    ) -> None:
        self._store = store
        self._entrances = entrances
        self._metrics = metrics
        self._carrier = carrier
        self._sender = sender
        self._reminders = reminders
        self._wakes = wakes

    async def type_in(self, text: str) -> None:
        """Takes in a line from the terminal."""
        entrance, now = self._entrances.entrance("terminal"), time.time()
        arrival, is_a = classify_inbound(typed(text)), text.strip().casefold() == "a"

        def take(conn: Connection) -> IntakeResult:
            ends = is_a and approvals.has_open_on(conn, "terminal")  # of [y/n/a]: it ends the turn that asks
            taken = replace(arrival, kind="stop") if ends else arrival
            return inbox.take_in(conn, entrance, [taken], [], [], [], now)

        await self._store.tx(take, then=self._hint)

    def received(self, received: Received) -> None:
        """After a webhook's commit: figures, logs, hints."""
        taken = received.taken
        self._metrics.messages_taken("accepted", taken.accepted)
        self._metrics.messages_taken("duplicate", taken.duplicates)
        self._metrics.messages_taken("turned_away", len(taken.turned_away))
        log_received(received)
        self._hint(taken)
        if self._wakes:
            for applied in received.applied:
                self._sender.wake(applied.person_id)

    def _hint(self, taken: IntakeResult) -> None:
        """Wakes what the rows say already."""
        if not self._wakes:
            return
        for conversation in taken.expect:
            self._carrier.expect(conversation)
        for conversation in taken.wake:
            self._carrier.wake(conversation)
        for person in taken.notices:
            self._sender.wake(person)
        self._reminders.heard(taken.expect | taken.wake)
