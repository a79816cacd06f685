"""Access: the people who may write from each realm, and the notices about it."""

import time
from dataclasses import replace

from app.i18n import detect_language, say
from app.messages import RECEIPT_MARK, SAYS, Button, Inbound, Outgoing
from app.people import SIMULATED_PEOPLE, TERMINAL_USER, Person, Realm, Role
from app.phones import country
from app.settings import Settings
from app.store.database import Connection, Database, keep_meta
from app.store.inbox import IntakeRules
from app.store.outbox import NO_MODEL, OWN_WORDS, Draft
from app.store.ownership import AccessRules, hash_key, offer_ownership
from app.text import visible
from app.turns.profiles import language_of

LONGEST_NAME = 40  # characters of a stranger's name that owners are shown


class AccessPolicy:
    """The settings as rules of access and intake. `realm` is the realm of the webhook's messages."""

    def __init__(self, settings: Settings, store: Database) -> None:
        self.realm = settings.realm
        self._settings = settings
        self._store = store
        self._hash_key = b""

    async def open(self) -> None:
        """Read this database's own key, which codes and the inbox need; keep the words of the disclosure."""

        def write(conn: Connection) -> bytes:
            keep_meta(conn, OWN_WORDS, self._settings.disclosure)
            keep_meta(conn, NO_MODEL, "" if self._settings.has_model else "yes")
            return hash_key(conn)

        self._hash_key = await self._store.tx(write)

    def access_rules(self, realm: str) -> AccessRules:
        """Return the rules that decide who may write from a realm."""
        return access_rules(self._settings, realm, self._hash_key)

    def intake_rules(self, realm: Realm) -> IntakeRules:
        """Return how messages of a realm are taken in."""
        return IntakeRules(
            channel=realm,
            access=self.access_rules(realm),
            rate_limit=self._settings.rate_limit_max,
            rate_window=self._settings.rate_limit_window,
            key=self._hash_key,
            notices=self,
            silent_seconds=self._settings.handover_hours * 3600,
        )

    async def owner_code(self) -> str:
        """Make the code whose sender becomes the owner; return "" if there is an owner."""
        rules, now = self.access_rules(self.realm), time.time()
        return await self._store.tx(lambda conn: offer_ownership(conn, rules, now)) or ""

    async def offer_ownership(self) -> None:
        """Print a one-time code on the console if there are credentials and no owner."""
        if not self._settings.uses_simulator and (code := await self.owner_code()):
            print(  # noqa: T201
                f"\nNobody owns this assistant yet. Within an hour, send it this code from your WhatsApp:\n"
                f"\n    {code}\n",
                flush=True,
            )

    def too_fast(self, person: Person, message: Inbound) -> Draft:
        """Return the notice that a person's messages have to wait."""
        language = _language(person, message)
        text = say(
            language,
            "You write faster than I may answer. I kept your messages and answer them in a moment, in order.",
        )
        return Draft(text, (Outgoing(text),))

    def welcome(self, person: Person, message: Inbound, became: Role) -> Draft:
        """Return the message to somebody whose code made them an owner or a member."""
        language = _language(person, replace(message, text=""))  # the letters of a code are of no language
        if became == "owner":
            text = say(
                language,
                "This assistant is now yours. Write /help to see what it can do; "
                "let others in at People of /console, or with: {recado} people allow PHONE",
            )
        else:
            text = say(language, "Welcome! Your invitation is accepted. Write /help to see what I can do.")
        return Draft(text, (Outgoing(text),))

    def first_contact(self, language: str, person: Person, message: Inbound) -> Draft:
        """Return what an owner is told of a stranger, with buttons to let them in or to shut them out."""
        who = message.sender.phone or message.sender.user_id
        text = say(
            language,
            "{name} ({who}) writes for the first time. I answer them as a guest.",
            name=shown_name(person.name),
            who=shown_address(who),
        )
        buttons = (
            Button(f"{SAYS}/member {who}", say(language, "Make a member")),
            Button(f"{SAYS}/block {who}", say(language, "Block")),
        )
        return Draft(text, (Outgoing(text, buttons),))

    def deleted_too_late(self, person: Person, message: Inbound, reply: str) -> Draft | None:
        """Return the offer to undo what the reply to a deleted message says was done, None if nothing was."""
        receipts = [line for line in reply.splitlines() if line.startswith(RECEIPT_MARK)]
        if not receipts:
            return None
        text = say(
            _language(person, message),
            "You deleted your message, but I had already done this:\n{receipts}\n"
            "If you do not want it, tell me to undo it.",
            receipts="\n".join(receipts),
        )
        return Draft(text, (Outgoing(text),))


def access_rules(settings: Settings, realm: str, code_key: bytes = b"") -> AccessRules:
    """Return the rules that decide who may write from a realm; codes count only with their key."""
    if realm == "terminal":
        owners = frozenset({TERMINAL_USER}) if settings.uses_simulator else frozenset[str]()
        return AccessRules("terminal", owners=owners, open=True)
    everyone, listed = settings.access == "everyone", settings.access == "listed"
    if realm == "simulator":
        owners = frozenset({SIMULATED_PEOPLE[0].phone, SIMULATED_PEOPLE[0].user_id})
        rules = AccessRules("simulator", owners=owners, open=listed)
    else:
        allowed, owners = settings.allowed_phone_numbers, settings.owner_phone_numbers
        rules = AccessRules("whatsapp", allowed=allowed, owners=owners)
    return replace(rules, guests=everyone, invites=not listed, code_key=code_key)


def shown_line(text: str, longest: int) -> str:
    """Return a stranger's words as owners see them: on one line, without characters that are not seen."""
    return visible(" ".join(text.split()))[:longest]


def shown_name(name: str) -> str:
    """Return a stranger's name as owners are shown it, "?" for none."""
    return shown_line(name, LONGEST_NAME) or "?"


def shown_address(who: str) -> str:
    """Return a phone with its plus sign; a user id as it is."""
    return f"+{who}" if who.isdigit() else who


def _language(person: Person, message: Inbound) -> str:
    """Return a person's language; before a turn has found it out, that of the message or of their country."""
    if person.country:
        return person.language
    sender = message.sender
    land = country(sender.phone) if sender.phone else sender.user_id[:2]
    usual = language_of(land) if land else person.language
    return detect_language(message.text) or usual
