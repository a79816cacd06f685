"""People: identifying a sender, letting people in or shutting them out, and following a changed number."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import AliasChange, Sender
from app.people import Alias, Conversation, Person, Realm, Role
from app.phones import canonical
from app.store import limits
from app.store.conditions import MAY_TALK, UNCLAIMED
from app.store.database import (
    Connection,
    Database,
    Row,
    delete,
    exists,
    insert,
    new_id,
    placeholders,
    read_row,
    scalar,
    update,
)
from app.store.ownership import AccessRules, accept_invitation, takes_ownership, withdraw_code

OUTSIDERS_KEPT = 1000
OPERATOR = "mcp"  # user id of the owner that is made for the administrator where nobody else is one


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A row of `people` with every alias of theirs, phones first."""

    row: Row
    aliases: tuple[Alias, ...]

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def names(self) -> list[str]:
        return [alias.value for alias in self.aliases]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A sender who may talk to us."""

    person: Person
    became: Role | None = None  # the role that a code in this message gave them
    frozen: bool = False  # what they write waits until an owner confirms them
    is_new: bool = False  # they write for the first time


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
    known = _find(conn, rules.realm, sender, now)
    became: Role | None = None
    if rules.code_key and takes_ownership(conn, rules, text, now):
        became = "owner"
    elif known is None or known.row["access"] != "blocked":
        is_in = known is not None and not person_of(known, rules).is_guest
        became = None if is_in else accept_invitation(conn, rules, text, now)
    is_new = known is None
    if known is None:
        if not (became or _is_let_in(rules, sender)):
            return _turn_away(conn, rules.realm, sender, "outsider", now)
        known = _create(conn, rules.realm, sender, now)
    if became:
        conn.execute(
            "UPDATE people SET role = CASE WHEN role = 'owner' THEN role ELSE ? END, access = 'allowed',"
            " frozen = CASE WHEN ? = 'owner' THEN '' ELSE frozen END WHERE id = ?",
            (became, became, known.id),
        )
    else:
        _learn(conn, rules.realm, known, sender, now)
    known = by_id(conn, known.id)
    row = known.row
    if row["access"] == "blocked":
        return _turn_away(conn, rules.realm, sender, "blocked", now)
    person = person_of(known, rules)
    if person.is_guest and not rules.guests:
        return _turn_away(conn, rules.realm, sender, "outsider", now)
    name = sender.name[:200] or row["name"]
    if name != row["name"]:
        update(conn, "people", "id = ?", known.id, name=name)
        person = replace(person, name=name)
    return Admitted(person, became, bool(row["frozen"]), is_new)


def addressee(conn: Connection, rules: AccessRules, to: Sender, now: float) -> str | None:
    """Return whom the business wrote to; None for an owner, and for one whom we would not answer."""
    known = _find(conn, rules.realm, to, now)
    if known is None:
        return _create(conn, rules.realm, to, now).id if _is_let_in(rules, to) else None
    is_owner = person_of(known, rules).is_owner
    return None if is_owner or not may_come(conn, rules, known.id) else known.id


def may_come(conn: Connection, rules: AccessRules, person: str) -> bool:
    """Return whether what a person writes would be answered, so that they may be written to as well."""
    known = by_id(conn, person)
    return known.row["access"] != "blocked" and (rules.guests or not person_of(known, rules).is_guest)


def person_of(known: KnownPerson, rules: AccessRules) -> Person:
    """Return a person as their row and the settings have them."""
    row = known.row
    role = role_of(rules, row["role"], row["access"], known.names)
    role = "member" if row["frozen"] and role == "owner" else role
    return read_row(Person, row, role=role, language=row["language"] or "en", home_timezone="UTC")


def role_of(rules: AccessRules, kept: str, access: str, names: Collection[str]) -> Role:
    """Return the role of a person by what is kept and what the settings say of their numbers."""
    if kept == "owner" or not rules.owners.isdisjoint(names):
        return "owner"
    return "guest" if access == "listed" and not _is_listed(rules, names) else "member"


def apply_change(conn: Connection, realm: Realm, change: AliasChange, rules: AccessRules, now: float) -> bool:
    """Move a person's alias to its new value; return False if nobody has the old one."""
    previous, current = aliases_of(change.previous), aliases_of(change.current)
    if not (held := _holders(conn, realm, previous)):
        return False
    known, holders = by_id(conn, held[0]), _holders(conn, realm, [*previous, *current])
    if len(holders) > 1:
        reason = "two people turned out to share " + ", ".join(new.value for new in current)
        _freeze(conn, holders, reason, change.current, now)
        return True
    was_listed = _is_listed(rules, known.names) and known.row["access"] == "listed"
    for new in current:
        for old in previous:
            if old.kind == new.kind and old.value != new.value:
                delete(conn, "aliases", "realm = ? AND kind = ? AND value = ?", realm, old.kind, old.value)
        _add_alias(conn, realm, known.id, new, now)
    if was_listed:  # the configuration names the old number: being let in moves with the person
        update(conn, "people", "id = ?", known.id, access="allowed")
    return True


def pair(conn: Connection, rules: AccessRules, sender: Sender, now: float) -> None:
    """Learn that a phone and a user id of a signed webhook are one person, if we know one of them."""
    known = _find(conn, rules.realm, sender, now)
    if known is not None:
        _learn(conn, rules.realm, known, sender, now)


def allow(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Let a phone or user id in, confirming them if they were frozen; return the person's id."""
    person = _known_or_new(conn, realm, who, now)
    for nameless, since in _confirm_claims(conn, realm, person, now).items():
        _hand_over(conn, nameless, person, since, now)
    update(conn, "people", "id = ?", person, access="allowed", frozen="")
    delete(conn, "outsiders", "realm = ? AND value IN (?, ?)", realm, canonical(who), who)
    limits.release(conn, person)
    return person


def _hand_over(conn: Connection, nameless: str, person: str, since: float, now: float) -> None:
    """Give a person what waits and came `since` the alias was theirs: the number may have been another's."""
    rows = conn.execute(
        "SELECT inbox.seq, inbox.message_id, c.channel, c.group_id FROM inbox"
        " JOIN conversations c ON c.id = inbox.conversation_id"
        f" WHERE inbox.person_id = ? AND {UNCLAIMED} AND inbox.received_at >= ?",
        (nameless, since),
    ).fetchall()
    for row in rows:
        there = conversation(conn, person, row["channel"], row["group_id"], now)
        update(conn, "messages", "id = ?", row["message_id"], **there.columns)
        update(conn, "inbox", "seq = ?", row["seq"], **there.columns)


def reachable(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Return the person with a phone or user id, made if there is none. Raises RecadoError if shut out."""
    person = _known_or_new(conn, realm, who, now)
    if not exists(conn, f"SELECT 1 FROM people WHERE id = ? AND {MAY_TALK}", person):
        raise RecadoError(
            lazy("{who} is blocked, or waits to be confirmed with {recado} people allow", who=who)
        )
    return person


def block(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Shut a phone or user id out, whatever the configuration says; return the person's id."""
    person = _known_or_new(conn, realm, who, now)
    update(conn, "people", "id = ?", person, access="blocked", role="member")
    return person


def make_owner(conn: Connection, realm: Realm, who: str, now: float) -> str:
    """Make a phone or user id an owner; return the person's id."""
    person = allow(conn, realm, who, now)
    update(conn, "people", "id = ?", person, role="owner")
    if realm == "whatsapp":
        withdraw_code(conn)
    return person


def listing(conn: Connection) -> list[PersonLine]:
    """Return everybody known, then those turned away, the newest first."""
    known = conn.execute("SELECT id, name, role, access, frozen, realm FROM people ORDER BY created_at")
    turned_away = conn.execute(
        "SELECT '' AS id, value, name, 'outsider' AS role, 'turned away' AS access, messages, last_at, realm"
        " FROM outsiders ORDER BY last_at DESC"
    )
    names: dict[str, list[str]] = {}
    for person, value in conn.execute("SELECT person_id, value FROM aliases ORDER BY kind, created_at"):
        names.setdefault(person, []).append(value)
    return [
        *(PersonLine(names=names.get(row["id"], []), **row) for row in known),
        *(read_row(PersonLine, row, names=[row["value"]], frozen="") for row in turned_away),
    ]


def frozen(conn: Connection) -> list[PersonLine]:
    """Return the people who wait to be confirmed."""
    rows = conn.execute("SELECT id, name, role, access, frozen, realm FROM people WHERE frozen <> ''")
    return [PersonLine(names=by_id(conn, row["id"]).names, **row) for row in rows.fetchall()]


async def languages(store: Database) -> set[str]:
    """Return the languages of those who may write here."""
    rows = await store.all(f"SELECT DISTINCT language FROM people WHERE language <> '' AND {MAY_TALK}")
    return {row["language"] for row in rows}


def conversation(conn: Connection, person: str, channel: str, group: str, now: float) -> Conversation:
    """Return the person's conversation on a channel, made if there is none."""
    sql = "SELECT id FROM conversations WHERE person_id = ? AND channel = ? AND group_id = ?"
    id = scalar(conn, sql, person, channel, group)
    if id is None:
        id = new_id("conv")
        insert(
            conn, "conversations", id=id, person_id=person, channel=channel, group_id=group, created_at=now
        )
    return Conversation(id, person, channel, group)


def conversation_by_id(conn: Connection, id: str) -> Conversation:
    """Return a conversation by its id. Raises RecadoError if there is none."""
    sql = "SELECT id, person_id, channel, group_id FROM conversations WHERE id = ?"
    row = conn.execute(sql, (id,)).fetchone()
    if row is None:
        raise RecadoError(lazy("there is no conversation {id}", id=id[:100]))
    return Conversation(*row)


def conversations_of(conn: Connection, realm: Realm, who: str) -> list[Conversation]:
    """Return somebody's private conversations, none if they are unknown. Raises RecadoError for no name."""
    held = _holders(conn, realm, aliases_of(sender_named(who)))
    return [one for person in held for one in conversations_with(conn, person)]


def conversations_with(conn: Connection, person: str) -> list[Conversation]:
    """Return the private conversations of a person."""
    sql = "SELECT id, person_id, channel FROM conversations WHERE person_id = ? AND group_id = ''"
    return [Conversation(*row) for row in conn.execute(sql, (person,))]


def shown_as(conn: Connection, person: str) -> tuple[str, str]:
    """Return a person's name as they wrote it, and the phone or user id by which they are addressed."""
    known = by_id(conn, person)
    return known.row["name"], next(iter(known.names), "")


def language(conn: Connection, person: str) -> str:
    """Return the language that a person writes, English while it is not known."""
    return scalar(conn, "SELECT language FROM people WHERE id = ?", person) or "en"


def settle(conn: Connection, person: str, language: str, country: str) -> None:
    """Keep the language and country that were found out about a person."""
    update(conn, "people", "id = ?", person, language=language, country=country)


def set_zone(conn: Connection, person: str, zone: str) -> bool:
    """Keep the time zone that a person said ("" forgets it); return False if they are gone."""
    update(conn, "schedules", "person_id = ?", person, put_off_until=None)  # it may be due by now
    return bool(update(conn, "people", "id = ?", person, timezone=zone))


def set_quiet_hours(conn: Connection, person: str, hours: str) -> None:
    """Keep the hours in which no task and no watch of a person runs, such as "22:00-07:00"; "" for none."""
    update(conn, "people", "id = ?", person, quiet_hours=hours)
    update(conn, "schedules", "person_id = ?", person, put_off_until=None)


def quiet_hours(conn: Connection, person: str) -> str:
    return scalar(conn, "SELECT quiet_hours FROM people WHERE id = ?", person) or ""


def is_first_zone_note(conn: Connection, person: str, call: str) -> bool:
    """Return True for the first call that may tell a person which time zone was guessed for them.

    `call` is its idempotency key: the answer is the same when it is repeated after a crash.
    """
    update(conn, "people", "id = ? AND timezone = '' AND zone_told_by = ''", person, zone_told_by=call)
    return exists(conn, "SELECT 1 FROM people WHERE id = ? AND zone_told_by = ?", person, call)


def repeat_zone_note(conn: Connection, person: str) -> None:
    """Have a person told again which time zone was guessed for them."""
    update(conn, "people", "id = ?", person, zone_told_by="")


def acting_owner(conn: Connection, rules: AccessRules, now: float) -> tuple[KnownPerson, Conversation]:
    """Return the owner in whose name the administrator's calls run, and the conversation that hears of them.

    It is who has been known for longest; else an owner of the configuration who has not written yet, else
    one made for the administrator.
    """
    known = owners(conn, rules)
    owner = by_id(conn, known[0] if known else _make_acting_owner(conn, rules, now))
    return owner, conversation(conn, owner.id, owner.row["realm"], "", now)


def owners(conn: Connection, rules: AccessRules) -> list[str]:
    """Return the ids of the owners who may be written to, the one known for longest first."""
    rows = conn.execute(
        f"SELECT id FROM people WHERE realm = ? AND {MAY_TALK} AND (role = 'owner'"
        " OR id IN (SELECT person_id FROM aliases WHERE realm = ?"
        f" AND value IN ({placeholders(tuple(rules.owners))}))) ORDER BY created_at, id",
        (rules.realm, rules.realm, *rules.owners),
    )
    return [row["id"] for row in rows]


def _make_acting_owner(conn: Connection, rules: AccessRules, now: float) -> str:
    rows = conn.execute("SELECT value FROM aliases WHERE realm = ?", (rules.realm,))
    phones = sorted(name for name in rules.owners - {row["value"] for row in rows} if name.isdigit())
    if phones:
        return _create(conn, rules.realm, Sender(phone=phones[0]), now).id
    operator = Sender(user_id=OPERATOR)  # no message comes from this user id
    known = _find(conn, "terminal", operator, now) or _create(conn, "terminal", operator, now)
    update(conn, "people", "id = ?", known.id, role="owner")
    return known.id


def _create(conn: Connection, realm: Realm, sender: Sender, now: float) -> KnownPerson:
    person = new_id("person")
    insert(conn, "people", id=person, realm=realm, name=sender.name[:200], created_at=now)
    for alias in aliases_of(sender):
        _add_alias(conn, realm, person, alias, now)
        delete(conn, "outsiders", "realm = ? AND value = ?", realm, alias.value)
    return by_id(conn, person)


def _known_or_new(conn: Connection, realm: Realm, who: str, now: float) -> str:
    sender = sender_named(who)
    return (_find(conn, realm, sender, now) or _create(conn, realm, sender, now)).id


def sender_named(who: str) -> Sender:
    """Return what an operator typed as a sender: a phone in any spelling, or a business-scoped user id."""
    who = who.strip()
    if re.fullmatch(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", who):
        return Sender(user_id=who)
    number = canonical(who)
    if not 7 <= len(number) <= 15 or re.search(r"[^\d\s+().-]", who):
        raise RecadoError(
            lazy(
                "{who} is neither a phone number with its country code (+52 55 1234 5678) "
                "nor a WhatsApp user id (MX.…)",
                who=repr(who),
            )
        )
    return Sender(phone=re.sub(r"\D", "", who))


def _turn_away(
    conn: Connection, realm: Realm, sender: Sender, reason: Literal["outsider", "blocked"], now: float
) -> TurnedAway:
    value = sender.phone or sender.user_id
    conn.execute(
        "INSERT INTO outsiders (realm, value, name, messages, first_at, last_at) VALUES (?, ?, ?, 1, ?, ?)"
        " ON CONFLICT (realm, value) DO UPDATE SET messages = outsiders.messages + 1, name = excluded.name,"
        " last_at = excluded.last_at",
        (realm, value, sender.name[:200], now, now),
    )
    newest = "SELECT realm, value FROM outsiders ORDER BY last_at DESC LIMIT ?"
    delete(conn, "outsiders", f"(realm, value) NOT IN ({newest})", OUTSIDERS_KEPT)
    return TurnedAway(value, reason)


def _is_let_in(rules: AccessRules, sender: Sender) -> bool:
    return rules.guests or _is_listed(rules, [alias.value for alias in aliases_of(sender)])


def _is_listed(rules: AccessRules, names: Collection[str]) -> bool:
    return rules.open or not (rules.allowed.isdisjoint(names) and rules.owners.isdisjoint(names))


def aliases_of(sender: Sender) -> list[Alias]:
    """Return a sender's aliases, the steadiest first: the canonical phone, then the business-scoped id."""
    phone = Alias("phone", canonical(sender.phone), sender.phone)
    return [alias for alias in (phone, Alias("user_id", sender.user_id, sender.user_id)) if alias.value]


def by_id(conn: Connection, person: str) -> KnownPerson:
    """Return a person; `row` is None for one who was erased."""
    row = conn.execute("SELECT * FROM people WHERE id = ?", (person,)).fetchone()
    sql = "SELECT kind, value FROM aliases WHERE person_id = ? ORDER BY kind, created_at"
    aliases = conn.execute(sql, (person,))
    return KnownPerson(row, tuple(Alias(*alias) for alias in aliases))


def remember_address(conn: Connection, person: str, phone: str) -> None:
    """Keep the national form of a phone number that was found to work."""
    is_it = "person_id = ? AND kind = 'phone' AND value = ?"
    update(conn, "aliases", is_it, person, canonical(phone), address=phone)


def _find(conn: Connection, realm: Realm, sender: Sender, now: float) -> KnownPerson | None:
    """Return the person behind a sender; if two people turn out to be this one, freeze both."""
    aliases = aliases_of(sender)
    found = _holders(conn, realm, aliases)
    if len(found) > 1:
        reason = "two people turned out to be one: " + ", ".join(alias.value for alias in aliases)
        _freeze(conn, found, reason, sender, now)
    return by_id(conn, found[0]) if found else None


def _holders(conn: Connection, realm: Realm, aliases: Sequence[Alias]) -> list[str]:
    """Return the ids of those who hold these aliases, each once, in the order of the aliases."""
    sql = "SELECT person_id FROM aliases WHERE realm = ? AND kind = ? AND value = ?"
    held = (scalar(conn, sql, realm, alias.kind, alias.value) for alias in aliases)
    return list(dict.fromkeys(filter(None, held)))


def _learn(conn: Connection, realm: Realm, known: KnownPerson, sender: Sender, now: float) -> None:
    """Add the new aliases of a signed message; another one of a kind than before freezes the person."""
    for alias in aliases_of(sender):
        if alias in known.aliases:
            continue
        if any(name.kind == alias.kind for name in known.aliases):
            reason = f"came with another {alias.kind.replace('_', ' ')} than before"
            _freeze(conn, [known.id], reason, sender, now)
            return
        _add_alias(conn, realm, known.id, alias, now)


def _add_alias(conn: Connection, realm: Realm, person: str, alias: Alias, now: float) -> None:
    """Add an alias unless someone has it."""
    row = {"realm": realm, "kind": alias.kind, "value": alias.value, "address": alias.address}
    insert(conn, "aliases", or_skip=True, person_id=person, created_at=now, **row)


def _freeze(conn: Connection, people: Sequence[str], reason: str, sender: Sender, now: float) -> None:
    """Take people's roles and memory out of reach until an owner confirms them.

    The aliases they came with are kept, and since when: an owner says whose they are. Such a claim counts
    anew if they came with another alias of that kind since.
    """
    for person in people:
        update(conn, "people", "id = ? AND frozen = ''", person, frozen=reason)
    conn.executemany(
        "INSERT INTO claimed_aliases VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (person_id, kind, value) DO UPDATE SET address = excluded.address, at = CASE"
        " WHEN EXISTS (SELECT 1 FROM claimed_aliases c WHERE c.person_id = excluded.person_id"
        " AND c.kind = excluded.kind AND c.at > claimed_aliases.at)"
        " THEN excluded.at ELSE claimed_aliases.at END",
        [
            (person, alias.kind, alias.value, alias.address, now)
            for person in people
            for alias in aliases_of(sender)
        ],
    )


def _confirm_claims(conn: Connection, realm: Realm, person: str, now: float) -> dict[str, float]:
    """Give a person the aliases they claimed, in place of their own of the same kind.

    Return those who have no alias left, each with the time at which their first one was claimed.
    """
    sql = "SELECT * FROM claimed_aliases WHERE person_id = ? ORDER BY at"
    claimed = conn.execute(sql, (person,)).fetchall()
    since: dict[str, float] = {}
    for claim in claimed:
        alias = Alias(claim["kind"], claim["value"], claim["address"])
        for holder in _holders(conn, realm, [alias]):
            since.setdefault(holder, claim["at"])
        theirs = "realm = ? AND kind = ? AND (person_id = ? OR value = ?)"
        delete(conn, "aliases", theirs, realm, alias.kind, person, alias.value)
        _add_alias(conn, realm, person, alias, now)
        claims = "kind = ? AND value = ? AND person_id IN (SELECT id FROM people WHERE realm = ?)"
        delete(conn, "claimed_aliases", claims, alias.kind, alias.value, realm)
    return {loser: at for loser, at in since.items() if not by_id(conn, loser).names}  # never the person
