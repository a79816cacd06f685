"""What the built-in model writes: tool results in words, questions, and what it is."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.i18n import LANGUAGES, say
from app.llm.offline.offers import Kind, Parameter
from app.llm.smalltalk import Talk
from app.messages import JSON
from app.search.words import spaced, words

_MOST_ITEMS = 20
_LONGEST_VALUE = 400
_LONGEST_ANSWER = 6_000
_DEEPEST = 3
_LONGEST_QUOTE = 120
_MOST_QUOTED = 3
_TITLES = ("title", "name", "summary", "text", "label", "subject", "message", "id")


@dataclass(frozen=True, slots=True)
class Ability:
    """What one tool does, as an example in the person's language or, without one, as its description."""

    example: str = ""
    description: str = ""


def results_text(results: Sequence[str], language: str) -> str:
    """The answer that tool results (each JSON of the ToolResult form) come to."""
    texts = [_result_text(result, language) for result in results]
    return "\n\n".join(dict.fromkeys(text for text in texts if text))[:_LONGEST_ANSWER] or say(
        language, "Done."
    )


def _result_text(result: str, language: str) -> str:
    try:
        value = json.loads(result)
    except ValueError:
        return result.strip()
    if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
        return _data_text(value, language)
    return _data_text(value.get("data"), language) if value["ok"] else _failure_text(value, language)


_FOR_MODELS = spaced(
    """
    BAD_REQUEST DENIED INTERNAL NOT_OFFERED NO_TTY OUTCOME_UNKNOWN OUTPUT_TOO_LARGE TIMEOUT TOOL_ERROR
    UNAVAILABLE UNKNOWN_TOOL
    """
)
"""Codes of the engine, and of a server's tool that failed: what they hint at is meant for a model."""


def _failure_text(value: dict[str, JSON], language: str) -> str:
    error = value.get("error")
    error = error if isinstance(error, dict) else {}
    message = str(error.get("message") or "").strip() or say(language, "the tool gave no reason")
    meta = value.get("meta")
    if isinstance(meta, dict) and meta.get("waits") is True and error.get("code") == "DENIED":
        return say(language, "I asked you that already: the question above still waits for your answer.")
    if plain := "" if message[0].isupper() else _plainly(str(error.get("code")), language):
        return plain
    hint = "" if error.get("code") in _FOR_MODELS else str(error.get("hint") or "").strip()
    failed = say(language, "That did not work")
    told = f"{failed}. {message}" if message[0].isupper() else f"{failed}: {message}"
    return f"{told}\n{hint}" if hint and hint not in message else told


def _plainly(code: str, language: str) -> str:
    """What the engine's own failures mean to a person, "" for those that only their message explains."""
    match code:
        case "DENIED":
            return say(language, "I did not do it: I do not have your yes.")
        case "TIMEOUT":
            return say(language, "It took too long, so I gave it up.")
        case "OUTCOME_UNKNOWN":
            return say(language, "It was interrupted, and I do not know whether it was done.")
        case _:
            return ""


def _data_text(data: JSON, language: str) -> str:
    if isinstance(data, str):
        return data.strip() or say(language, "Done.")
    if data is None or data is True:
        return say(language, "Done.")
    if data is False:
        return say(language, "No.")
    if isinstance(data, int | float):
        return str(data)
    if isinstance(data, dict) and isinstance(data.get("summary"), str) and data["summary"].strip():
        return str(data["summary"]).strip()
    if isinstance(data, dict) and data.keys() == {"text", "data"}:  # a server's words, and their figures
        return _data_text(data["text"], language)
    if isinstance(data, dict) and _is_only_files(data.get("content")):  # they follow by themselves
        return _data_text(data.get("text") or data.get("data"), language)
    return "\n".join(_lines(data, language, 0)) or say(language, "There is nothing there.")


def _is_only_files(content: JSON) -> bool:
    """Whether all that a tool of a server said beside its text are files that the person is sent."""
    listed = content if isinstance(content, list) else []
    return bool(listed) and all(isinstance(one, dict) and "attachment" in one for one in listed)


def _lines(data: JSON, language: str, depth: int) -> Iterable[str]:
    if depth >= _DEEPEST:
        yield "  " * depth + "- " + _inline(data, language)
    elif isinstance(data, dict):
        yield from _field_lines(data, language, depth)
    else:
        yield from _item_lines(data, language, depth)


def _field_lines(data: dict[str, JSON], language: str, depth: int) -> Iterable[str]:
    indent = "  " * depth
    for key, value in list(data.items())[:_MOST_ITEMS]:
        label = " ".join(words(str(key))) or str(key)
        if isinstance(value, dict | list) and value:
            yield f"{indent}- **{label}**:"
            yield from _lines(value, language, depth + 1)
        elif value not in (None, "", [], {}):
            yield f"{indent}- **{label}**: {_inline(value, language)}"


def _item_lines(data: list[JSON], language: str, depth: int) -> Iterable[str]:
    indent = "  " * depth
    for item in data[:_MOST_ITEMS]:
        yield f"{indent}- {_inline(item, language)}"
    if len(data) > _MOST_ITEMS:
        yield indent + say(language, "… and {count} more", count=len(data) - _MOST_ITEMS)


def _inline(value: JSON, language: str) -> str:
    if isinstance(value, dict):
        return _object_line(value, language)
    if isinstance(value, list):
        return ", ".join(_inline(item, language) for item in value[:_MOST_ITEMS])
    if isinstance(value, bool):
        return say(language, "yes") if value else say(language, "no")
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _object_line(value: dict[str, JSON], language: str) -> str:
    """One object of a list on one line: its title, then the rest in brackets."""
    filled = {key: inner for key, inner in value.items() if inner not in (None, "", [], {})}
    title = next((key for key in _TITLES if isinstance(filled.get(key), str)), None)
    rest = [
        f"{' '.join(words(key))}: {_inline(inner, language)}" for key, inner in filled.items() if key != title
    ]
    if title is None:
        return ", ".join(rest)
    head = _inline(filled[title], language)
    return f"{head} ({', '.join(rest)})" if rest else head


def pick_question(language: str) -> str:
    """Stands below a numbered list of names of which a tool needs one."""
    return say(language, "Which one do you mean? Answer with its number.")


def none_picked_text(language: str) -> str:
    """The answer to a no to such a list."""
    return say(language, "All right, none of them.")


def undo_text(words: str, language: str) -> str:
    """What a person may write to undo what was just done, beside its receipt."""
    return say(language, "Undo: “{words}”", words=words)


def undo_words(answer: str) -> str:
    """The words that a receipt says to undo it by; "" where the answer is none, or names none."""
    receipt = answer.split("\n")[0]
    for language in LANGUAGES:
        before, _, after = undo_text("\0", language).partition("\0")
        if receipt.startswith("✓") and before in receipt:
            return receipt.rpartition(before)[2].partition(after)[0]
    return ""


def hours_asked(answer: str) -> tuple[str, ...]:
    """The two hours ("05:00", "17:00") of which an answer asks which one is meant; () for any other."""
    for language in LANGUAGES:
        asked = say(language, "Do you mean {first} or {second}? I set nothing yet.", first="\0", second="\0")
        if all(part in answer for part in asked.split("\0")):
            hours = re.findall(r"\b\d\d:\d\d\b", answer.split("?")[0])
            return tuple(hours) if len(hours) == 2 else ()
    return ()


def questions(language: str) -> frozenset[str]:
    """Every question that needs no more than the kind of what is missing."""
    return frozenset((_name_question(language), *(_kind_question(kind, language) for kind in Kind)))


def question(parameter: Parameter, language: str) -> str:
    """Asks for one thing that a tool needs."""
    if parameter.kind is Kind.TEXT and "name" in words(parameter.name):
        return _name_question(language)
    asked = _kind_question(parameter.kind, language)
    choices = parameter.schema.get("enum")
    if parameter.kind is not Kind.ENUM or not isinstance(choices, list):
        return asked
    return f"{asked} {' · '.join(str(choice) for choice in choices[:_MOST_ITEMS])}"


def _name_question(language: str) -> str:
    return say(language, "Which one do you mean? Say its name.")


def _kind_question(kind: Kind, language: str) -> str:
    match kind:
        case Kind.PLACE:
            return say(language, "Which place do you mean?")
        case Kind.WHEN:
            return say(language, "For which date or time?")
        case Kind.EXPRESSION:
            return say(language, "What should I calculate?")
        case Kind.NUMBER:
            return say(language, "Which number do you mean?")
        case Kind.FILE:
            return say(language, "Which file do you mean?")
        case Kind.URL | Kind.EMAIL:
            return say(language, "Which address do you mean?")
        case Kind.ENUM:
            return say(language, "Which of these do you mean?")
        case Kind.FLAG:
            return say(language, "Yes or no?")
        case Kind.LIST:
            return say(language, "What things? You can name several, with commas between them.")
        case _:
            return say(language, "What text do you mean?")


def talk_text(talk: Talk, name: str, abilities: Sequence[Ability], language: str) -> str:
    """A short answer to small talk."""
    match talk:
        case Talk.THANKS:
            return say(language, "You're welcome!")
        case Talk.GOODBYE:
            return say(language, "See you!")
        case Talk.NIGHT:
            return say(language, "Good night!")
        case Talk.NOD:
            return "👍"
        case Talk.ANSWER:
            return say(language, "I am not waiting for an answer just now. What can I do for you?")
        case Talk.NEVER_MIND:
            return say(language, "All right, never mind.")
        case Talk.SORRY:
            return say(language, "No problem!")
        case Talk.WARMTH:
            return "🤗"
        case Talk.GREETING:
            hello = say(language, "Hello, {name}!", name=name) if name else say(language, "Hello!")
            helping = say(language, "How can I help?")
            return _joined(f"{hello} {helping}", _examples(abilities, language))
        case Talk.ABOUT:
            return about_text(abilities, language)


def about_text(abilities: Sequence[Ability], language: str) -> str:
    """What this is, what it can do now, and where more is said."""
    text = say(language, "I am the built-in offline model: no AI, only the tools installed here.")
    return _helping(text, abilities, language)


def owners_text(language: str) -> str:
    """To somebody who asks for what the owner alone may do."""
    return say(language, "Only the person who owns this assistant can ask me for that.")


def facts_text(facts: Sequence[str], language: str) -> str:
    """What the person asked to be remembered, told when they ask for it."""
    told = "\n".join(_inline(fact, language) for fact in facts[:_MOST_QUOTED])
    return say(language, "You told me: {facts}", facts=told)


def unclear_answer_text(language: str) -> str:
    """A yes or no that answers no question by itself, while one is open."""
    return say(language, "If that answers a question of mine, press one of its buttons.")


def removal_text(what: str, language: str) -> str:
    """Something is to be removed, and nothing says of what kind it is."""
    named = _inline(what[:_LONGEST_QUOTE], language)
    asked = say(language, "Is “{what}” on a list, or a note, a task, a reminder or a file?", what=named)
    shown = say(language, "Write it so: “take {what} off the list” or “delete the note {what}”.", what=named)
    return f"{asked} {shown}"


def lacking_text(count: int, language: str) -> str:
    """A line was picked that the list told last does not have, or more than one of them may be it."""
    return say(
        language,
        "I changed nothing: I cannot tell which line you mean. The list above has {count}.",
        count=count,
    )


def no_list_text(language: str) -> str:
    """A line was picked, and no list was told."""
    return say(language, "I showed you no list just now. Ask for one first, such as “my reminders”.")


def not_undone_text(language: str) -> str:
    """What was done last is nothing that an "undo" takes back."""
    return say(language, "I cannot undo that. Tell me what to do instead.")


def lost_text(abilities: Sequence[Ability], language: str) -> str:
    """Nothing that can be done fits what was said."""
    return _helping(say(language, "I did not understand that."), abilities, language)


def reminder_text(language: str) -> str:
    """A reminder was asked for, and neither of what nor for when."""
    return say(language, "Say what to remind you of, and when: “remind me to call Ana tomorrow at 9”.")


def _helping(text: str, abilities: Sequence[Ability], language: str) -> str:
    said = " ".join(part for part in (text, _examples(abilities, language)) if part)
    return _joined(said, say(language, "Write /help for everything I can do."))


def unknown_text(parts: Sequence[str], language: str) -> str:
    """Names what nothing was done about, while something else was."""
    listed = ", ".join(f"“{_inline(part[:_LONGEST_QUOTE], language)}”" for part in parts[:_MOST_QUOTED])
    return say(language, "This part I did not understand: {part}", part=listed)


def wordless_text(language: str) -> str:
    """The message had no words, such as an image alone."""
    return say(language, "I got your message, but the built-in offline model only understands written words.")


def _examples(abilities: Sequence[Ability], language: str) -> str:
    listed = [f"“{one.example}”" for one in abilities if one.example]  # a description may be in any language
    if not listed:
        return ""
    leading = say(language, "You can write, for example:")
    return f"{leading} {' · '.join(listed)}"


def sample(parameter: Parameter, language: str) -> str:
    """What a person could write for a parameter, to show by example; "" for kinds without one."""
    if parameter.kind is Kind.EXPRESSION:
        return "12 × 7"
    if parameter.kind is Kind.PLACE:
        return say(language, "Tokyo")
    if parameter.kind is Kind.LIST and "items" in words(parameter.name):
        return say(language, "milk and bread")
    takes_any_text = parameter.is_prose and set(words(parameter.name)) & _FREE_TEXT
    return say(language, "buy bread") if takes_any_text else ""


_FREE_TEXT = spaced("text content body note message task")


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
