"""Tool results as text for a person, made without a model."""

import json
from collections.abc import Iterable, Sequence

from app.i18n import say
from app.messages import JSON, mapping
from app.search.words import spaced, words
from app.text import on_one_line

_MAX_ITEMS = 20
_MAX_DEPTH = 3
_LONGEST_VALUE = 400
_LONGEST_ANSWER = 6_000
# Codes of the engine, and of a server's tool that failed: their hints are meant for a model.
_FOR_MODELS = spaced(
    "BAD_REQUEST DENIED INTERNAL NOT_OFFERED NO_TTY OUTCOME_UNKNOWN OUTPUT_TOO_LARGE TIMEOUT TOOL_ERROR"
    " UNAVAILABLE UNKNOWN_TOOL"
)
# their messages tell of our own parts
_ENGINE_ONLY = spaced("INTERNAL NOT_OFFERED OUTPUT_TOO_LARGE UNKNOWN_TOOL")


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
    error = mapping(value.get("error"))
    code = str(error.get("code"))
    message = str(error.get("message") or "").strip() or say(language, "the tool gave no reason")
    is_ours = not message[0].isupper()  # words of the engine
    if own := _own_failure(code, mapping(value.get("meta")), is_ours, language):
        return own
    hint = "" if code in _FOR_MODELS else str(error.get("hint") or "").strip()
    failed = say(language, "That did not work")
    told = f"{failed}{':' if is_ours else '.'} {message}"
    gap = "\n\n" if "\n" in told else "\n"  # a line right below the last of a list would belong to it
    return f"{told}{gap}{hint}" if hint and hint not in message else told


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
        yield f"{indent}- {inline(data, language)}"
    elif isinstance(data, dict):
        for key, value in list(data.items())[:_MAX_ITEMS]:
            label = " ".join(words(str(key))) or str(key)
            if isinstance(value, dict | list) and value:
                yield f"{indent}- **{label}**:"
                yield from _lines(value, language, depth + 1)
            elif value not in (None, "", [], {}):
                yield f"{indent}- **{label}**: {inline(value, language)}"
    else:
        for item in data[:_MAX_ITEMS]:
            yield f"{indent}- {inline(item, language)}"
        if len(data) > _MAX_ITEMS:
            yield indent + say(language, "… and {count} more", count=len(data) - _MAX_ITEMS)


def inline(value: JSON, language: str) -> str:
    if isinstance(value, dict):
        filled = ((key, inner) for key, inner in value.items() if inner not in (None, "", [], {}))
        return ", ".join(f"{' '.join(words(key))}: {inline(inner, language)}" for key, inner in filled)
    if isinstance(value, list):
        return ", ".join(inline(item, language) for item in value[:_MAX_ITEMS])
    if isinstance(value, bool):
        return say(language, "yes") if value else say(language, "no")
    return on_one_line(str(value), _LONGEST_VALUE)


def found_nothing(result: str) -> bool:
    """Tell whether a tool searched and found nothing."""
    return mapping(_read(result).get("data")).get("count") == 0


def is_done(result: str) -> bool:
    """Tell whether a tool did what it was asked, and asks nothing itself."""
    read = _read(result)
    return read.get("ok") is True and not mapping(read.get("data")).get("question")


def is_not_meant(result: str) -> bool:
    """Tell whether a tool had nothing to work with: no search engine, no unit of that name."""
    code = mapping(_read(result).get("error")).get("code")
    return str(code).startswith(("NOT_SET_UP", "UNKNOWN_"))


def _read(result: str) -> dict[str, JSON]:
    try:
        return mapping(json.loads(result))
    except ValueError:
        return {}
