"""`recado eval routing` and `recado eval recall`: quality of both indexes on JSONL files."""

import asyncio
import json
import math
import tempfile
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from statistics import median
from typing import TypeVar

import orjson

from app.cli.output import table
from app.errors import RecadoError
from app.memory.history import AT_ONCE
from app.memory.recall import rank, read_question, weights
from app.messages import JSON
from app.search.index import Document, ToolIndex
from app.store import recall
from app.store.database import Database, insert

T = TypeVar("T")

OFFERED = 8
LONGEST_LINE = 1024 * 1024
_HEAD = ("LANGUAGE", "QUERIES", "COMPLETE@8", "RECALL@8", "HIT@1", "MS P50")
_TOOL_FORM = (
    'a tool is {"tool_id": …, "name": …, "description": …, "server": …, "parameters": {name: description}}'
)
_QUERY_FORM = 'a query is {"query": …, "relevant": [tool_id, …], "lang": …}, perhaps with "groups"'
_EXAMPLE_FORM = 'an example is {"tool_id": …, "query": …, "lang": …}'


@dataclass(frozen=True, slots=True)
class _Query:
    """A message with the tools it needs: one of each group or, without groups, every one."""

    text: str
    language: str
    groups: tuple[frozenset[str], ...]


@dataclass(slots=True)
class _Tally:
    """Sums over queries."""

    complete: int = 0
    recall: float = 0.0
    first: int = 0
    milliseconds: list[float] = field(default_factory=list)

    def count(self, query: _Query, found: Sequence[str], milliseconds: float) -> None:
        met = sum(not group.isdisjoint(found) for group in query.groups)
        self.complete += met == len(query.groups)
        self.recall += met / len(query.groups)
        self.first += any(found[0] in group for group in query.groups) if found else False
        self.milliseconds.append(milliseconds)

    def figures(self) -> dict[str, JSON]:
        count = len(self.milliseconds)
        return {
            "queries": count,
            "complete_at_8": round(100 * self.complete / count, 2),
            "recall_at_8": round(100 * self.recall / count, 2),
            "hit_at_1": round(100 * self.first / count, 2),
            "ms_p50": round(median(self.milliseconds), 3),
        }


def routing_figures(catalog: Path, queries: Path, examples: Path | None, *, as_json: bool) -> str:
    """Return shares in percent over all queries and each language: complete@8, recall@8 and hit@1.

    Raise RecadoError with file and line for a row that cannot be read.
    """
    documents = list(_documents(catalog, examples))
    started = time.perf_counter()
    index = ToolIndex(documents)
    build_s = time.perf_counter() - started
    tallies: dict[str, _Tally] = {}
    overall = _Tally()
    unknown = 0
    for query in _rows(queries, _query):
        started = time.perf_counter()
        found = [hit.id for hit in index.spread(query.text, limit=OFFERED)]
        milliseconds = 1000 * (time.perf_counter() - started)
        unknown += not all(any(id in index for id in group) for group in query.groups)
        for tally in (overall, tallies.setdefault(query.language, _Tally())):
            tally.count(query, found, milliseconds)
    if not tallies:
        raise RecadoError(f"{queries} holds no query; {_QUERY_FORM}")
    languages = {language: tallies[language].figures() for language in sorted(tallies)}
    figures = overall.figures() | {"build_s": round(build_s, 3), "tools": len(index)}
    figures |= {"unknown_tools": unknown, "languages": languages}
    return json.dumps(figures, ensure_ascii=False, indent=2) if as_json else _shown(figures)


def _shown(figures: Mapping[str, JSON]) -> str:
    rows = [_row(language, each) for language, each in figures["languages"].items()]
    if len(rows) > 1:
        rows.append(_row("all", figures))
    lines = [table(_HEAD, rows), "", f"{figures['tools']} tools, indexed in {figures['build_s']:.2f} s"]
    if figures["unknown_tools"]:
        lines.append(f"{figures['unknown_tools']} queries need tools that the catalogue does not have")
    return "\n".join(lines)


def _row(language: str, figures: Mapping[str, JSON]) -> tuple[str, ...]:
    shares = (f"{figures[name]:.1f}" for name in ("complete_at_8", "recall_at_8", "hit_at_1"))
    return language or "-", str(figures["queries"]), *shares, f"{figures['ms_p50']:.2f}"


def _documents(catalog: Path, examples: Path | None) -> Iterator[Document]:
    documents = {document.id: document for document in _rows(catalog, _document)}
    if not documents:
        raise RecadoError(f"{catalog} holds no tool; {_TOOL_FORM}")
    phrases: dict[str, list[str]] = {}
    for id, phrase in _rows(examples, _example) if examples else ():
        if id in documents:
            phrases.setdefault(id, []).append(phrase)
    for id, document in documents.items():
        yield replace(document, examples=tuple(phrases.get(id, ())))


def _rows(path: Path, read: Callable[[dict[str, JSON]], T]) -> Iterator[T]:
    """Yield what `read` makes of each line; empty lines are skipped."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
                row = line.removeprefix(BOM_UTF8) if number == 1 else line
                if row.strip():
                    yield _read(row, read, f"{path}, line {number}")
    except OSError as error:
        raise RecadoError(f"{path} cannot be read: {error.strerror}; name a JSONL file") from error


def _read(line: bytes, read: Callable[[dict[str, JSON]], T], where: str) -> T:
    if len(line) > LONGEST_LINE:
        raise RecadoError(f"{where}: longer than 1 MiB; write one JSON object a line")
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecadoError(f"{where}: no JSON ({error}); write one JSON object a line") from None
    try:
        return read(row if isinstance(row, dict) else {})
    except ValueError as error:
        raise RecadoError(f"{where}: {error}") from None


def _document(row: dict[str, JSON]) -> Document:
    parameters = row.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise ValueError(f"parameters must be an object, name to description; {_TOOL_FORM}")
    return Document(
        id=_text(row, "tool_id", _TOOL_FORM),
        name=_text(row, "name", _TOOL_FORM),
        description=_text(row, "description", _TOOL_FORM, usual=""),
        category=_text(row, "server", _TOOL_FORM, usual=""),
        parameters={name: _text(parameters, name, _TOOL_FORM, usual="") for name in parameters},
    )


def _query(row: dict[str, JSON]) -> _Query:
    groups = row.get("groups") or [[id] for id in _ids(row.get("relevant"))]
    if not isinstance(groups, list):
        raise ValueError(f"groups must be a list of lists of tool ids; {_QUERY_FORM}")
    return _Query(
        _text(row, "query", _QUERY_FORM),
        _text(row, "lang", _QUERY_FORM, usual=""),
        tuple(frozenset(_ids(group)) for group in groups),
    )


def _example(row: dict[str, JSON]) -> tuple[str, str]:
    return _text(row, "tool_id", _EXAMPLE_FORM), _text(row, "query", _EXAMPLE_FORM)


def _ids(value: JSON) -> list[str]:
    if isinstance(value, list) and value and all(isinstance(id, str) for id in value):
        return value
    raise ValueError(f"relevant, and each of groups, must be a list of one tool id or more; {_QUERY_FORM}")


def _text(row: Mapping[str, JSON], name: str, form: str, usual: str | None = None) -> str:
    value = row.get(name)
    if value is None:
        value = usual
    if isinstance(value, str) and (value or usual is not None):
        return value
    raise ValueError(f"{name} must be a text; {form}")


_MESSAGE_FORM = 'a message is {"person": …, "id": …, "at": Unix seconds or ISO 8601, "who": …, "text": …}'
_RECALL_FORM = 'a query is {"person": …, "query": …, "relevant": [id, …]}'
_RECALLED = 10


@dataclass(frozen=True, slots=True)
class _Message:
    person: str
    id: str
    at: float
    who: str
    text: str


def recall_figures(history: Path, queries: Path, *, as_json: bool) -> str:
    """Return how much of what is relevant is among the ten messages that recall finds first, in percent.

    Raise RecadoError with file and line for a row that cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_recall_figures(Path(folder) / "recado.db", history, queries, as_json=as_json))


async def _recall_figures(database: Path, history: Path, queries: Path, *, as_json: bool) -> str:
    store = Database(database)
    await store.open()
    try:
        messages = list(_rows(history, read_message))
        ids = await store.tx(lambda conn: write_messages(conn, messages))
        started = time.perf_counter()
        while await store.tx(lambda conn: recall.index(conn, weights, AT_ONCE)):
            continue
        build_s = time.perf_counter() - started
        shares: list[float] = []
        milliseconds: list[float] = []
        for person, text, relevant in _rows(queries, _recall_query):
            started = time.perf_counter()
            ranked = await store.tx(partial(rank, person=person, question=read_question(text)))
            milliseconds.append(1000 * (time.perf_counter() - started))
            found = {ids[id] for id, _ in ranked[:_RECALLED]}
            shares.append(len(relevant & found) / len(relevant))
    finally:
        await store.close()
    if not shares:
        raise RecadoError(f"{queries} holds no query; {_RECALL_FORM}")
    slowest = sorted(milliseconds)[math.ceil(0.95 * len(milliseconds)) - 1]
    figures = {
        "queries": len(shares),
        "recall_at_10": round(100 * sum(shares) / len(shares), 2),
        "complete_at_10": round(100 * sum(share == 1 for share in shares) / len(shares), 2),
        "ms_p95": round(slowest, 3),
        "build_s": round(build_s, 3),
    }
    if as_json:
        return json.dumps(figures, indent=2)
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in figures.items())


def write_messages(conn: Connection, messages: Sequence[_Message]) -> dict[int, str]:
    """Write the messages as if people had said them, in the order of time; return their ids by row."""
    for person in dict.fromkeys(one.person for one in messages):
        insert(conn, "people", id=person, realm="simulator", created_at=0)
        insert(conn, "conversations", id=person, person_id=person, channel="simulator", created_at=0)
    rows = {}
    for one in sorted(messages, key=lambda one: one.at):
        rows[
            insert(
                conn,
                "messages",
                person_id=one.person,
                conversation_id=one.person,
                direction="out" if one.who == "assistant" else "in",
                kind="text",
                text=f"{one.who}: {one.text}",
                at=one.at,
            )
        ] = one.id
    return rows


def read_message(row: dict[str, JSON]) -> _Message:
    at = row.get("at", 0)
    try:
        moment = datetime.fromisoformat(at).timestamp() if isinstance(at, str) else float(at)
    except (ValueError, TypeError):
        raise ValueError(f"at is no time; {_MESSAGE_FORM}") from None
    texts = (_text(row, name, _MESSAGE_FORM, usual="") for name in ("who", "text"))
    return _Message(_text(row, "person", _MESSAGE_FORM), _id(row.get("id")), moment, *texts)


def _recall_query(row: dict[str, JSON]) -> tuple[str, str, frozenset[str]]:
    relevant = row.get("relevant")
    if not isinstance(relevant, list) or not relevant:
        raise ValueError(f"relevant must be a list of one id or more; {_RECALL_FORM}")
    query = _text(row, "query", _RECALL_FORM)
    return _text(row, "person", _RECALL_FORM), query, frozenset(map(_id, relevant))


def _id(value: JSON) -> str:
    if isinstance(value, str | int) and value != "":
        return str(value)
    raise ValueError(f"id must be a text or a number; {_MESSAGE_FORM}")
