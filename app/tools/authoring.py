"""Helpers for authors of skills: sentences in the person's language, and lists with numbered rows."""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.messages import JSON
from app.search.words import ALL_STOP_WORDS, holds, spaced, stem, words
from app.text import on_one_line
from app.tools.tool import PersonStore, ToolContext

Table = Mapping[str, Mapping[str, str]]  # language → name of a sentence → the sentence, with `{values}`


def read_said(scripts_file: str, **limits: int) -> Table:
    """Return the table `said` of a skill's assets/sentences.yaml, for a file of its scripts (`__file__`).

    Where a sentence names one of the `limits`, such as {MAX_TEXT}, its value stands.
    """
    table: Table = _asset(scripts_file, "sentences.yaml", limits)["said"]
    return table


def read_words(scripts_file: str) -> dict[Any, Any]:
    """Return a skill's assets/words.yaml: the words by which its scripts understand what a person says."""
    return _asset(scripts_file, "words.yaml", {})


def _asset(scripts_file: str, file: str, limits: Mapping[str, int]) -> dict[Any, Any]:
    text = (Path(scripts_file).parents[1] / "assets" / file).read_text("utf-8")
    for name, value in limits.items():
        text = text.replace(f"{{{name}}}", str(value))
    content: dict[Any, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return content


class Sentences:
    """A skill's sentences in one `language`; English where the table has none in the person's."""

    def __init__(self, table: Table, context: ToolContext | None) -> None:
        language = context.language if context is not None else "en"
        self.language = language if language in table else "en"
        self._said = table[self.language]

    def __call__(self, name: str, /, **values: object) -> str:
        return self._said[name].format(**values)

    def failed(
        self, name: str, /, *, code: str = "", hint: str = "", numbers: Sequence[int] = (), **values: object
    ) -> dict[str, JSON]:
        """Return a failed result: the sentence `name`, its code too, with the one named `hint_<name>`.

        `code`: another one than the name; `hint`: another one than the table's, in the person's language;
        `numbers`: of the lines that it lists.
        """
        hint = hint or self._said.get(f"hint_{name}", "").format(**values)
        error = {"code": code or name, "message": self(name, **values), "hint": hint}
        return {"ok": False, "error": error, **({"meta": {"numbers": list(numbers)}} if numbers else {})}


def rehearsed(tool: Callable[..., dict[str, JSON]]) -> Callable[..., Awaitable[JSON]]:
    """Return a guard for a tool that only changes its store, and then tells how to undo it.

    Where it would change nothing, nobody is asked.
    """

    async def guard(args: dict[str, JSON], context: ToolContext) -> JSON:
        result = await asyncio.to_thread(tool, **args, context=context)
        return None if "undo" in result else result

    return guard


def cut(text: str, limit: int = 200) -> str:
    """Put a text on one line, of at most so many characters."""
    return on_one_line(text, limit)


MOST_READ = 5000
SET_ASIDE_SECONDS = 7 * 24 * 3600.0
_LAST = spaced("ultimo ultima last latest newest reciente recent")
_ALL = spaced("todo toda todos todas tudo all everything")
_NUMBERING = spaced("numero number num nro one ones them")
_ARTICLES = spaced("a as de el la las lo los mi minha minhas mis my o of os que that the")
_LONGEST_NUMBER = 6
_LONGEST_WANTED = 1000  # characters by which something is looked for


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a list: its number, and what was kept in it."""

    key: str
    number: int
    fields: dict[str, JSON]

    @property
    def text(self) -> str:
        return str(self.fields.get("text") or "")


class Ledger:
    """The rows of `context.store` under a prefix, as one call of a `def` tool sees them.

    A number is a row's place in the order of adding. What is removed leaves an empty row, so that all others
    keep theirs; only beyond `most_rows` rows the empty ones go, and numbers start anew. Each row has a key of
    its own: two calls that add at once never write the same one.
    """

    def __init__(self, store: PersonStore, prefix: str, most_rows: int = 4000) -> None:
        self._store = store
        self._prefix = prefix
        self._most_rows = most_rows
        self._rows: dict[str, dict[str, JSON]] = store.list(prefix, limit=MOST_READ)

    @property
    def entries(self) -> list[Entry]:
        """Return the rows, the newest first."""
        return [entry for entry in self.rows if not entry.fields.get("deleted")]

    @property
    def rows(self) -> list[Entry]:
        """Return the rows, the newest first; removed ones have `deleted` in their fields."""
        numbered = enumerate(sorted(self._rows.items()), start=1)
        return [Entry(key, number, fields) for number, (key, fields) in numbered][::-1]

    def add(self, **fields: JSON) -> Entry:
        """Keeps a row, with the time as `created` in whole seconds."""
        self.set_aside_rows()  # what was there for a week goes
        if len(self._rows) >= self._most_rows:
            for row in self.rows:
                if row.fields.get("deleted"):
                    self.erase(row)
        now = time.time_ns()
        key = f"{self._prefix}{now:020d}:{secrets.token_hex(4)}"
        self._put(key, {**fields, "created": now // 10**9})
        return next(entry for entry in self.rows if entry.key == key)

    def change(self, entry: Entry, **fields: JSON) -> Entry:
        """Write other values into some fields of a row and return it; None takes a field out."""
        changed = {name: value for name, value in {**entry.fields, **fields}.items() if value is not None}
        self._put(entry.key, changed)
        return Entry(entry.key, entry.number, changed)

    def remove(self, entry: Entry) -> None:
        """Forgets what a row holds."""
        self._put(entry.key, {"deleted": True})

    def set_aside(self, entry: Entry) -> None:
        """Remove a row so that `bring_back` returns it for a week, if its room is not needed before."""
        self._put(entry.key, {"deleted": True, "undo": {**entry.fields, "removed": time.time()}})

    def set_aside_rows(self) -> list[Entry]:
        """Return the rows that can be brought back, with the fields they had; older ones lose them."""
        kept: list[Entry] = []
        for row in self.rows:
            had = row.fields.get("undo")
            if not isinstance(had, dict) or "removed" not in had:
                continue
            if had["removed"] < time.time() - SET_ASIDE_SECONDS:
                self.remove(row)
            else:
                kept.append(Entry(row.key, row.number, had))
        return kept

    def bring_back(self, row: Entry) -> Entry:
        """Put a row of `set_aside_rows` back in its place."""
        return self.change(row, removed=None)

    def erase(self, entry: Entry) -> None:
        """Leaves nothing of a row; for lists whose numbers nobody is shown."""
        self._store.delete(entry.key)
        del self._rows[entry.key]

    def _put(self, key: str, fields: dict[str, JSON]) -> None:
        self._rows[key] = fields
        self._store.put(key, fields)


def meant(entries: Sequence[Entry], wanted: str, nouns: Collection[str] = ()) -> list[Entry]:
    """Return the entries, newest first, that somebody may mean: by number, as the last one, or by words.

    `nouns`: folded words for the thing itself ("note", "notes"), which tell nothing.
    """
    said = _telling(wanted, nouns)
    if len(said) == 1 and said[0].isdecimal() and len(said[0]) <= _LONGEST_NUMBER:
        return [entry for entry in entries if entry.number == int(said[0])]
    if said and set(said) <= _LAST:
        return list(entries[:1])
    whole = folded(wanted[:_LONGEST_WANTED])
    exact = [entry for entry in entries if folded(entry.text[:_LONGEST_WANTED]) == whole]
    return exact if len(exact) == 1 else matching(entries, wanted, nouns)


def matching(entries: Iterable[Entry], query: str, nouns: Collection[str] = ()) -> list[Entry]:
    """Return the entries that hold all the telling words, whatever their accents, case and endings."""
    stems = set(map(stem, _telling(query, nouns) or words(query[:_LONGEST_WANTED])))
    return [entry for entry in entries if stems and holds(entry.text, stems)]


def holds_more(text: str, wanted: str, nouns: Collection[str] = ()) -> bool:
    """Tell whether words name a part of a text only: "my blood group" of a fact that holds two things."""
    named = set(_telling(wanted, nouns))
    numbers = {word for word in named if word.isdecimal()}
    is_number = bool(numbers) and (numbers == named or not numbers.issubset(words(text)))
    is_whole = is_number or (bool(named) and named <= _LAST)
    parts = [set(_telling(part, ())) for part in re.split(r"[;,]\s+|\s(?:y|e|and)\s", text)]
    return len(parts) > 1 and not is_whole and any(2 * len(part & named) < len(part) for part in parts)


def means_all(wanted: str, nouns: Collection[str] = ()) -> bool:
    """Return True if the words name nothing, or everything there is."""
    small = (*nouns, *_NUMBERING, *_ARTICLES)
    return {word for word in words(wanted[:_LONGEST_WANTED]) if word not in small} <= _ALL


def folded(text: str) -> str:
    """Words without accents, case and punctuation, to compare."""
    return " ".join(words(text))


def _telling(text: str, nouns: Collection[str]) -> list[str]:
    small = (*nouns, *_NUMBERING)
    found = words(text[:_LONGEST_WANTED])
    return [word for word in found if word not in ALL_STOP_WORDS and word not in small]
