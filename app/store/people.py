"""People: identifying a sender, letting people in or shutting them out, and following a changed number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection, Row
from typing import Literal

from app.errors import RecadoError
from app.messages import AliasChange, Sender
from app.people import Alias, Conversation, Person, Realm, Role
from app.phones import canonical
from app.store import limits
from app.store.aliases import (
    KnownPerson,
    add_alias,
    address_of,
    aliases_of,
    by_id,
    claim,
    confirm_claims,
    find_known,
    freeze,
    holders_of,
    learn,
    names_of,
)
from app.store.database import Database, new_id, placeholders
from app.store.ownership import AccessRules, accept_invitation, takes_ownership, withdraw_code

OUTSIDERS_KEPT = 1000
OPERATOR = "mcp"  # user id of the owner that is made for the administrator where nobody else is one
_OPEN = AccessRules("terminal", open=True)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A sender who may talk to us; what a `frozen` one writes waits until an owner confirms them.

    `became`: the role that a code in this message gave them; `is_new`: they write for the first time.
    """

    person: Person
    became: Role | None = None
    frozen: bool = False
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A sender who may not talk to us; `recado people allow` takes `value`, a phone or a user id."""

    value: str
    reason: Literal["outsider", "blocked"]


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A line of `recado people list`: a person, or a sender who was turned away."""

    id: str
    names: Sequence[str]
    name: str
    role: str
    access: str
    frozen: str = ""
    messages: int = 0
    last_at: float = 0.0
    realm: str = "whatsapp"


def admit(
    conn: Connection, rules: AccessRules, sender: Sender, text: str, now: float
) -> Admitted | TurnedAway:
    """Return the sender of a signed message as a person, made on the first visit if the rules allow."""
    aliases = aliases_of(sender)
    known = find_known(conn, rules.realm, aliases, sender, now)
    became: Role | None = None
    if rules.code_key and takes_ownership(conn, rules, text, now):
        became = "owner"
    elif known is None or known.row["access"] != "blocked":
        became = accept_invitation(conn, rules, text, now)
    is_new = known is None
    if known is None:
        if not (became or rules.guests or _is_listed(rules, aliases)):
            return _turn_away(conn, rules.realm, sender, "outsider", now)
        known = _create(conn, rules.realm, sender, aliases, now)
    if became:
        conn.execute(
            "UPDATE people SET role = CASE WHEN role = 'owner' THEN role ELSE ? END, access = 'allowed',"
            " frozen = CASE WHEN ? = 'owner' THEN '' ELSE frozen END WHERE id = ?",
            (became, became, known.id),
        )
        known = by_id(conn, known.id)
    elif learn(conn, rules.realm, known, sender, aliases, now):
        known = by_id(conn, known.id)
    row, names = known.row, [alias.value for alias in known.aliases]
    if row["access"] == "blocked":
        return _turn_away(conn, rules.realm, sender, "blocked", now)
    person = person_of(row, rules, names)
    if person.is_guest and not rules.guests:
        return _turn_away(conn, rules.realm, sender, "outsider", now)
    name = sender.name[:200] or row["name"]
    if name != row["name"]:
        conn.execute("UPDATE people SET name = ? WHERE id = ?", (name, row["id"]))
        person = replace(person, name=name)
    return Admitted(person, became, bool(row["frozen"]), is_new)


def addressee(conn: Connection, rules: AccessRules, to: Sender, now: float) -> str | None:
    """Return whom the business wrote to; None for an owner, and for one whom we would not answer."""
    aliases = aliases_of(to)
    known = find_known(conn, rules.realm, aliases)
    if known is None:
        may_come = rules.guests or _is_listed(rules, aliases)
        return _create(conn, rules.realm, to, aliases, now).id if may_come else None
    person = person_of(known.row, rules, [alias.value for alias in known.aliases])
    is_outsider = person.is_guest and not rules.guests
    return None if person.is_owner or is_outsider or known.row["access"] == "blocked" else person.id


def person_of(row: Row, rules: AccessRules, names: Sequence[Alias | str]) -> Person:
    """Return a row of `people` as a `Person`; `names` are their aliases."""
    role = role_of(rules, row["role"], row["access"], names)
    return Person(
        id=row["id"],
        realm=row["realm"],
        name=row["name"],
        role="member" if row["frozen"] and role == "owner" else role,
        language=row["language"] or "en",
        timezone=row["timezone"],
        country=row["country"],
    )


def role_of(rules: AccessRules, kept: str, access: str, names: Sequence[Alias | str]) -> Role:
    """Return the role of a person by what is kept and what the settings say of their numbers."""
    if kept == "owner" or not rules.owners.isdisjoint(_values(names)):
        return "owner"
    return "guest" if access == "listed" and not _is_listed(rules, names) else "member"


def apply_change(conn: Connection, realm: Realm, change: AliasChange, rules: AccessRules, now: float) -> bool:
    """Move a person's alias to its new value; return False if nobody has the old one."""
    previous, current = aliases_of(change.previous), aliases_of(change.current)
    known = find_known(conn, realm, previous)
    if known is None:
        return False
    holders = holders_of(conn, realm, [*previous, *current])
    if len(holders) > 1:
        freeze(conn, holders, "two people turned out to share " + ", ".join(new.value for new in current))
        claim(conn, holders, change.current, current, now)
        return True
    admitted = _is_listed(rules, known.aliases) and known.row["access"] == "listed"
    for new in current:
        for old in previous:
            if old.kind == new.kind and old.value != new.value:
                conn.execute(
                    "DELETE FROM aliases WHERE realm = ? AND kind = ? AND value = ?",
                    (realm, old.kind, old.value),
                )
        add_alias(conn, realm, known.id, new, address_of(change.current, new), now)
    if admitted:  # the configuration names the old number: being let in moves with the person
        conn.execute("UPDATE people SET access = 'allowed' WHERE id = ?", (known.id,))
    return True


def pair(conn: Connection, rules: AccessRules, sender: Sender, now: float) -> None:
    """Learn that a phone and a user id of a signed webhook are one person, if we know one of them."""
    aliases = aliases_of(sender)
    known = find_known(conn, rules.realm, aliases, sender, now)
    if known is not None:
        learn(conn, rules.realm, known, sender, aliases, now)


def allow(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Let a phone or user id in, confirming them if they were frozen; return the person's id."""
    person = _known_or_new(conn, realm, who, now)
    for nameless, since in confirm_claims(conn, realm, person, now).items():
        _hand_over(conn, nameless, person, since, now)
    conn.execute(
        "UPDATE people SET access = 'allowed', frozen = '', epoch = epoch + (frozen <> '') WHERE id = ?",
        (person,),
    )
    conn.execute("DELETE FROM outsiders WHERE realm = ? AND value IN (?, ?)", (realm, canonical(who), who))
    limits.release(conn, person)
    return person


def _hand_over(conn: Connection, nameless: str, person: str, since: float, now: float) -> None:
    """Give a person what waits for an answer and came `since` the alias was theirs.

    Nothing older: a number may have been another person's before.
    """
    rows = conn.execute(
        "SELECT i.seq, i.message_id, c.channel, c.group_id FROM inbox i"
        " JOIN conversations c ON c.id = i.conversation_id"
        " WHERE i.person_id = ? AND i.turn_id IS NULL AND i.done_at IS NULL AND i.received_at >= ?",
        (nameless, since),
    ).fetchall()
    for row in rows:
        there = conversation(conn, person, row["channel"], row["group_id"], now).id
        for table, key, value in (("messages", "id", row["message_id"]), ("inbox", "seq", row["seq"])):
            conn.execute(
                f"UPDATE {table} SET person_id = ?, conversation_id = ? WHERE {key} = ?",
                (person, there, value),
            )


def reachable(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Return the person with a phone or user id, made if there is none. Raises RecadoError if shut out."""
    person = _known_or_new(conn, realm, who, now)
    row = conn.execute("SELECT access, frozen FROM people WHERE id = ?", (person,)).fetchone()
    if row["access"] == "blocked" or row["frozen"]:
        raise RecadoError(f"{who} is blocked, or waits to be confirmed with recado people allow")
    return person


def block(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Shut a phone or user id out, whatever the configuration says; return the person's id."""
    person = _known_or_new(conn, realm, who, now)
    conn.execute("UPDATE people SET access = 'blocked', role = 'member' WHERE id = ?", (person,))
    return person


def make_owner(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Make a phone or user id an owner; return the person's id."""
    person = allow(conn, realm, who, now)
    conn.execute("UPDATE people SET role = 'owner' WHERE id = ?", (person,))
    if realm == "whatsapp":
        withdraw_code(conn)
    return person


def listing(conn: Connection) -> list[PersonLine]:
    """Return everybody known, then those turned away, the newest first."""
    lines = [
        PersonLine(
            id=row["id"],
            names=names_of(conn, row["id"]),
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
    """Return the languages of those who may talk to us, the most frequent first."""
    rows = await store.all(
        "SELECT language FROM people WHERE language <> '' AND frozen = '' AND access <> 'blocked'"
        " GROUP BY language ORDER BY count(*) DESC, language"
    )
    return [row["language"] for row in rows]


def conversation(conn: Connection, person: str, channel: str, group: str, now: float) -> Conversation:
    """Return the person's conversation on a channel, made if there is none."""
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


def conversation_by_id(conn: Connection, id: str) -> Conversation:
    """Return a conversation by its id. Raises RecadoError if there is none."""
    row = conn.execute(
        "SELECT person_id, channel, group_id FROM conversations WHERE id = ?", (id,)
    ).fetchone()
    if row is None:
        raise RecadoError(f"there is no conversation {id[:100]!r}")
    return Conversation(id, row["person_id"], row["channel"], row["group_id"])


def conversations_of(conn: Connection, realm: Realm, who: str) -> list[Conversation]:
    """Return somebody's private conversations, none if they are unknown. Raises RecadoError for no name."""
    known = find_known(conn, realm, aliases_of(sender_named(who)))
    rows = conn.execute(
        "SELECT id, channel FROM conversations WHERE person_id = ? AND group_id = ''",
        (known.id if known is not None else "",),
    ).fetchall()
    return [Conversation(row["id"], known.id, row["channel"]) for row in rows if known is not None]


def shown_as(conn: Connection, person: str) -> tuple[str, str]:
    """Return a person's name as they wrote it, and the phone or user id by which they are addressed."""
    row = conn.execute("SELECT name FROM people WHERE id = ?", (person,)).fetchone()
    return row["name"], next(iter(names_of(conn, person)), "")


def language(conn: Connection, person: str) -> str:
    """Return the language that a person writes, English while it is not known."""
    row = conn.execute("SELECT language FROM people WHERE id = ?", (person,)).fetchone()
    return row["language"] or "en"


def settle(conn: Connection, person: str, language: str, country: str) -> None:
    """Keep the language and country that were found out about a person."""
    conn.execute("UPDATE people SET language = ?, country = ? WHERE id = ?", (language, country, person))


def set_zone(conn: Connection, person: str, zone: str) -> bool:
    """Keep the time zone that a person said ("" forgets it); return False if they are gone."""
    return bool(conn.execute("UPDATE people SET timezone = ? WHERE id = ?", (zone, person)).rowcount)


def is_first_zone_note(conn: Connection, person: str, call: str) -> bool:
    """Return True for the first call that may tell a person which time zone was guessed for them.

    `call` is its idempotency key: the answer is the same when it is repeated after a crash.
    """
    conn.execute(
        "UPDATE people SET zone_told_by = ? WHERE id = ? AND timezone = '' AND zone_told_by = ''",
        (call, person),
    )
    return (
        conn.execute("SELECT 1 FROM people WHERE id = ? AND zone_told_by = ?", (person, call)).fetchone()
        is not None
    )


@dataclass(frozen=True, slots=True)
class ActingOwner:
    """The owner in whose name the administrator's calls run, and the conversation that hears of them."""

    person: Row
    names: Sequence[str]
    conversation: Conversation


def acting_owner(conn: Connection, rules: AccessRules, now: float) -> ActingOwner:
    """Return the owner who has been known for longest.

    Without one: an owner of the configuration who has not written yet, else one made for the administrator.
    """
    known = owners(conn, rules)
    person = known[0] if known else _make_acting_owner(conn, rules, now)
    row = by_id(conn, person).row
    return ActingOwner(row, names_of(conn, person), conversation(conn, person, row["realm"], "", now))


def owners(conn: Connection, rules: AccessRules) -> list[str]:
    """Return the ids of the owners who may be written to, the one known for longest first."""
    rows = conn.execute(
        "SELECT id FROM people WHERE realm = ? AND frozen = '' AND access <> 'blocked' AND (role = 'owner'"
        " OR id IN (SELECT person_id FROM aliases WHERE realm = ?"
        f" AND value IN ({placeholders(tuple(rules.owners))}))) ORDER BY created_at, id",
        (rules.realm, rules.realm, *rules.owners),
    )
    return [row["id"] for row in rows]


def _make_acting_owner(conn: Connection, rules: AccessRules, now: float) -> str:
    rows = conn.execute("SELECT value FROM aliases WHERE realm = ?", (rules.realm,))
    phones = sorted(name for name in rules.owners - {row["value"] for row in rows} if name.isdigit())
    if phones:
        admitted = admit(conn, rules, Sender(phone=phones[0]), "", now)
    else:  # no message comes from this user id
        admitted = admit(conn, _OPEN, Sender(user_id=OPERATOR), "", now)
    assert isinstance(admitted, Admitted)  # the rules let them in
    if not phones:
        conn.execute("UPDATE people SET role = 'owner' WHERE id = ?", (admitted.person.id,))
    return admitted.person.id


def _create(
    conn: Connection, realm: Realm, sender: Sender, aliases: Sequence[Alias], now: float
) -> KnownPerson:
    person = new_id("person")
    conn.execute(
        "INSERT INTO people (id, realm, name, created_at) VALUES (?, ?, ?, ?)",
        (person, realm, sender.name[:200], now),
    )
    for alias in aliases:
        add_alias(conn, realm, person, alias, address_of(sender, alias), now)
    for alias in aliases:
        conn.execute("DELETE FROM outsiders WHERE realm = ? AND value = ?", (realm, alias.value))
    return by_id(conn, person)


def _known_or_new(conn: Connection, realm: Realm, who: str, now: float) -> str:
    sender = sender_named(who)
    aliases = aliases_of(sender)
    return (find_known(conn, realm, aliases) or _create(conn, realm, sender, aliases, now)).id


def sender_named(who: str) -> Sender:
    """Return what an operator typed as a sender: a phone in any spelling, or a business-scoped user id."""
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
    conn: Connection, realm: Realm, sender: Sender, reason: Literal["outsider", "blocked"], now: float
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


def _is_listed(rules: AccessRules, names: Sequence[Alias | str]) -> bool:
    values = _values(names)
    return rules.open or not (rules.allowed.isdisjoint(values) and rules.owners.isdisjoint(values))


def _values(names: Sequence[Alias | str]) -> list[str]:
    return [name.value if isinstance(name, Alias) else name for name in names]
