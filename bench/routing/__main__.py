"""How well the product's index finds tools, as one table: python -m bench.routing."""

import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from app.cli.evaluation import routing_figures
from app.cli.output import table
from app.messages import JSON
from app.search.index import Document, ToolIndex
from app.search.lexicon import FILE, Lexicon
from bench.routing.catalog import Rows, bundled, of_servers, write, write_rows

MESSAGES = Path(__file__).with_name("messages.jsonl")
PUBLIC = ("metatool", "bfcl_pooled", "seal_tools", "ha_intents")
PHRASES = 5
DRAWS = 6
MANY = 7_830
TIMED = 500
HEAD = ("SET", "LANGUAGE", "QUERIES", "COMPLETE@8", "RECALL@8", "HIT@1", "MS P50")


def main() -> None:
    samples = os.environ.get("RECADO_SAMPLES")
    if not samples:
        sys.exit("RECADO_SAMPLES must name the folder with routing/ and mcp_registry/")
    with tempfile.TemporaryDirectory() as folder:
        rows = [*_own(Path(folder), Path(samples)), *_public(Path(folder), Path(samples))]
    print(table(HEAD, rows))
    print()
    print(*_costs(Path(samples)), sep="\n")


def _own(folder: Path, samples: Path) -> Iterator[Sequence[str]]:
    """Both halves of our messages; with the phrases that the bundled skills bring, and without."""
    catalog, phrases = folder / "catalog.jsonl", folder / "phrases.jsonl"
    listing = samples / "mcp_registry" / "real_server_tools.json"
    write([*bundled(folder / "none"), *of_servers(listing)], catalog, phrases)
    for half, odd in (("tuned on (odd)", 1), ("unseen (even)", 0)):
        queries = folder / "queries.jsonl"
        write_rows(queries, [row for row in _read(MESSAGES) if int(row["id"][1:]) % 2 == odd])
        yield from _figures(f"ours, {half}", catalog, queries, phrases)
        yield from _figures(f"ours, {half}, no phrases", catalog, queries, None)


def _public(folder: Path, samples: Path) -> Iterator[Sequence[str]]:
    for name in PUBLIC:
        of = samples / "routing" / name
        yield from _figures(name, of / "catalog.jsonl", of / "queries.jsonl", None)
        if (said := of / "example_utterances.jsonl").exists():
            drawn = [folder / f"drawn{number}.jsonl" for number in range(1, DRAWS + 1)]
            for number, file in enumerate(drawn, start=1):
                write_rows(file, _drawn(_read(said), number))
            named = f"{name}, {PHRASES} phrases a tool, {DRAWS} draws"
            yield from _figures(named, of / "catalog.jsonl", of / "queries.jsonl", *drawn)


def _figures(name: str, catalog: Path, queries: Path, *examples: Path | None) -> Iterator[Sequence[str]]:
    """A row for each language: the mean over the files of examples."""
    found = [routing_figures(catalog, queries, file) for file in examples]
    if unknown := found[0]["unknown_tools"]:
        name = f"{name} ({unknown} queries of unknown tools)"
    for language, one in found[0]["languages"].items():
        means = {key: statistics.mean(each["languages"][language][key] for each in found) for key in one}
        shares = (f"{means[share]:.1f}" for share in ("complete_at_8", "recall_at_8", "hit_at_1"))
        yield name, language, str(one["queries"]), *shares, f"{means['ms_p50']:.2f}"


def _drawn(rows: Rows, number: int) -> Rows:
    """So many phrases of each tool, the same in every run; each `number` is another draw."""
    said: dict[str, list[JSON]] = {}
    for row in rows:
        said.setdefault(row["tool_id"], []).append(row)
    draw = random.Random(number)
    return [row for tool in sorted(said) for row in draw.sample(said[tool], min(PHRASES, len(said[tool])))]


def _costs(samples: Path) -> Iterator[str]:
    """What building, asking and the lexicon take, with thousands of tools; times are of the processor."""
    size = _traced(lambda: Lexicon(FILE.read_text("utf-8").splitlines()))
    yield f"lexicon: {size / 1024:.0f} KB, read when the first message comes"
    documents = _many(samples)
    started = time.process_time()
    index = ToolIndex(documents)
    built = time.process_time() - started
    size = _traced(lambda: ToolIndex(documents))
    yield f"{len(index):,} tools: built in {built:.2f} s, {size / 2**20:.0f} MB"
    messages: dict[str, list[str]] = {}
    for row in _read(MESSAGES):
        messages.setdefault(f"ours, {row['lang']}", []).append(row["query"])
    for name in ("bfcl_pooled", "seal_tools"):
        listed = [row["query"] for row in _read(samples / "routing" / name / "queries.jsonl")]
        messages[name] = listed[:TIMED]
    for name, said in messages.items():
        taken = sorted(_milliseconds(index, text) for text in said)
        yield f"  {name}: p50 {statistics.median(taken):.1f} ms, p99 {taken[len(taken) * 99 // 100]:.1f} ms"


def _traced(make: Callable[[], object]) -> int:
    """Bytes that stay of what `make` makes."""
    gc.collect()
    tracemalloc.start()
    kept = make()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size


def _milliseconds(index: ToolIndex, text: str) -> float:
    started = time.process_time()
    index.spread(text, limit=8)
    return 1000 * (time.process_time() - started)


def _many(samples: Path) -> list[Document]:
    """The tools of all public sets, and some again under other names."""
    rows = [row for name in PUBLIC for row in _read(samples / "routing" / name / "catalog.jsonl")]
    once = list(of_servers(samples / "mcp_registry" / "real_server_tools.json"))
    once += [_document(row, "") for row in rows]
    named = {document.id: document for document in once}
    again = [_document(row, "again_") for row in rows][-(MANY - len(named)) :]
    return [*named.values(), *again]


def _document(row: Mapping[str, JSON], before: str) -> Document:
    name, texts = row["name"], {one: text or "" for one, text in row["parameters"].items()}
    return Document(f"{before}{row['tool_id']}", name, row["description"], row.get("server", ""), texts)


def _read(path: Path) -> Iterator[Mapping[str, JSON]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
