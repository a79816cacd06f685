"""The intent of a message, and reading it tolerantly from a classifier's answer."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.messages import JSON
from app.text import fold

MOST_CATEGORIES = 6
MOST_PHRASES = 8
_LONGEST_PHRASE = 200
_LONGEST_ANSWER = 4_000
_LONGEST_PROSE = 400

_CATEGORY_KEYS = ("categories", "category", "categorias", "tools", "intents", "intent")
_PHRASE_KEYS = ("phrases", "phrase", "queries", "subtasks")
_LANGUAGE_KEYS = ("language", "lang", "idioma")
_LANGUAGES = {"english": "en", "spanish": "es", "espanol": "es", "castellano": "es", "portuguese": "pt"}
_NOTHING = {"", "none", "null", "nothing", "no", "n/a", "[]", "{}", "ninguna", "ninguno", "nenhuma", "nenhum"}

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"^.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT_START = re.compile(r"<think(?:ing)?>.*$", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[A-Za-z]*\s*(.*?)(?:```|$)", re.DOTALL)
_BROKEN_LIST = re.compile(r"categor\w*[\"']?\s*[:=]\s*(.*?)(?:\]|\}|\n|$)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a message.

    `categories`: names of skills and servers that exist; `phrases`: one search phrase per sub-task;
    `language`: two letters if the model told it. `source`: "model"; "continued" if the message clearly goes
    on with the conversation; "sticky" for the conversation's categories if the model named none; "index" if
    the model failed; "none" if the model says that nothing fits.
    """

    categories: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    language: str | None = None
    source: Literal["model", "continued", "sticky", "index", "none"] = "none"

    @property
    def is_clear(self) -> bool:
        """Return whether the categories are known, so that the words decide little more."""
        return self.source in ("model", "continued")


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of an answer without unknown names."""

    categories: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    language: str | None = None


def read_intent(text: str, known: Collection[str]) -> Reading | None:
    """Read JSON (fenced, bare or amid prose), a JSON list or plain names; return None if it is none of them.

    An empty list, `none` and names that are not `known` are valid and give no categories.
    """
    answer = _without_thoughts(text[:_LONGEST_ANSWER])
    names = {_key(name): name for name in known}
    if answer.strip("` \n.").lower() in _NOTHING and answer:
        return Reading()
    for value in json_values(answer):
        reading = _reading(value, names)
        if reading is not None:
            return reading
    found = _plain_names(answer, names)
    return Reading(found) if found else None


def _without_thoughts(text: str) -> str:
    return _THOUGHT_START.sub("", _THOUGHT_END.sub("", _THOUGHT.sub("", text))).strip()


def json_values(text: str) -> Iterator[JSON]:
    """Yield every JSON object or list in `text`, fenced ones first."""
    decoder = json.JSONDecoder()
    for part in [*_FENCE.findall(text), text]:
        position = _next_bracket(part, 0)
        while position >= 0:
            try:
                value, end = decoder.raw_decode(part, position)
            except (ValueError, RecursionError):
                position = _next_bracket(part, position + 1)
                continue
            yield value
            position = _next_bracket(part, end)


def _next_bracket(text: str, start: int) -> int:
    found = [at for at in (text.find("{", start), text.find("[", start)) if at >= 0]
    return min(found, default=-1)


def _reading(value: JSON, names: Mapping[str, str]) -> Reading | None:
    if isinstance(value, list):
        return None if any(_is_object_list(item) for item in value) else Reading(_known(value, names))
    if not isinstance(value, dict):
        return None
    fields = {fold(str(key)).strip(): inner for key, inner in value.items()}
    key = next((key for key in _CATEGORY_KEYS if key in fields), None)
    if key is None:
        return Reading() if not fields else None
    return Reading(
        categories=_known(fields[key], names),
        phrases=_phrases(_first(fields, _PHRASE_KEYS)),
        language=_language(_first(fields, _LANGUAGE_KEYS)),
    )


def _is_object_list(item: JSON) -> bool:
    return isinstance(item, list) or (isinstance(item, dict) and not _texts(item))


def _first(fields: dict[str, JSON], keys: Iterable[str]) -> JSON:
    return next((fields[key] for key in keys if key in fields), None)


def _known(value: JSON, names: Mapping[str, str]) -> tuple[str, ...]:
    found = (names.get(_key(text)) for text in _texts(value))
    return tuple(dict.fromkeys(name for name in found if name is not None))[:MOST_CATEGORIES]


def _texts(value: JSON) -> list[str]:
    """Return the names in a list, a comma-separated text, a mapping by name, or objects with a name."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, dict):
        named = next(
            (value[key] for key in ("name", "category", "id") if isinstance(value.get(key), str)), ""
        )
        if named:
            return [named]
        return [key for key, inner in value.items() if isinstance(inner, bool | int | float) and inner]
    if isinstance(value, list):
        return [text for item in value for text in ([item] if isinstance(item, str) else _texts(item))]
    return []


def _phrases(value: JSON) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = (" ".join(item.split()) for item in listed if isinstance(item, str))
    return tuple(dict.fromkeys(text[:_LONGEST_PHRASE] for text in texts if text))[:MOST_PHRASES]


def _language(value: JSON) -> str | None:
    if not isinstance(value, str):
        return None
    folded = fold(value).strip()
    if folded in _LANGUAGES:
        return _LANGUAGES[folded]
    code = re.split(r"[-_]", folded)[0]
    return code if re.fullmatch(r"[a-z]{2}", code) else None


def _plain_names(text: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return known names that are whole words of a short answer, or of a list that was cut or is no JSON."""
    broken = _BROKEN_LIST.search(text)
    if broken is None and len(text) > _LONGEST_PROSE:
        return ()
    part = fold(broken.group(1) if broken else text)
    found = ((_place(key, part), name) for key, name in names.items())
    return tuple(name for place, name in sorted(found) if place >= 0)[:MOST_CATEGORIES]


def _place(key: str, text: str) -> int:
    pattern = re.escape(key).replace(r"\-", "[-_ ]")
    match = re.search(rf"(?<![\w-]){pattern}(?![\w-])", text)
    return match.start() if match else -1


def _key(name: str) -> str:
    """Return a name without case, accents and kind of separator, to compare it."""
    if len(name) >= 100:
        return fold(name)
    return re.sub(r"(?<=\w)[_ ](?=\w)", "-", fold(name).strip().strip("\"'`*."))
