"""A question as a person reads it: what would be done, with every value as it is, and the buttons."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.i18n import say
from app.messages import JSON, Button, Channel
from app.store.approvals import Choice, new_button
from app.store.outbox import Draft
from app.text import escape_text, visible
from app.tools.plain import dumps
from app.turns.shipped_calls import said_of_call, said_of_result

SOURCES_SHOWN = 4
"""The newest ones; how many others there are is said."""
CARD_BYTES = 8 * 1024
"""Above it nobody reads a card on a phone: it is approved in the console."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
INSTALL: tuple[Choice, ...] = ("yes", "trust", "no")
CALL: tuple[Choice, ...] = ("yes", "always", "no")
ONCE: tuple[Choice, ...] = ("yes", "no")
Ships = Callable[[str], bool]
"""Whether a tool is of a skill of the release."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a question shows, on one line too, and what may be answered.

    `subject` is the hash of what it is about beyond the call's arguments; `question` stands last, beside
    the buttons where the text does not fit there.
    """

    text: str
    title: str
    choices: tuple[Choice, ...]
    subject: str = ""
    question: str = ""


def _nothing_ships(tool: str) -> bool:
    return False


def call_card(
    language: str,
    tool: str,
    arguments: Mapping[str, JSON],
    sources: Sequence[str],
    description: str = "",
    is_bundled: Ships = _nothing_ships,
) -> str:
    """A call by its exact names, a value a line; `sources` say where text of others in the turn came from.

    `description` is what the tool's author says of it, of which the first line is shown as theirs.
    """
    lines = [say(language, "May I do this?"), "", visible(tool)]
    if said := description.strip().split("\n")[0]:
        lines.append(say(language, "It says of itself: {description}", description=_quoted(_cut(said))))
    lines += [f"• {_name(name)}: {_value(value)}" for name, value in arguments.items()]
    return with_sources(language, "\n".join(lines), sources, is_bundled)


def shipped_card(
    language: str, tool: str, arguments: Mapping[str, JSON], sources: Sequence[str], is_bundled: Ships
) -> tuple[str, str]:
    """A call of one of our own tools as a sentence with what that leaves out, and the same on a short line.

    One that we have no words for is shown as a tool of others.
    """
    said = said_of_call(language, tool, arguments, _plain_value)
    if said is None:
        text = call_card(language, tool, arguments, sources, is_bundled=is_bundled)
        return text, call_title(tool, arguments)
    lines = [said.sentence, *(f"• {name}: {value}" for name, value in said.rest)]
    title = " ".join([said.sentence, *(value for _, value in said.rest)])
    return with_sources(language, "\n".join(lines), sources, is_bundled), _cut(title)


def with_sources(language: str, text: str, sources: Sequence[str], is_bundled: Ships = _nothing_ships) -> str:
    """A card that also says whose words came before the call."""
    return "\n\n".join(filter(None, (text, sources_said(language, sources, is_bundled))))


def sources_said(language: str, sources: Sequence[str], is_bundled: Ships = _nothing_ships) -> str:
    """Whose words came before a call, in a sentence; "" where all were the person's.

    Tools that `is_bundled` names are not told by their names.
    """
    if not sources:
        return ""
    said = dict.fromkeys(_source(language, source, is_bundled) for source in sources[-SOURCES_SHOWN:])
    listed = ", ".join(said)
    if (more := len(sources) - SOURCES_SHOWN) > 0:
        listed = say(language, "{sources} and {n} more", sources=listed, n=more)
    return say(language, "This comes after I read text that is not yours: {sources}", sources=listed)


def call_title(tool: str, arguments: Mapping[str, JSON]) -> str:
    """The call on one short line, to tell it from others."""
    text = f"{visible(tool)} {', '.join(_value(value) for value in arguments.values())}".strip()
    return _cut(text)


def question_draft(channel: Channel, language: str, card: Card) -> tuple[Draft, dict[str, Choice]]:
    """The messages of a question, and which choice each of its buttons stands for.

    A card that is too long for a phone has no button but the no.
    """
    text, choices = card.text, card.choices
    if len(text.encode()) > CARD_BYTES:
        text = say(language, "This is too long to be approved here. The owner can approve it in the console.")
        choices = ("no",)
    buttons = {new_button(): choice for choice in choices}
    titles = [Button(id, _title(language, choice, choices)) for id, choice in buttons.items()]
    question = card.question or say(language, "Shall I?")
    return Draft(text, tuple(channel.ask(text, question, titles))), buttons


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"


def _title(language: str, choice: Choice, choices: Sequence[Choice]) -> str:
    if choice == "yes":
        return say(language, "Install") if "trust" in choices else say(language, "Yes")
    if choice == "always":
        return say(language, "Always here")
    return say(language, "Install+trust") if choice == "trust" else say(language, "No")


def _source(language: str, source: str, is_bundled: Ships) -> str:
    """A source of a turn's taint (see app/turns/taint.py) as the person reads it."""
    kind, _, name = source.partition(":")
    if kind == "tool":
        if is_bundled(name) and (said := said_of_result(language, name)):
            return said
        return say(language, "the result of {tool}", tool=_name(_cut(name)))  # any word of the model's
    if kind == "skill":
        return say(language, "the skill {skill}", skill=visible(name))
    return {
        "group": say(language, "the group"),
        "forwarded": say(language, "a forwarded message"),
        "contacts": say(language, "a contact card"),
        "document": say(language, "a file"),
        "location": say(language, "a place"),
        "referral": say(language, "an advertisement"),
        "memory": say(language, "something remembered out of text of others"),
    }.get(kind, say(language, "a quoted message"))


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _quoted(name)


def _plain_value(value: JSON) -> str:
    """A value on a card of ours: several texts one by one, where no quote in them could end one early."""
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    if not texts or len(texts) < len(value) or any(set("“”") & set(one) for one in texts):
        return _value(value)
    return ", ".join(map(_quoted, texts))


def _value(value: JSON) -> str:
    """A value from outside: whole, on one line, quoted, nothing in it invisible."""
    return _quoted(value) if isinstance(value, str) else f"“{escape_text(dumps(value).decode())}”"


def _quoted(text: str) -> str:
    return f"“{escape_text(text.replace(chr(92), chr(92) * 2))}”"
