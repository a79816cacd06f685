"""Senders of messages: their own fields and the contact beside them, matched by value."""

from collections.abc import Iterable
from typing import NamedTuple

from app.channels.whatsapp.values import NAME_LIMIT, mapping, phone, text, user_id
from app.messages import JSON, Sender


class Identity(NamedTuple):
    """The ids and names that one object of a webhook gives of one person."""

    phone: str = ""
    user_id: str = ""
    parent_id: str = ""
    name: str = ""

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.phone, self.user_id, self.parent_id

    def contradicts(self, other: "Identity") -> bool:
        pairs = zip(self.ids, other.ids, strict=True)
        return any(mine and theirs and mine != theirs for mine, theirs in pairs)

    def completed_by(self, other: "Identity") -> "Identity":
        return Identity(*(mine or theirs for mine, theirs in zip(self, other, strict=True)))

    def sender(self) -> Sender:
        """Return the sender. The parent id stands in only if nothing else is known."""
        known = self.user_id or ("" if self.phone else self.parent_id)
        return Sender(phone=self.phone, user_id=known, name=self.name)


class Contacts:
    """The `contacts` of one webhook value."""

    def __init__(self, block: JSON, senders: Iterable[Identity]) -> None:
        """Take the contacts of a value and the senders of its messages: a lone contact is a lone sender's."""
        items = block if isinstance(block, list) else []
        contacts = [_contact(item) for item in items if isinstance(item, dict)]
        several = len({sender.ids for sender in senders}) > 1
        self._lone = contacts[0] if len(contacts) == 1 and not several else None
        self._by_id: dict[tuple[int, str], list[Identity]] = {}
        for contact in contacts:
            for named in enumerate(contact.ids):
                self._by_id.setdefault(named, []).append(contact)

    def complete(self, own: Identity) -> Identity:
        """Return the sender fields of a message, completed by the contact of the same person."""
        contact = self._lone or self._matching(own)
        return own if contact is None or own.contradicts(contact) else own.completed_by(contact)

    def _matching(self, own: Identity) -> Identity | None:
        """Return the contact that shares an id; None for none, and for several that contradict each other."""
        found = [
            contact
            for named in enumerate(own.ids)
            for contact in (self._by_id.get(named, [])[:8] if named[1] else ())
            if not own.contradicts(contact)
        ]
        is_sure = found and not any(found[0].contradicts(other) for other in found)
        return found[0] if is_sure else None


def own_identity(message: dict[str, JSON]) -> Identity:
    """Return the sender fields of a message itself."""
    return Identity(
        phone(message.get("from")),
        user_id(message.get("from_user_id")),
        user_id(message.get("from_parent_user_id")),
    )


def addressee(echo: dict[str, JSON], own_number: str) -> Identity:
    """Return the person to whom an echo was written; some echoes of edits have `from` and `to` swapped."""
    to = phone(echo.get("to"))
    return Identity(
        phone(echo.get("from")) if to and to == own_number else to,
        user_id(echo.get("to_user_id")),
        user_id(echo.get("to_parent_user_id")),
    )


def _contact(item: dict[str, JSON]) -> Identity:
    return Identity(
        phone(item.get("wa_id")),
        user_id(item.get("user_id")),
        user_id(item.get("parent_user_id")),
        text(mapping(item.get("profile")).get("name"), NAME_LIMIT).strip(),
    )
