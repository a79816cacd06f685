"""The intent of a message, and reading it tolerantly from a classifier's answer."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
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
_NOTHING = {"none", "null", "nothing", "no", "n/a", "[]", "{}", "ninguna", "ninguno", "nenhuma", "nenhum"}


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a message.

    `categories`: names of skills and servers that exist; `phrases`: one search phrase per sub-task.
    `source`: "model"; "continued" if the message clearly goes on with the conversation; "sticky" for the
    conversation's categories if the model named none; "index" if the model failed; "none" if the model says
    that nothing fits.
    """

    categories: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    source: Literal["model", "continued", "sticky", "index", "none"] = "none"

    @property
    def is_clear(self) -> bool:
        """Return whether the categories are known, so that the words decide little more."""
        return self.source in ("model", "continued")


def read_intent(text: str, known: Collection[str]) -> Intent | None:
    """Read JSON (fenced, bare or amid prose), a JSON list or plain names; return None if it is none of them.

    An empty list, `none` and names that are not `known` are valid and give no categories.
    """
    answer = text[:_LONGEST_ANSWER]
    names = {_key(name): name for name in known}
    if answer.strip("` \n.").lower() in _NOTHING:
        return Intent()
    for value in json_values(answer):
        fields: Mapping[str, JSON] = {"categories": value}
        if isinstance(value, dict):
            fields = {fold(key).strip(): inner for key, inner in value.items()}
        if not value or any(key in fields for key in _CATEGORY_KEYS):
            return _intent(_known(_texts(_first(fields, _CATEGORY_KEYS)), names), fields)
    found = _plain_names(answer, names)
    return _intent(found, {}) if found else None


def _intent(categories: tuple[str, ...], fields: Mapping[str, JSON]) -> Intent:
    phrases = _first(fields, _PHRASE_KEYS)
    listed = phrases if isinstance(phrases, list) else [phrases]
    texts = (" ".join(item.split())[:_LONGEST_PHRASE] for item in listed if isinstance(item, str))
    first = tuple(dict.fromkeys(filter(None, texts)))[:MOST_PHRASES]
    return Intent(categories, first, "model" if categories else "none")


def json_values(text: str) -> Iterator[JSON]:
    """Yield every JSON object or list in a text."""
    decoder, position = json.JSONDecoder(), 0
    while start := re.compile(r"[{\[]").search(text, position):
        try:
            value, position = decoder.raw_decode(text, start.start())
        except ValueError:
            position = start.end()
        except RecursionError:  # thousands of brackets: to try each takes seconds
            return
        else:
            yield value


def _first(fields: Mapping[str, JSON], keys: tuple[str, ...]) -> JSON:
    return next((fields[key] for key in keys if key in fields), None)


def _texts(value: JSON) -> list[str]:
    """Return the words that may be names: of lists, comma-separated texts, objects by or with a name."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, dict):
        return [*(key for key, inner in value.items() if inner), *_texts(list(value.values()))]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _known(texts: list[str], names: Mapping[str, str]) -> tuple[str, ...]:
    found = (names.get(_key(text)) for text in texts)
    return tuple(dict.fromkeys(name for name in found if name is not None))[:MOST_CATEGORIES]


def _plain_names(text: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return known names that are whole words of a short answer, or of a list that was cut or is no JSON."""
    part = fold(text.partition("phrases")[0])
    if len(part) > _LONGEST_PROSE:
        return ()
    found = ((_place(key, part), name) for key, name in names.items())
    return tuple(name for place, name in sorted(found) if place >= 0)[:MOST_CATEGORIES]


def _place(key: str, text: str) -> int:
    pattern = re.escape(key).replace(r"\-", "[-_ ]")
    match = re.search(rf"(?<![\w-]){pattern}(?![\w-])", text)
    return match.start() if match else -1


def _key(name: str) -> str:
    """Return a name without case, accents and kind of separator, to compare it."""
    return re.sub(r"(?<=\w)[_ ](?=\w)", "-", fold(name[:100]).strip().strip("\"'`*."))
