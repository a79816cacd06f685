"""What tests of the store take in, claim and end, in few words. Times are seconds of a day of their own."""

from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any

from app.messages import AliasChange, Inbound, Outgoing, Sender, Status, Webhook
from app.people import Conversation, Person
from app.settings import Settings
from app.store import delivery, inbox, outbox, people, turn_state, turns
from app.store.inbox import ClassifiedMessage, IntakeResult, IntakeRules
from app.store.limits import RateTable
from app.store.outbox import Draft, Origin
from app.store.ownership import AccessRules
from app.store.turn_state import TurnState
from app.store.turns import Ready
from app.turns.limits import Limits

T = 1_800_000_000.0
"""The moment at which these tests begin."""

ANA = Sender(phone="5215550000001", user_id="MX.ana", name="Ana")
BETO = Sender(phone="5215550000002", user_id="MX.beto", name="Beto")
OPEN = AccessRules("whatsapp", open=True, code_key=b"c" * 32)


class Everybody:
    """Lets everybody in, as a member."""

    def access_rules(self, realm: str) -> AccessRules:
        return OPEN


def no_limits() -> Limits:
    return Limits(Settings(_env_file=None), Everybody(), RateTable(), "whatsapp")


class Notices:
    """Short notices."""

    def deleted_too_late(self, person: Person, message: Inbound, reply: str) -> Draft | None:
        return None

    def too_fast(self, person: Person, message: Inbound) -> Draft:
        return draft("too fast")

    def welcome(self, person: Person, message: Inbound, became: str) -> Draft:
        return draft("yours")


def entrance(doors: AccessRules = OPEN, limit: int = 0, window: float = 60.0) -> IntakeRules:
    return IntakeRules("whatsapp", doors, limit, window, b"k" * 32, Notices())


def draft(*parts: str) -> Draft:
    return Draft("\n".join(parts), tuple(Outgoing(part) for part in parts))


def inbound(wamid: str, text: str = "hola", sender: Sender = ANA, **more: Any) -> Inbound:
    return Inbound(wamid, sender, more.pop("kind", "text"), text=text, **more)


def take(
    conn: Connection,
    *messages: Inbound,
    now: float = T,
    doors: AccessRules = OPEN,
    kind: str = "message",
    limit: int = 0,
    changes: Sequence[AliasChange] = (),
    pairs: Sequence[Sender] = (),
) -> IntakeResult:
    """Takes one body in."""
    arrivals = [ClassifiedMessage(message, kind) for message in messages]
    webhook = Webhook(changes=[*changes], pairs=[*pairs])
    return inbox.take_in(conn, entrance(doors, limit), arrivals, webhook, now)


def admit(
    conn: Connection, sender: Sender = ANA, now: float = T, doors: AccessRules = OPEN, text: str = ""
) -> Person:
    admitted = people.admit(conn, doors, sender, text, now)
    assert isinstance(admitted, people.Admitted)
    return admitted.person


def conversation(conn: Connection, sender: Sender = ANA, group: str = "", now: float = T) -> Conversation:
    """Somebody's conversation."""
    found = people.conversation(conn, admit(conn, sender, now).id, "whatsapp", group, now)
    conn.execute("UPDATE conversations SET disclosed = 1")  # what is sent is what is written here
    return found


def claim(
    conn: Connection,
    where: Conversation | str,
    turn: str,
    now: float,
    quiet: float = 0.0,
    longest: float = 0.0,
) -> object:
    return turns.claim(conn, where if isinstance(where, str) else where.id, turn, now, quiet, longest)


def begun(conn: Connection, where: Conversation, turn: str, now: float = T, history: int = 40) -> TurnState:
    """Claims what waits as `turn` and begins it."""
    assert claim(conn, where, turn, now) == Ready(turn)
    return turn_state.load_turn(conn, turn, history, "2027-01-15")


def answered(conn: Connection, where: Conversation, turn: str, said: str, reply: str, now: float) -> None:
    """A whole turn of Ana's."""
    take(conn, inbound(f"wamid.{turn}", said), now=now)
    begun(conn, where, turn, now)
    turns.end(conn, turn, where, "answered", draft(reply), now)


def queue(
    conn: Connection,
    where: Conversation,
    source: str,
    *parts: str,
    now: float = T,
    origin: Origin = "assistant",
) -> list[str]:
    """Queues a text of so many parts; gives the rows' ids."""
    outbox.put_reply(conn, where, source, draft(*parts), now, origin=origin)
    rows = conn.execute("SELECT id FROM outbox WHERE source = ? ORDER BY part", (source,))
    return [row["id"] for row in rows]


def sent_twice(conn: Connection, source: str) -> None:
    """A row goes out as wamid.1, of which nothing comes back for too long, and again as wamid.2."""
    row = value(conn, "SELECT id FROM outbox WHERE source = ?", source)
    conn.execute("UPDATE outbox SET wamid = NULL WHERE id = ?", (row,))
    conn.execute(
        "UPDATE messages SET wamid = NULL WHERE id = (SELECT message_id FROM outbox WHERE id = ?)", (row,)
    )
    delivery.mark_sent(conn, row, "wamid.2", T)
    for wamid in ("wamid.2", "wamid.1"):
        delivery.apply_status(conn, Status(wamid, "sent", T, row), T)


def states(conn: Connection) -> list[str]:
    return [row["state"] for row in conn.execute("SELECT state FROM outbox ORDER BY seq")]


def value(conn: Connection, sql: str, *parameters: object) -> Any:
    return conn.execute(sql, parameters).fetchone()[0]


def steps(conn: Connection, work: Callable[[], object]) -> int:
    """Return how many steps SQLite's virtual machine takes for some work."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    conn.set_progress_handler(count, 1)
    work()
    conn.set_progress_handler(None, 0)
    return taken


def freeze(conn: Connection, person: str, reason: str = "a test") -> None:
    """Freeze a person, as two who turn out to share an alias are."""
    conn.execute("UPDATE people SET frozen = ? WHERE id = ? AND frozen = ''", (reason, person))
