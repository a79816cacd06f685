"""The sentences of the built-in model: tool results, questions, small talk, help."""

import json
import re
from collections.abc import Iterable, Sequence

from app.i18n import detect_language, say
from app.llm.offline.slots import Kind, Offer, Parameter
from app.llm.smalltalk import Talk
from app.messages import JSON
from app.search.phrases import ALL, IT, SAME, without_given
from app.search.words import spaced, words
from app.text import fold

_MAX_ITEMS = 20
_MAX_DEPTH = 3
_MAX_QUOTED = 3
_LONGEST_VALUE = 400
_LONGEST_ANSWER = 6_000
_LONGEST_QUOTE = 120
_TITLES = ("title", "name", "summary", "text", "label", "subject", "message", "id")
# Codes of the engine, and of a server's tool that failed: their hints are meant for a model.
_FOR_MODELS = spaced(
    "BAD_REQUEST DENIED INTERNAL NOT_OFFERED NO_TTY OUTCOME_UNKNOWN OUTPUT_TOO_LARGE TIMEOUT TOOL_ERROR"
    " UNAVAILABLE UNKNOWN_TOOL"
)
# their messages tell of our own parts
_ENGINE_ONLY = spaced("INTERNAL NOT_OFFERED OUTPUT_TOO_LARGE UNKNOWN_TOOL")
_FREE_TEXT = spaced("text content body note message task")
# verbs that no example shows: nobody should try them first
_TAKES_AWAY = re.compile(
    r"\b(?:borr|elimin|cancel|quit|sac|olvid|apag|exclu|delet|tir|esquec|remov|eras|clear|forget|stop|desinstal|esvazi"
    r"|uninstall|limp|vacia|zera|wipe|empty|desfa|desha|undo|pospon|adia|snooze|nada|nothing)\w*\b"
)


# Results


def results_text(results: Sequence[str], language: str) -> str:
    """Return the answer that tool results, each JSON of the ToolResult form, come to."""
    texts = [_result_text(result, language) for result in results]
    told = "\n\n".join(dict.fromkeys(text for text in texts if text))
    return told[:_LONGEST_ANSWER] or say(language, "Done.")


def _result_text(result: str, language: str) -> str:
    try:
        value = json.loads(result)
    except ValueError:
        return result.strip()
    if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
        return _data_text(value, language)
    return _data_text(value.get("data"), language) if value["ok"] else _failure_text(value, language)


def _failure_text(value: dict[str, JSON], language: str) -> str:
    error = value.get("error")
    error = error if isinstance(error, dict) else {}
    meta = value.get("meta")
    code = str(error.get("code"))
    message = str(error.get("message") or "").strip() or say(language, "the tool gave no reason")
    is_ours = not message[0].isupper()  # words of the engine
    if own := _own_failure(code, meta if isinstance(meta, dict) else {}, is_ours, language):
        return own
    hint = "" if code in _FOR_MODELS else str(error.get("hint") or "").strip()
    told = f"{say(language, 'That did not work')}{':' if is_ours else '.'} {message}"
    return f"{told}\n{hint}" if hint and hint not in message else told


def _own_failure(code: str, meta: dict[str, JSON], is_ours: bool, language: str) -> str:
    """Return our sentence for a failure whose message is meant for a model, "" for others."""
    match code:
        case "DENIED" if meta.get("waits") is True:
            return say(language, "I asked you that already: the question above still waits for your answer.")
        case "DENIED" if meta.get("answer") == "no":
            return say(language, "All right, I will not do it.")
        case _ if meta.get("invalid_arguments") is True:
            return say(language, "I could not do that with those words. Can you say it another way?")
        case "DENIED" if is_ours:
            return say(language, "I did not do it: I do not have your yes.")
        case "TIMEOUT" if is_ours:
            return say(language, "It took too long, so I gave it up.")
        case "OUTCOME_UNKNOWN" if is_ours:
            return say(language, "It was interrupted, and I do not know whether it was done.")
        case _ if is_ours and code in _ENGINE_ONLY:
            return say(language, "That did not work") + "."
        case _:
            return ""


def _data_text(data: JSON, language: str) -> str:
    if data is False:
        return say(language, "No.")
    if data is None or data is True or (isinstance(data, str) and not data.strip()):
        return say(language, "Done.")
    if isinstance(data, str | int | float):
        return str(data).strip()
    if isinstance(data, dict):
        if isinstance(summary := data.get("summary"), str) and summary.strip():
            return summary.strip()
        content = data.get("content")
        files = content if isinstance(content, list) else []
        follow = files and all(isinstance(one, dict) and "attachment" in one for one in files)
        if data.keys() == {"text", "data"} or follow:  # a server's words beside their figures or files
            return _data_text(data.get("text") or data.get("data"), language)
    return "\n".join(_lines(data, language, 0)) or say(language, "There is nothing there.")


def _lines(data: JSON, language: str, depth: int) -> Iterable[str]:
    indent = "  " * depth
    if depth >= _MAX_DEPTH:
        yield f"{indent}- {_inline(data, language)}"
    elif isinstance(data, dict):
        for key, value in list(data.items())[:_MAX_ITEMS]:
            label = " ".join(words(str(key))) or str(key)
            if isinstance(value, dict | list) and value:
                yield f"{indent}- **{label}**:"
                yield from _lines(value, language, depth + 1)
            elif value not in (None, "", [], {}):
                yield f"{indent}- **{label}**: {_inline(value, language)}"
    else:
        for item in data[:_MAX_ITEMS]:
            yield f"{indent}- {_inline(item, language)}"
        if len(data) > _MAX_ITEMS:
            yield indent + say(language, "… and {count} more", count=len(data) - _MAX_ITEMS)


def _inline(value: JSON, language: str) -> str:
    if isinstance(value, dict):
        return _object_line(value, language)
    if isinstance(value, list):
        return ", ".join(_inline(item, language) for item in value[:_MAX_ITEMS])
    if isinstance(value, bool):
        return say(language, "yes") if value else say(language, "no")
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _object_line(value: dict[str, JSON], language: str) -> str:
    """Return one object of a list on one line: its title, then the rest in brackets."""
    filled = {key: inner for key, inner in value.items() if inner not in (None, "", [], {})}
    title = next((key for key in _TITLES if isinstance(filled.get(key), str)), None)
    rest = [
        f"{' '.join(words(key))}: {_inline(inner, language)}" for key, inner in filled.items() if key != title
    ]
    if title is None:
        return ", ".join(rest)
    head = _inline(filled[title], language)
    return f"{head} ({', '.join(rest)})" if rest else head


def found_nothing(result: str) -> bool:
    """Tell whether a tool searched and found nothing."""
    data = _field(result, "data")
    return isinstance(data, dict) and data.get("count") == 0


def is_done(result: str) -> bool:
    """Tell whether a tool did what it was asked, and asks nothing itself."""
    data = _field(result, "data")
    return _field(result, "ok") is True and not (isinstance(data, dict) and data.get("question"))


def is_not_meant(result: str) -> bool:
    """Tell whether a tool had nothing to work with: no search engine, no unit of that name."""
    error = _field(result, "error")
    return isinstance(error, dict) and str(error.get("code")).startswith(("NOT_SET_UP", "UNKNOWN_"))


def _field(result: str, name: str) -> JSON:
    try:
        value = json.loads(result)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None


# Questions


def question(parameter: Parameter, language: str) -> str:
    """Return the question for a parameter that a tool needs."""
    if parameter.kind is Kind.TEXT and "name" in words(parameter.name):
        return say(language, "Which one do you mean? Say its name.")
    choices = parameter.schema.get("enum")
    listed = " · ".join(str(one) for one in choices[:_MAX_ITEMS]) if isinstance(choices, list) else ""
    which = say(language, "Which of these do you mean?")
    address = say(language, "Which address do you mean?")
    asked = {
        Kind.PLACE: say(language, "Which place do you mean?"),
        Kind.WHEN: say(language, "For which date or time?"),
        Kind.EXPRESSION: say(language, "What should I calculate?"),
        Kind.NUMBER: say(language, "Which number do you mean?"),
        Kind.FILE: say(language, "Which file do you mean?"),
        Kind.URL: address,
        Kind.EMAIL: address,
        Kind.ENUM: f"{which} {listed}".strip(),
        Kind.FLAG: say(language, "Yes or no?"),
        Kind.LIST: say(language, "What things? You can name several, with commas between them."),
    }
    return asked.get(parameter.kind) or say(language, "What text do you mean?")


# Without a tool


def talk_text(talk: Talk | None, name: str, examples: Sequence[str], language: str) -> str:
    """Return a short answer to small talk, or to what was not understood."""
    if talk is None:
        return _with_help(say(language, "I did not understand that."), examples, language)
    if talk is Talk.GREETING:
        hello = say(language, "Hello, {name}!", name=name) if name else say(language, "Hello!")
        helping = say(language, "How can I help?")
        return "\n\n".join(part for part in (f"{hello} {helping}", _shown(examples, language)) if part)
    if talk is Talk.ABOUT:
        text = say(
            language,
            "I am an assistant in its simple built-in mode: I understand short requests. Whoever runs me can "
            "connect a language model.",
        )
        return _with_help(text, examples, language)
    return {
        Talk.THANKS: say(language, "You're welcome!"),
        Talk.GOODBYE: say(language, "See you!"),
        Talk.NIGHT: say(language, "Good night!"),
        Talk.NOD: "👍",
        Talk.ANSWER: say(language, "I am not waiting for an answer just now. What can I do for you?"),
        Talk.NEVER_MIND: say(language, "All right, never mind."),
        Talk.SORRY: say(language, "No problem!"),
        Talk.WARMTH: "🤗",
    }[talk]


def facts_text(facts: Sequence[str], language: str) -> str:
    """Return what the person asked to be remembered."""
    told = "\n".join(_inline(fact, language) for fact in facts[:_MAX_QUOTED])
    return say(language, "You told me: {facts}", facts=told)


def unknown_text(parts: Sequence[str], language: str) -> str:
    """Name the parts of a message that nothing was done about, while something else was."""
    listed = ", ".join(f"“{_inline(part[:_LONGEST_QUOTE], language)}”" for part in parts[:_MAX_QUOTED])
    return say(language, "This part I did not understand: {part}", part=listed)


def unclear_when_text(language: str) -> str:
    why = say(language, "I do not understand when.")
    return f"{why} " + say(language, "Say it as “tomorrow at 9”, “in 20 minutes” or “every Monday at 8”.")


def withheld_text(parts: Sequence[str], language: str) -> str:
    """Return the answer to a message that would change something, but is no clear order."""
    text = say(language, "I changed nothing. If you want something done, tell me in one short sentence.")
    return "\n\n".join((text, unknown_text(parts, language))) if parts else text


def lacking_text(count: int, language: str) -> str:
    """Return the answer to the choice of a line that the list shown last does not have."""
    return say(
        language,
        "I changed nothing: I cannot tell which line you mean. The list above has {count}.",
        count=count,
    )


def example_of(offer: Offer, phrases: Sequence[str], language: str) -> str:
    """Return a phrase of a tool as a whole message in this language, its slots filled with samples."""
    samples = {one.name: _sample(one, language) for one in offer.parameters}
    wants_slots = any(samples[one.name] for one in offer.required)
    for phrase in map(
        without_given, (one for one in phrases if not any(f"={given}}}" in one for given in (IT, SAME, ALL)))
    ):
        slots = re.findall(r"\{(\w+)\}", phrase)
        if _TAKES_AWAY.search(fold(phrase)) or bool(slots) != wants_slots:
            continue
        if detect_language(re.sub(r"\{\w+\}", "", phrase)) == language and all(map(samples.get, slots)):
            return re.sub(r"\{(\w+)\}", lambda slot: samples[slot[1]], phrase)
    return ""


def _sample(parameter: Parameter, language: str) -> str:
    if parameter.kind is Kind.EXPRESSION:
        return "12 × 7"
    if parameter.kind is Kind.PLACE:
        return say(language, "Tokyo")
    if parameter.kind is Kind.LIST and "items" in words(parameter.name):
        return say(language, "milk and bread")
    takes_any_text = parameter.is_prose and set(words(parameter.name)) & _FREE_TEXT
    return say(language, "buy bread") if takes_any_text else ""


def _shown(examples: Sequence[str], language: str) -> str:
    quoted = " · ".join(f"“{one}”" for one in examples)
    return say(language, "You can write, for example: {examples}", examples=quoted) if examples else ""


def _with_help(text: str, examples: Sequence[str], language: str) -> str:
    said = " ".join(part for part in (text, _shown(examples, language)) if part)
    more = say(language, "Write /help for everything I can do.")
    return f"{said}\n\n{more}"
