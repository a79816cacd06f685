"""Write a question as a person reads it: what would be done, with every value as it is, and the buttons."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.i18n import say
from app.messages import JSON, Button, Channel
from app.routing.tool_catalog import ToolCatalog
from app.skills.skill import ToolSentences, in_language
from app.store.approvals import Choice, new_button
from app.store.outbox import Draft
from app.text import escape_text, shortened, visible
from app.tools import Tool
from app.tools.plain import dumps

SOURCES_SHOWN = 2  # the newest ones; the number of the others is said
CARD_BYTES = 8 * 1024  # nobody reads a longer card on a phone: it is approved in the console
INSTALL: tuple[Choice, ...] = ("yes", "trust", "no")
CALL: tuple[Choice, ...] = ("yes", "always", "no")
ONCE: tuple[Choice, ...] = ("yes", "no")
LONGEST_TITLE = 100
_LONGEST_QUESTION = 200  # characters that stand beside the buttons
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Card:
    """A question, and the possible answers."""

    text: str
    title: str  # the text on one line
    choices: tuple[Choice, ...] = ONCE
    subject: str = ""  # the hash of what it is about beyond the call's arguments
    question: str = ""  # stands last, beside the buttons, when the text does not fit there
    written: tuple[Choice, ...] = ()  # answers without a button, which the text names


def call_card(
    language: str, tool: Tool, arguments: Mapping[str, JSON], sentences: ToolSentences | None = None
) -> Card:
    """Write a call as the sentence that its skill has for it, else by its exact names, a value a line."""
    said = _sentence_card(language, arguments, sentences) if sentences is not None else None
    return said or named_card(language, tool.name, arguments, "" if sentences else tool.description)


def named_card(language: str, tool: str, arguments: Mapping[str, JSON], description: str = "") -> Card:
    """Write a call by its exact names; the first line of `description` is shown as its author's words."""
    lines = [say(language, "May I do this?"), "", visible(tool)]
    if said := shortened(description.strip().split("\n")[0], LONGEST_TITLE):
        lines.append(say(language, "It says of itself: {description}", description=_quoted(said)))
    lines += [f"• {_name(name)}: {_value(value)}" for name, value in arguments.items()]
    title = f"{visible(tool)} {', '.join(_value(value) for value in arguments.values())}"
    return Card("\n".join(lines), shortened(title.strip(), LONGEST_TITLE))


def with_sources(language: str, text: str, sources: Sequence[str], tools: ToolCatalog) -> str:
    """Return the text of a card with a sentence below it that says whose words came before the call."""
    return "\n\n".join(filter(None, (text, sources_sentence(language, sources, tools))))


def sources_sentence(language: str, sources: Sequence[str], tools: ToolCatalog) -> str:
    """Say whose words came before a call, "" when all were the person's.

    A result is told by the words of its skill, else by the name of its skill or server.
    """
    if not sources:
        return ""
    said = list(dict.fromkeys(_source(language, source, tools) for source in reversed(sources)))
    listed = ", ".join(reversed(said[:SOURCES_SHOWN]))
    if (more := len(said) - SOURCES_SHOWN) > 0:
        listed = say(language, "{sources} and {n} more", sources=listed, n=more)
    return say(language, "This comes after I read text that is not yours: {sources}", sources=listed)


def question_draft(channel: Channel, language: str, card: Card) -> tuple[Draft, dict[str, Choice]]:
    """Return the messages of a question, and the choice that each of its buttons stands for."""
    text, choices = card.text, card.choices
    if len(text.encode()) > CARD_BYTES:
        text = say(language, "This is too long to be approved here. The owner can approve it in the console.")
        choices = ("no",)
    buttons = {new_button(): choice for choice in choices}
    titles = [Button(id, _button_title(language, choice, choices)) for id, choice in buttons.items()]
    first = text.partition("\n")[0]
    asks = first.endswith("?") and len(first) <= _LONGEST_QUESTION
    question = card.question or (first if asks else say(language, "Shall I?"))
    written = {new_button(): choice for choice in card.written}
    return Draft(text, tuple(channel.ask(text, question, titles))), buttons | written


def _sentence_card(language: str, arguments: Mapping[str, JSON], sentences: ToolSentences) -> Card | None:
    """Write a call as a sentence and the arguments that it leaves out; None when there is no sentence."""
    question = sentences.question(language, arguments)
    shown = set(_PLACEHOLDER.findall(question))
    if not question or not shown <= arguments.keys():
        return None
    text = _PLACEHOLDER.sub(lambda found: _plain_value(arguments[found[1]]), question)
    rest = [
        (in_language(sentences.arguments.get(name, {}), language) or name, _plain_value(value))
        for name, value in arguments.items()
        if name not in shown and name != sentences.by
    ]
    lines = [text, *(f"• {name}: {value}" for name, value in rest)]
    return Card("\n".join(lines), shortened(" ".join([text, *(value for _, value in rest)]), LONGEST_TITLE))


def _button_title(language: str, choice: Choice, choices: Sequence[Choice]) -> str:
    if choice == "yes":
        return say(language, "Install") if "trust" in choices else say(language, "Yes")
    if choice == "always":
        return say(language, "Always here")
    return say(language, "Install+trust") if choice == "trust" else say(language, "No")


def _source(language: str, source: str, tools: ToolCatalog) -> str:
    kind, _, name = source.partition(":")
    if kind == "tool":
        return _result_source(language, name, tools)
    if kind == "skill":
        return say(language, "the skill {skill}", skill=visible(name))
    return {
        "group": say(language, "the group"),
        "forwarded": say(language, "a forwarded message"),
        "contacts": say(language, "a contact card"),
        "document": say(language, "a file"),
        "picture": say(language, "a picture"),
        "audio": say(language, "an audio file"),
        "location": say(language, "a place"),
        "referral": say(language, "an advertisement"),
        "memory": say(language, "something remembered out of text of others"),
    }.get(kind, say(language, "a quoted message"))


def _result_source(language: str, name: str, tools: ToolCatalog) -> str:
    tool = tools.tool(name)
    if tool is not None and (sentences := tools.sentences(tool)) is not None:
        if source := in_language(sentences.source, language):
            return source
        if not tool.outside:  # what the person keeps, perhaps made of text of others
            return say(language, "something remembered out of text of others")
    if tool is not None and tool.category:
        return say(language, "what {name} answered", name=_name(shortened(tool.category, LONGEST_TITLE)))
    return say(language, "the answer of a tool")  # its name may be any word of the model's


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _quoted(name)


def _plain_value(value: JSON) -> str:
    """Write several texts one by one, unless a quote in them could end one early."""
    plain = str | int | float
    texts = [str(one) for one in value if isinstance(one, plain)] if isinstance(value, list) else []
    if not texts or len(texts) < len(value) or any(set("“”") & set(one) for one in texts):
        return _value(value)
    return ", ".join(map(_quoted, texts))


def _value(value: JSON) -> str:
    """Write a value from outside: whole, on one line, quoted, nothing in it invisible."""
    return _quoted(value) if isinstance(value, str) else f"“{escape_text(dumps(value).decode())}”"


def _quoted(text: str) -> str:
    return f"“{escape_text(text.replace(chr(92), chr(92) * 2))}”"
