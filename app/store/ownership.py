"""The access rules of a realm, the one-time code that makes the first owner, invitations, sign-in links."""

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from app.people import Realm, Role
from app.store.database import Connection, Row, delete, exists, insert, keep_meta, meta

CODE_SECONDS = 3600
CODE_TRIES = 5
LINK_SECONDS = 600.0  # in which a link signs an owner into the console, once
_CODE = "owner_code"
_LINK = re.compile(r"(/console/enter\?code=)[\w-]+")
_WRITTEN_CODE = re.compile(r"[A-Za-z2-7]{4}-[A-Za-z2-7]{4}-[A-Za-z2-7]{4}")


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The configuration's rules on who may write in a realm; phones are canonical digits."""

    realm: Realm
    allowed: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    open: bool = False  # everybody of this realm may come in as a member (the simulator, the terminal)
    guests: bool = False  # everybody else may come in as a guest
    invites: bool = False  # who sends an invitation code comes in
    code_key: bytes = b""  # key of the hashes under which codes are kept


class HasAccessRules(Protocol):
    """Tells who may come in by which channel's realm."""

    def access_rules(self, realm: str) -> AccessRules: ...


def has_owner(conn: Connection, rules: AccessRules) -> bool:
    """Return whether the realm has an owner, in the configuration or by role."""
    sql = "SELECT 1 FROM people WHERE realm = ? AND role = 'owner'"
    return bool(rules.owners) or exists(conn, sql, rules.realm)


def offer_ownership(conn: Connection, rules: AccessRules, now: float) -> str | None:
    """Make and return a fresh one-time ownership code; None while an owner exists."""
    if has_owner(conn, rules):
        withdraw_code(conn)
        return None
    code = _new_code()
    keep_meta(conn, _CODE, f"{_code_hash(rules.code_key, code)} {now + CODE_SECONDS} {CODE_TRIES}")
    return code


def takes_ownership(conn: Connection, rules: AccessRules, text: str, now: float) -> bool:
    """Return whether the text is the one-time code; a wrong text of a code's form uses up a try."""
    written, kept = text.strip(), meta(conn, _CODE)
    if not _WRITTEN_CODE.fullmatch(written) or kept is None or has_owner(conn, rules):
        return False
    expected, until, tries = kept.split()
    if now > float(until) or int(tries) <= 0:
        return False
    is_right = hmac.compare_digest(expected, _code_hash(rules.code_key, written))
    keep_meta(conn, _CODE, "" if is_right else f"{expected} {until} {int(tries) - 1}")
    return is_right


def withdraw_code(conn: Connection) -> None:
    """Delete the one-time code: an owner exists."""
    keep_meta(conn, _CODE, "")


def hash_key(conn: Connection) -> bytes:
    """Return the key of this database's hashes (of codes and of message ids), made once."""
    kept = meta(conn, "hash_key")
    if kept is None:
        kept = secrets.token_hex(32)
        keep_meta(conn, "hash_key", kept)
    return bytes.fromhex(kept)


def invite(conn: Connection, role: Role, uses: int, until: float) -> str:
    """Make and return an invitation code that makes a member or an owner of the first `uses` who send it."""
    code = _new_code()
    hashed = _code_hash(hash_key(conn), code)
    insert(conn, "invitations", code_hash=hashed, role=role, uses_left=uses, expires_at=until)
    return code


def invitations(conn: Connection, now: float) -> list[Row]:
    """Return the invitations that still count: the hash of their code, role, uses that are left, end."""
    sql = "SELECT * FROM invitations WHERE uses_left > 0 AND expires_at > ?"
    return conn.execute(sql, (now,)).fetchall()


def withdraw_invitation(conn: Connection, code_hash: str) -> None:
    """Let an invitation count no more."""
    delete(conn, "invitations", "code_hash = ?", code_hash)


def accept_invitation(conn: Connection, rules: AccessRules, text: str, now: float) -> Role | None:
    """Use up an invitation whose code the text is, and return the role that it gives."""
    written = text.strip()
    if not rules.invites or not _WRITTEN_CODE.fullmatch(written):
        return None
    row = conn.execute(
        "UPDATE invitations SET uses_left = uses_left - 1"
        " WHERE code_hash = ? AND uses_left > 0 AND expires_at > ? RETURNING role",
        (_code_hash(rules.code_key, written), now),
    ).fetchone()
    return None if row is None else row["role"]


def make_link(conn: Connection, person: str, now: float) -> str:
    """Make and return the code of an owner's link; older links go on to count until they expire."""
    delete(conn, "sign_in_links", "expires_at <= ?", now)
    code = secrets.token_urlsafe(32)
    hashed = sha256(code.encode()).hexdigest()
    insert(conn, "sign_in_links", id=hashed, person_id=person, expires_at=now + LINK_SECONDS)
    return code


def use_link(conn: Connection, code: str, now: float) -> str | None:
    """Use a code up and return whose it is; None if it is none, was used or has expired."""
    hashed = sha256(code.encode()).hexdigest()
    sql = "DELETE FROM sign_in_links WHERE id = ? AND expires_at > ? RETURNING person_id"
    used = conn.execute(sql, (hashed, now)).fetchone()
    return None if used is None else used["person_id"]


def without_link(text: str) -> str:
    """Return a text without the code of a sign-in link: no model, search or page may show one."""
    return _LINK.sub(r"\1…", text)


def _new_code() -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    code = "".join(secrets.choice(alphabet) for _ in range(12))  # 60 bits
    return f"{code[:4]}-{code[4:8]}-{code[8:]}"


def _code_hash(key: bytes, written: str) -> str:
    return hmac.new(key, written.replace("-", "").upper().encode(), sha256).hexdigest()
