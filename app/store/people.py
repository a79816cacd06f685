"""People and their aliases: who somebody is, whether they may talk, and what becomes of a changed number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row
from typing import Literal

from app.errors import RecadoError
from app.messages import AliasChange, Sender
from app.people import Alias, Conversation, Person, Realm
from app.phones import canonical
from app.store.database import Database
from app.store.ids import new_id
from app.store.ownership import Doors, takes_ownership, withdraw_code

OUTSIDERS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Admitted:
    """`frozen`: what they write is kept, and waits for an owner to confirm them."""

    person: Person
    became_owner: bool = False
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Somebody who may not talk to us; `value` is the number or id that `recado people allow` takes."""

    value: str
    reason: Literal["outsider", "blocked"]


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A person (or somebody turned away) as `recado people list` shows them."""

    id: str
    names: Sequence[str]
    name: str
    role: str
    access: str
    frozen: str = ""
    messages: int = 0
    last_at: float = 0.0
    realm: str = "whatsapp"


@dataclass(frozen=True, slots=True)
class _Known:
    """Somebody we know: their row and every name they go by."""

    row: Row
    aliases: tuple[Alias, ...]

    @property
    def id(self) -> str:
        return str(self.row["id"])


def aliases_of(sender: Sender) -> list[Alias]:
    """The names a sender goes by, the steadiest first: the canonical phone, then the business-scoped id."""
    aliases = []
    if sender.phone:
        aliases.append(Alias("phone", canonical(sender.phone)))
    if sender.user_id:
        aliases.append(Alias("user_id", sender.user_id))
    return aliases


def admit(conn: Connection, doors: Doors, sender: Sender, text: str, now: float) -> Admitted | TurnedAway:
    """Who the sender of a signed message is, made known on the first visit if the doors are open to them."""
    aliases = aliases_of(sender)
    known = _find(conn, doors.realm, aliases, sender, now)
    became_owner = bool(doors.code_key) and takes_ownership(conn, doors, text, now)
    if known is None:
        if not (became_owner or _is_listed(doors, aliases)):
            return _turn_away(conn, doors.realm, sender, "outsider", now)
        known = _create(conn, doors.realm, sender, aliases, now)
    if became_owner:
        conn.execute(
            "UPDATE people SET role = 'owner', access = 'allowed', frozen = '' WHERE id = ?", (known.id,)
        )
        known = _by_id(conn, known.id)
    elif _learn(conn, doors.realm, known, sender, aliases, now):
        known = _by_id(conn, known.id)
    row, names = known.row, [alias.value for alias in known.aliases]
    if row["access"] == "blocked":
        return _turn_away(conn, doors.realm, sender, "blocked", now)
    owner = row["role"] == "owner" or not doors.owners.isdisjoint(names)
    if row["access"] == "listed" and not (owner or _is_listed(doors, names)):
        return _turn_away(conn, doors.realm, sender, "outsider", now)
    name = sender.name[:200] or row["name"]
    if name != row["name"]:
        conn.execute("UPDATE people SET name = ? WHERE id = ?", (name, row["id"]))
        row = _by_id(conn, row["id"]).row
    return Admitted(person_of(row, doors, names), became_owner, bool(row["frozen"]))


def person_of(row: Row, doors: Doors | None, names: Sequence[Alias | str] = ()) -> Person:
    """A people row as the rest of the house sees a person."""
    listed = doors is not None and not doors.owners.isdisjoint(_values(names))
    return Person(
        id=row["id"],
        realm=row["realm"],
        name=row["name"],
        role="member" if row["frozen"] else "owner" if listed else row["role"],
        language=row["language"] or "en",
        timezone=row["timezone"],
        country=row["country"],
    )


def apply_change(conn: Connection, realm: Realm, change: AliasChange, doors: Doors, now: float) -> bool:
    """Moves a person's alias to its new value. False where nobody here had the old one."""
    previous, current = aliases_of(change.previous), aliases_of(change.current)
    known = _find(conn, realm, previous)
    if known is None:
        return False
    holders = _holders(conn, realm, [*previous, *current])
    if len(holders) > 1:
        freeze(conn, holders, "two people turned out to share " + ", ".join(new.value for new in current))
        _claim(conn, holders, change.current, current, now)
        return True
    admitted = _is_listed(doors, known.aliases) and known.row["access"] == "listed"
    for new in current:
        for old in previous:
            if old.kind == new.kind and old.value != new.value:
                conn.execute(
                    "DELETE FROM aliases WHERE realm = ? AND kind = ? AND value = ?",
                    (realm, old.kind, old.value),
                )
        _add_alias(conn, realm, known.id, new, _address(change.current, new), now)
    if admitted:  # the configuration names the old number: being let in moves with the person
        conn.execute("UPDATE people SET access = 'allowed' WHERE id = ?", (known.id,))
    return True


def pair(conn: Connection, doors: Doors, sender: Sender, now: float) -> None:
    """Learns that a phone and a user id of a signed webhook are one person, where we know one of them."""
    aliases = aliases_of(sender)
    known = _find(conn, doors.realm, aliases, sender, now)
    if known is not None:
        _learn(conn, doors.realm, known, sender, aliases, now)


def freeze(conn: Connection, people: Sequence[str], reason: str) -> None:
    """Takes people's roles and memory out of reach until an owner confirms them."""
    for person in people:
        conn.execute("UPDATE people SET frozen = ? WHERE id = ? AND frozen = ''", (reason, person))


def allow(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Lets somebody in (by phone or user id), confirming them where they were frozen; gives the person id."""
    person = _known_or_new(conn, realm, who, now)
    _confirm(conn, realm, person, now)
    conn.execute(
        "UPDATE people SET access = 'allowed', frozen = '', epoch = epoch + (frozen <> '') WHERE id = ?",
        (person,),
    )
    conn.execute("DELETE FROM outsiders WHERE realm = ? AND value IN (?, ?)", (realm, canonical(who), who))
    return person


def block(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Shuts somebody out, whatever the configuration says."""
    person = _known_or_new(conn, realm, who, now)
    conn.execute("UPDATE people SET access = 'blocked', role = 'member' WHERE id = ?", (person,))
    return person


def make_owner(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Makes somebody an owner."""
    person = allow(conn, realm, who, now)
    conn.execute("UPDATE people SET role = 'owner' WHERE id = ?", (person,))
    if realm == "whatsapp":
        withdraw_code(conn)
    return person


def listing(conn: Connection) -> list[PersonLine]:
    """Everybody known, then those turned away, the newest first."""
    lines = [
        PersonLine(
            id=row["id"],
            names=[alias["value"] for alias in _alias_rows(conn, row["id"])],
            name=row["name"],
            role=row["role"],
            access=row["access"],
            frozen=row["frozen"],
            realm=row["realm"],
        )
        for row in conn.execute("SELECT * FROM people ORDER BY created_at")
    ]
    turned_away = conn.execute("SELECT * FROM outsiders ORDER BY last_at DESC")
    return lines + [
        PersonLine(
            id="",
            names=[row["value"]],
            name=row["name"],
            role="outsider",
            access="turned away",
            messages=row["messages"],
            last_at=row["last_at"],
            realm=row["realm"],
        )
        for row in turned_away
    ]


async def languages(store: Database) -> list[str]:
    """The languages of those who may talk to us, that of most people first."""
    rows = await store.all(
        "SELECT language FROM people WHERE language <> '' AND frozen = '' AND access <> 'blocked'"
        " GROUP BY language ORDER BY count(*) DESC, language"
    )
    return [row["language"] for row in rows]


def conversation(conn: Connection, person: str, channel: str, group: str, now: float) -> Conversation:
    """The person's conversation on a channel, made where there is none."""
    row = conn.execute(
        "SELECT id FROM conversations WHERE person_id = ? AND channel = ? AND group_id = ?",
        (person, channel, group),
    ).fetchone()
    if row is not None:
        return Conversation(row["id"], person, channel, group)
    new = new_id("conv")
    conn.execute(
        "INSERT INTO conversations (id, person_id, channel, group_id, created_at) VALUES (?, ?, ?, ?, ?)",
        (new, person, channel, group, now),
    )
    return Conversation(new, person, channel, group)


def remember_address(conn: Connection, person: str, phone: str) -> None:
    """Keeps the national form of a number that was found to work."""
    conn.execute(
        "UPDATE aliases SET address = ? WHERE person_id = ? AND kind = 'phone' AND value = ?",
        (phone, person, canonical(phone)),
    )


def settle(conn: Connection, person: str, language: str, timezone: str, country: str) -> None:
    """Fills in what was found out about a person."""
    conn.execute(
        "UPDATE people SET language = ?, timezone = ?, country = ? WHERE id = ?",
        (language, timezone, country, person),
    )


def _claim(
    conn: Connection, people: Sequence[str], sender: Sender, aliases: Sequence[Alias], now: float
) -> None:
    """Keeps the names somebody came with, until an owner says whose they are."""
    conn.executemany(
        "INSERT OR REPLACE INTO claimed_aliases VALUES (?, ?, ?, ?, ?)",
        [
            (person, alias.kind, alias.value, _address(sender, alias), now)
            for person in people
            for alias in aliases
        ],
    )


def _confirm(conn: Connection, realm: Realm, person: str, now: float) -> None:
    """Gives a person the names they claimed, in place of those of the same kind, from whoever held them."""
    claimed = conn.execute(
        "SELECT * FROM claimed_aliases WHERE person_id = ? ORDER BY at", (person,)
    ).fetchall()
    for claim in claimed:
        conn.execute(
            "DELETE FROM aliases WHERE realm = ? AND kind = ? AND (person_id = ? OR value = ?)",
            (realm, claim["kind"], person, claim["value"]),
        )
        alias = Alias(claim["kind"], claim["value"])
        _add_alias(conn, realm, person, alias, claim["address"], now)
        conn.execute(
            "DELETE FROM claimed_aliases WHERE kind = ? AND value = ?", (claim["kind"], claim["value"])
        )


def _find(
    conn: Connection, realm: Realm, aliases: Sequence[Alias], sender: Sender | None = None, now: float = 0.0
) -> _Known | None:
    """The person behind aliases seen together; two people behind them are frozen, and the first is given."""
    found: dict[str, _Known] = {}
    for alias in aliases:
        if any(alias in known.aliases for known in found.values()):
            continue
        if (known := _holder(conn, realm, alias)) is not None:
            found[known.id] = known
    if len(found) > 1:
        freeze(conn, [*found], "two people turned out to be one: " + ", ".join(a.value for a in aliases))
        if sender is not None:
            _claim(conn, [*found], sender, aliases, now)
        return _by_id(conn, next(iter(found)))
    return next(iter(found.values()), None)


def _holder(conn: Connection, realm: Realm, alias: Alias) -> _Known | None:
    """Whom a name leads to."""
    return _known(
        conn,
        "(SELECT person_id FROM aliases WHERE realm = ? AND kind = ? AND value = ?)",
        (realm, alias.kind, alias.value),
    )


def _by_id(conn: Connection, person: str) -> _Known:
    known = _known(conn, "?", (person,))
    assert known is not None
    return known


def _known(conn: Connection, person: str, parameters: Sequence[str]) -> _Known | None:
    """One query for both: it is asked for every message that comes in."""
    rows = conn.execute(
        "SELECT p.*, a.kind AS alias_kind, a.value AS alias_value FROM people p"
        f" LEFT JOIN aliases a ON a.person_id = p.id WHERE p.id = {person}",
        parameters,
    ).fetchall()
    if not rows:
        return None
    names = [Alias(row["alias_kind"], row["alias_value"]) for row in rows if row["alias_kind"] is not None]
    return _Known(rows[0], tuple(names))


def _learn(
    conn: Connection,
    realm: Realm,
    known: _Known,
    sender: Sender,
    aliases: Sequence[Alias],
    now: float,
) -> bool:
    """Adds what a signed message says of a person; a phone with another user id than before freezes.

    False where nothing was new.
    """
    new = [alias for alias in aliases if alias not in known.aliases]
    for alias in new:
        if any(name.kind == alias.kind for name in known.aliases):
            freeze(conn, [known.id], f"came with another {alias.kind.replace('_', ' ')} than before")
            _claim(conn, [known.id], sender, aliases, now)
            break
        if _holder(conn, realm, alias) is None:
            _add_alias(conn, realm, known.id, alias, _address(sender, alias), now)
    return bool(new)


def _create(conn: Connection, realm: Realm, sender: Sender, aliases: Sequence[Alias], now: float) -> _Known:
    person = new_id("person")
    conn.execute(
        "INSERT INTO people (id, realm, name, created_at) VALUES (?, ?, ?, ?)",
        (person, realm, sender.name[:200], now),
    )
    for alias in aliases:
        _add_alias(conn, realm, person, alias, _address(sender, alias), now)
    for alias in aliases:
        conn.execute("DELETE FROM outsiders WHERE realm = ? AND value = ?", (realm, alias.value))
    return _by_id(conn, person)


def _known_or_new(conn: Connection, realm: Realm, who: str, now: float) -> str:
    sender = sender_named(who)
    aliases = aliases_of(sender)
    return (_find(conn, realm, aliases) or _create(conn, realm, sender, aliases, now)).id


def sender_named(who: str) -> Sender:
    """What an operator typed as a sender: a phone in any spelling, or a business-scoped user id."""
    who = who.strip()
    if re.fullmatch(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", who):
        return Sender(user_id=who)
    number = canonical(who)
    if not 7 <= len(number) <= 15 or re.search(r"[^\d\s+().-]", who):
        raise RecadoError(
            f"{who!r} is neither a phone number with its country code (+52 55 1234 5678) "
            "nor a WhatsApp user id (MX.…)"
        )
    return Sender(phone=re.sub(r"\D", "", who))


def _turn_away(
    conn: Connection,
    realm: Realm,
    sender: Sender,
    reason: Literal["outsider", "blocked"],
    now: float,
) -> TurnedAway:
    value = sender.phone or sender.user_id
    conn.execute(
        "INSERT INTO outsiders (realm, value, name, messages, first_at, last_at) VALUES (?, ?, ?, 1, ?, ?)"
        " ON CONFLICT (realm, value) DO UPDATE SET messages = messages + 1, name = excluded.name,"
        " last_at = excluded.last_at",
        (realm, value, sender.name[:200], now, now),
    )
    conn.execute(
        "DELETE FROM outsiders WHERE (realm, value) IN"
        " (SELECT realm, value FROM outsiders ORDER BY last_at DESC LIMIT -1 OFFSET ?)",
        (OUTSIDERS_KEPT,),
    )
    return TurnedAway(value, reason)


def _is_listed(doors: Doors, names: Sequence[Alias | str]) -> bool:
    values = _values(names)
    return doors.open or not (doors.allowed.isdisjoint(values) and doors.owners.isdisjoint(values))


def _values(names: Sequence[Alias | str]) -> list[str]:
    return [name.value if isinstance(name, Alias) else name for name in names]


def _holders(conn: Connection, realm: Realm, aliases: Sequence[Alias]) -> list[str]:
    """Whom these names lead to, each once, in the order of the names."""
    found = [_holder(conn, realm, alias) for alias in aliases]
    return list(dict.fromkeys(holder.id for holder in found if holder is not None))


def _alias_rows(conn: Connection, person: str) -> list[Row]:
    return conn.execute(
        "SELECT kind, value, address FROM aliases WHERE person_id = ? ORDER BY kind, created_at", (person,)
    ).fetchall()


def _add_alias(conn: Connection, realm: Realm, person: str, alias: Alias, address: str, now: float) -> None:
    conn.execute(
        "INSERT INTO aliases (realm, kind, value, address, person_id, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (realm, alias.kind, alias.value, address, person, now),
    )


def _address(sender: Sender, alias: Alias) -> str:
    return sender.phone if alias.kind == "phone" else alias.value
