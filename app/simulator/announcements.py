"""What the webhook is told of each message, and what is kept once it has taken that."""

from collections.abc import Callable

from app.messages import JSON
from app.simulator.bodies import Account, message_value, status_value
from app.simulator.history import History
from app.simulator.people import SimulatedPerson
from app.simulator.webhooks import Notice, WebhookPoster

_CHAIN = ("sent", "delivered", "read")


class Announcements:
    """Queues one webhook for what a person says; for what they were sent one each: sent, delivered, read.

    `record` keeps an event and shows it; `status_pause` is waited before delivered and before read.
    """

    def __init__(
        self,
        webhooks: WebhookPoster,
        account: Account,
        history: History,
        record: Callable[[JSON], None],
        clock: Callable[[], float],
        status_pause: float,
    ) -> None:
        self._webhooks = webhooks
        self._account = account
        self._history = history
        self._record = record
        self._clock = clock
        self._status_pause = status_pause

    def queue(self, person: SimulatedPerson, message: dict[str, JSON]) -> None:
        """Queues every webhook about a message that was not taken yet."""
        if message["by"] == "business":
            for status in ("failed",) if message.get("failed") else _CHAIN:
                if status not in message["told"]:
                    self._webhooks.post(self._status(person, message, status))
        elif not message["told"]:
            self._webhooks.post(
                Notice(
                    lane=f"{person.id}/messages",
                    value=lambda: message_value(self._account, person, message),
                    taken=lambda: self._on_taken(message["id"], "received"),
                )
            )

    def _status(self, person: SimulatedPerson, message: dict[str, JSON], status: str) -> Notice:
        def value() -> JSON:
            self._record({"event": "status", "id": message["id"], "status": status})
            return status_value(self._account, person, message, status, self._clock())

        return Notice(
            lane=f"{person.id}/statuses",
            value=value,
            taken=lambda: self._on_taken(message["id"], status),
            is_status=True,
            pause=0.0 if status == "sent" else self._status_pause,
        )

    def _on_taken(self, message_id: str, what: str) -> None:
        self._record({"event": "told", "id": message_id, "what": what})
        message = self._history.messages.get(message_id)
        if what == "received" and message is not None and message["status"] == "sent":
            self._record({"event": "status", "id": message_id, "status": "delivered"})
