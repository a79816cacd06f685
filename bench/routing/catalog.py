"""The catalogue of `messages.jsonl`, from what there is now: our own tools and those of public servers."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from app.mcp.adapter import offered_name
from app.messages import JSON
from app.routing.snapshot import document
from app.search.index import Document
from app.skills import SkillLoader

Rows = Iterable[Mapping[str, JSON]]


def bundled(nowhere: Path) -> list[Document]:
    """The tools of the release as the index reads them; `nowhere`: a folder that holds no other skills."""
    loader = SkillLoader(nowhere)
    loader.refresh()
    return [document(tool, tool.phrases.values()) for tool in loader.tools]


def of_servers(listing: Path) -> Iterator[Document]:
    """The tools of servers, from a file {server: [tools as it lists them]}."""
    for server, tools in json.loads(listing.read_text("utf-8")).items():
        for tool in tools:
            properties = tool["inputSchema"].get("properties", {})
            yield Document(
                id=offered_name(server, tool["name"]),
                name=offered_name(server, tool["name"]),
                description=tool.get("description", ""),
                category=server,
                parameters={name: schema.get("description", "") for name, schema in properties.items()},
            )


def write(documents: Iterable[Document], catalog: Path, examples: Path) -> None:
    """Both files as `recado eval routing` reads them."""
    listed = list(documents)
    write_rows(catalog, map(_row, listed))
    write_rows(examples, ({"tool_id": one.id, "query": said} for one in listed for said in one.examples))


def write_rows(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def _row(document: Document) -> Mapping[str, JSON]:
    return {
        "tool_id": document.id,
        "server": document.category,
        "name": document.name,
        "description": document.description,
        "parameters": dict(document.parameters),
    }
