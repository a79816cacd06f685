"""`recado eval routing` and `recado eval recall`: quality of both indexes on JSONL files."""

import asyncio
import math
import tempfile
import time
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from app.cli.database import open_database
from app.cli.output import AsJson, group, show, show_json
from app.errors import RecadoError, first_fault
from app.memory.history import AT_ONCE, rank, read_question, weights
from app.messages import JSON
from app.search.index import Document, ToolIndex
from app.store import recall
from app.store.database import Connection, insert

commands = group()
eval_commands = group(help="Quality on files of examples.")
commands.add_typer(eval_commands, name="eval")

R = TypeVar("R", bound=BaseModel)

OFFERED = 8
RECALLED = 10
Text = Annotated[str, Field(min_length=1)]
Ids = Annotated[list[str], Field(min_length=1)]
RowId = Annotated[Text, BeforeValidator(lambda id: str(id) if isinstance(id, int) else id)]
Moment = Annotated[
    float, BeforeValidator(lambda at: datetime.fromisoformat(at).timestamp() if isinstance(at, str) else at)
]


class _Row(BaseModel):
    """A row of a file; fields that it has beside these are ignored, null means absent."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        return {name: value for name, value in row.items() if value is not None}


class _Tool(_Row):
    tool_id: Text
    name: Text
    description: str = ""
    server: str = ""
    parameters: dict[str, str | None] = {}


class _Example(_Row):
    tool_id: Text
    query: Text


class _Query(_Row):
    """A message with the tools it needs: one of each group or, without groups, every one that is relevant."""

    query: Text
    relevant: Ids = []
    groups: list[Ids] = []
    lang: str = ""

    @model_validator(mode="after")
    def _needs_tools(self) -> "_Query":
        self.groups = self.groups or [[id] for id in self.relevant]
        if not self.groups:
            raise ValueError("relevant, or groups, must name one tool or more")
        return self


class Message(_Row):
    """A row of the history that is searched."""

    person: Text
    id: RowId
    at: Moment = 0.0
    who: str = ""
    text: str = ""


class _RecallQuery(_Row):
    person: Text
    query: Text
    relevant: Annotated[list[RowId], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The share of a query's groups that were met, and whether the first tool is of one of them."""

    language: str
    share: float
    is_hit: bool
    milliseconds: float


@eval_commands.command("routing")
def eval_routing(
    catalog: Annotated[Path, typer.Option(help="The tools, a JSON object a line.")],
    queries: Annotated[Path, typer.Option(help="Messages with the tools that they need.")],
    examples: Annotated[Path | None, typer.Option(help="Example phrases of the tools.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well tools are found.

    Shares in percent, in JSON also for each language. What the index finds for the message alone: no model
    is asked.
    """
    _show(routing_figures(catalog, queries, examples), as_json=as_json)


def routing_figures(catalog: Path, queries: Path, examples: Path | None) -> dict[str, JSON]:
    """Return shares in percent over all queries and each language: complete@8, recall@8 and hit@1.

    Raise RecadoError with file and line for a row that cannot be read.
    """
    documents = list(_documents(catalog, examples))
    started = time.perf_counter()
    index = ToolIndex(documents)
    build_s = time.perf_counter() - started
    outcomes: list[_Outcome] = []
    unknown = 0
    for query in _rows(queries, _Query):
        started = time.perf_counter()
        found = [hit.id for hit in index.spread(query.query, limit=OFFERED)]
        milliseconds = 1000 * (time.perf_counter() - started)
        met = sum(not set(group).isdisjoint(found) for group in query.groups)
        is_hit = any(id in group for id in found[:1] for group in query.groups)
        outcomes.append(_Outcome(query.lang, met / len(query.groups), is_hit, milliseconds))
        unknown += not all(any(id in index for id in group) for group in query.groups)
    if not outcomes:
        raise RecadoError(f"{queries} holds no query")
    return _figures(outcomes) | {
        "build_s": round(build_s, 3),
        "tools": len(index),
        "unknown_tools": unknown,  # queries that need tools which the catalogue does not have
        "languages": {
            language: _figures([one for one in outcomes if one.language == language])
            for language in sorted({one.language for one in outcomes})
        },
    }


def _figures(outcomes: Sequence[_Outcome]) -> dict[str, JSON]:
    return {
        "queries": len(outcomes),
        "complete_at_8": round(100 * fmean(one.share == 1 for one in outcomes), 2),
        "recall_at_8": round(100 * fmean(one.share for one in outcomes), 2),
        "hit_at_1": round(100 * fmean(one.is_hit for one in outcomes), 2),
        "ms_p50": round(median(one.milliseconds for one in outcomes), 3),
    }


def _show(figures: Mapping[str, JSON], *, as_json: bool) -> None:
    if as_json:
        show_json(dict(figures))
        return
    for name, value in figures.items():
        if not isinstance(value, dict):
            show(f"{name.replace('_', ' ')}: {value}")


def _documents(catalog: Path, examples: Path | None) -> Iterator[Document]:
    tools = {tool.tool_id: tool for tool in _rows(catalog, _Tool)}
    if not tools:
        raise RecadoError(f"{catalog} holds no tool")
    phrases: dict[str, list[str]] = {}
    for example in _rows(examples, _Example) if examples else ():
        phrases.setdefault(example.tool_id, []).append(example.query)
    for id, tool in tools.items():
        yield Document(
            id=id,
            name=tool.name,
            description=tool.description,
            category=tool.server,
            parameters={name: text or "" for name, text in tool.parameters.items()},
            examples=tuple(phrases.get(id, ())),
        )


def _rows(path: Path, form: type[R]) -> Iterator[R]:
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise RecadoError(f"{path} cannot be read: {error.strerror}; name a JSONL file") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield form.model_validate_json(line)
        except ValidationError as error:
            fault = first_fault(error)
            hint = "" if error.errors()[0]["loc"] else "write one JSON object a line: "
            raise RecadoError(f"{path}, line {number}: {hint}{fault}") from None


@eval_commands.command("recall")
def eval_recall(
    history: Annotated[Path, typer.Option(help="Messages of conversations, a JSON object a line.")],
    queries: Annotated[Path, typer.Option(help="Questions with the messages that answer them.")],
    as_json: AsJson = False,
) -> None:
    """Measure how well past messages are found: shares of those wanted among the first ten, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(_recall_figures(Path(folder) / "recado.db", history, queries))
    _show(figures, as_json=as_json)


async def _recall_figures(database: Path, history: Path, queries: Path) -> dict[str, JSON]:
    async with open_database(database) as store:
        messages = list(_rows(history, Message))
        ids = await store.tx(lambda conn: write_messages(conn, messages))
        started = time.perf_counter()
        while await store.tx(lambda conn: recall.index(conn, weights, AT_ONCE)):
            continue
        build_s = time.perf_counter() - started
        shares: list[float] = []
        milliseconds: list[float] = []
        for query in _rows(queries, _RecallQuery):
            question, relevant = read_question(query.query), set(query.relevant)
            started = time.perf_counter()
            ranked = await store.tx(partial(rank, person=query.person, question=question))
            milliseconds.append(1000 * (time.perf_counter() - started))
            found = {ids[id] for id, _ in ranked[:RECALLED]}
            shares.append(len(relevant & found) / len(relevant))
    if not shares:
        raise RecadoError(f"{queries} holds no query")
    slowest = sorted(milliseconds)[math.ceil(0.95 * len(milliseconds)) - 1]
    return {
        "queries": len(shares),
        "recall_at_10": round(100 * fmean(shares), 2),
        "complete_at_10": round(100 * fmean(share == 1 for share in shares), 2),
        "ms_p95": round(slowest, 3),
        "build_s": round(build_s, 3),
    }


def write_messages(conn: Connection, messages: Sequence[Message]) -> dict[int, str]:
    """Write the messages as if people had said them, in the order of time; return their ids by row."""
    for person in dict.fromkeys(one.person for one in messages):
        insert(conn, "people", id=person, realm="simulator", created_at=0)
        insert(conn, "conversations", id=person, person_id=person, channel="simulator", created_at=0)
    rows = {}
    for one in sorted(messages, key=lambda one: one.at):
        row = insert(
            conn,
            "messages",
            person_id=one.person,
            conversation_id=one.person,
            direction="out" if one.who == "assistant" else "in",
            kind="text",
            text=f"{one.who}: {one.text}",
            at=one.at,
        )
        rows[row] = one.id
    return rows
