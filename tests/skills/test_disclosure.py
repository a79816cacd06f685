"""Whose texts a prompt holds, and reading the rest of a skill through tools."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.skills import load_skill
from app.skills.model_tools import (
    ALL_CHARACTERS,
    LARGEST_FILE,
    NEW_CHARACTERS,
    narrowed,
    place,
    reading_tools,
)
from app.skills.skill import Skill
from app.tools import ConfirmationPolicy, ExecutionEngine, ToolContext, ToolRegistry, ToolResult
from app.tools.result import MODEL_LIMIT

SIZES = {"small": 100, "other": 200, "half": NEW_CHARACTERS // 2 + 1, "half2": NEW_CHARACTERS // 2 + 1}
SIZES |= {"long": ALL_CHARACTERS - 2 * SIZES["half"], "full": ALL_CHARACTERS, "huge": ALL_CHARACTERS + 1}


def test_the_texts_in_a_prompt() -> None:
    for active, chosen, shown in [
        ([], ["small", "other"], ["small", "other"]),
        ([], ["half", "half2", "small"], ["half", "small"]),
        (["half"], ["half2"], ["half", "half2"]),
        ([], ["long"], []),
        (["long"], [], ["long"]),
        (["full"], ["small"], ["small"]),
        (["small", "long", "half", "half2"], [], ["long", "half", "half2"]),
        (["small", "long", "half", "half2"], ["small"], ["small", "half", "half2"]),
        (["small", "huge"], ["huge"], ["small"]),
    ]:
        assert place(active, chosen, SIZES) == tuple(shown)


def a_skill(folder: Path, body: str = "Do it.", files: Mapping[str, str] | None = None) -> Skill:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: About {folder.name}.\n---\n{body}", "utf-8"
    )
    for path, text in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return load_skill(folder)


def test_files_are_listed_but_for_hidden_ones_and_those_that_we_read(tmp_path: Path) -> None:
    names = ["references/guide.md", "assets/form.txt", "scripts/run.sh", "LICENSE", "assets/phrases.yaml"]
    hidden = [".env", ".git/config", "node_modules/x.js", "scripts/__pycache__/x.pyc", "mcp.json"]
    skill = a_skill(tmp_path / "prose", files=dict.fromkeys([*names, *hidden], "{}"))
    for odd in (b"line\nbreak.md", b"not \xff text.md"):
        Path(os.fsdecode(os.fsencode(skill.folder) + b"/" + odd)).write_text("")
    assert skill.files == ("LICENSE", "assets/form.txt", "references/guide.md", "scripts/run.sh")


class Desk:
    """Two skills, of which one is chosen, behind an engine that asks about everything and runs nothing."""

    def __init__(self, folder: Path) -> None:
        files = {"references/guide.md": "The guide.", "references/ñandú 🐦.md": "bird", ".hidden": "secret"}
        self.skills = {
            "roses": a_skill(folder / "roses", "Prune.", files),
            "tea": a_skill(folder / "tea", "Steep."),
        }
        registry = ToolRegistry(reading_tools(self))
        self._engine = ExecutionEngine(registry, ConfirmationPolicy("confirm-all"), dry_run=True)

    def skill(self, name: str) -> Skill | None:
        return self.skills.get(name)

    async def call(self, tool: str, chosen: Sequence[str] = ("roses",), **arguments: Any) -> ToolResult:
        return await self._engine.execute_tool_call(tool, arguments, ToolContext(chosen=chosen))

    async def read(self, path: str, page: int = 1) -> ToolResult:
        return await self.call("read_skill_file", skill="roses", path=path, page=page)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_skill_is_loaded_without_a_question_and_in_a_dry_run(desk: Desk) -> None:
    result = await desk.call("load_skill", name="roses")
    files = ["references/guide.md", "references/ñandú 🐦.md"]
    assert result.data == {"skill": "roses", "instructions": "Prune.", "files": files}


async def test_a_skill_that_was_not_chosen_is_refused(desk: Desk) -> None:
    reading = ("read_skill_file", {"skill": "tea", "path": "SKILL.md"})
    for tool, arguments in [("load_skill", {"name": "tea"}), reading]:
        for chosen in ((), ("roses",)):
            result = await desk.call(tool, chosen, **arguments)
            assert result.code == "BAD_REQUEST"
            assert "was not chosen" in (result.error.message if result.error else "")


async def test_files_are_read_inside_the_folder_only(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "roses"
    sibling = tmp_path / "roses2"
    sibling.mkdir()
    (sibling / "x.md").write_text("not yours")
    (folder / "inner.md").symlink_to("references/guide.md")
    (folder / "to_hidden.md").symlink_to(".hidden")
    (folder / "outside.md").symlink_to(sibling / "x.md")
    (folder / "away").symlink_to(tmp_path / "tea")
    (folder / "big.md").write_text("x" * (LARGEST_FILE + 1))
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    os.mkfifo(folder / "pipe")
    refused = [
        *("../tea/SKILL.md", "/etc/passwd", str(sibling / "x.md"), "outside.md", "away/SKILL.md"),
        *("to_hidden.md", ".hidden", "references/guide.md\0.txt", "big.md"),
    ]
    for code, paths in {
        "ok": ["references/guide.md", "references/ñandú 🐦.md", "SKILL.md", "inner.md"],
        "BAD_REQUEST": refused,
        "NOT_A_FILE": ["", "references", "pipe"],
        "NOT_TEXT": ["picture.png"],
    }.items():
        for path in paths:
            result = await desk.read(path)
            assert result.code == code, path
            assert "not yours" not in result.to_json()
            assert "secret" not in result.to_json()


LINES = "".join(f"Line {number} — “quoted” ñ.\n" for number in range(4_000))


async def test_a_long_file_is_read_page_by_page(desk: Desk) -> None:
    (desk.skills["roses"].folder / "long.md").write_text(LINES, "utf-8")
    count = (await desk.read("long.md")).data["pages"]
    results = [await desk.read("long.md", page) for page in range(1, count + 1)]
    assert all(len(result.to_json(None).encode()) <= MODEL_LIMIT for result in results)
    pages = [result.data["text"] for result in results]
    assert "".join(pages) == LINES
    assert all(page.endswith("\n") for page in pages)
    assert len(pages) > 3
    assert (await desk.read("long.md", count + 1)).code == "BAD_REQUEST"


def test_the_model_may_choose_among_the_chosen_only(desk: Desk) -> None:
    load, _ = reading_tools(desk)
    parameter = narrowed(load, "name", [desk.skills["tea"]]).get_schema()["function"]["parameters"]
    assert parameter["properties"]["name"] == {
        "type": "string",
        "enum": ["tea"],
        "description": "tea: About tea.",
    }
    assert parameter["required"] == ["name"]
    assert "enum" not in load.input_schema["properties"]["name"]
