"""A folder dropped beside a running server: an ability at the next message, and no danger to the others."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.skills.folders import write
from tests.standins.mcp_server import command
from tests.standins.model import ModelServer, calls, is_classifier, last_user_text, results
from tests.world import ROOT, Graph, Server, standing

SHIPPED = {"tools", *(folder.name for folder in (ROOT / "skills").iterdir())}

TIDES = '''
from typing import Literal


def tide_table(
    port: str, unit: Literal["m", "ft"] = "m", days: int = 1, stations: list[str] | None = None
) -> dict:
    """Gives the tides of a port.

    Args:
        port: Where.
        unit: Of the heights.
        stations: Only these.

    Example: tides in Lima
    """
    return {"port": port, "unit": unit, "days": days, "stations": stations}
'''
TIDE_TABLE = {
    "type": "function",
    "function": {
        "name": "tide_table",
        "description": "Gives the tides of a port\nExample: tides in Lima",
        "parameters": {
            "type": "object",
            "properties": {
                "port": {"type": "string", "description": "Where."},
                "unit": {
                    "enum": ["m", "ft"],
                    "default": "m",
                    "description": "Of the heights.",
                    "type": "string",
                },
                "days": {"type": "integer", "default": 1},
                "stations": {"type": "array", "items": {"type": "string"}, "description": "Only these."},
            },
            "required": ["port"],
        },
    },
}
GLOSSARY = "references/glossary.md"
LAMPS = 'def switch_lamp(room: str) -> str:\n    """Switches a lamp."""\n    return f"lit: {room}"\n'


def drop(skills: Path, name: str, code: str, body: str = "Body.", metadata: str = "") -> Path:
    """Puts a skill there, or changes it."""
    return write(skills / name, code, body=body, front=f"metadata:\n  {metadata}\n" if metadata else "")


@dataclass
class Harbour:
    """A server whose skills folder is ours, and a model that calls just the tools it is told to call."""

    server: Server
    graph: Graph
    model: ModelServer
    skills: Path
    _numbers: Iterator[int] = field(default_factory=count)

    def turn(self, person: str, *wanted: tuple[str, dict[str, Any]]) -> "Told":
        """One message of a person's, for which the model calls these tools all at once."""
        said = f"message {next(self._numbers)} {json.dumps(wanted)}"
        assert self.graph.ask(person, said) == "done"
        return Told([body for body in self.model.main_calls if said in last_user_text(body)])


@dataclass
class Told:
    """What the model was told in the calls of one turn."""

    bodies: list[dict[str, Any]]

    @property
    def offered(self) -> dict[str, dict[str, Any]]:
        return {tool["function"]["name"]: tool for tool in self.bodies[0].get("tools", ())}

    @property
    def instructions(self) -> str:
        return str(self.bodies[0]["messages"][0]["content"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """In the order of the calls."""
        return results(self.bodies[-1])


def obey(body: dict[str, Any]) -> Any:
    """Plays the model: all categories, then the calls that the message names, then an end."""
    if is_classifier(body):
        listed = str(body["messages"][0]["content"]).partition("Categories:\n")[2]
        names = [line[2:].partition(":")[0] for line in listed.splitlines() if line.startswith("- ")]
        wanted = [name for name in names if name not in SHIPPED]
        return json.dumps({"categories": wanted[:6]})
    _, _, wanted_calls = last_user_text(body).rpartition("message ")[2].partition(" ")
    wanted = [(name, arguments) for name, arguments in json.loads(wanted_calls)]
    if not wanted or body["messages"][-1]["role"] == "tool":
        return "done"
    return calls(*wanted)


@pytest.fixture(scope="module")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    folder = tmp_path_factory.mktemp("harbour")
    skills = folder / "skills"
    skills.mkdir()
    for town in standing(folder, obey, SKILLS_DIR=str(skills), MAX_TOOLS_PER_CALL="100"):
        yield Harbour(town.server, town.graph, town.model, skills)


@pytest.fixture
def harbour(_standing: Harbour) -> Harbour:
    """The harbour, whose folder is empty again."""
    for skill in _standing.skills.iterdir():
        shutil.rmtree(skill)
    for _ in range(3):  # so that the last look is known to hold, until something changes
        assert "tide_table" not in _standing.turn("p0").offered
    return _standing


def test_a_dropped_folder_works_at_the_next_message_of_everybody(harbour: Harbour) -> None:
    drop(harbour.skills, "tides", TIDES, "Heights are above the lowest tide.")
    for person in ("p1", "p2"):
        told = harbour.turn(person, ("tide_table", {"port": "Lima", "unit": "ft", "stations": None}))
        assert told.offered["tide_table"] == TIDE_TABLE
        assert "Heights are above the lowest tide." in told.instructions
        (result,) = told.results
        assert result["ok"], result
        assert result["data"] == {"port": "Lima", "unit": "ft", "days": 1, "stations": None}
    wrong, unknown = harbour.turn(
        "p2", ("tide_table", {"port": "Lima", "unit": "yd"}), ("tide_table", {"port": "Lima", "moon": 1})
    ).results
    assert (wrong["error"]["code"], unknown["error"]["code"]) == ("BAD_REQUEST", "BAD_REQUEST")


def test_a_change_is_seen_and_what_was_deleted_is_gone_at_the_next_message(harbour: Harbour) -> None:
    folder = drop(harbour.skills, "tides", TIDES, "The first body.")
    assert harbour.turn("p0", ("tide_table", {"port": "Lima"})).results[0]["ok"]

    drop(harbour.skills, "tides", TIDES.replace("days: int = 1", "days: int = 7"), "The second body.")
    changed = harbour.turn("p0", ("tide_table", {"port": "Lima"}))
    assert changed.results[0]["data"]["days"] == 7
    parameters = changed.offered["tide_table"]["function"]["parameters"]
    assert parameters["properties"]["days"] == {"type": "integer", "default": 7}
    assert "The second body." in changed.instructions
    assert "The first body." not in changed.instructions

    shutil.rmtree(folder)
    gone = harbour.turn("p0", ("tide_table", {"port": "Lima"}))
    assert "tide_table" not in gone.offered
    assert "The second body." not in gone.instructions
    assert gone.results[0]["error"]["code"] == "UNKNOWN_TOOL"


def test_a_skill_for_owners_does_not_exist_for_anybody_else(harbour: Harbour) -> None:
    code = TIDES.replace("tide_table", "open_vault")
    drop(harbour.skills, "vault", code, "Turn the key.", "audience: owners")
    for person, there in (("p1", False), ("p0", True)):
        told = harbour.turn(person, ("open_vault", {"port": "Lima"}))
        assert ("open_vault" in told.offered, "Turn the key." in told.instructions) == (there, there)
        assert told.results[0]["ok"] is there
        routed = [body for body in harbour.model.requests if is_classifier(body)][-1]
        assert ("- vault" in str(routed["messages"][0]["content"])) is there
        assert ("vault" in harbour.graph.ask(person, "/help")) is there


def test_a_server_that_a_skill_brings_is_there_at_the_next_message(harbour: Harbour) -> None:
    program, *arguments = command(seconds=1)
    written = json.dumps({"mcpServers": {"sums": {"command": program, "args": arguments}}})
    write(harbour.skills / "tides", files={"mcp.json": written})
    assert "mcp_sums_add" in harbour.turn("p0").offered


def test_a_changed_package_and_a_new_file_to_read_count_at_the_next_message(harbour: Harbour) -> None:
    code = 'import sea\n\ndef level() -> int:\n    """The level."""\n    return sea.LEVEL\n'
    folder = drop(harbour.skills, "tides", code)
    package = folder / "scripts" / "sea" / "__init__.py"
    for place in (package.parent, folder / "references"):
        place.mkdir()
    package.write_text("LEVEL = 3\n")
    told = harbour.turn("p0", ("level", {}))
    assert told.results[0]["data"] == 3
    assert "read_skill_file" not in told.offered
    package.write_text("LEVEL = 11\n")
    (folder / "references" / "glossary.md").write_text("Neap: a small tide.")
    told = harbour.turn("p0", ("level", {}), ("read_skill_file", {"skill": "tides", "path": GLOSSARY}))
    assert [result["data"] for result in told.results] == [
        11,
        {"skill": "tides", "path": GLOSSARY, "text": "Neap: a small tide."},
    ]
    assert GLOSSARY in told.instructions


def test_a_broken_folder_is_reported_and_the_others_work(harbour: Harbour) -> None:
    drop(harbour.skills, "tides", TIDES)
    drop(harbour.skills, "lamps", LAMPS)
    assert set(harbour.turn("p0").offered) >= {"tide_table", "switch_lamp"}

    logged = len(harbour.server.log)
    drop(harbour.skills, "tides", "def tide_table(:\n")
    told = harbour.turn("p0", ("tide_table", {"port": "Lima"}), ("switch_lamp", {"room": "hall"}))
    assert "tide_table" not in told.offered
    assert (told.results[0]["ok"], told.results[1]["data"]) == (False, "lit: hall")
    assert "tides" in harbour.server.log[logged:]
    drop(harbour.skills, "tides", TIDES)
    assert harbour.turn("p1", ("tide_table", {"port": "Lima"})).results[0]["ok"]


FATAL = {
    "raises": ("raise RuntimeError('no water')", "INTERNAL"),
    "ends_its_process": ("import os\n    os._exit(3)", "OUTCOME_UNKNOWN"),
    "returns_100_mb": ("return 'x' * (100 * 1024 * 1024)", "OUTPUT_TOO_LARGE"),
}


def test_what_tools_do_to_themselves_fails_and_everything_else_lives(harbour: Harbour) -> None:
    for name, (body, _) in FATAL.items():
        code = f'def {name}() -> object:\n    """Does harm."""\n    {body}\n'
        drop(harbour.skills, name.replace("_", "-"), code)
    drop(harbour.skills, "lamps", LAMPS)
    calls = [(name, {}) for name in FATAL]
    *failed, lamp = harbour.turn("p0", *calls, ("switch_lamp", {"room": "hall"})).results
    assert lamp["data"] == "lit: hall"
    wanted = {name: code for name, (_, code) in FATAL.items()}
    assert {name: result["error"]["code"] for name, result in zip(FATAL, failed, strict=True)} == wanted
    assert harbour.server.http.get("/health").json()["status"] == "ok"
    counted = harbour.server.rows("SELECT tool, code FROM tool_statistics WHERE code <> 'ok'")
    assert {row["tool"]: row["code"] for row in counted if row["tool"] in FATAL} == wanted
