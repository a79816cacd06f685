"""Read an inbound message as a command, as an answer to an open question, or as plain words."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from app.i18n import say, word_tables
from app.messages import SAYS, Channel, Inbound
from app.store import approvals, choices, people
from app.store.approvals import BUTTON, Choice, ReplyTaken
from app.store.database import Connection
from app.store.inbox import ClassifiedMessage
from app.store.outbox import Draft, count_since, put_reply
from app.text import fold
from app.turns.commands import read_command
from app.turns.limits import Limits

_DECLINED = "|".join(word_tables()["declined"].split())
_DECLINES = re.compile("".join(word_tables()["declines"]).replace("{declined}", _DECLINED))
_SIGNS: dict[str, Choice] = {**dict.fromkeys("👍👌✅✔☑🆗🙆🫡", "yes"), **dict.fromkeys("👎❌✖🚫🛑🙅⛔", "no")}
_LONGEST_ANSWER = 40
NOTICES_AN_HOUR, GUESTS_NOTICES = 20, 1  # no limit on answers counts them
LONGEST_NUMBER = 3  # digits of an option's number


def classify_inbound(message: Inbound) -> ClassifiedMessage:
    """Tell what a message is before anything is done about it."""
    if message.button.startswith(BUTTON):
        return ClassifiedMessage(message, "answer")
    is_typed = (message.kind == "text" and not message.forwarded) or message.button.startswith(SAYS)
    command = read_command(message.text) if is_typed else None
    answers = message.kind in ("text", "reaction") and read_answer(message.text) is not None
    return ClassifiedMessage(message, command or "message", answers)


def read_answer(text: str) -> Choice | None:
    """Return the choice that a whole message stands for, None when it says anything else or more."""
    if len(text) > _LONGEST_ANSWER or "?" in text or (not text.isascii() and any(map(_says_else, text))):
        return None
    words = _plain(text)
    tells = re.search(r"[éíó]\b", text.casefold())  # "no compré nada" tells of something
    in_words = _CHOICES.get(words) or ("no" if not tells and _DECLINES.fullmatch(words) else None)
    said = {_SIGNS[c] for c in text if c in _SIGNS} | ({in_words} if words else set())
    return said.pop() if len(said) == 1 else None


def named_option(text: str, options: Sequence[str]) -> int:
    """Return the number of the option that a whole message names, 0 for none: "2", "2.", or its words."""
    bare = " ".join(fold(text).split()).strip(" .,;:!)(¡\"'")
    if bare.isdecimal() and len(bare) <= LONGEST_NUMBER:
        return int(bare) if int(bare) <= len(options) else 0
    same = [number for number, option in enumerate(options, 1) if " ".join(fold(option).split()) == bare]
    return same[0] if len(same) == 1 else 0


class ApprovalReplies:
    """Takes answers to open questions out of the queue before a turn could claim them as messages.

    `only_last`: words answer only what was said last, since the model understands too little of what is said
    in between; buttons and quotes always do.
    """

    def __init__(self, channels: Mapping[str, Channel], limits: Limits, *, only_last: bool) -> None:
        self._channels = channels
        self._limits = limits
        self._only_last = only_last

    def take(
        self, conn: Connection, conversation: str, now: float, quiet: float, longest: float
    ) -> tuple[str, float]:
        """Take every answer out of the queue; `quiet` and `longest` bound a burst (see `turns.claim`).

        Return the person who gets a notice, or "", and when to look again at words that may be one, or 0.
        """
        told = ""
        for late in choices.take_answers(conn, conversation, now, named_option):
            told = self._notify(conn, conversation, late, None, now)
        while (
            found := approvals.take_reply(
                conn, conversation, now, read_answer, quiet, longest, only_last=self._only_last
            )
        ) is not None:
            if isinstance(found, float):
                return told, found
            if found.unclear or found.closed:
                told = self._notify(conn, conversation, found.inbox, found, now)
        return told, 0.0

    def _notify(
        self, conn: Connection, conversation: str, inbox: int, found: ReplyTaken | None, now: float
    ) -> str:
        """Tell the person what became of an answer (None: to a choice), now and then; return who that is."""
        to = people.conversation_by_id(conn, conversation)
        language = people.language(conn, to.person_id)
        channel = self._channels.get(to.channel)  # None: the conversation belongs to another realm
        most = GUESTS_NOTICES if self._limits.is_guest(conn, to.person_id) else NOTICES_AN_HOUR
        if channel is not None and count_since(conn, to.person_id, "heard:", now - 3600) < most:
            put_reply(conn, to, f"heard:{inbox}", _notice(channel, language, found), now)
        return to.person_id


def _notice(channel: Channel, language: str, found: ReplyTaken | None) -> Draft:
    if found is None or found.closed:
        text = say(language, "That question is over. Write to me if you want something else.")
        return Draft(text, tuple(channel.render(text)))
    lines = [say(language, "I have asked you several things. Which one do you mean?"), ""]
    lines += [f"• {one.title}" for one in found.unclear]
    how = say(language, "Press a button of that question, or answer it with a quote.")
    text = "\n".join(lines)
    return Draft(text, tuple(channel.ask(text, how, ())))


def _says_else(sign: str) -> bool:
    """Tell whether a sign says more than yes or no: 👍 beside 😡 is no answer."""
    return sign == "¿" or (unicodedata.category(sign) == "So" and sign not in _SIGNS)


def _plain(text: str) -> str:
    """Return lower case without accents and punctuation, one space between words; "siii" becomes "si"."""
    bare = text.casefold()
    if not bare.isascii():
        bare = "".join(c for c in unicodedata.normalize("NFD", bare) if not unicodedata.combining(c))
    return re.sub(r"([a-z])\1{2,}", r"\1", " ".join(re.findall(r"[^\W_]+", bare.replace("'", ""))))


_CHOICES: dict[str, Choice] = {
    _plain(phrase): choice
    for choice, phrases in word_tables()["answers"].items()
    for phrase in phrases.split(",")
}
