"""Aliases: the phones and user ids people are known by; two people who share one are frozen."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row

from app.messages import Sender
from app.people import Alias, Realm
from app.phones import canonical


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A row of `people` with every alias of theirs."""

    row: Row
    aliases: tuple[Alias, ...]

    @property
    def id(self) -> str:
        return str(self.row["id"])


def aliases_of(sender: Sender) -> list[Alias]:
    """Return a sender's aliases, the steadiest first: the canonical phone, then the business-scoped id."""
    aliases = []
    if sender.phone:
        aliases.append(Alias("phone", canonical(sender.phone)))
    if sender.user_id:
        aliases.append(Alias("user_id", sender.user_id))
    return aliases


def find_known(
    conn: Connection, realm: Realm, aliases: Sequence[Alias], sender: Sender | None = None, now: float = 0.0
) -> KnownPerson | None:
    """Return the person behind aliases seen together; if there are two, freeze both, return the first."""
    found: dict[str, KnownPerson] = {}
    for alias in aliases:
        if any(alias in known.aliases for known in found.values()):
            continue
        if (known := _holder(conn, realm, alias)) is not None:
            found[known.id] = known
    if len(found) > 1:
        freeze(conn, [*found], "two people turned out to be one: " + ", ".join(a.value for a in aliases))
        if sender is not None:
            claim(conn, [*found], sender, aliases, now)
        return by_id(conn, next(iter(found)))
    return next(iter(found.values()), None)


def by_id(conn: Connection, person: str) -> KnownPerson:
    """Return a person that exists."""
    known = _known(conn, "?", (person,))
    assert known is not None
    return known


def holders_of(conn: Connection, realm: Realm, aliases: Sequence[Alias]) -> list[str]:
    """Return the ids of those who hold these aliases, each once, in the order of the aliases."""
    found = [_holder(conn, realm, alias) for alias in aliases]
    return list(dict.fromkeys(holder.id for holder in found if holder is not None))


def names_of(conn: Connection, person: str) -> list[str]:
    """Return the values of a person's aliases, phones first."""
    rows = conn.execute("SELECT value FROM aliases WHERE person_id = ? ORDER BY kind, created_at", (person,))
    return [row["value"] for row in rows]


def learn(
    conn: Connection, realm: Realm, known: KnownPerson, sender: Sender, aliases: Sequence[Alias], now: float
) -> bool:
    """Add the new aliases of a signed message, and return whether there were any.

    A second alias of one kind (a phone with another user id than before) freezes the person.
    """
    new = [alias for alias in aliases if alias not in known.aliases]
    for alias in new:
        if any(name.kind == alias.kind for name in known.aliases):
            freeze(conn, [known.id], f"came with another {alias.kind.replace('_', ' ')} than before")
            claim(conn, [known.id], sender, aliases, now)
            break
        if _holder(conn, realm, alias) is None:
            add_alias(conn, realm, known.id, alias, address_of(sender, alias), now)
    return bool(new)


def freeze(conn: Connection, people: Sequence[str], reason: str) -> None:
    """Take people's roles and memory out of reach until an owner confirms them."""
    for person in people:
        conn.execute("UPDATE people SET frozen = ? WHERE id = ? AND frozen = ''", (reason, person))


def claim(
    conn: Connection, people: Sequence[str], sender: Sender, aliases: Sequence[Alias], now: float
) -> None:
    """Keep the aliases a frozen person came with, and since when, until an owner says whose they are."""
    conn.executemany(
        "INSERT INTO claimed_aliases VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (person_id, kind, value) DO UPDATE SET address = excluded.address, at = CASE"
        " WHEN EXISTS (SELECT 1 FROM claimed_aliases c WHERE c.person_id = excluded.person_id"
        " AND c.kind = excluded.kind AND c.at > claimed_aliases.at)"
        " THEN excluded.at ELSE claimed_aliases.at END",  # counts anew if they came with another since
        [
            (person, alias.kind, alias.value, address_of(sender, alias), now)
            for person in people
            for alias in aliases
        ],
    )


def confirm_claims(conn: Connection, realm: Realm, person: str, now: float) -> dict[str, float]:
    """Give a person the aliases they claimed, in place of their own of the same kind.

    Return those who have no alias left, each with the time at which their first one was claimed.
    """
    claimed = conn.execute(
        "SELECT * FROM claimed_aliases WHERE person_id = ? ORDER BY at", (person,)
    ).fetchall()
    since = {
        holder: claim["at"]
        for claim in reversed(claimed)
        for holder in holders_of(conn, realm, [Alias(claim["kind"], claim["value"])])
        if holder != person
    }
    for claim in claimed:
        conn.execute(
            "DELETE FROM aliases WHERE realm = ? AND kind = ? AND (person_id = ? OR value = ?)",
            (realm, claim["kind"], person, claim["value"]),
        )
        alias = Alias(claim["kind"], claim["value"])
        add_alias(conn, realm, person, alias, claim["address"], now)
        conn.execute(
            "DELETE FROM claimed_aliases WHERE kind = ? AND value = ?"
            " AND person_id IN (SELECT id FROM people WHERE realm = ?)",
            (claim["kind"], claim["value"], realm),
        )
    return {loser: at for loser, at in since.items() if not names_of(conn, loser)}


def add_alias(conn: Connection, realm: Realm, person: str, alias: Alias, address: str, now: float) -> None:
    """Add an alias unless someone has it."""
    conn.execute(
        "INSERT INTO aliases (realm, kind, value, address, person_id, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (realm, alias.kind, alias.value, address, person, now),
    )


def address_of(sender: Sender, alias: Alias) -> str:
    """Return the address to write to: a phone in the national form in which it came."""
    return sender.phone if alias.kind == "phone" else alias.value


def remember_address(conn: Connection, person: str, phone: str) -> None:
    """Keep the national form of a phone number that was found to work."""
    conn.execute(
        "UPDATE aliases SET address = ? WHERE person_id = ? AND kind = 'phone' AND value = ?",
        (phone, person, canonical(phone)),
    )


def _holder(conn: Connection, realm: Realm, alias: Alias) -> KnownPerson | None:
    return _known(
        conn,
        "(SELECT person_id FROM aliases WHERE realm = ? AND kind = ? AND value = ?)",
        (realm, alias.kind, alias.value),
    )


def _known(conn: Connection, person: str, parameters: Sequence[str]) -> KnownPerson | None:
    rows = conn.execute(
        "SELECT p.*, a.kind AS alias_kind, a.value AS alias_value FROM people p"
        f" LEFT JOIN aliases a ON a.person_id = p.id WHERE p.id = {person}",
        parameters,
    ).fetchall()
    if not rows:
        return None
    names = [Alias(row["alias_kind"], row["alias_value"]) for row in rows if row["alias_kind"] is not None]
    return KnownPerson(rows[0], tuple(names))
